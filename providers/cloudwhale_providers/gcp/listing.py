"""Our machines as Compute Engine lists them: one list for all who ask within a second."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import CloudwhaleError, Unreachable
from cloudwhale_providers.gcp import names
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.asking import Everywhere, says_that_it_is_gone
from cloudwhale_providers.gcp.endings import Ending, Endings

SHARED_S: Seconds = 1.0
KEPT_S: Seconds = 3600.0
"""So long a machine that is no more is shown, as it is listed no more."""

State = Literal["starting", "running", "stopping", "gone"]
STATES: Mapping[str, State] = {
    "PENDING": "starting",
    "PROVISIONING": "starting",
    "STAGING": "starting",
    "RUNNING": "running",
    "REPAIRING": "running",
    "PENDING_STOP": "stopping",
    "STOPPING": "stopping",
    "SUSPENDING": "stopping",
    "DEPROVISIONING": "stopping",
    "STOPPED": "gone",
    "TERMINATED": "gone",  # it has shut down: its disk is there, and costs
    "SUSPENDED": "gone",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """One of our instances as it was described last."""

    id: str
    """Its name, which no other machine ever has."""
    number: str
    """What Compute Engine numbers it by."""
    region: str
    zone: str
    type: str
    node: str
    request: str
    """What it was asked for under."""
    state: State
    is_spot: bool
    launched_at: Instant
    started_at: Instant | None
    """When it began to run; None: it has not yet."""
    ended_at: Instant | None
    """When it ended, where that is known."""
    stop_at: Instant | None
    """When Compute Engine deletes it; None: it does not say, and it will not."""
    wanted_stop_at: Instant | None
    """When it was to be deleted, as its launch had it."""
    reason: str = ""
    """Type of the operation that has ended it, `compute.instances.preempted`."""
    says: str = ""
    is_there: bool = True
    """Whether it is listed still; one that has shut down is, until it is deleted."""

    @property
    def is_alive(self) -> bool:
        """Say whether it may still run."""
        return self.state in ("starting", "running")


class Listing:
    """Lists our instances; safe for threads."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._endings = Endings(account)
        self._known: dict[str, Seen] = {}
        """By id, as they were listed last; also those that are no more, for an hour."""
        self._noted: dict[str, Seen] = {}
        """Those that were looked at one by one since, by id."""
        self._begun_at: Seconds = float("-inf")
        self._changes = 0
        """How often something was launched or ended; counts what a list must have seen."""
        self._saw = -1
        """How many changes the last list has seen."""
        self.silent: frozenset[str] = frozenset()
        """Zones that have not answered the last time."""
        self._turn = Lock()
        """Who comes while a list is being made waits for it, and takes it if it is new enough."""
        self._note = Lock()

    @property
    def is_whole(self) -> bool:
        """Say whether every zone has answered the last time."""
        return self._saw >= 0 and not self.silent

    def all(self) -> Sequence[Seen]:
        """Return our machines, newest first; of a zone that does not answer, those known before.

        Raise Denied or Unreachable when there is no answer.
        """
        with self._note:
            wanted = self._changes
        with self._turn:
            is_old = self._account.clock.steady() - self._begun_at >= SHARED_S
            if is_old or self._saw < wanted:
                self._read()
            found = list(self._known.values())
        return sorted(found, key=lambda one: (-one.launched_at, one.id))

    def known(self, machine: str) -> Seen | None:
        """Return a machine as it was seen last; None: it was not there."""
        with self._note:
            return self._noted.get(machine) or self._known.get(machine)

    def changed(self) -> None:
        """Make a new list for the next who asks: something was launched or ended."""
        with self._note:
            self._changes += 1

    def one(self, zone: str, machine: str) -> Seen | None:
        """Return an instance by its name; None when it is not there, or is not ours.

        Asked before each launch: whoever asked before may have lost the answer. Raise Denied or
        Unreachable.
        """
        try:
            told = self._account.compute("instances.get", zone=zone, instance=machine)
        except CloudwhaleError as error:
            if not says_that_it_is_gone(error):
                raise
            return None
        found = seen(told, self._account.installation)
        if found is not None:
            with self._note:
                self._noted[found.id] = found
        return found

    def ending(self, zone: str, machine: str, number: str = "") -> Ending | None:
        """Return how a machine has ended that is not there any more; None: nobody says."""
        return self._endings.of(zone, machine, number)

    def _read(self) -> None:
        with self._note:
            changes, before = self._changes, {**self._known, **self._noted}
            self._noted.clear()
        begun_at = self._account.clock.steady()
        told = self._account.everywhere("instances.aggregatedList", filter=self._account.own)
        if told.silent and not any(told.found.values()) and not before:
            raise Unreachable(
                f"GCP does not say what there is in {', '.join(sorted(told.silent))}",
                "It is asked again by itself.",
            )
        found = _found(told, self._account.installation)
        known = found | {one.id: one for one in self._others(before, found, told)}
        with self._note:
            self._known = known
        self.silent, self._saw, self._begun_at = told.silent, changes, begun_at

    def _others(
        self, before: Mapping[str, Seen], found: Mapping[str, Seen], told: Everywhere
    ) -> Sequence[Seen]:
        """Return those that were known and are not listed: gone, or in a zone that is silent."""
        now, others = self._account.clock.now(), list[Seen]()
        for one in before.values():
            if one.id in found:
                continue
            if one.zone in told.silent:
                others.append(one)
            elif one.state != "gone" or one.is_there:
                others.append(self._unlisted(one, now))
            elif one.ended_at is None or now - one.ended_at < KEPT_S:
                others.append(one)
        return others

    def _unlisted(self, one: Seen, now: Instant) -> Seen:
        """Return a machine that was there and is not listed, asked for by its name.

        A list may be older than what it was made from: that alone ends no machine.
        """
        try:
            there = self.one(one.zone, one.id)
        except CloudwhaleError:
            return one
        return self._gone(one, now) if there is None else there

    def _gone(self, one: Seen, now: Instant) -> Seen:
        """Return a machine that is not listed any more: when and why it has ended, where told."""
        why = self._endings.of(one.zone, one.id, one.number)
        ended_at = one.ended_at or (now if why is None else why.at)
        gone = replace(one, state="gone", ended_at=ended_at, is_there=False)
        return gone if why is None else replace(gone, reason=why.kind, says=why.says)


