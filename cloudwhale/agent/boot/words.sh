# shellcheck shell=sh
# What the phases of a first boot have in common; read by each of them.
set -u
root=${CLOUDWHALE_ROOT:-}  # where the machine's files lie; empty: where they do
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1

say() {  # what a person is told of this phase; the last time counts
    echo "$*" >>"$CLOUDWHALE_SAID"
    echo "$*"
}

give_up() {
    say "$*"
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

has_systemd() { [ -d "$root/run/systemd/system" ]; }

again() {  # TRIES WORDS...
    tries=$1 pause=2
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep "$pause"
        pause=$((pause * 3))
    done
}

wait_for() {  # SECONDS WORDS...
    left=$(($1 * 4))
    shift
    until "$@" >/dev/null 2>&1; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || return 1
        sleep 0.25
    done
}

need_room() {  # MB FOLDER WHAT_FOR
    room=$(($(df -Pk "$root$2" | tail -n 1 | { read -r _ _ _ free _; echo "$free"; }) / 1024))
    [ "$room" -ge "$1" ] || give_up "the disk has $room MB of room and $3 needs $1 MB:" \
        "$(($1 - room)) MB are lacking; a job that asks for more \`disk\` gets a larger one"
}

apt() {
    apt-get -q -y -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 -o Acquire::http::Timeout=20 \
        -o Acquire::https::Timeout=20 -o Dpkg::Use-Pty=0 "$@" 2>"$CLOUDWHALE_SAID.apt"
    apt_code=$?
    cat "$CLOUDWHALE_SAID.apt"
    return "$apt_code"
}

fetched() { apt update && apt install --no-install-recommends "$@"; }

try_install() {  # PACKAGES...
    dpkg --configure -a  # an upgrade may just have been cut short
    again 3 fetched "$@"
}

install() {  # PACKAGES...
    try_install "$@" || give_up "apt-get could not install $*: $(apt_says)"
}

apt_says() { grep '^E: ' "$CLOUDWHALE_SAID.apt" | head -n 3 | tr '\n' ' '; }
