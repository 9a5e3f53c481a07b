#!/bin/sh
# Docker: what the image has, else its distribution's; set so that no container loses its GPUs.
# shellcheck source-path=SCRIPTDIR source=daemon.sh
. "$(dirname "$0")/daemon.sh"

ROOM_MB=1024  # packages, and the images of a first job are counted by the job itself

# With systemd as the driver of cgroups a `systemctl daemon-reload` takes the GPUs from containers
# that run (NVIDIA Container Toolkit, "Troubleshooting": Failed to initialize NVML).
changed=
if [ "$CLOUDWHALE_GPUS" != 0 ]; then
    set_daemon exec-opts native.cgroupdriver=cgroupfs && changed=yes
    [ $? -ne 1 ] || give_up "/etc/docker/daemon.json of this image cannot be read"
fi
whose="the image's"
if ! has dockerd; then
    need_room "$ROOM_MB" / Docker
    whose="the distribution's"
    install docker.io apparmor  # a kernel with AppArmor runs no container without its parser
elif [ -n "$changed" ] && { docker_answers || docker_runs; }; then
    restart_docker  # one that only begins may have read what stood there before
fi
if ! version=$(docker_answers); then
    { docker_runs && wait_for 30 docker_answers; } || start_docker
    wait_for 60 docker_answers || give_up "Docker does not start: $(docker_says)"
    version=$(docker_answers)
fi
say "$whose Docker $version"
