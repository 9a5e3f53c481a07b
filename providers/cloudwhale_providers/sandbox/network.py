"""The network of a box: a router of its own, a wire to each machine, a way out if there is one.

The router is a network namespace. Each machine's wire ends there in a link of its own, on which its
metadata service listens: what another machine sends never comes in there. Nothing of it is seen in
this host's own network, but for the link by which machines reach the world.
"""

import contextlib
import os
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from cloudwhale_providers.sandbox import namespaces

MACHINES = IPv4Network("10.213.0.0/24")
"""Of every box: each has a router of its own, so that two never meet."""
UPLINKS = IPv4Network("10.214.0.0/16")
"""Each box takes four addresses of them that this host does not use."""
METADATA = "169.254.169.254"
ONE_HOP = 1
"""Time to live of the metadata service's answers: a container behind a machine gets none."""
MINE = "cloudwhale-sandbox"
FORWARDS = Path("/proc/sys/net/ipv4/ip_forward")
GATEWAY = str(MACHINES[1])
NAMESERVERS = Path("/etc/resolv.conf")
_MARKED = re.compile(rf"--comment \"?{MINE}-([0-9a-f]+)\"?(?: |$)")
"""What a box's rules bear."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A machine's end of the network."""

    number: int
    network: int
    """Its namespace."""
    metadata: socket.socket
    """Where its metadata service listens."""

    @property
    def address(self) -> str:
        """Return the machine's own address."""
        return str(MACHINES[self.number])


class Network:
    """The router and its wires; used by one thread."""

    def __init__(self, mark: str) -> None:
        """Make the router of the box that has a mark; raise OSError where that cannot be."""
        self._mark = mark
        self._wires: dict[int, Wire] = {}
        self.router = namespaces.new_network()
        namespaces.run(self.router, ["ip", "-batch", "-"], "link set lo up\n")
        within = namespaces.within
        within(self.router, lambda: _write("/proc/sys/net/ipv4/ip_forward", "1"))

    def listening(self, port: int) -> socket.socket:
        """Return a socket that machines reach at the gateway's address."""
        address = (GATEWAY, port)
        namespaces.run(self.router, ["ip", "-batch", "-"], f"address replace {GATEWAY}/32 dev lo\n")
        return namespaces.within(self.router, lambda: socket.create_server(address, backlog=128))

    def wire(self) -> Wire:
        """Return a new machine's end; raise OSError when none can be made."""
        number = next((one for one in range(2, 255) if one not in self._wires), None)
        if number is None:
            raise OSError(f"all addresses of {MACHINES} are taken")
        network = namespaces.new_network()
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, network)
            namespaces.run(self.router, ["ip", "-batch", "-"], _outside(number, network), [network])
            namespaces.run(network, ["ip", "-batch", "-"], _inside(number))
            listening = namespaces.within(self.router, lambda: _metadata(f"m{number}"))
            stack.pop_all()
        self._wires[number] = Wire(number, network, listening)
        return self._wires[number]

    def cut(self, wire: Wire) -> None:
        """Take a machine's end away; the socket is its service's."""
        del self._wires[wire.number]
        os.close(wire.network)
        with contextlib.suppress(OSError):  # it went with the machine's last process
            namespaces.run(self.router, ["ip", "link", "delete", f"m{wire.number}"])

    def close(self) -> None:
        """Take all of it away."""
        for wire in list(self._wires.values()):
            self.cut(wire)
        os.close(self.router)
        forget_uplink(self._mark)

    # -- the world ---------------------------------------------------------------------------

    def open_to_the_world(self) -> bool:
        """Let machines reach what this host reaches, if it reaches anything; say whether."""
        if not _has_default_route() or FORWARDS.read_text().strip() != "1":
            return False
        name, there = _uplink_name(self._mark), f"{_uplink_name(self._mark)}r"
        near, far = _free_uplink(self._mark)
        words = f"link add {name} type veth peer name {there} netns /proc/self/fd/{self.router}\n"
        words += f"address add {near}/30 dev {name}\nlink set {name} up\n"
        inside = f"address add {far}/30 dev {there}\nlink set {there} up\n"
        inside += f"route add default via {near}\n"
        try:
            namespaces.run_here(["ip", "-batch", "-"], words, [self.router])
            namespaces.run(self.router, ["ip", "-batch", "-"], inside)
            masquerade = ["iptables", "-w", "-t", "nat", "-A", "POSTROUTING", "-o", there]
            namespaces.run(self.router, [*masquerade, "-j", "MASQUERADE"])
            for rule in _rules(name, far):
                namespaces.run_here(["iptables", "-w", *rule.added(self._mark)])
        except OSError:
            forget_uplink(self._mark)
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Rule:
    table: str
    verb: str
    chain: str
    words: tuple[str, ...]

    def added(self, mark: str) -> list[str]:
        comment = ["-m", "comment", "--comment", f"{MINE}-{mark}"]
        return ["-t", self.table, self.verb, self.chain, *self.words[:-2], *comment,
                *self.words[-2:]]  # fmt: skip


