"""The AWS provider against the cloud in a box, over HTTP, from eight threads, in rough weather."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from boxed_aws import Box, boxed
from live_agent import until
from renting_aws import a_request, an_offer

from cloudwhale.model.rental import Lease
from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import TryAnother, Unreachable
from cloudwhale.spi.provider import LaunchRequest, Machine, Provider
from cloudwhale_providers.sandbox.endpoint import Instance

LAUNCHES, FOREIGN, THREADS = 24, 10, 8
TRIES = 100
Found = TypeVar("Found")


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    """Give one cloud to all: each test is an installation of its own."""
    with boxed() as made:
        yield made


def _request(box: Box, name: str, zone: str = "us-east-1a", for_s: float = 3600.0) -> LaunchRequest:
    stop_at = box.clock.now() + for_s
    lease = Lease(number=1, watched_until=stop_at, away_until=stop_at, stop_at=stop_at)
    offer = an_offer(zone, "on-demand")
    return a_request(name, offer, stop_at=stop_at, lease=lease)


def _sure(do: Callable[[], Found]) -> Found:
    for _ in range(TRIES):
        try:
            return do()
        except Unreachable:
            continue
    raise AssertionError("it never came through")


def _launched(box: Box, provider: Provider, name: str) -> Machine:
    for attempt in range(TRIES):
        zone = f"us-east-1{'abc'[attempt % 3]}"
        request = _request(box, f"{name}-{attempt}", zone)
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
    foreign = [others.launch(_request(box, f"launch-{n}-0")).id for n in range(FOREIGN)]
    provider = box.provider("rough", attempts=1)
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
    assert {one.id for one in _standing(box, "others")} == set(foreign)
    provider.machines()
    assert [one for one in provider.leftovers(nodes) if one.is_ours] == []


def test_the_cloud_ends_a_machine_on_time_while_nobody_is_there(box: Box) -> None:
    machine = box.provider("stops").launch(_request(box, "short", for_s=2.0))
    until(lambda: not _standing(box, "stops"), f"{machine.id} was ended", 30.0)
    ended_at = _ended_at(box, machine)
    assert machine.stop_at is not None and ended_at is not None
    assert ended_at >= machine.stop_at


def test_a_moved_stop_holds(box: Box) -> None:
    provider = box.provider("moves")
    machine = provider.launch(_request(box, "longer", for_s=3600.0))
    at = box.clock.now() + 2.0
    assert provider.extend(machine.id, at) == int(at)
    until(lambda: not _standing(box, "moves"), f"{machine.id} was ended", 30.0)
    ended_at = _ended_at(box, machine)
    assert ended_at is not None and ended_at >= int(at)


def test_a_machine_that_was_interrupted_is_gone_and_says_why(box: Box) -> None:
    provider = box.provider("taken")
    machine = provider.launch(_request(box, "spot").but(offer=an_offer("us-east-1a")))
    box.endpoint.interrupt(machine.id, notice_s=0.0)
    seen = until(
        lambda: next((one for one in provider.machines() if one.state == "gone"), None),
        "it is gone",
    )
    assert "Server.SpotInstanceTermination" in seen.says
    assert seen.billed_to is not None and seen.price_usd_h is not None
