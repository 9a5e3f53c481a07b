"""What is left at providers: shown, removed when asked for, and never what is another's."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from clouding import an_offer, plant_foreign, plant_forgotten
from keeping_world import RENTAL

from cloudwhale.cli.leaks_view import leak_keys, leaks_sheet
from cloudwhale.control.desk import Desk, open_desk
from cloudwhale.control.leaks import Leaks, leaks
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.model import event as e
from cloudwhale.model.rental import RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.units import micro_usd
from cloudwhale.reporting.sheet import plain_lines
from cloudwhale.settings import Settings
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud
from cloudwhale.simulation.processes import Program
from cloudwhale.spi.errors import Unreachable
from cloudwhale.spi.provider import Leftover

NOW = 1_800_000_000.0


class Stubborn(SimulatedCloud):
    """A cloud that removes nothing, and may not even answer."""

    answers = True

    def leftovers(self, live: object) -> list[Leftover]:
        if not self.answers:
            raise Unreachable("no answer from us-east-1", "Is the network there?")
        return list(self.unknown(()))

    def remove(self, leftover: Leftover) -> None:
        raise Unreachable("still in use")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(Settings(home=tmp_path), may_migrate=True) as made:
        yield made


def a_cloud(kind: type[SimulatedCloud] = SimulatedCloud) -> SimulatedCloud:
    objects = open_objects("memory://")
    made = kind([Shelf(an_offer())], objects, lambda order: Program(1.0), lambda: NOW)
    plant_forgotten(made, NOW, 60.0)
    return made


def lines(found: Leaks) -> str:
    return "\n".join(plain_lines(leaks_sheet(found, NOW)))


def test_what_is_left_is_shown_and_nothing_is_removed(desk: Desk) -> None:
    cloud = a_cloud()
    found = leaks(desk, {"cloud": cloud}, fix=False)
    assert not found.is_clean and cloud.running == 1
    (leak,) = found.found
    assert "3.6" in str(leak_keys(leak)["usd_h"])
    assert "1 of ours left, 3.6000 USD an hour: `cloudwhale leaks --fix`" in lines(found)


def test_fix_removes_what_is_ours_and_nothing_of_others(desk: Desk) -> None:
    cloud = a_cloud()
    foreign = plant_foreign(cloud, 3)
    found = leaks(desk, {"cloud": cloud}, fix=True)
    assert found.is_clean and cloud.running == 0 and cloud.foreign == foreign
    assert [one.is_removed for one in found.found] == [True, False, False, False]
    said = lines(found)
    assert "Nothing of ours is left; 1 removed" in said
    assert "3 of other installations: shown, never touched." in said


def test_nothing_is_said_when_nothing_is_there(desk: Desk) -> None:
    empty = SimulatedCloud([], open_objects("memory://"), lambda order: Program(1.0), lambda: NOW)
    found = leaks(desk, {"cloud": empty}, fix=True)
    assert found.is_clean and "Nothing of ours (cloud)." in lines(found)
    assert "no cloud is set up" in lines(leaks(desk, {}, fix=False))


def test_what_cannot_be_removed_or_asked_is_said_and_is_not_clean(desk: Desk) -> None:
    cloud = a_cloud(Stubborn)
    found = leaks(desk, {"cloud": cloud}, fix=True)
    assert not found.is_clean and "ours: still in use" in lines(found)
    assert isinstance(cloud, Stubborn)
    cloud.answers = False
    found = leaks(desk, {"cloud": cloud}, fix=False)
    assert not found.is_clean and "cloud cannot be asked: no answer from us-east-1" in lines(found)


def test_a_machine_that_is_rented_is_no_leak_and_one_that_cannot_be_ended_is(desk: Desk) -> None:
    cloud = a_cloud()
    rental = RENTAL.but(id="forgotten", node="forgotten")
    run = Run(id="run-1", opened_at=NOW, user="u", folder="/", budget=micro_usd(50))
    desk.store.append(
        [
            e.RunOpened(at=NOW, run=run),
            e.Reserved(at=NOW, payer="run-1", rental=rental.id, amount=rental.reserved),
            e.RentalChanged(at=NOW, rental=rental),
        ]
    )
    assert leaks(desk, {"cloud": cloud}, fix=True).is_clean and cloud.running == 1
    states = (
        RentalState.REQUESTED, RentalState.BOOTING, RentalState.DRAINING,
        RentalState.NEEDS_ATTENTION,
    )  # fmt: skip
    for state in states:
        changed = rental.but(state=state, machine="m-1")
        desk.store.append([e.RentalChanged(at=NOW, rental=changed)])
    found = leaks(desk, {"cloud": cloud}, fix=False)
    assert not found.is_clean and "needs attention" in lines(found)
