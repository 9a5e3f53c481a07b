"""Each cloud's provider against it in a box, over HTTP, from eight threads, in rough weather."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import boxed_aws
import boxed_gcp
import pytest
import renting_aws
import renting_gcp
from live_agent import until

from cloudwhale.model.rental import Lease
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import TryAnother, Unreachable
from cloudwhale.spi.provider import LaunchRequest, Machine, Provider
from cloudwhale_providers.sandbox.endpoint import Instance

LAUNCHES, FOREIGN, THREADS = 24, 10, 8
TRIES = 100
PACE = 30.0
"""Of time where a cloud takes half a minute to take a machine back, and sets no earlier end."""
HOUR = 3600.0
Found = TypeVar("Found")


@dataclass(frozen=True)
class Box:
    """A cloud in its box."""

    endpoint: Any
    clock: Clock
    hired: Callable[[str, bool], Provider]
    """The provider of an installation, new as in a new process; it asks once and no more, or as
    often as it does."""
    offer: Callable[..., Any]
    zones: tuple[str, ...]
    shortest_s: Seconds
    """The shortest time until an end that it takes."""
    taken: str
    """How it says that it has taken a machine back."""
    says_prices: bool

    def provider(self, installation: str, hasty: bool = False) -> Provider:
        """Return a provider."""
        return self.hired(installation, hasty)


@pytest.fixture(scope="module", params=["aws", "gcp"])
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """Give one cloud to all: each test is an installation of its own."""
    if request.param == "aws":
        with boxed_aws.boxed() as ec2:
            yield Box(
                ec2.endpoint, ec2.clock,
                lambda name, hasty: ec2.provider(name, attempts=1 if hasty else 4),
                renting_aws.an_offer, ("us-east-1a", "us-east-1b", "us-east-1c"), 2.0,
                "Server.SpotInstanceTermination", True,
            )  # fmt: skip
        return
    with boxed_gcp.boxed(Path(tmp_path_factory.mktemp("gcp")), pace=PACE) as gce:
        yield Box(
            gce.endpoint, gce.clock, lambda name, hasty: gce.provider(name),
            renting_gcp.an_offer, ("us-central1-a", "us-central1-b", "us-central1-c"), 62.0,
            "compute.instances.preempted", False,
        )  # fmt: skip


def _request(box: Box, name: str, for_s: float, zone: str = "") -> LaunchRequest:
    stop_at = box.clock.now() + for_s
    lease = Lease(number=1, watched_until=stop_at, away_until=stop_at, stop_at=stop_at)
    offer = box.offer(zone or box.zones[0], "on-demand")
    return renting_gcp.a_request(name, offer, stop_at, lease=lease)


def _sure(do: Callable[[], Found]) -> Found:
    for _ in range(TRIES):
        try:
            return do()
        except Unreachable:
            continue
    raise AssertionError("it never came through")


def _launched(box: Box, provider: Provider, name: str) -> Machine:
    for attempt in range(TRIES):
        zone = box.zones[attempt % 3]
        request = _request(box, f"{name}-{attempt}", HOUR, zone)
        try:
            machine = _sure(lambda request=request: provider.launch(request))  # type: ignore[misc]
        except TryAnother:
            continue
        if machine.state in ("starting", "running"):
            return machine
    raise AssertionError(f"{name} was never launched")


def _standing(box: Box, installation: str) -> list[Instance]:
    return [
        one
        for one in box.endpoint.instances()
        if one.tags.get("cloudwhale:installation") == installation and one.ended_at is None
    ]


def _ended_at(box: Box, machine: Machine) -> Instant | None:
    """Return when the cloud began to end a machine."""
    instance = box.endpoint.instance(machine.id)
    return None if instance is None else instance.ended_at


def test_launches_from_eight_threads_in_rough_weather_leave_nothing(box: Box) -> None:
    others = box.provider("others")
    for number in range(FOREIGN):
        others.launch(_request(box, f"launch-{number}-0", HOUR))
    foreign = {one.id for one in _standing(box, "others")}
    provider = box.provider("rough", hasty=True)
    box.endpoint.fault_share(0.2, seed=7)
    keeps = max(1, LAUNCHES // 20)

    def through(number: int) -> str | None:
        """Launch one; end it, or return its node."""
        machine = _launched(box, provider, f"launch-{number}")
        if number % keeps == 0:
            return machine.node
        _sure(lambda: provider.terminate(machine.id))
        return None

    with ThreadPoolExecutor(THREADS) as pool:
        nodes = {node for node in pool.map(through, range(LAUNCHES)) if node}
    left = _sure(lambda: provider.leftovers(nodes))
    for one in left:
        if one.is_ours:
            _sure(lambda one=one: provider.remove(one))  # type: ignore[misc]
    box.endpoint.no_faults()
    assert Counter(one.tags["cloudwhale:node"] for one in _standing(box, "rough")) == Counter(nodes)
    assert {one.id for one in _standing(box, "others")} == foreign and len(foreign) == FOREIGN
    provider.machines()
    assert [one for one in provider.leftovers(nodes) if one.is_ours] == []


def test_the_cloud_ends_a_machine_on_time_while_nobody_is_there(box: Box) -> None:
    machine = box.provider("stops").launch(_request(box, "short", box.shortest_s))
    until(lambda: not _standing(box, "stops"), f"{machine.id} was ended", 30.0)
    ended_at = _ended_at(box, machine)
    assert machine.stop_at is not None and ended_at is not None
    assert ended_at >= machine.stop_at - 0.001


def test_a_moved_stop_holds(box: Box) -> None:
    provider = box.provider("moves")
    machine = provider.launch(_request(box, "longer", HOUR))
    at = box.clock.now() + box.shortest_s
    answer = provider.extend(machine.id, at)
    if not box.offer().stop_moves:
        assert answer == "fixed" and _standing(box, "moves")
        return
    assert answer == int(at)
    until(lambda: not _standing(box, "moves"), f"{machine.id} was ended", 30.0)
    ended_at = _ended_at(box, machine)
    assert ended_at is not None and ended_at >= int(at)


def test_a_machine_that_was_interrupted_is_gone_and_says_why(box: Box) -> None:
    provider = box.provider("taken")
    machine = provider.launch(_request(box, "spot", HOUR).but(offer=box.offer(box.zones[0])))
    provider.machines()
    box.endpoint.interrupt(machine.id, notice_s=0.0)
    seen = until(
        lambda: next((one for one in provider.machines() if one.state == "gone"), None),
        "it is gone",
    )
    assert box.taken in seen.says
    assert seen.billed_to is not None
    assert (seen.price_usd_h is not None) == box.says_prices
