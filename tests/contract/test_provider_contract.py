"""What every provider promises: machines are launched once, listed, ended, and leave nothing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import boxed_gcp
import pytest
import renting_gcp
from boxed_aws import Box, boxed
from live_agent import until
from renting_libcloud import DummyCloud, LookingDummy, Reborn
from renting_libcloud import a_provider as a_driven_provider
from renting_libcloud import a_request as a_driven_request

from cloudwhale.clock import SystemClock
from cloudwhale.host import HostOptions, as_arguments, facts
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud
from cloudwhale.simulation.processes import Program
from cloudwhale.spi.provider import LaunchRequest, Machine, Provider
from cloudwhale_providers.local import LocalProvider

NOW = 1_800_000_000.0


@dataclass(frozen=True)
class Candidate:
    """A provider under test, and how a machine is asked of it."""

    provider: Provider
    request: LaunchRequest

    def machine(self) -> Machine | None:
        """Return the machine of the request's node, unless it is gone."""
        found = [one for one in self.provider.machines() if one.node == self.request.node]
        return found[0] if found and found[0].state != "gone" else None

    def launched(self) -> Machine:
        """Launch and wait until the machine runs."""
        self.provider.launch(self.request)
        return until(
            lambda: (one := self.machine()) and one.state == "running" and one or None,
            f"{self.request.node} runs",
        )

    def ended(self) -> None:
        """Terminate whatever there is and wait until it is gone."""
        for machine in self.provider.machines():
            self.provider.terminate(machine.id)
        until(lambda: self.machine() is None, f"{self.request.node} is gone")


def _local(folder: Path) -> Candidate:
    mailbox = (folder / "mailbox").as_uri()
    home, options = folder / "home", HostOptions(devices=("2x RTX4090 24GB",))
    provider = LocalProvider(home, "host", lambda: facts(home, options), as_arguments(options))
    request = LaunchRequest(
        request_id="launch-1", node="host", offer=None, mailbox=mailbox, home=str(folder / "home")
    )
    return Candidate(provider, request)


def _cloud(folder: Path) -> Candidate:
    shape = Facts(cpu=8.0, memory_gib=32.0, disk_gib=100.0)
    offer = Offer(
        id="small", provider="cloud", region="r", zone="r-a", market="on-demand", facts=shape,
        price_usd_h=micro_usd(1), cap_usd_h=micro_usd(1), boot_s=0.0,
    )  # fmt: skip
    provider = SimulatedCloud(
        [Shelf(offer)], open_objects("memory://"), lambda order: Program(work_s=1.0), lambda: NOW
    )
    request = LaunchRequest(
        request_id="launch-1", node="rented", offer=offer, mailbox="memory://", home="/"
    )
    return Candidate(provider, request)


def _aws(box: Box, folder: Path) -> Candidate:
    shape = Facts(cpu=4.0, memory_gib=16.0, disk_gib=120.0)
    offer = Offer(
        id="aws/us-east-1a/g5.xlarge/on-demand", provider="aws", region="us-east-1",
        zone="us-east-1a", market="on-demand", facts=shape, type="g5.xlarge", boot_s=0.0,
        price_usd_h=micro_usd(1), cap_usd_h=micro_usd(1),
    )  # fmt: skip
    request = LaunchRequest(
        request_id=f"launch-1-{folder.name}",
        node="rented",
        offer=offer,
        mailbox="s3://b/lab",
        home="/",
        stop_at=box.clock.now() + 3600.0,
    )
    return Candidate(box.provider(folder.name, offer), request)


def _gcp(box: boxed_gcp.Box, folder: Path) -> Candidate:
    offer = renting_gcp.an_offer(market="on-demand")
    stop_at = box.clock.now() + 3600.0
    request = renting_gcp.a_request(f"launch-1-{folder.name}", offer, stop_at, node="rented")
    return Candidate(box.provider(folder.name, offer), request)


def _libcloud(folder: Path) -> Candidate:
    clock = SystemClock()
    provider = a_driven_provider(DummyCloud(), clock, installation=folder.name)
    request = a_driven_request("rented", request_id="launch-1", stop_at=clock.now() + 3600.0)
    return Candidate(provider, request)


def _reborn(folder: Path) -> Candidate:
    clock, cloud = SystemClock(), DummyCloud()
    cloud.makes = LookingDummy
    provider = Reborn(lambda: a_driven_provider(cloud, clock, installation=folder.name))
    return Candidate(cast(Provider, provider), _libcloud(folder).request)


