"""Keeps jobs from the machine's metadata service, which hands out the store's credentials.

Three ways lead there: a process of this machine (told by its user), a container behind a bridge
(forwarded), and a container in the host's own network, which is therefore given a user of its own.
Root can neither be told apart from the agent nor kept from anything: no job is root in the host's
network. nftables comes first: a table of its own is taken in whole or not at all, and no restart of
Docker touches it.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path

from cloudwhale.mailbox.kinds import every_kind
from cloudwhale.model.units import Seconds

FOUR, SIX = 4, 6
USUAL = "169.254.169.254"
"""Where most clouds have it, also those in whose stores nobody meets here."""
TABLE = "cloudwhale"
NOT_IN_PATH = ("/usr/sbin", "/sbin")  # a service's PATH may lack them
PARTED = f"""table bridge {TABLE}
delete table bridge {TABLE}
table bridge {TABLE} {{
  chain forward {{
    type filter hook forward priority 0
    drop
  }}
}}
"""
ANSWERS_WITHIN_S: Seconds = 20.0
LOCK_S = "5"  # Docker may be writing its own rules just now
INTERFACES_WITH_IPV6 = Path("/proc/net/if_inet6")


def block_metadata(first_user: int, last_user: int) -> str:
    """Keep users of a range, and containers, from the service; say why that cannot be done.

    Done again, it changes nothing. Empty: it is done.
    """
    nft, four, six = (_program(name) for name in ("nft", "iptables", "ip6tables"))
    refused: list[str] = []
    if nft is not None:
        refused.append(_run([nft, "-f", "-"], _table(first_user, last_user)))
    elif four is None:
        refused.append("there is neither nft nor iptables here")
    if four is not None and (not refused or refused[-1]):
        refused.append(
            _by_iptables(four, _addresses(FOUR), first_user, last_user)
            or _six(six, first_user, last_user)
        )
    if refused and not refused[-1]:
        return ""
    return f"jobs can reach the metadata service: {'; '.join(refused)}"


def part_containers() -> str:
    """Keep containers from one another's ports; say why that cannot be done, empty: it is done.

    What goes from one port of a bridge to another is dropped; what goes out, or to this machine,
    is not. Who must talk, a gang, is in the host's network.
    """
    nft = _program("nft")
    refused = "there is no nft here" if nft is None else _run([nft, "-f", "-"], PARTED)
    return f"containers here reach one another's ports: {refused}" if refused else ""


def _six(program: str | None, first_user: int, last_user: int) -> str:
    if program is not None:
        refused = _by_iptables(program, _addresses(SIX), first_user, last_user)
        if not refused:
            return ""
    else:
        refused = "there is no ip6tables here"
    return refused if _speaks_ipv6() else ""


def _addresses(version: int) -> tuple[str, ...]:
    """Return where stores' clients get a machine's credentials, by IPv4 or IPv6."""
    found = {USUAL, *(one for kind in every_kind() for one in kind.credentials_at)}
    return tuple(sorted(one for one in found if ip_address(one).version == version))


def _speaks_ipv6() -> bool:
    """Say whether anything but the loopback has an IPv6 address."""
    try:
        lines = INTERFACES_WITH_IPV6.read_text().splitlines()
    except OSError:
        return False
    return any(line.split()[-1] != "lo" for line in lines)


def _table(first_user: int, last_user: int) -> str:
    """Return our table of nftables: made if need be, emptied, and filled again, in one go."""
    by = {"ip": _addresses(FOUR), "ip6": _addresses(SIX)}
    to = [f"{kind} daddr {{ {', '.join(these)} }}" for kind, these in by.items() if these]
    ours = "".join(f"    meta skuid {first_user}-{last_user} {one} reject\n" for one in to)
    through = "".join(f"    {one} reject\n" for one in to)
    # Before the usual filters: whoever refuses has the last word, whatever others accept.
    return (
        f"table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n"
        f"  chain output {{\n    type filter hook output priority -10;\n{ours}  }}\n"
        f"  chain forward {{\n    type filter hook forward priority -10;\n{through}  }}\n}}\n"
    )


def _by_iptables(program: str, addresses: Sequence[str], first_user: int, last_user: int) -> str:
    """Put the rules first where they are not yet; return why one cannot be, empty: they are there.

    Docker asks its users to put theirs into DOCKER-USER, keeps what is there, and jumps to it
    first. We make that chain for a Docker that starts later; FORWARD is for where none does.
    """
    ask = _asking([program, "-w", LOCK_S])
    if ask(["-n", "-L", "DOCKER-USER"]):
        ask(["-N", "DOCKER-USER"])  # whether that worked, the rule in it says
    for address in addresses:
        owner = ["-m", "owner", "--uid-owner", f"{first_user}-{last_user}"]
        rules = [["OUTPUT", "-d", address, *owner]]
        rules += [[chain, "-d", address] for chain in ("DOCKER-USER", "FORWARD")]
        for rule in rules:
            told = [*rule, "-j", "REJECT"]
            refused = ask(["-C", *told]) and ask(["-I", *told])
            if refused:
                return refused
    return ""


def _asking(program: Sequence[str]) -> Callable[[Sequence[str]], str]:
    return lambda words: _run([*program, *words])


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *NOT_IN_PATH)))


def _run(words: Sequence[str], text: str = "") -> str:
    """Run a program; return why it failed, empty when it did not."""
    try:
        done = subprocess.run(
            words, input=text, capture_output=True, text=True, check=False, timeout=ANSWERS_WITHIN_S
        )
    except (OSError, subprocess.TimeoutExpired) as trouble:
        return str(trouble)
    if done.returncode == 0:
        return ""
    last = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[0]
    return f"{Path(words[0]).name}: {last}"
