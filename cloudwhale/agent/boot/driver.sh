#!/bin/sh
# The driver of the GPUs: the image's own, else the one that its distribution has signed.
# shellcheck source-path=SCRIPTDIR source=words.sh
. "$(dirname "$0")/words.sh"

# A branch that Ubuntu 24.04 keeps up (packages.ubuntu.com, "linux-modules-nvidia-580-server-open").
# The open modules need GPUs from Turing on.
branch=${CLOUDWHALE_DRIVER:-580}
ROOM_MB=3072  # modules, libraries and firmware take 1.5 GB while they are unpacked

answers() { smi=$(timeout 60 nvidia-smi -L 2>&1); }

told() {  # WHOSE
    # CUDA needs one more module, whose device file is not there before somebody has asked for it:
    # a CDI specification would not name it.
    modprobe nvidia-uvm
    ! has nvidia-modprobe || nvidia-modprobe -u -c=0
    version=$(timeout 60 nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)
    say "$1 driver $version sees $(echo "$smi" | grep -c '^GPU ') GPUs"
    exit 0
}

if has nvidia-smi; then
    answers && told "the image's"
    modprobe nvidia
    wait_for 20 answers && told "the image's"
    # Another one over it would only add the fault of two versions.
    give_up "the image has a driver that does not work: $(echo "$smi" | tail -n 1);" \
        "choose another \`image\`"
fi

# shellcheck source=/dev/null
. "$root/etc/os-release"
[ "${ID:-}" = ubuntu ] || give_up "${PRETTY_NAME:-this image} has no driver, and its" \
    "distribution has no signed one for the kernel that runs: choose another \`image\`"

need_room "$ROOM_MB" / "the driver"
kernel=$(uname -r)
modules="linux-modules-nvidia-$branch-server-open-$kernel"
if ! try_install "$modules" "nvidia-headless-no-dkms-$branch-server-open" \
    "nvidia-utils-$branch-server"; then
    why=$(apt_says)
    # A kernel that is older or newer than its modules: then they are built here.
    install ubuntu-drivers-common
    again 2 ubuntu-drivers install --gpgpu "nvidia:$branch-server-open" ||
        give_up "no driver of branch $branch for the kernel $kernel: $why"
    install "nvidia-utils-$branch-server"
fi
nvswitches=$(grep -l 0x068000 "$root"/sys/bus/pci/devices/*/class 2>/dev/null |
    sed 's/class$/vendor/' | xargs -r grep -l 0x10de | wc -l)
[ "$nvswitches" -eq 0 ] || install "nvidia-fabricmanager-$branch"
modprobe nvidia
wait_for 30 answers || give_up "the driver that was installed does not work: $(echo "$smi" |
    tail -n 1)"
told "Ubuntu's"
