"""How far a boot is and what it took, wherever people look: run, nodes, explain, receipt."""

from typing import Any

from clouding import an_offer
from makers import a_job, a_node, a_world

from cloudwhale.cli.fleet import Fleet
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState, Placement
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Boot, Lease, Rental, RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.reporting.explain import Story, story
from cloudwhale.reporting.machines import Occupied, node_keys, occupied
from cloudwhale.reporting.machines_text import node_lines, nodes_sheet
from cloudwhale.reporting.receipt import Bill, machine_receipt
from cloudwhale.reporting.rented import machine_words
from cloudwhale.reporting.sheet import plain_lines, text_of
from cloudwhale.reporting.story_text import story_keys, story_lines
from cloudwhale.spi.store import Told

DOCKER = Boot(
    read=3, phase="docker", state="begun", since=100.0, took_s={"watchdog": 0.2, "bundle": 4.0}
)
DONE = Boot(
    read=9, phase="agent", state="done", since=130.0,
    took_s={"watchdog": 0.2, "bundle": 4.0, "docker": 28.0},
)  # fmt: skip
BOOTING = Rental(
    id="rent-1", node="rent-1", payer="run-1", offer="big", state=RentalState.BOOTING,
    lease=Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0),
    reserved=micro_usd(2), taken=an_offer(type="g5.xlarge"), jobs={"j-1": "default"},
    reserved_at=80.0, requested_at=85.0, boot=DOCKER,
)  # fmt: skip
JOB = a_job("j-1")
WHY = Reason(code=Code.RENTED, says="big is on its way as rent-1")


def told(fleet: Fleet, number: int, phase: str, state: Any, at: float, **fields: Any) -> list[str]:
    event = e.BootTold(
        at=at, rental="rent-1", number=number, phase=phase, state=state, since=at, **fields
    )
    return [said.says for said in fleet.take(event)]


# -- run ---------------------------------------------------------------------------------------


def test_each_phase_that_is_done_is_told_once_with_its_time_but_not_those_of_no_time() -> None:
    fleet = Fleet("run-1", {"rent-1": BOOTING.but(boot=Boot())})
    assert told(fleet, 1, "watchdog", "begun", 90.0) == []
    assert told(fleet, 2, "watchdog", "done", 90.2, took_s=0.2) == []
    assert told(fleet, 3, "docker", "begun", 91.0) == []
    assert told(fleet, 4, "docker", "done", 103.0, took_s=12.0) == ["boots: docker took 12 s"]
    assert told(fleet, 4, "docker", "done", 103.0, took_s=12.0) == [], "twice is once"


def test_a_phase_that_takes_long_is_told_while_it_goes_on_at_twice_the_time() -> None:
    fleet = Fleet("run-1", {"rent-1": BOOTING})
    said = {now: [one.says for one in fleet.long_phases(now)] for now in range(100, 400)}
    assert {now: says for now, says in said.items() if says} == {
        130: ["boots: docker (30 s)"],
        160: ["boots: docker (1 min 00 s)"],
        220: ["boots: docker (2 min 00 s)"],
        340: ["boots: docker (4 min 00 s)"],
    }


def test_what_nobody_understands_stands_out() -> None:
    fleet = Fleet("run-1", {"rent-1": BOOTING})
    event = e.BootTold(
        at=1.0, rental="rent-1", number=4, phase="", state="unreadable", since=1.0, says="no JSON"
    )
    (said,) = fleet.take(event)
    assert said.weight == "warn" and said.says.endswith("nobody understands: no JSON")


def test_a_boot_that_failed_is_told_once_with_what_failed() -> None:
    fleet = Fleet("run-1", {"rent-1": BOOTING})
    assert told(fleet, 4, "docker", "failed", 103.0, says="E: no") == []
    reason = Reason(code=Code.BOOT_FAILED, says="rent-1 is given back: `docker` failed: E: no")
    (said,) = fleet.take(e.Noted(at=104.0, subject="rent-1", reason=reason))
    assert said.says == "is given back: `docker` failed: E: no [boot-failed]"
    back = BOOTING.but(state=RentalState.DRAINING)
    assert fleet.take(e.RentalChanged(at=104.0, rental=back)) == []


