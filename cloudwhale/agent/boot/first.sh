#!/bin/sh
# The first boot of a rented machine: from its unpacked archive to an agent that watches its end.
#
# Whoever runs this has armed the machine's end, has told that `bundle` has begun, and says in the
# environment:
#   CLOUDWHALE_BUNDLE       folder of the unpacked archive, in which this lies as boot/first.sh
#   CLOUDWHALE_STORE        program: `tell PHASE STATE [TOOK_S] [WORDS] [-- PHASE ...]`, and
#                           `lease`, which prints NUMBER:SECONDS
#   CLOUDWHALE_ENVIRONMENT  file of NAME=VALUE lines that the agent's environment must hold
#   CLOUDWHALE_MAILBOX, CLOUDWHALE_NODE, CLOUDWHALE_NOTICES
#   CLOUDWHALE_DOOR         who this machine is to the mailbox's store; empty: it tells none apart
#   CLOUDWHALE_GPUS         how many the machine was rented with; 0: none, and none is looked for
# and an image may say of itself:
#   CLOUDWHALE_AGENT_WORDS  more words for the agent, as a shell reads them
#   CLOUDWHALE_WITHOUT      phases that it has no use for: "driver toolkit"
#   CLOUDWHALE_DRIVER       branch of the driver where there is none yet
#
# Each phase is a file beside this one, has a limit of its own, and is told when it begins and when
# it is over. One that fails ends the machine.
set -u
here=$(cd "$(dirname "$0")" && pwd)
CLOUDWHALE_SAID=${CLOUDWHALE_SAID:-$(mktemp -d)/said}
export CLOUDWHALE_SAID CLOUDWHALE_GPUS="${CLOUDWHALE_GPUS:-0}"
log="$CLOUDWHALE_SAID.log"

tell() { timeout 60 "$CLOUDWHALE_STORE" tell "$@"; }

ends() {  # CODE LIMIT_S; what the phase said, and what else was heard
    says=$(tail -n 1 "$CLOUDWHALE_SAID")
    cat "$log" >&2
    [ -n "$says" ] || says=$(grep -v '^[[:space:]]*$' "$log" | tail -n 1)
    case $1 in
        124 | 137) says="took longer than its $2 s${says:+; the last that was heard: $says}" ;;
    esac
    says=${says:-it ended with $1}
    echo "cloudwhale: $name: $says" >&2
}

# What upgrades by itself holds dpkg's lock, takes the driver from under its module, and restarts
# Docker under its containers: not on a machine that lives for hours.
if [ -d "${CLOUDWHALE_ROOT:-}/run/systemd/system" ]; then
    timeout 60 systemctl mask --now --quiet apt-daily.timer apt-daily-upgrade.timer \
        apt-daily.service apt-daily-upgrade.service unattended-upgrades.service
fi

# What is over and what begins is told at once: it takes a machine's breath to start a program.
# The archive is there, or nobody would run this.
set -- -- bundle 'done'
# Together shorter than the half hour after which the machine ends by itself.
for one in driver:600 docker:240 toolkit:240 gpus:120 agent:120; do
    name=${one%:*} limit=${one#*:}
    case " ${CLOUDWHALE_WITHOUT:-} " in
        *" $name "*)
            set -- "$@" -- "$name" 'done' 0 "this image has no use for it"
            continue
            ;;
    esac
    case "$CLOUDWHALE_GPUS $name" in
        "0 driver" | "0 toolkit" | "0 gpus")
            set -- "$@" -- "$name" 'done' 0 "no GPU was rented"
            continue
            ;;
    esac
    set -- "$@" -- "$name" begun
    shift
    tell "$@"
    : >"$CLOUDWHALE_SAID"
    timeout -k 10 "$limit" sh "$here/$name.sh" >"$log" 2>&1 </dev/null
    code=$?
    if [ "$code" -ne 0 ]; then
        ends "$code" "$limit"
        tell "$name" failed '' "$says"
        shutdown -h now
        exit 1
    fi
    set -- -- "$name" 'done' '' "$(tail -n 1 "$CLOUDWHALE_SAID")"
done
shift
tell "$@"
