"""A controller killed around every call of a launch, a move and an end, and its successor."""

from collections.abc import Callable, Iterator

import pytest
from troubled_clouds import CLOUDS, Killed, TroubledCloud

from cloudwhale.spi.provider import LaunchRequest, Provider

HOUR = 3600.0
Act = Callable[[Provider, LaunchRequest], object]


def _launch(provider: Provider, request: LaunchRequest) -> object:
    return provider.launch(request)


def _extend(provider: Provider, request: LaunchRequest) -> object:
    (machine,) = provider.machines()
    assert request.stop_at is not None
    return provider.extend(machine.id, request.stop_at + HOUR)


def _terminate(provider: Provider, request: LaunchRequest) -> None:
    for machine in provider.machines():
        provider.terminate(machine.id)


VERBS: dict[str, tuple[Act, ...]] = {
    "launch": (_launch,),
    "extend": (_launch, _extend),
    "terminate": (_launch, _terminate),
}
ENDS = {"create_schedule_group", "create_schedule"}
"""Calls that give a machine its end where that is not given with its launch."""


def _begun(name: str, verb: str) -> tuple[TroubledCloud, LaunchRequest, Provider]:
    """Return a cloud before a verb, and who is to do it."""
    cloud = CLOUDS[name]()
    request = cloud.request(1, HOUR)
    for one in VERBS[verb][:-1]:
        one(cloud.provider(), request)
    return cloud, request, cloud.provider()


def _killed(
    name: str, verb: str, after: bool
) -> Iterator[tuple[TroubledCloud, LaunchRequest, str]]:
    """Yield the cloud after a controller was killed around each call of a verb in turn."""
    cloud, request, provider = _begun(name, verb)
    before = len(cloud.asked())
    VERBS[verb][-1](provider, request)
    calls = len(cloud.asked()) - before
    assert calls >= LEAST[name, verb]
    for call in range(1, calls + 1):
        cloud, request, provider = _begun(name, verb)
        cloud.kill_at(call, after)
        with pytest.raises(Killed):
            VERBS[verb][-1](provider, request)
        cloud.be_calm()
        yield cloud, request, f"killed at {call} of {calls}"


LEAST = {
    ("aws", "launch"): 10, ("aws", "extend"): 3, ("aws", "terminate"): 3,
    ("gcp", "launch"): 4, ("gcp", "extend"): 1, ("gcp", "terminate"): 2,
}  # fmt: skip
"""Calls that each makes: fewer would say that the killing has come off."""
EVERY = pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
NAMES = pytest.mark.parametrize("name", sorted(CLOUDS))


@EVERY
@NAMES
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_successor_finishes_what_was_begun(name: str, verb: str, after: bool) -> None:
    for cloud, request, where in _killed(name, verb, after):
        successor = cloud.provider()
        answer = VERBS[verb][-1](successor, request)
        cloud.pass_by(2.0)
        successor.machines()
        if verb == "terminate":
            assert not cloud.running() and not cloud.remains(set()), where
            continue
        assert set(cloud.made().values()) == {1}, where
        assert cloud.running() == [request.node], where
        (stop,) = cloud.stops()
        assert stop is not None and request.stop_at is not None, where
        later_s = HOUR if verb == "extend" and answer != "fixed" else 0.0
        assert request.stop_at - 60.0 <= stop - later_s <= request.stop_at, where


@EVERY
@NAMES
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_one_sweep_of_the_successor_leaves_nothing(name: str, verb: str, after: bool) -> None:
    for cloud, _, where in _killed(name, verb, after):
        successor = cloud.provider()
        for one in successor.leftovers(()):
            successor.remove(one)
        cloud.pass_by(2.0)
        successor.machines()
        assert not cloud.running() and not cloud.remains(set()), where
        assert list(successor.leftovers(())) == [], where


@EVERY
@NAMES
def test_without_a_successor_the_cloud_or_the_machine_ends_it(name: str, after: bool) -> None:
    for cloud, _, where in _killed(name, "launch", after):
        cloud.pass_by(HOUR)
        # Killed between the launch and the call that sets its end, only the watchdog of the machine
        # is left, where there is such a call: the first line of what a machine is told arms it.
        if cloud.running():
            assert cloud.asked()[-1] in ("create_fleet", *ENDS), where
            assert cloud.leases() == [f"1:{int(HOUR - 120)}"], where
