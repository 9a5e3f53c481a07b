#!/bin/sh
# NVIDIA's container toolkit: what the image has, else NVIDIA's own package; told to Docker.
# shellcheck source-path=SCRIPTDIR source=daemon.sh
. "$(dirname "$0")/daemon.sh"

VERSION=1.20.0-1  # of NVIDIA/libnvidia-container's stable list, August 2026
FROM=https://nvidia.github.io/libnvidia-container
SPECIFIES=25  # the first Docker that takes devices by CDI (Docker Engine 25.0, release notes)
ROOM_MB=256

add_repository() {  # as NVIDIA's installation guide has it, "With apt: Ubuntu, Debian"
    keyring="$root/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
    list="$root/etc/apt/sources.list.d/nvidia-container-toolkit.list"
    mkdir -p "${keyring%/*}" "${list%/*}"
    rm -f "$keyring"
    curl -fsSL --max-time 60 "$FROM/gpgkey" | gpg --batch --dearmor -o "$keyring" || return 1
    # Two lists with different keyrings make apt refuse both.
    grep -ls libnvidia-container "${list%/*}"/*.list | grep -v "^$list\$" | xargs -r rm -f
    curl -fsSL --max-time 60 "$FROM/stable/deb/nvidia-container-toolkit.list" |
        sed "s#deb https://#deb [signed-by=$keyring] https://#" >"$list"
    [ -s "$list" ]
}

installed=
if ! has nvidia-ctk; then
    need_room "$ROOM_MB" / "NVIDIA's container toolkit"
    install ca-certificates curl gnupg
    again 4 add_repository || give_up "NVIDIA's packages cannot be reached at $FROM"
    install "nvidia-container-toolkit=$VERSION" "nvidia-container-toolkit-base=$VERSION" \
        "libnvidia-container-tools=$VERSION" "libnvidia-container1=$VERSION"
    installed=yes
fi

before=$(cat "$root/etc/docker/daemon.json" 2>/dev/null)
version=$(docker_version)
by=hook
specification="$root/var/run/cdi/nvidia.yaml"
if [ "${version%%.*}" -ge "$SPECIFIES" ] && mkdir -p "${specification%/*}" &&
    nvidia-ctk cdi generate --output="$specification" &&
    nvidia-ctk cdi list 2>/dev/null | grep -q '^nvidia.com/gpu='; then
    by=cdi
    nvidia-ctk runtime configure --runtime=docker --cdi.enabled
else
    nvidia-ctk runtime configure --runtime=docker
fi || give_up "nvidia-ctk could not write Docker's daemon.json"
# Docker looks for the hook, and reads what it is set to, when it starts.
if [ -n "$installed" ] || [ "$before" != "$(cat "$root/etc/docker/daemon.json")" ]; then
    restart_docker
    wait_for 60 docker_answers || give_up "Docker does not start again: $(docker_says)"
fi
echo "CLOUDWHALE_GPUS_BY=$by" >>"$CLOUDWHALE_ENVIRONMENT"
say "$(nvidia-ctk --version | head -n 1), GPUs by $by"
