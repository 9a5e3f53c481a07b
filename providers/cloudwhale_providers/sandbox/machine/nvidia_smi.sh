#!/bin/sh
# Stands in for nvidia-smi: tells of the machine's stand-ins for GPUs.
gpus=/etc/cloudwhale-machine/gpus
driver=580.95.05
tab=$(printf '\t')
each() {  # WORDS: runs them with number, uuid, MiB and name of each
    number=0
    while IFS="$tab" read -r uuid mib name; do
        "$@"
        number=$((number + 1))
    done <"$gpus"
}
list() { echo "GPU $number: $name (UUID: $uuid)"; }
field() {
    case $1 in
        index | minor_number) echo "$number" ;;
        uuid | gpu_uuid) echo "$uuid" ;;
        name | gpu_name) echo "$name" ;;
        driver_version) echo "$driver" ;;
        memory.total) echo "$mib$mebi" ;;
        memory.used) echo "0$mebi" ;;
        count) wc -l <"$gpus" ;;
        *) echo '[N/A]' ;;
    esac
}
row() {
    told=
    for word in $(echo "$query" | tr ',' ' '); do
        told="$told${told:+, }$(field "$word")"
    done
    echo "$told"
}
query='' mebi=' MiB'
for word; do
    case $word in
        -L | --list-gpus) each list && exit 0 ;;
        --query-gpu=*) query=${word#*=} ;;
        --format=*nounits*) mebi='' ;;
        -pm | --persistence-mode*) exit 0 ;;
    esac
done
if [ -n "$query" ]; then each row; else echo "stand-ins for GPUs, driver $driver" && each list; fi
