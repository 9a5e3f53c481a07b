"""What a machine does when it boots: the same text for all machines of one agent version.

A script whose first line is `#!/bin/sh` is a format of cloud-init's own ("User-data script"), which
runs it once, as root, when the network is there. What differs between machines stands in their
tags. The line that begins with `# cloudwhale: ` is JSON for whoever reads the text without running
it. Nothing secret may stand here: whoever may describe an instance reads it.

It arms the machine's end, sets the clock, fetches the agent's archive, and hands over to
`boot/first.sh` in it. For that and for the agent the environment says:

- CLOUDWHALE_MAILBOX, _REGION, _NODE, _LEASE, _INSTALLATION, _GPUS: as the tags say
- CLOUDWHALE_DOOR: who the machine is to the mailbox's bucket; may be empty
- CLOUDWHALE_NOTICES: who hears that the provider takes the machine
- CLOUDWHALE_STORE: the program that asks the mailbox (machine_asking.py, and a cloud's own part)
- CLOUDWHALE_ENVIRONMENT: a file with what the agent's environment must hold
- CLOUDWHALE_BUNDLE: the folder of the unpacked archive

A sandbox says before that where the store and the metadata service are, as the cloud's own clients
are told, and how time goes (CLOUDWHALE_CLOCK); tests say for how many seconds something is tried
(CLOUDWHALE_PATIENCE_S, else 60) and where files lie (CLOUDWHALE_PLACE, CLOUDWHALE_ROOT).
"""

import gzip
import json
import re
from base64 import encodebytes
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from cloudwhale.spi.errors import Denied

TAKEN_OVER_MIN = 30
"""Minutes within which the agent must have taken the watchdog over, installing included."""
SKEW_S = 30  # more between this clock and the store's is refused by the agent as well
ROOM_MB = 1024  # the archive has 40 MB, unpacked 150; what is on a disk is never known to the byte
PLACE = "/opt/cloudwhale"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PLAIN = re.compile(r"[\w./-]*", re.ASCII)
"""What a shell takes as it is, in double quotes and in a format of `printf` too."""
_JOINT = re.compile(r"^from cloudwhale_providers\.(machine_\w+) import \(.*?^\)\n", re.M | re.S)
"""What joins the parts of the program here, and is one text there."""

ARMED = """\
#!/bin/sh
shutdown -h +@minutes@
# The machine ends by then (its shutdown terminates it), unless an agent has taken the watch over.
# cloudwhale: @block@
set -u
umask 022
place=${CLOUDWHALE_PLACE:-@place@}
mkdir -p "$place"
export CLOUDWHALE_MAILBOX='@mailbox@' CLOUDWHALE_REGION='@region@' CLOUDWHALE_NOTICES=@notices@
@exports@export CLOUDWHALE_STORE="$place/store" CLOUDWHALE_ENVIRONMENT="$place/environment"
base64 -d <<'END OF THE STORE' | gzip -d >"$place/store"
"""

SCRIPT = """\
END OF THE STORE
chmod 755 "$place/store"
(umask 077 && printf '@environment@' >"$place/environment")

tell() { timeout 60 "$CLOUDWHALE_STORE" tell "$@"; }
ends() {
    echo "cloudwhale: $1: $2" >&2
    tell "$1" failed '' "$2"
    shutdown -h now
    exit 1
}
try() {  # PHASE LIMIT_S WORDS...; what the words say last is why the machine ends
    phase=$1 limit=$2
    shift 2
    timeout -k 5 "$limit" "$@" 2>"$place/error" && return
    code=$?
    says=$(tail -n 1 "$place/error")
    case $code in
        124 | 137) says="$phase took longer than its $limit s${says:+: $says}" ;;
    esac
    ends "$phase" "${says:-$1 ended with $code}"
}
# A second end, which needs no bus, and which no clock that is set brings near or puts off.
{ sleep $((@minutes@ * 60)) && [ ! -e "$place/agent" ] && shutdown -h now; } \
    >/dev/null 2>&1 </dev/null &
# A machine that starts again before it has an agent has nobody who watches it.
boots="${CLOUDWHALE_ROOT:-}/var/lib/cloud/scripts/per-boot"
if mkdir -p "$boots"; then
    printf '#!/bin/sh\\n[ -e "%s/agent" ] || shutdown -h now\\n' "$place" >"$boots/cloudwhale"
    chmod 755 "$boots/cloudwhale"
fi

try watchdog 120 "$CLOUDWHALE_STORE" about >"$place/about"
# shellcheck source=/dev/null
. "$place/about"
left_s=${left_s:-0}

is_close() {  # `ahead` is in seconds; negative: this clock is behind
    [ "${ahead#-}" -le @skew@ ]
}
ask_clock() {
    try watchdog 90 "$CLOUDWHALE_STORE" clock >"$place/clock"
    read -r ahead store_now <"$place/clock"
    is_close
}
set_clock() {
    [ -z "${CLOUDWHALE_CLOCK:-}" ] || return  # time is pretended here: there is none to set
    chronyc -a makestep && sleep 2 && ask_clock && return
    timedatectl set-ntp true && sleep 5 && ask_clock && return
    ask_clock
    date -u -s "@$store_now" && ask_clock
}
if ! is_close; then
    shutdown -c  # it waits for a time of day: a clock that is set by hours would end us now
    if ! set_clock >/dev/null; then
        [ "$ahead" -lt 0 ] && way=behind || way='ahead of'
        ends watchdog "this machine's clock is ${ahead#-} s $way the mailbox's, and could not be \\
set; more than @skew@ s is not borne"
    fi
    shutdown -h +@minutes@
fi
left=$(((left_s + 119) / 60))
[ "$left" -ge @minutes@ ] || shutdown -h "+$left"
tell watchdog begun -- watchdog 'done' -- bundle begun

room=$(($(df -Pk "$place" | tail -n 1 | { read -r _ _ _ room _; echo "$room"; }) / 1024))
[ "$room" -ge @room_mb@ ] || ends bundle "the disk has $room MB of room, @room_mb@ are needed: \\
$((@room_mb@ - room)) MB are lacking"
export CLOUDWHALE_BUNDLE="$place/@folder@"
if ! [ -e "$CLOUDWHALE_BUNDLE" ]; then
    archive="$place/bundle.tar.gz"
    for _ in 1 2; do
        try bundle 300 "$CLOUDWHALE_STORE" get '@bundle@' "$archive"
        found=$(sha256sum "$archive" | cut -d ' ' -f 1)
        [ "$found" != '@sha256@' ] || break
    done
    [ "$found" = '@sha256@' ] || ends bundle "@bundle@ holds something else, by its SHA-256 $found"
    rm -rf "$place/unpacking"
    mkdir "$place/unpacking"
    try bundle 300 tar -xzf "$archive" -C "$place/unpacking"
    mv "$place/unpacking" "$CLOUDWHALE_BUNDLE"
    rm "$archive"
fi
[ -r "$CLOUDWHALE_BUNDLE/boot/first.sh" ] || ends bundle "@bundle@ has no boot/first.sh"
exec sh "$CLOUDWHALE_BUNDLE/boot/first.sh"
"""


