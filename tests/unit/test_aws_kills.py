"""A controller killed around every call of a launch, a move and an end, and its successor."""

from collections.abc import Callable
from typing import Any

import pytest
from renting_aws import NOW, a_clock, a_provider, a_request
from small_aws import SmallAws

from cloudwhale.spi.provider import Provider


class Killed(BaseException):
    """The process ends here."""


def _launch(provider: Provider) -> None:
    provider.launch(a_request())


def _extend(provider: Provider) -> None:
    (machine,) = provider.machines()
    provider.extend(machine.id, NOW + 7200)


def _terminate(provider: Provider) -> None:
    for machine in provider.machines():
        provider.terminate(machine.id)


VERBS: dict[str, tuple[Callable[[Provider], None], ...]] = {
    "launch": (_launch,),
    "extend": (_launch, _extend),
    "terminate": (_launch, _terminate),
}


def _killed(verb: str, call: int, after: bool) -> tuple[SmallAws, bool]:
    """Return the cloud after a controller was killed around one call of a verb, and whether."""
    aws = SmallAws(a_clock())
    *before, act = VERBS[verb]
    for one in before:
        one(a_provider(aws))
    count = 0

    def fault(service: str, name: str, do: Any) -> Any:
        nonlocal count
        count += 1
        if count == call and after:
            do()
        if count == call:
            raise Killed
        return do()

    provider, aws.fault = a_provider(aws), fault
    try:
        act(provider)
    except Killed:
        aws.fault = None
        return aws, True
    aws.fault = None
    return aws, False


POINTS = [(verb, call, after) for verb in VERBS for call in range(1, 15) for after in (False, True)]


@pytest.mark.parametrize(("verb", "call", "after"), POINTS)
def test_the_successor_finishes_what_was_begun(verb: str, call: int, after: bool) -> None:
    aws, was_killed = _killed(verb, call, after)
    successor = a_provider(aws)
    VERBS[verb][-1](successor)
    successor.machines()
    stops = [one["ScheduleExpression"] for one in aws.schedules.values()]
    if verb == "terminate":
        assert not aws.running and not stops
    else:
        assert len(aws.boxes) == len(aws.running) == 1
        at = "at(2027-01-15T10:00:00)" if verb == "extend" else "at(2027-01-15T09:00:00)"
        assert stops == [at]
    assert was_killed or call > 5


@pytest.mark.parametrize(("verb", "call", "after"), POINTS)
def test_one_sweep_of_the_successor_leaves_nothing(verb: str, call: int, after: bool) -> None:
    aws, _ = _killed(verb, call, after)
    successor = a_provider(aws)
    for one in successor.leftovers(()):
        successor.remove(one)
    successor.machines()
    assert not aws.running and not aws.schedules
    assert list(successor.leftovers(())) == []


@pytest.mark.parametrize(("call", "after"), [(n, after) for _, n, after in POINTS[:28]])
def test_without_a_successor_the_cloud_or_the_machine_ends_it(call: int, after: bool) -> None:
    aws, _ = _killed("launch", call, after)
    aws.clock.advance_to(NOW + 3600)
    aws.fire()
    # Killed between the launch and the schedule, only the watchdog of the machine is left: it is
    # armed by the first line of what every machine is told.
    assert all(box.tags["cloudwhale:lease"] == "1:3480" for box in aws.running)
    if aws.running:
        verbs = [verb for _, verb, _ in aws.asked]
        assert verbs[-1] in ("create_fleet", "create_schedule_group", "create_schedule")
