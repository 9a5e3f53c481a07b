"""What boxes leave in this host's own network, where they were killed."""

from collections.abc import Sequence

import pytest

from cloudwhale_providers.sandbox import namespaces
from cloudwhale_providers.sandbox.network import forget_uplink

OWN, DEAD, ALIVE = "0a0a0a0a0a", "dddddddddd", "aaaaaaaaaa"
OTHERS = "-A FORWARD -i br0 -m comment --comment cloudwhale-sandbox -j ACCEPT"


def rule(mark: str) -> str:
    words = f"-i cw{mark} -m comment --comment cloudwhale-sandbox-{mark} -j ACCEPT"
    return f"-A FORWARD {words}"


class Host:
    """This host as iptables and ip see it."""

    def __init__(self) -> None:
        self.rules = [rule(OWN), rule(DEAD), rule(ALIVE), OTHERS]
        self.links = {f"cw{OWN}", f"cw{ALIVE}"}

    def run(self, words: Sequence[str], text: str = "", others: Sequence[int] = ()) -> str:
        match list(words):
            case ["iptables", "-w", "-t", "filter", "-S"]:
                return "".join(f"{line}\n" for line in self.rules)
            case ["iptables", "-w", "-t", "filter", "-D", *rest]:
                self.rules.remove(" ".join(["-A", *rest]))
            case ["ip", "link", "delete", name]:
                self.links.remove(name)
            case _:
                pass
        return ""

    def number_of(self, link: str) -> int:
        if link not in self.links:
            raise OSError("no such link")
        return 7


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host()
    monkeypatch.setattr(namespaces, "run_here", made.run)
    monkeypatch.setattr("socket.if_nametoindex", made.number_of)
    return made


def test_a_box_that_begins_removes_its_own_and_what_dead_boxes_have_left(host: Host) -> None:
    forget_uplink(OWN)
    assert host.rules == [rule(ALIVE), OTHERS]
    assert host.links == {f"cw{ALIVE}"}


def test_a_box_that_has_left_nothing_removes_nothing_of_the_living(host: Host) -> None:
    forget_uplink("0123456789")
    assert rule(ALIVE) in host.rules and rule(OWN) in host.rules
    assert host.links == {f"cw{OWN}", f"cw{ALIVE}"}
