#!/bin/sh
# Stands in for systemd's shutdown, poweroff, halt and reboot: tells the machine's first process.
at=now
case ${0##*/} in shutdown) at=+1 ;; esac
for word; do
    case $word in
        -c | --cancel) at=cancel ;;
        -*) ;;
        now) at=now ;;
        [0-9]* | +[0-9]*) at=${word#+} && at=+$at ;;
        *) break ;;
    esac
done
case $at in
    cancel) said=cancel ;;
    now) said=0 ;;
    +*[!0-9]*) echo "shutdown: a time like $at is not known in the sandbox" >&2 && exit 1 ;;
    *) said=$((${at#+} * 60)) ;;
esac
echo "$said ${0##*/} $*" >/run/cloudwhale-power
