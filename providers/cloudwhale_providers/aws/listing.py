"""Our machines as EC2 lists them: one list for all who ask within a second."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Literal

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import CloudwhaleError, Denied
from cloudwhale_providers.aws import tags
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.asking import listed, tags_of

SHARED_S: Seconds = 1.0
SIDE_BY_SIDE = 8
"""Regions that are asked at once."""

State = Literal["starting", "running", "stopping", "gone"]
STATES: Mapping[str, State] = {
    "pending": "starting",
    "running": "running",
    "shutting-down": "stopping",
    "stopping": "stopping",
    "stopped": "stopping",  # somebody has stopped it by hand: it does not come back by itself
    "terminated": "gone",
}
_ENDED_AT = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")


@dataclass(frozen=True, slots=True)
class Seen:
    """One of our instances as it was described last."""

    id: str
    region: str
    zone: str
    type: str
    node: str
    launch: str
    """What it was asked for under."""
    state: State
    is_spot: bool
    launched_at: Instant
    ended_at: Instant | None
    """When it was ended, where EC2 says that."""
    stop_at: Instant | None
    """By its tag."""
    reason: str
    """Code of its StateReason, `Client.UserInitiatedShutdown`."""
    says: str
    door: str
    """Who it is to the mailbox's bucket; empty: it was not told."""

    @property
    def is_alive(self) -> bool:
        """Say whether it may still run."""
        return self.state in ("starting", "running")


class Listing:
    """Lists our instances; safe for threads."""

    def __init__(
        self,
        account: Account,
        regions: Callable[[], Sequence[str]],
        every_region: Callable[[], Sequence[str]],
    ) -> None:
        self._account = account
        self._regions = regions
        self._every_region = every_region
        self._known: dict[str, tuple[Seen, ...]] = {}
        """By region, as it answered last."""
        self._noted: dict[str, Seen] = {}
        """Those that were looked at one by one since, by id."""
        self._begun_at: Seconds = float("-inf")
        self._changes = 0
        """How often something was launched or ended; counts what a list must have seen."""
        self._saw = -1
        """How many changes the last list has seen."""
        self.is_whole = False
        """Whether every region has answered the last time."""
        self._turn = Lock()
        """Who comes while a list is being made waits for it, and takes it if it is new enough."""
        self._note = Lock()

    def all(self) -> Sequence[Seen]:
        """Return our machines, newest first; of a region that does not answer, those known before.

        Raise what went wrong when no region answers.
        """
        with self._note:
            wanted = self._changes
        with self._turn:
            is_old = self._account.clock.steady() - self._begun_at >= SHARED_S
            if is_old or self._saw < wanted:
                self._read()
            found = [one for some in self._known.values() for one in some]
        return sorted(found, key=lambda one: (-one.launched_at, one.id))

    def known(self, machine: str) -> Seen | None:
        """Return a machine as it was seen last; None: it was not there."""
        with self._note:
            noted = self._noted.get(machine)
        if noted is not None:
            return noted
        found = [one for some in self._known.values() for one in some if one.id == machine]
        return found[0] if found else None

    def changed(self) -> None:
        """Make a new list for the next who asks: something was launched or ended."""
        with self._note:
            self._changes += 1

    def launched(self, region: str, launch: str) -> Seen | None:
        """Return the instance that a launch has made, the living one if there is one; None: none.

        Asked before each launch: whoever asked before may have lost the answer.
        """
        found = self._described(region, Filters=[*self._own(), _tagged(tags.LAUNCH, launch)])
        found.sort(key=lambda one: (not one.is_alive, -one.launched_at, one.id))
        return self._noting(found)

    def one(self, region: str, machine: str) -> Seen | None:
        """Return an instance of ours by its id; None while, or as, it is not listed."""
        found = self._described(
            region, Filters=[*self._own(), {"Name": "instance-id", "Values": [machine]}]
        )
        return self._noting(found)

    def elsewhere(self, machine: str) -> Seen | None:
        """Return an instance of ours in a region that is not listed: `regions` may have named it.

        None: there is none, where we may look; raise Unreachable when a region does not answer.
        """
        for region in self._every_region():
            if region in self._known:
                continue
            try:
                found = self.one(region, machine)
            except Denied:
                continue  # nor could we have launched it there
            if found is not None:
                return found
        return None

    def _noting(self, found: Sequence[Seen]) -> Seen | None:
        """Remember the first of those found until the next list; return it."""
        if not found:
            return None
        with self._note:
            self._noted[found[0].id] = found[0]
        return found[0]

    def _read(self) -> None:
        with self._note:
            changes = self._changes
            self._noted.clear()
        begun_at = self._account.clock.steady()
        regions = self._regions()
        wrong: list[CloudwhaleError] = []
        known = dict(self._known)
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            looks = {region: pool.submit(self._of_region, region) for region in regions}
            for region, look in looks.items():
                try:
                    known[region] = look.result()
                except CloudwhaleError as error:
                    wrong.append(error)
        self.is_whole = not wrong
        if wrong and len(wrong) == len(regions):
            raise wrong[0]
        self._known, self._saw, self._begun_at = known, changes, begun_at

    def _of_region(self, region: str) -> tuple[Seen, ...]:
        return tuple(self._described(region, Filters=self._own(), MaxResults=1000))

    def _described(self, region: str, **words: Any) -> list[Seen]:
        rows = listed(
            self._account.calls, region, "ec2", "describe_instances", "Reservations", **words
        )
        instances: Iterable[Mapping[str, Any]] = (
            one for reservation in rows for one in reservation.get("Instances", ())
        )
        found = (seen(region, one, tags_of(one)) for one in instances if self._is_ours(one))
        return [one for one in found if one is not None]

    def _is_ours(self, instance: Mapping[str, Any]) -> bool:
        return tags_of(instance).get(tags.INSTALLATION) == self._account.installation

    def _own(self) -> list[dict[str, Any]]:
        return [_tagged(tags.INSTALLATION, self._account.installation)]


def part(of: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a part of an answer; empty where the answer does not have it."""
    found: Mapping[str, Any] | None = of.get(key)
    return found or {}


def _tagged(key: str, value: str) -> dict[str, Any]:
    return {"Name": f"tag:{key}", "Values": [value]}


def seen(region: str, one: Mapping[str, Any], own: Mapping[str, str]) -> Seen | None:
    """Return a description of an instance in our words; None where it names no node of ours."""
    node = own.get(tags.NODE, "")
    if not node:
        return None
    reason = part(one, "StateReason")
    said = str(one.get("StateTransitionReason") or "")
    return Seen(
        id=str(one["InstanceId"]),
        region=region,
        zone=str(part(one, "Placement").get("AvailabilityZone", "")),
        type=str(one.get("InstanceType", "")),
        node=node,
        launch=own.get(tags.LAUNCH, ""),
        state=STATES.get(str(one["State"]["Name"]), "stopping"),
        is_spot=one.get("InstanceLifecycle") == "spot",
        launched_at=one["LaunchTime"].timestamp(),
        ended_at=_ended_at(said),
        stop_at=_instant(own.get(tags.STOP_AT, "")),
        reason=str(reason.get("Code", "")),
        says=str(reason.get("Message", "")) or said,
        door=tags.door(own, str(one["InstanceId"])),
    )


def _ended_at(said: str) -> Instant | None:
    found = _ENDED_AT.search(said)
    if found is None:
        return None
    return datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()


def _instant(text: str) -> Instant | None:
    return float(text) if text.isdecimal() else None