def _rules(name: str, far: str) -> Iterable[_Rule]:
    """Return this host's rules; forwarding is allowed first, as Docker forbids it by default."""
    yield _Rule("nat", "-A", "POSTROUTING", ("-s", far, "!", "-o", name, "-j", "MASQUERADE"))
    yield _Rule("filter", "-I", "FORWARD", ("-i", name, "-j", "ACCEPT"))
    yield _Rule("filter", "-I", "FORWARD", ("-o", name, "-j", "ACCEPT"))


def forget_uplink(mark: str) -> None:
    """Remove what a box with a mark has left in this host's own network; none is fine.

    Rules of other boxes go too where their link is gone: who was killed removes none, and nobody
    may ever use its folder again. A link is made before its rules, and removed after them.
    """
    for table in ("nat", "filter"):
        try:
            rules = namespaces.run_here(["iptables", "-w", "-t", table, "-S"])
        except OSError:
            continue  # no iptables here: then there is no rule either
        for line in rules.splitlines():
            found = _MARKED.search(line)
            if found is not None and (found[1] == mark or not _has_uplink(found[1])):
                words = line.replace("-A ", "-D ", 1).split()
                with contextlib.suppress(OSError):
                    namespaces.run_here(["iptables", "-w", "-t", table, *words])
    if _has_uplink(mark):
        with contextlib.suppress(OSError):
            namespaces.run_here(["ip", "link", "delete", _uplink_name(mark)])


def _has_uplink(mark: str) -> bool:
    try:
        socket.if_nametoindex(_uplink_name(mark))
    except OSError:
        return False
    return True


def nameservers() -> tuple[str, ...]:
    """Return this host's servers of names that machines could reach."""
    try:
        lines = NAMESERVERS.read_text().splitlines()
    except OSError:
        return ()
    named = [line.split()[1] for line in lines if line.startswith("nameserver ")]
    return tuple(one for one in named if not one.startswith("127.") and ":" not in one)


# -- the words of ip -------------------------------------------------------------------------


def _outside(number: int, network: int) -> str:
    link = f"m{number}"
    return "".join(
        f"{line}\n"
        for line in (
            f"link add {link} type veth peer name eth0 netns /proc/self/fd/{network}",
            f"address add {GATEWAY}/32 dev {link}",
            f"address add {METADATA}/32 dev {link}",
            f"link set {link} up",
            f"route add {MACHINES[number]}/32 dev {link}",
        )
    )


def _inside(number: int) -> str:
    return "".join(
        f"{line}\n"
        for line in (
            "link set lo up",
            f"address add {MACHINES[number]}/32 dev eth0",
            "link set eth0 up",
            f"route add {GATEWAY}/32 dev eth0",
            f"route add default via {GATEWAY}",
        )
    )


def _metadata(link: str) -> socket.socket:
    """Return the socket of one machine's metadata service: no other link leads to it."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, link.encode())
    listening.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ONE_HOP)
    listening.bind((METADATA, 80))
    listening.listen(64)
    return listening


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)


def _uplink_name(mark: str) -> str:
    return f"cw{mark[:10]}"  # a link's name has 15 letters at most


def _has_default_route() -> bool:
    try:
        lines = Path("/proc/net/route").read_text().splitlines()[1:]
    except OSError:
        return False
    return any(line.split()[1] == "00000000" for line in lines)


def _free_uplink(mark: str) -> tuple[str, str]:
    """Return two addresses that no route of this host leads to."""
    used = _routes()
    blocks = list(UPLINKS.subnets(new_prefix=30))
    begin = int(mark, 16) % len(blocks)
    for block in (*blocks[begin:], *blocks[:begin]):
        if not any(block.overlaps(one) for one in used):
            return str(block[1]), str(block[2])
    raise OSError(f"all of {UPLINKS} is used here")


def _routes() -> list[IPv4Network]:
    found: list[IPv4Network] = []
    for line in Path("/proc/net/route").read_text().splitlines()[1:]:
        _, to, _, _, _, _, _, mask, *_ = line.split()
        if to != "00000000":
            found.append(IPv4Network((_number(to), bin(int(mask, 16)).count("1")), strict=False))
    return found


def _number(told: str) -> int:
    return int.from_bytes(bytes.fromhex(told), "little")