def test_a_machine_that_is_ready_says_what_its_boot_took() -> None:
    fleet = Fleet("run-1", {"rent-1": BOOTING})
    ready = BOOTING.but(state=RentalState.READY, boot=Boot())
    (said,) = fleet.take(e.RentalChanged(at=112.0, rental=ready))
    assert said.says == "is ready, 32 s after it was asked for: bundle 4.0 s, docker 12 s"


def test_the_row_of_a_machine_that_boots_names_the_phase_first() -> None:
    words = machine_words(BOOTING, 112.0)
    assert words.startswith("docker (12 s), 27 s of about 20 s  cloud g5.xlarge")
    between = BOOTING.but(boot=DOCKER.but(state="done"))
    assert machine_words(between, 112.0).startswith("after docker (12 s), ")
    assert machine_words(BOOTING.but(boot=Boot()), 112.0).startswith("27 s of about 20 s  ")


# -- nodes -------------------------------------------------------------------------------------


def a_place(rental: Rental, state: NodeState = NodeState.EXPECTED) -> Occupied:
    node = a_node("rent-1", owned=False, provider="cloud", state=state)
    return occupied(a_world([], [node], rentals={"rent-1": rental}))[0]


def test_a_node_that_boots_says_in_which_phase() -> None:
    heading = text_of(node_lines([a_place(BOOTING)], 112.0, 80)[0])
    assert heading.startswith("rent-1  booting: docker (12 s)  rented, cloud")
    assert "booting: docker" in plain_lines(nodes_sheet([a_place(BOOTING)]))[1]
    keys = node_keys(a_place(BOOTING), 112.0)
    assert (keys["state"], keys["phase"], keys["phase_s"]) == ("expected", "docker", 12.0)
    assert keys["boot"] == {"watchdog": 0.2, "bundle": 4.0}


def test_a_node_that_is_ready_has_no_phase_and_keeps_what_its_boot_took() -> None:
    ready = BOOTING.but(state=RentalState.READY, boot=DONE)
    keys = node_keys(a_place(ready, NodeState.READY), 200.0)
    assert (keys["phase"], keys["phase_s"], keys["boot"]) == (None, None, DONE.took_s)
    assert "booting" not in text_of(node_lines([a_place(ready, NodeState.READY)], 200.0, 80)[0])


# -- explain, receipt --------------------------------------------------------------------------


def text(one: Story, width: int = 80) -> str:
    return "\n".join(text_of(line).rstrip() for line in story_lines(one, 112.0, width))


def test_a_job_that_waits_for_a_machine_says_how_far_that_is() -> None:
    waits = JOB.but(reason=WHY)
    assert "  rent-1 boots: docker (12 s)" in text(story(waits, [], [], rentals=[BOOTING]))
    others = BOOTING.but(jobs={"j-2": "default"})
    assert "boots" not in text(story(waits, [], [], rentals=[others]))


def test_the_story_says_how_long_the_machine_of_a_place_has_booted() -> None:
    placed = e.Placed(
        at=131.0, job="j-1", attempt=1, placement=Placement(node="rent-1"), reason=WHY
    )
    ready = BOOTING.but(state=RentalState.READY, boot=DONE)
    job = JOB.but(state=JobState.RUNNING, placement=placed.placement, attempt=1, placed_at=131.0)
    one = story(job, [Told(seq=1, event=placed)], [], rentals=[ready])
    assert "its machine booted in: 32 s: bundle 4.0 s, docker 28 s" in text(one)
    assert story_keys(one)[0]["boot"] == DONE.took_s
    assert max(map(len, text(one, 80).splitlines())) <= 80


def test_a_receipt_has_the_phases_of_each_machine() -> None:
    line = machine_receipt(Bill(BOOTING.but(boot=DONE)), 200.0)
    assert line.boot == DONE.took_s
