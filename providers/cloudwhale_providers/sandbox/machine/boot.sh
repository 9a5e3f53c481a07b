# Makes the file system of a machine in its own namespaces, and becomes its first process.
# Arguments: DISK NAME; the disk holds image, layer, upper, work, root and docker. All mounts are
# private: they end with the machine.
set -eu
exec 3>&-
disk=$1 name=$2
nodes="null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0"
hostname "$name"
cd "$disk"  # no path is a word of the options: it may have commas and colons
mount -t overlay -o lowerdir=layer:image,upperdir=upper,workdir=work,volatile overlay root
mkdir -p root/var/lib/docker
mount --bind docker root/var/lib/docker
if [ -d images ]; then
    mkdir -p root/var/lib/cloudwhale-images
    mount --bind -o ro images root/var/lib/cloudwhale-images
fi
cd root
mount -t proc -o nosuid,nodev,noexec proc proc
mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs run
mkdir -m 1777 run/lock

# /sys says which cloud this is, which cloud-init goes by, and has the own network.
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys
mount --bind sys/class/net mnt
mount -t tmpfs -o nosuid,nodev,noexec,mode=755 tmpfs sys/class
mkdir -p sys/class/net sys/class/dmi/id
mount --move mnt sys/class/net
mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
cat /proc/self/cgroup >run/groups
while IFS=: read -r _ names _; do
    here=sys/fs/cgroup/${names#name=}
    if [ -n "$names" ]; then
        mkdir "$here"
        mount -t cgroup -o "$names" cgroup "$here"
    elif [ "$(wc -l <run/groups)" -gt 1 ]; then
        mkdir sys/fs/cgroup/unified
        mount -t cgroup2 cgroup sys/fs/cgroup/unified
    else
        umount sys/fs/cgroup
        mount -t cgroup2 cgroup sys/fs/cgroup
        mkdir -p sys/fs/cgroup/init
        echo 1 >sys/fs/cgroup/init/cgroup.procs
        # shellcheck disable=SC2013 # they are words
        for word in $(cat sys/fs/cgroup/cgroup.controllers); do
            echo "+$word" >sys/fs/cgroup/cgroup.subtree_control || true
        done
    fi
done <run/groups
rm run/groups
for word in sys_vendor product_name product_uuid product_serial; do
    [ ! -f "etc/cloudwhale-machine/$word" ] ||
        cat "etc/cloudwhale-machine/$word" >"sys/class/dmi/id/$word"
done

mount -t tmpfs -o nosuid,mode=755 tmpfs dev
for node in $nodes; do
    minor=${node##*:} rest=${node%:*}
    mknod -m 666 "dev/${rest%:*}" c "${rest#*:}" "$minor"
done
mkdir dev/pts
mkdir -m 1777 dev/shm
mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs dev/shm
mount -t devpts -o nosuid,noexec,newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for number in 0:stdin 1:stdout 2:stderr; do
    ln -s "/proc/self/fd/${number%:*}" "dev/${number#*:}"
done
# Stand-ins for GPUs: numbers that no driver has, so that one of this host is never meant.
if [ -f etc/cloudwhale-machine/gpus ]; then
    at=0
    while read -r _; do
        mknod -m 666 "dev/nvidia$at" c 195 "$((128 + at))"
        at=$((at + 1))
    done <etc/cloudwhale-machine/gpus
    mknod -m 666 dev/nvidiactl c 195 254
fi

pivot_root . mnt
exec chroot . /bin/sh -c '
    umount -l /mnt && HOME=/root exec /usr/bin/python3 -I -S /sbin/cloudwhale-init'
