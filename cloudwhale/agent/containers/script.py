"""What stands in a container between its first process and the job: a few lines of plain shell.

It is the parent of set-up and command, as the shim is for plain processes: it sends their output
to the shim, proves that the GPUs are there, gives what is left after a stop the time to save, and
notes in a shared folder how all of it ended. So a job's end is known, and nothing of its output is
lost, even while Docker itself is away.

Arguments: the shared folder, the GPUs that must be visible, the set-up, the command.
"""

SHELL = "/bin/sh"
OUTPUT, SECRETS, NOTES = "output", "secrets", "notes"
"""In the shared folder: two pipes, and a file."""
SOME_GPUS = "some"
"""Instead of a number: slices of one GPU share its device file."""

SCRIPT = r"""
[ "$PPID" -eq 1 ] || exit 125  # only among processes of our own may all others be told to end
box=$1 gpus=$2 setup=$3 command=$4
exec >"$box/output" 2>/dev/null </dev/null
note() { echo "$*" >>"$box/notes"; }
if [ -p "$box/secrets" ]; then . "$box/secrets"; fi
unset TINI_KILL_PROCESS_GROUP
# A signal reaches all of us; the job's processes have it as they like, and we wait for them.
trap 'stopped=1' HUP INT QUIT USR1 USR2 ALRM TERM

visible=0
for device in /dev/nvidia[0-9]* /dev/dxg; do
    if [ -e "$device" ]; then visible=$((visible + 1)); fi
done
note "gpus $visible"
case $gpus in
    0) ;;
    some) [ "$visible" -gt 0 ] || exit 125 ;;
    *) [ "$visible" -eq "$gpus" ] || [ -e /dev/dxg ] || exit 125 ;;
esac

shell=/bin/sh
if [ -x /bin/bash ]; then shell=/bin/bash; fi
code=0
if [ -n "$setup" ]; then
    "$shell" -c "$setup" 2>&1
    code=$?
    if [ "$code" -ne 0 ]; then note setup-failed; fi
fi
if [ "$code" -eq 0 ] && [ -z "$stopped" ]; then
    note began
    "$shell" -c "$command" 2>&1
    code=$?
fi
if [ -n "$stopped" ]; then note signalled; fi
note "over $code"

# What the job has left: after a stop it may be saving and is killed from outside when its time is
# over; else it is asked to end, and has a second.
tries=10
while kill -0 -1; do
    if [ -z "$stopped" ]; then
        [ "$tries" -lt 10 ] || kill -TERM -1
        [ "$tries" -gt 0 ] || break
        tries=$((tries - 1))
    fi
    sleep 0.1 || sleep 1 || break
done

for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    if [ -r "$file" ]; then
        while read -r word count; do
            if [ "$word" = oom_kill ] && [ "$count" -gt 0 ]; then note oom; fi
        done <"$file"
    fi
done
exit "$code"
"""
