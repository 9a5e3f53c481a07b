# Goes into a machine's control groups and namespaces; this process stays the machine's for others.
# Arguments: BOOT DISK NAME GROUP...; file 3 is the machine's network.
# The machine ends with whoever started it, and nothing of it is left then.
set -eu
boot=$1 disk=$2 name=$3
shift 3
for group; do echo $$ >"$group/cgroup.procs"; done
# The clock, the modules and the power of this host are not a machine's.
exec setpriv --pdeathsig KILL --bounding-set -sys_time,-sys_module,-sys_boot nsenter --net=/proc/self/fd/3 \
    unshare --mount --pid --uts --ipc --cgroup --fork --kill-child=KILL \
    sh "$boot" "$disk" "$name"
