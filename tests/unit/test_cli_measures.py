"""What agents measured last is read from their heartbeats, and only while it is fresh."""

from pathlib import Path

from makers import a_node

from cloudwhale.cli.measures import TOO_OLD_S, looks
from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.mailbox.box import inbox_from
from cloudwhale.mailbox.documents import AttemptStarted, Heartbeat
from cloudwhale.mailbox.objects import Objects, open_objects
from cloudwhale.model.node import Measured, NodeState
from cloudwhale.spi.errors import CloudwhaleError

HERE = [a_node("host")]


def a_mailbox(folder: Path, *bodies: str) -> Objects:
    objects = open_objects(folder.as_uri())
    box = inbox_from(objects, "host")
    for number, body in enumerate(bodies):
        box.post(body.encode(), number)
    return objects


def a_heartbeat(at: float, cpu: float | None) -> str:
    measured = None if cpu is None else Measured(cpu=cpu)
    return Heartbeat(at=at, agent="a", measured=measured).model_dump_json()


def test_the_newest_heartbeat_counts_whatever_was_posted_after_it(tmp_path: Path) -> None:
    started = AttemptStarted(at=13.0, agent="a", job="j", attempt=1).model_dump_json()
    objects = a_mailbox(tmp_path, a_heartbeat(2.0, 1.0), a_heartbeat(12.0, 2.0), started)
    found = looks(Mailboxes(objects), HERE, 14.0)["host"]
    assert (found.at, found.measured.cpu) == (12.0, 2.0)


def test_what_was_measured_long_ago_is_not_shown(tmp_path: Path) -> None:
    objects = a_mailbox(tmp_path, a_heartbeat(2.0, 1.0))
    assert looks(Mailboxes(objects), HERE, 2.0 + TOO_OLD_S + 1) == {}


def test_an_agent_that_measures_nothing_is_left_out(tmp_path: Path) -> None:
    assert looks(Mailboxes(a_mailbox(tmp_path, a_heartbeat(2.0, None))), HERE, 3.0) == {}


def test_a_lost_node_is_not_asked(tmp_path: Path) -> None:
    objects = a_mailbox(tmp_path, a_heartbeat(2.0, 1.0))
    assert looks(Mailboxes(objects), [a_node("host", state=NodeState.LOST)], 3.0) == {}


def test_a_document_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    objects = a_mailbox(tmp_path, a_heartbeat(2.0, 1.0), "{", '{"kind": "of-the-future"}')
    assert looks(Mailboxes(objects), HERE, 3.0)["host"].measured.cpu == 1.0


class Unreachable:
    """A mailbox that answers nothing but keys."""

    def __getattr__(self, name: str) -> object:
        raise CloudwhaleError("the store is away", "")


def test_a_mailbox_that_is_away_leaves_what_is_promised(tmp_path: Path) -> None:
    away: Objects = Unreachable()  # type: ignore[assignment]
    assert looks(Mailboxes(away), HERE, 3.0) == {}
