"""Clouds for tests of a provider in trouble: what they were asked, what there is, and their faults.

Each stands for a whole cloud in this process; the provider before it is the real one.
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

import boxed_gcp
import renting_aws
import renting_gcp
from small_aws import Box, SmallAws
from small_schedules import Words, refused

from cloudwhale.model.rental import Lease
from cloudwhale.spi.provider import LaunchRequest, Provider
from cloudwhale_providers.gcp import names
from cloudwhale_providers.sandbox.endpoint import Instance, Weather

_exceptions: Any = import_module("botocore.exceptions")
OURS = renting_aws.OURS
FAR_S = 1e6
"""A lease that no test outlives."""


class Killed(BaseException):
    """The process ends here."""


class TroubledCloud(Protocol):
    """A cloud that a test can trouble."""

    zones: tuple[str, ...]

    def provider(self) -> Provider:
        """Return our provider, new as in a new process."""
        ...

    def request(self, number: int, for_s: float = FAR_S) -> LaunchRequest:
        """Return the n-th launch, in a zone and a market in turn, until a time from now."""
        ...

    def pass_by(self, for_s: float) -> None:
        """Let time pass, and what is due happen."""
        ...

    def be_rough(self, share: float, seed: int) -> None:
        """Let a share of all calls fail: before, after success, as too many, without an answer."""
        ...

    def be_calm(self) -> None:
        """Let no call fail any more, nor kill."""
        ...

    def be_dry(self, is_dry: bool) -> None:
        """Have no machine to give, or have them again."""
        ...

    def kill_at(self, call: int, after: bool) -> None:
        """Let the n-th call from now on, counted from 1, kill who asks: before or after it."""
        ...

    def asked(self) -> list[str]:
        """Return what was asked so far, and not in vain."""
        ...

    def launches_asked(self) -> int:
        """Return how often a machine was asked for, also in vain."""
        ...

    def running(self) -> list[str]:
        """Return the nodes of our machines that cost money, one for each machine."""
        ...

    def made(self) -> Counter[str]:
        """Return how many machines were ever made for each of our launches."""
        ...

    def stops(self) -> list[float | None]:
        """Return when the cloud ends each of our machines that run; None: it does not."""
        ...

    def remains(self, live: set[str]) -> list[str]:
        """Return what is there beside machines and belongs to none of the live nodes."""
        ...

    def leases(self) -> list[str]:
        """Return what our machines that run were told of their lease, `NUMBER:SECONDS`."""
        ...

    def plant(self, number: int) -> None:
        """Plant machines of others, with names, tags and labels that are much like ours."""
        ...

    def is_untouched(self) -> bool:
        """Say whether all that was planted is as it was."""
        ...


class Aws:
    """EC2 in small."""

    zones = tuple(f"us-east-1{letter}" for letter in "abc")

    def __init__(self) -> None:
        self.aws = SmallAws(renting_aws.a_clock())
        self._planted: list[tuple[Box, dict[str, str]]] = []

    def provider(self) -> Provider:
        return renting_aws.a_provider(self.aws)

    def request(self, number: int, for_s: float = FAR_S) -> LaunchRequest:
        stop_at = self.aws.clock.now() + for_s
        offer = renting_aws.an_offer(self.zones[number % 3], ("spot", "on-demand")[number % 2])
        lease = Lease(number=1, watched_until=stop_at, away_until=stop_at - 120, stop_at=stop_at)
        return renting_aws.a_request(f"rental-{number}", offer, stop_at=stop_at, lease=lease)

    def pass_by(self, for_s: float) -> None:
        self.aws.clock.advance_to(self.aws.clock.now() + for_s)
        self.aws.fire()

    def be_rough(self, share: float, seed: int) -> None:
        self.aws.fault = _rough_aws(random.Random(seed), share)

    def be_calm(self) -> None:
        self.aws.fault = None

    def be_dry(self, is_dry: bool) -> None:
        self.aws.fleet_errors = {"*": "InsufficientInstanceCapacity"} if is_dry else {}

    def kill_at(self, call: int, after: bool) -> None:
        self.aws.fault = _killing(call, after)

    def asked(self) -> list[str]:
        return [verb for _, verb, _ in self.aws.asked]

    def launches_asked(self) -> int:
        return len(self.aws.words_of("create_fleet"))

    def running(self) -> list[str]:
        return [one.tags["cloudwhale:node"] for one in self._ours()]

    def made(self) -> Counter[str]:
        boxes = [one for one in self.aws.boxes.values() if _whose(one.tags) == OURS]
        return Counter(one.tags["cloudwhale:launch"] for one in boxes)

    def stops(self) -> list[float | None]:
        ends: dict[str, float] = {}
        for one in self.aws.schedules.values():
            at = one["ScheduleExpression"].removeprefix("at(").removesuffix(")")
            for name in json.loads(one["Target"]["Input"])["InstanceIds"]:
                ends[name] = names.instant(f"{at}+00:00") or 0.0
        return [ends.get(one.id) for one in self._ours()]

    def leases(self) -> list[str]:
        return [one.tags["cloudwhale:lease"] for one in self._ours()]

    def remains(self, live: set[str]) -> list[str]:
        return [name for _, _, name in self.aws.schedules if name not in live]

    def plant(self, number: int) -> None:
        kinds: list[dict[str, str]] = [
            {},
            {"Name": "cloudwhale rental-1"},
            {"cloudwhale:node": "rental-1"},
            {"cloudwhale:installation": "lab-2", "cloudwhale:node": "rental-2"},
            {"cloudwhale:installation": f"{OURS}0", "cloudwhale:launch": "rental-3"},
        ]
        boxes = [self.aws.plant("us-east-1", kinds[turn % 5]) for turn in range(number)]
        self._planted = [(box, dict(box.tags)) for box in boxes]

    def is_untouched(self) -> bool:
        return all(one.state == "running" and one.tags == own for one, own in self._planted)

    def _ours(self) -> list[Box]:
        return [one for one in self.aws.running if _whose(one.tags) == OURS]


class Gcp:
    """Compute Engine in a box, asked without a socket."""

    zones = tuple(f"us-central1-{letter}" for letter in "abc")

    def __init__(self) -> None:
        # Who does without answers held against the description is three times as fast; that they
        # are as described is tested elsewhere.
        self.box = boxed_gcp.stepped(Weather(leaves_disks=True, listed_s=FAR_S), checked=False)
        self._words = boxed_gcp.boxed_words(self.box)
        self._planted: list[Instance] = []
        self._is_dry = False
        self._dry = self._when_dry()

    def provider(self) -> Provider:
        return self.box.provider(OURS, *(renting_gcp.an_offer(zone) for zone in self.zones))

    def request(self, number: int, for_s: float = FAR_S) -> LaunchRequest:
        stop_at = self.box.clock.now() + for_s
        offer = renting_gcp.an_offer(self.zones[number % 3], ("spot", "on-demand")[number % 2])
        return renting_gcp.a_request(f"rental-{number}", offer, stop_at)

    def pass_by(self, for_s: float) -> None:
        self.box.pause(for_s)
        self.box.endpoint.instances()

    def be_rough(self, share: float, seed: int) -> None:
        self.box.endpoint.fault_share(share, seed)

    def be_calm(self) -> None:
        self.box.endpoint.fault_share(0.0, 0)
        self._let_answer(self._dry)

    def be_dry(self, is_dry: bool) -> None:
        self._is_dry = is_dry

    def kill_at(self, call: int, after: bool) -> None:
        fault = _killing(call, after)
        answer = self._dry
        self._let_answer(lambda call: fault("compute", call.method.id, lambda: answer(call)))

    def asked(self) -> list[str]:
        return [one.method for one in self._words]

    def launches_asked(self) -> int:
        return sum(1 for one in self.box.log if one.startswith("POST") and "/instances" in one)

    def running(self) -> list[str]:
        return [one.tags["cloudwhale:node"] for one in self._ours() if one.ended_at is None]

    def made(self) -> Counter[str]:
        return Counter(one.tags["cloudwhale:request"] for one in self._ours())

    def stops(self) -> list[float | None]:
        ours = {one.id for one in self._ours() if one.ended_at is None}
        machines = self.box.endpoint.services.machines
        return [one.ends_at for one in machines.all() if one.instance.id in ours]

    def leases(self) -> list[str]:
        ours = [one for one in self._ours() if one.ended_at is None]
        return [one.tags["cloudwhale:lease"] for one in ours]

    def remains(self, live: set[str]) -> list[str]:
        disks = self.box.endpoint.services.disks.all()
        return [
            one.name
            for one in disks
            if one.labels.get(names.INSTALLATION) == OURS and one.labels[names.NODE] not in live
        ]

    def plant(self, number: int) -> None:
        kinds: list[tuple[dict[str, str], dict[str, str]]] = [
            ({}, {}),
            ({}, {names.NODE: "rental-1"}),
            ({names.NODE: "rental-1"}, {names.NODE: "rental-1", names.INSTALLATION: OURS}),
            ({names.INSTALLATION: "lab-2"}, {names.NODE: "rental-2", names.INSTALLATION: "lab-2"}),
            ({names.INSTALLATION: f"{OURS}0"}, {names.REQUEST: "rental-3"}),
        ]
        for turn in range(number):
            self.box.insert(f"cw-{turn:024x}", self.zones[turn % 3], *kinds[turn % 5])
        self.pass_by(0.0)
        self._planted = list(self.box.endpoint.instances())

    def is_untouched(self) -> bool:
        now = {one.id: one for one in self.box.endpoint.instances()}
        return all(now[one.id].ended_at is None for one in self._planted)

    def _ours(self) -> list[Instance]:
        return [one for one in self.box.endpoint.instances() if _whose(one.tags) == OURS
                and one.id not in {other.id for other in self._planted}]  # fmt: skip

    def _when_dry(self) -> Callable[[Any], Any]:
        """Return what answers, and finds no room for a machine when it is dry."""
        services = self.box.endpoint.services
        answer, failed = services.answer, services.failed

        def dry(call: Any) -> Any:
            is_insert = call.method.id == "compute.instances.insert"
            if self._is_dry and is_insert and _whose(_items(call)) == OURS:
                begun = services.machines.operations.replayed(call)
                if begun is None:
                    return failed(call, "ZONE_RESOURCE_POOL_EXHAUSTED")
            return answer(call)

        self._let_answer(dry)
        return dry

    def _let_answer(self, answer: Callable[[Any], Any]) -> None:
        services: Any = self.box.endpoint.services
        services.answer = answer


CLOUDS: dict[str, Callable[[], TroubledCloud]] = {"aws": Aws, "gcp": Gcp}


def _whose(tags: dict[str, str]) -> str:
    return tags.get("cloudwhale:installation") or tags.get(names.INSTALLATION, "")


def _items(call: Any) -> dict[str, str]:
    return names.attributes(call.body)


def _rough_aws(
    rng: random.Random, share: float
) -> Callable[[str, str, Callable[[], Words]], Words]:
    """Make faults of a share of all calls: error before, error after success, timeout, throttle."""

    def fault(service: str, verb: str, do: Callable[[], Words]) -> Words:
        if rng.random() >= share:
            return do()
        match rng.randrange(5):
            case 0:
                raise refused("RequestLimitExceeded", status=503)
            case 1:
                raise refused("InternalError", status=500)
            case 2:
                do()
                raise refused("InternalError", status=500)
            case 3:
                raise _exceptions.ConnectTimeoutError(endpoint_url="http://aws")
            case _:
                do()
                raise _exceptions.ReadTimeoutError(endpoint_url="http://aws")

    return fault


def _killing(at: int, after: bool) -> Callable[[str, str, Callable[[], Words]], Words]:
    """Return what kills who asks, around one call."""
    count = 0

    def fault(service: str, verb: str, do: Callable[[], Words]) -> Words:
        nonlocal count
        count += 1
        if count != at:
            return do()
        try:
            if after:
                do()
        finally:
            raise Killed  # a refusal is heard by nobody either

    return fault
