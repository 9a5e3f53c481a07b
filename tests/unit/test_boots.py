"""What machines tell of their first boot: read once, in order, and believed no further than due."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from clouding import RENTING
from keeping_world import BOOTING, NAME, READY, job, world
from keeping_world import kept as kept_in

from cloudwhale.control.boots import NAME_MOST, PACE, READ_MOST, SAYS_MOST, Boots, Tidings
from cloudwhale.control.inboxes import Cadence
from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.mailbox.box import boot_of
from cloudwhale.mailbox.documents import BootTold
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.world import World
from cloudwhale.planning import booting
from cloudwhale.planning.stirring import QUIET, stir

NODE = NodeState.EXPECTED


class Ears:
    """A reader with the world that what it reads leads to."""

    def __init__(self, *rentals: Rental, cadence: Cadence = PACE) -> None:
        self.objects: StoreObjects = open_objects("memory:///")
        self.boots = Boots(Mailboxes(self.objects), cadence)
        self.rentals = {one.id: one for one in rentals or (BOOTING,)}
        self.node = NODE

    def say(self, *bodies: bytes, name: str = NAME) -> None:
        box = boot_of(self.objects, name)
        for body in bodies:
            box.post(body, box.newest())

    def world(self, now: float) -> World:
        of = world(BOOTING, job(), node=self.node, now=now)
        return replace(of, rentals=self.rentals)

    def asked(self, now: float) -> list[Tidings]:
        """Take the looks that are due."""
        looks = self.boots.looks(self.world(now), now)
        return [told for look in looks if isinstance(told := look.do(), Tidings)]

    def heard(self, now: float) -> list[e.BootTold]:
        """Take the looks that are due, and fold what comes of them."""
        found: list[e.BootTold] = []
        for told in self.asked(now):
            found += self.boots.came(told, self.world(now), now)
        for event in found:
            rental = self.rentals[event.rental]
            self.rentals[event.rental] = booting.told(rental, self.world(now).nodes[NAME], event)
        return found

    @property
    def rental(self) -> Rental:
        return self.rentals[NAME]


def doc(phase: str, state: Any, at: float = 100.0, **fields: Any) -> bytes:
    return BootTold(at=at, phase=phase, state=state, **fields).model_dump_json().encode()


def states(events: Sequence[e.BootTold]) -> list[str]:
    return [f"{one.number} {one.phase} {one.state}" for one in events]


# -- reading -----------------------------------------------------------------------------------


def test_phases_are_read_in_order_and_each_once() -> None:
    ears = Ears()
    ears.say(doc("watchdog", "begun", 1.0), doc("watchdog", "done", 1.5, took_s=0.5))
    assert states(ears.heard(2.0)) == ["1 watchdog begun", "2 watchdog done"]
    ears.say(doc("docker", "begun", 3.0))
    assert states(ears.heard(4.0)) == ["3 docker begun"]
    assert ears.heard(6.0) == []
    boot = ears.rental.boot
    assert (boot.phase, boot.state, boot.since) == ("docker", "begun", 3.0)
    assert boot.took_s == {"watchdog": 0.5} and boot.under_way == "docker"


def test_a_reader_that_starts_again_goes_on_where_the_store_is() -> None:
    ears = Ears()
    ears.say(doc("watchdog", "begun"), doc("watchdog", "done"))
    ears.heard(2.0)
    ears.boots = Boots(Mailboxes(ears.objects))
    ears.say(doc("bundle", "begun"))
    assert states(ears.heard(2.5)) == ["3 bundle begun"]


def test_what_is_read_twice_is_folded_once() -> None:
    ears = Ears()
    ears.say(doc("docker", "begun", 1.0), doc("docker", "done", 9.0, took_s=8.0))
    (tidings,) = ears.asked(10.0)
    before = ears.world(10.0)
    events = [*ears.boots.came(tidings, before, 10.0), *ears.boots.came(tidings, before, 11.0)]
    rental = ears.rental
    for event in events:
        rental = booting.told(rental, None, event)
    assert rental.boot.read == 2 and rental.boot.took_s == {"docker": 8.0}
    assert booting.told(rental, None, events[0]) is rental


def test_a_machine_is_asked_every_two_seconds_and_many_machines_share_the_rate() -> None:
    few = Ears()
    assert [len(few.asked(now)) for now in (0.0, 1.0, 1.9, 2.0, 3.0)] == [1, 0, 0, 1, 0]
    assert few.boots.next_look_at() == 4.0
    rentals = [BOOTING.but(id=f"r{n}", node=f"r{n}") for n in range(100)]
    many = Ears(*rentals, cadence=Cadence(2.0, 0.05))
    assert [len(many.asked(now)) for now in (0.0, 2.0, 4.9, 5.0)] == [100, 0, 0, 100]


def test_a_clock_that_goes_back_keeps_nobody_from_asking() -> None:
    ears = Ears()
    assert [len(ears.asked(now)) for now in (1000.0, 10.0, 11.0, 12.0)] == [1, 1, 0, 1]


@pytest.mark.parametrize(
    "rental",
    [
        READY,
        BOOTING.but(state=RentalState.DRAINING),
        BOOTING.but(ended_at=90.0),
        BOOTING.but(boot=BOOTING.boot.but(phase="docker", state="failed")),
        BOOTING.but(boot=BOOTING.boot.but(read=READ_MOST)),
    ],
)
def test_a_machine_that_boots_no_more_is_asked_nothing(rental: Rental) -> None:
    ears = Ears(rental)
    assert ears.asked(100.0) == [] and ears.boots.next_look_at() is None


@pytest.mark.parametrize("state", [NodeState.READY, NodeState.DRAINING, NodeState.LOST])
def test_once_its_agent_has_joined_a_machine_is_asked_nothing_more(state: NodeState) -> None:
    ears = Ears()
    ears.node = state
    assert ears.asked(100.0) == []


# -- what cannot be believed -------------------------------------------------------------------


GARBAGE = [
    b"", b"\xff\xfe\x00", b"{", b"[]", b"null", b'"begun"',
    b'{"v":1,"at":1.0,"phase":"docker"}',
    b'{"v":1,"at":1.0,"phase":"docker","state":"skipped"}',
    b'{"v":1,"at":"noon","phase":"docker","state":"begun"}',
]  # fmt: skip


@pytest.mark.parametrize("body", GARBAGE)
def test_what_nobody_understands_is_told_and_read_past(body: bytes) -> None:
    ears = Ears()
    ears.say(doc("bundle", "begun", 1.0), body, doc("bundle", "done", 3.0, took_s=2.0))
    assert [one.state for one in ears.heard(4.0)] == ["begun", "unreadable", "done"]
    assert ears.rental.boot.took_s == {"bundle": 2.0} and ears.rental.boot.read == 3


def test_a_newer_version_and_a_phase_that_nobody_knows_are_taken_as_they_are() -> None:
    ears = Ears()
    ears.say(b'{"v":9,"at":1.0,"phase":"firmware","state":"begun","disk":"new","took_s":null}')
    (event,) = ears.heard(2.0)
    assert (event.phase, event.state) == ("firmware", "begun")


def test_words_of_a_machine_are_one_line_of_bounded_length_that_commands_no_terminal() -> None:
    ears = Ears()
    ears.say(doc("d\x1b[2Jocker" * 20, "failed", says="E: no\n\x1b]0;title\x07 " * 1000))
    (event,) = ears.heard(2.0)
    assert len(event.phase) <= NAME_MOST and len(event.says) <= SAYS_MOST
    assert event.phase.isprintable() and event.says.isprintable()


@pytest.mark.parametrize("took", [b"-1", b"NaN", b"Infinity", b"1e300"])
def test_a_length_that_cannot_be_is_not_kept(took: bytes) -> None:
    ears = Ears()
    ears.say(b'{"v":1,"at":1.0,"phase":"docker","state":"done","took_s":' + took + b"}")
    (event,) = ears.heard(2.0)
    assert event.took_s is None and ears.rental.boot.took_s == {}


@pytest.mark.parametrize("off_s", [-300.0, 0.0, 300.0])
def test_a_clock_that_is_five_minutes_off_changes_little_of_how_long_a_phase_goes_on(
    off_s: float,
) -> None:
    ears = Ears(BOOTING.but(requested_at=1000.0))
    ears.heard(1008.0)
    ears.say(doc("docker", "begun", 1009.0 + off_s))
    (event,) = ears.heard(1010.0)
    assert 1008.0 <= event.since <= 1010.0


@pytest.mark.parametrize("at", [b"NaN", b"Infinity", b"-Infinity"])
def test_a_time_that_is_none_counts_as_now(at: bytes) -> None:
    ears = Ears()
    ears.say(b'{"v":1,"at":' + at + b',"phase":"docker","state":"begun"}')
    (event,) = ears.heard(7.0)
    assert event.since == 7.0


def test_a_machine_that_makes_up_phases_fills_no_database() -> None:
    rental = BOOTING
    for number in range(1, 100):
        event = e.BootTold(
            at=1.0, rental=NAME, number=number, phase=f"p{number}", state="done", since=1.0,
            took_s=1.0,
        )  # fmt: skip
        rental = booting.told(rental, None, event)
    assert len(rental.boot.took_s) == booting.PHASES_MOST


# -- what it changes ---------------------------------------------------------------------------


def told(rental: Rental, *states: tuple[str, Any, float], node: NodeState = NODE) -> Rental:
    """Return a rental after phases were told of, each with its state and time."""
    for number, (phase, state, at) in enumerate(states, rental.boot.read + 1):
        event = e.BootTold(
            at=at, rental=NAME, number=number, phase=phase, state=state, since=at, says="no docker"
        )
        rental = booting.told(rental, world(rental, node=node).nodes[NAME], event)
    return rental


@pytest.mark.parametrize(
    "rental",
    [READY, BOOTING.but(state=RentalState.DRAINING), BOOTING.but(state=RentalState.LOST)],
)
def test_nothing_is_changed_by_a_machine_that_is_there_or_goes_back(rental: Rental) -> None:
    assert told(rental, ("docker", "failed", 5.0)) is rental


def test_nothing_is_changed_by_a_machine_whose_agent_has_just_joined() -> None:
    assert told(BOOTING, ("docker", "failed", 5.0), node=NodeState.READY) is BOOTING


def test_a_boot_fails_once_and_for_good() -> None:
    failed = told(BOOTING, ("docker", "failed", 5.0), ("docker", "begun", 6.0))
    assert failed.boot.has_failed and failed.boot.read == 2


def test_a_phase_that_says_no_length_took_as_long_as_it_was_seen_to() -> None:
    done = told(BOOTING, ("docker", "begun", 5.0), ("docker", "done", 12.0))
    assert done.boot.took_s == {"docker": 7.0} and done.boot.under_way == ""


def test_the_phase_in_which_the_agent_joins_ends_with_that() -> None:
    boots = told(BOOTING, ("agent", "begun", 5.0))
    ready = booting.moved(boots, BOOTING.but(state=RentalState.READY), 9.0)
    assert ready.boot.took_s == {"agent": 4.0} and ready.boot.state == "done"
    again = booting.moved(ready, READY, 50.0)
    assert again.boot == ready.boot, "who moves it on need not know of its boot"


def test_a_failed_phase_gives_the_machine_back_at_once_and_tells_its_jobs_why() -> None:
    failed = told(BOOTING, ("docker", "begun", 5.0), ("docker", "failed", 9.0))
    step, explained = kept_in(world(failed, job(), node=NODE, now=10.0)).steps
    assert isinstance(step, p.Return) and step.reason.code is Code.BOOT_FAILED
    assert step.reason.says == f"{NAME} is given back: `docker` failed: no docker"
    assert "image that has Docker" in step.reason.change
    assert "`cloudwhale doctor cloud`" in step.reason.change
    assert isinstance(explained, p.Explain) and explained.reason == step.reason


def test_a_failed_boot_counts_though_nobody_waits_for_the_machine_any_more() -> None:
    failed = told(BOOTING, ("driver", "failed", 9.0))
    (step,) = kept_in(world(failed, node=NODE, now=10.0)).steps
    assert isinstance(step, p.Return) and step.reason.code is Code.BOOT_FAILED


def test_who_waits_for_another_machine_too_is_told_nothing() -> None:
    failed = told(BOOTING, ("docker", "failed", 9.0))
    other = BOOTING.but(id="rent-2", node="rent-2")
    of = world(failed, job(), node=NODE, now=10.0)
    both = replace(of, rentals={NAME: failed, "rent-2": other})
    assert [one.kind for one in kept_in(both).steps] == ["return"]


@pytest.mark.parametrize(
    ("states", "says"),
    [
        ([("docker", "begun", 60.0)], "it was not ready in 600 s: `docker` has gone on for 540 s"),
        ([("docker", "done", 60.0)], "it was not ready in 600 s: nothing has come after `docker`"),
        ([], "its agent has not joined for 600 s; its offer says 20 s"),
    ],
)
def test_a_boot_that_hangs_is_returned_with_the_phase_that_it_hung_in(
    states: list[tuple[str, Any, float]], says: str
) -> None:
    (step, _) = kept_in(world(told(BOOTING, *states), job(), node=NODE, now=600.0)).steps
    assert isinstance(step, p.Return) and says in step.reason.says


def test_a_machine_that_is_ready_is_received_whatever_was_told_of_its_boot() -> None:
    failed = told(BOOTING, ("agent", "failed", 9.0))
    steps = [one.kind for one in kept_in(world(failed, job())).steps]
    assert steps == ["receive", "place"]


def test_a_phase_that_goes_well_stirs_nobody_and_a_failed_one_does() -> None:
    of = world(BOOTING, job(), node=NODE)
    base = {"at": 1.0, "rental": NAME, "number": 1, "phase": "docker", "since": 1.0}
    stirs = {
        state: stir([e.BootTold.model_validate({**base, "state": state})], of, RENTING)
        for state in ("begun", "done", "failed", "unreadable")
    }
    assert stirs == {"begun": False, "done": False, "failed": True, "unreadable": False}
    assert e.BootTold not in QUIET