@dataclass(frozen=True, slots=True)
class Cloud:
    """What a cloud's machines are told besides, and how much of it the cloud takes."""

    name: str
    """For a person, `AWS`."""
    package: str
    """Where the second half of the program lies that machines ask with, as machine_store.py."""
    notices: str
    """Who hears that the cloud takes the machine: an entry point of `cloudwhale.notices`."""
    most_bytes: int
    """Of the text, before whatever it is wrapped in."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """What every program there finds in its environment; may hold @region@."""
    told: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the first boot alone finds there."""


def first_words(cloud: Cloud, mailbox: str, region: str, bundle: str) -> str:
    """Return the text for a mailbox, its region, and the bundle's key there.

    Raise Denied when it is longer than the cloud takes, or would not be one word to a shell.
    """
    plain = all(_PLAIN.fullmatch(word) for word in (region, bundle))
    if not plain or not mailbox.isprintable() or "'" in mailbox:
        words = ", ".join(map(repr, (mailbox, region, bundle)))
        raise Denied(f"{words} cannot be said to a machine", "Use plain letters and digits.")
    filled = _words(cloud, mailbox, region, bundle)
    text = _filled(ARMED, filled) + _carried(cloud.package) + _filled(SCRIPT, filled)
    size = len(text.encode())
    if size > cloud.most_bytes:
        raise Denied(
            f"what machines are told at boot has {size} bytes, and {cloud.name} takes "
            f"{cloud.most_bytes}",
            "Give the mailbox a shorter URL.",
        )
    return text


def _words(cloud: Cloud, mailbox: str, region: str, bundle: str) -> dict[str, Any]:
    """Return what stands between two @ in the script."""
    found = _SHA256.search(bundle)
    sha256 = found[0] if found else ""
    said = {"mailbox": mailbox, "region": region, "bundle": bundle, "sha256": sha256}
    own = {key: _filled(value, said) for key, value in cloud.environment.items()}
    exports = " ".join(f"{key}='{value}'" for key, value in {**own, **cloud.told}.items())
    return said | {
        "block": json.dumps(said, sort_keys=True), "minutes": TAKEN_OVER_MIN, "place": PLACE,
        "skew": SKEW_S, "room_mb": ROOM_MB, "folder": sha256 or "bundle",
        "notices": cloud.notices, "exports": f"export {exports}\n" if exports else "",
        "environment": "".join(f"{key}={value}\\n" for key, value in own.items()),
    }  # fmt: skip


def _filled(text: str, words: Mapping[str, Any]) -> str:
    """Return a text with what stands between two @ replaced."""
    return re.sub("@([a-z_0-9]+)@", lambda found: str(words[found[1]]), text)


def program(package: str) -> str:
    """Return the program that a cloud's machines ask their mailbox with: one text, of its parts.

    `package`: where the last one lies, which imports the others.
    """
    last = resources.files(package).joinpath("machine_store.py").read_text()
    parts = [_part(one) for one in _JOINT.findall(last)]
    return "\n\n".join([*parts, _JOINT.sub("", last)])


def _part(name: str) -> str:
    text = resources.files("cloudwhale_providers").joinpath(f"{name}.py").read_text()
    return _JOINT.sub("", text)


@cache
def _carried(package: str) -> str:
    """Return the program in half of its bytes."""
    return encodebytes(gzip.compress(program(package).encode(), mtime=0)).decode()