def _found(told: Everywhere, installation: str) -> dict[str, Seen]:
    every = (seen(one, installation) for some in told.found.values() for one in some)
    return {one.id: one for one in every if one is not None}


def seen(one: Mapping[str, Any], installation: str) -> Seen | None:
    """Return a description of an instance in our words; None where it is none of ours."""
    own = names.attributes(one)
    node = own.get(names.NODE, "")
    if not node or names.labels(one).get(names.INSTALLATION) != names.label(installation):
        return None
    zone, status = names.last(one.get("zone")), str(one.get("status", ""))
    scheduling: Mapping[str, Any] = one.get("scheduling") or {}
    state = STATES.get(status, "stopping")
    return Seen(
        id=str(one["name"]),
        number=str(one.get("id", "")),
        region=names.region_of(zone),
        zone=zone,
        type=names.last(one.get("machineType")),
        node=node,
        request=own.get(names.REQUEST, ""),
        state=state,
        is_spot=scheduling.get("provisioningModel") == "SPOT",
        launched_at=names.instant(one.get("creationTimestamp")) or 0.0,
        started_at=names.instant(one.get("lastStartTimestamp")),
        ended_at=names.instant(one.get("lastStopTimestamp")) if state == "gone" else None,
        stop_at=_stop_at(one),
        wanted_stop_at=_seconds(own.get(names.STOP_AT, "")),
        says=str(one.get("statusMessage") or "") or (f"it is {status}" if state == "gone" else ""),
    )


def _stop_at(one: Mapping[str, Any]) -> Instant | None:
    status: Mapping[str, Any] = one.get("resourceStatus") or {}
    scheduling: Mapping[str, Any] = status.get("scheduling") or {}
    return names.instant(scheduling.get("terminationTimestamp"))


def _seconds(text: str) -> Instant | None:
    return float(text) if text.isdecimal() else None