CANDIDATES: dict[str, Callable[[Path], Candidate]] = {
    "local": _local, "cloud": _cloud, "libcloud": _libcloud, "libcloud reborn": _reborn,
}  # fmt: skip


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    """Give the cloud in a box, one for all: each test is an installation of its own."""
    with boxed() as box:
        yield box


@pytest.fixture(scope="module")
def compute(tmp_path_factory: pytest.TempPathFactory) -> Iterator[boxed_gcp.Box]:
    """Give the other cloud in a box, one for all too."""
    with boxed_gcp.boxed(tmp_path_factory.mktemp("gcp")) as box:
        yield box


@pytest.fixture(params=["aws", "gcp", *sorted(CANDIDATES)])
def candidate(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Candidate]:
    """Give each provider in turn, and end its machines afterwards."""
    if request.param == "aws":
        made = _aws(request.getfixturevalue("box"), tmp_path)
    elif request.param == "gcp":
        made = _gcp(request.getfixturevalue("compute"), tmp_path)
    else:
        made = CANDIDATES[request.param](tmp_path)
    yield made
    made.ended()


def test_a_machine_is_not_there_before_it_is_launched(candidate: Candidate) -> None:
    assert candidate.machine() is None


def test_a_launched_machine_is_listed_under_its_node(candidate: Candidate) -> None:
    machine = candidate.launched()
    assert machine.node == candidate.request.node
    assert [one.id for one in candidate.provider.machines()].count(machine.id) == 1


def test_a_launch_that_is_repeated_gives_the_same_machine(candidate: Candidate) -> None:
    first = candidate.provider.launch(candidate.request)
    again = candidate.provider.launch(candidate.request)
    running = candidate.launched()
    assert first.id == again.id == running.id
    assert len(candidate.provider.machines()) == 1


def test_what_a_machine_has_is_known_while_it_runs(candidate: Candidate) -> None:
    facts = candidate.launched().facts
    assert facts is not None
    assert facts.cpu > 0 and facts.memory_gib > 0 and facts.disk_gib > 0


def test_a_terminated_machine_is_gone_and_can_be_terminated_again(candidate: Candidate) -> None:
    machine = candidate.launched()
    candidate.ended()
    candidate.provider.terminate(machine.id)
    assert candidate.machine() is None


def test_a_machine_that_never_was_can_be_terminated(candidate: Candidate) -> None:
    machine = candidate.launched()
    candidate.provider.terminate("no-such-machine")
    assert [one.id for one in candidate.provider.machines()] == [machine.id]
    assert candidate.launched().state == "running"


def test_a_terminated_machine_can_be_launched_again(candidate: Candidate) -> None:
    candidate.launched()
    candidate.ended()
    again = candidate.request.but(request_id="launch-2")
    assert Candidate(candidate.provider, again).launched().state == "running"


def test_a_stop_that_is_moved_is_answered_with_the_one_in_force(candidate: Candidate) -> None:
    machine = candidate.launched()
    answer = candidate.provider.extend(machine.id, NOW + 3600.0)
    assert answer == "fixed" or NOW <= answer <= NOW + 3600.0


def test_offers_have_a_price_or_are_known_to_have_none(candidate: Candidate) -> None:
    for offer in candidate.provider.offers(NOW):
        assert isinstance(offer, Offer)
        assert offer.price_usd_h is None or offer.price_usd_h > 0
        assert offer.cap_usd_h is None or offer.cap_usd_h >= (offer.price_usd_h or 0)
        assert offer.boot_s >= 0


def test_offers_have_names_of_their_own(candidate: Candidate) -> None:
    ids = [offer.id for offer in candidate.provider.offers(NOW)]
    assert len(ids) == len(set(ids))


def test_every_check_that_is_not_well_says_how_to_mend_it(candidate: Candidate) -> None:
    rows = candidate.provider.check()
    assert rows
    assert [row.name for row in rows if row.state != "ok" and not row.remedy] == []
    assert all(row.says for row in rows)


def test_nothing_is_left_over_when_all_machines_are_gone(candidate: Candidate) -> None:
    candidate.launched()
    candidate.ended()
    assert [one for one in candidate.provider.leftovers(()) if one.is_ours] == []


def test_a_running_machine_is_no_leftover(candidate: Candidate) -> None:
    candidate.launched()
    found = candidate.provider.leftovers({candidate.request.node})
    assert [one for one in found if one.is_ours] == []
