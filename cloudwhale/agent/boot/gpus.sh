#!/bin/sh
# Proves that a container sees every GPU that was rented; its image is made of this machine's files.
# shellcheck source-path=SCRIPTDIR source=words.sh
. "$(dirname "$0")/words.sh"

wanted=$CLOUDWHALE_GPUS
IMAGE=cloudwhale/proof:1

# The driver stays loaded when nobody uses it: else each first use waits for seconds.
timeout 60 nvidia-smi -pm 1 || echo "persistence could not be set"

# shellcheck disable=SC2012 # names are nvidia and digits
here=$(ls -d "$root"/dev/nvidia[0-9]* 2>/dev/null | wc -l)
seen=$(timeout 60 nvidia-smi -L | grep -c '^GPU ')
[ "$here" -ge "$wanted" ] || give_up "this machine shows $here of its $wanted GPUs as device files"
[ "$seen" -ge "$wanted" ] || give_up "the driver sees $seen of $wanted GPUs"

if [ -e "$root/dev/nvidia-nvswitchctl" ] || [ -e "$root/dev/nvidia-nvswitch0" ]; then
    has nv-fabricmanager || give_up "these GPUs talk through NVSwitches, and nvidia-fabricmanager" \
        "is missing: CUDA would not start; choose an \`image\` that has it"
    if has_systemd; then
        systemctl start nvidia-fabricmanager || give_up "nvidia-fabricmanager does not start:" \
            "$(journalctl -u nvidia-fabricmanager -n 1 -o cat --no-pager)"
    fi
fi

image() {  # a shell and what it is linked with: no registry is asked
    files=$(mktemp -d)
    mkdir -p "$files/bin" "$files/etc" "$files/dev" "$files/proc" "$files/sys" "$files/tmp" \
        "$files/usr/bin"
    shell=$(command -v busybox || command -v dash || command -v sh)
    cp -L "$shell" "$files/bin/sh"
    for library in $(ldd "$shell" 2>/dev/null | grep -o '/[^ )]*'); do
        mkdir -p "$files${library%/*}"
        cp -L "$library" "$files$library"
    done
    tar -C "$files" -c . | docker import - "$IMAGE" >/dev/null
    code=$?
    rm -rf "$files"
    return "$code"
}

# shellcheck disable=SC2016 # the container's own variables
COUNT='n=0; for one in /dev/nvidia[0-9]*; do [ -e "$one" ] && n=$((n + 1)); done; echo "GPUs $n"
[ ! -e /dev/nvidia-uvm ] || echo uvm'

prove() {  # WORDS of `docker run` by which GPUs are asked for
    said=$(docker run --rm --network none "$@" "$IMAGE" /bin/sh -c "$COUNT" 2>&1) ||
        give_up "a container with \`$*\` does not start: $(echo "$said" | tail -n 1)"
    if [ -e "$root/dev/nvidia-uvm" ] && ! echo "$said" | grep -q '^uvm$'; then
        give_up "a container with \`$*\` has no /dev/nvidia-uvm: CUDA would not start there"
    fi
    inside=$(echo "$said" | sed -n 's/^GPUs //p')
    [ "${inside:-0}" -eq "$here" ] ||
        give_up "a container with \`$*\` sees ${inside:-0} of $here GPUs, and starts all the same"
}

image || give_up "Docker takes no image of this machine's own files"
by=$(sed -n 's/^CLOUDWHALE_GPUS_BY=//p' "$CLOUDWHALE_ENVIRONMENT" | tail -n 1)
prove --gpus all
[ "$by" != cdi ] || prove --device nvidia.com/gpu=all
docker rmi "$IMAGE" >/dev/null
say "$here GPUs are seen in a container"
