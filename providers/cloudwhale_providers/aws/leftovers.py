"""What carries our tag at AWS and belongs to no live machine: found region by region, and removed.

Whose a thing is stands in its tag `cloudwhale:installation`; another installation's is shown and
never touched. Before anything is removed its tag is read again.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from cloudwhale.model.units import NOTHING, Instant, MicroUsd, micro_usd
from cloudwhale.spi.errors import CloudwhaleError, Denied, Unreachable
from cloudwhale.spi.provider import Leftover
from cloudwhale_providers.aws import tags
from cloudwhale_providers.aws.account import PREFIX, Account
from cloudwhale_providers.aws.asking import code_of, listed, says_that_it_is_gone, tags_of
from cloudwhale_providers.aws.schedules import Schedules, name_of
from cloudwhale_providers.aws.things import KINDS, SCHEDULE, Kind
from cloudwhale_providers.prices.aws import ADDRESS_USD_H, DISK_USD_GIB_MONTH, HOURS_A_MONTH

SIDE_BY_SIDE = 8
"""Regions that are asked at once."""

IN_USE = frozenset(
    {
        "VolumeInUse", "DependencyViolation", "InvalidNetworkInterface.InUse",
        "InvalidIPAddress.InUse", "InvalidSnapshot.InUse", "IncorrectState",
        "InvalidNetworkInterfaceID.InUse", "InvalidGroup.InUse", "ConflictException",
    }
)  # fmt: skip
"""Codes of what cannot go yet, as something that goes first is still there."""

PriceOf = Callable[[str, str, str, Instant], MicroUsd | None]
"""Returns what an hour of a machine costs now, by zone, type and market; None: unknown."""


class Leftovers:
    """Finds and removes; every call is safe to repeat."""

    def __init__(
        self, account: Account, regions: Callable[[], Sequence[str]], price_of: PriceOf
    ) -> None:
        self._account = account
        self._calls = account.calls
        self._installation = account.installation
        self._group = Schedules(account).group
        self._regions = regions
        self._price_of = price_of

    def leftovers(self, live: Collection[str]) -> Sequence[Leftover]:
        """Return what is left over, what must go first first; raise Denied or Unreachable.

        It is all or an error: a list without the region that did not answer would say that nothing
        is there. Nine requests a region.
        """
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            asked = [
                pool.submit(self._of_region, name, frozenset(live)) for name in self._regions()
            ]
            found = [one for region in asked for one in region.result()]
        order = {kind.what: rank for rank, kind in enumerate(KINDS)}
        return tuple(
            sorted(found, key=lambda one: (order.get(one.what, len(order)), one.region, one.id))
        )

    def remove(self, leftover: Leftover) -> None:
        """Remove something of ours; what is gone is success.

        Raises Denied for what is another's, whatever the leftover says, and Unreachable for what
        still hangs on something else: it goes with the next sweep.
        """
        if not leftover.is_ours:
            raise self._not_ours(leftover, leftover.installation)
        kind = next((one for one in KINDS if one.what == leftover.what), SCHEDULE)
        try:
            if kind is SCHEDULE:
                self._remove_schedule(leftover)
                return
            thing = self._again(kind, leftover)
            if thing is not None:
                kind.remove(self._calls, leftover.region, thing)
        except CloudwhaleError as error:
            if says_that_it_is_gone(error):
                return
            if code_of(error) in IN_USE:
                raise Unreachable(
                    f"{leftover.what} {leftover.id} in {leftover.region} is still in use: "
                    f"{error.says}",
                    "It is removed by itself when what uses it is gone.",
                ) from error
            raise

    # -- finding -----------------------------------------------------------------------------

    def _of_region(self, region: str, live: frozenset[str]) -> list[Leftover]:
        found: list[Leftover] = []
        standing: set[str] = set()
        """Nodes whose instance is still there: their schedule is to end it."""
        for kind in KINDS:
            things = list(kind.things(self._calls, region, tags.INSTALLATION))
            if kind.what == "instance":
                own = (tags_of(one) for one in things)
                ours = (one for one in own if one[tags.INSTALLATION] == self._installation)
                standing |= {one.get(tags.NODE, "") for one in ours}
            used = self._used(kind, things)
            for thing in things:
                said = tags_of(thing)
                is_live = said.get(tags.NODE) in live or thing[kind.id_key] in used
                if said[tags.INSTALLATION] != self._installation or not is_live:
                    found.append(self._leftover(kind, region, thing, said))
        kept = {name_of(node) for node in live | standing if node}
        return [*found, *self._schedules(region, kept)]

    def _used(self, kind: Kind, things: Sequence[Mapping[str, Any]]) -> Collection[str]:
        """Return the ids of those that belong to no machine and are used for the next one.

        Those are our groups, and the newest of our templates: it is made of the newest agent. One
        that is older is made anew where it is wanted again. EC2 tells their time in seconds.
        """
        own = [one for one in things if tags_of(one)[tags.INSTALLATION] == self._installation]
        if kind.what == "security group":
            ours, named = self._account, self._account.options.security_group
            names = {ours.ours, ours.gangs, named}
            return {one["GroupId"] for one in own if {one["GroupName"], one["GroupId"]} & names}
        if kind.what == "template" and own:
            newest = max(one["CreateTime"] for one in own)
            return {one["LaunchTemplateId"] for one in own if one["CreateTime"] == newest}
        return ()

    def _leftover(
        self, kind: Kind, region: str, thing: Mapping[str, Any], said: Mapping[str, str]
    ) -> Leftover:
        whose = said.get(tags.INSTALLATION, "")
        return Leftover(
            id=str(thing[kind.id_key]),
            what=kind.what,
            node=said.get(tags.NODE),
            region=region,
            is_ours=whose == self._installation,
            installation=whose,
            since=_instant(thing.get(kind.since_key)),
            usd_h=self._usd_h(kind, thing),
            project=said.get(tags.PROJECT, ""),
        )

    def _usd_h(self, kind: Kind, thing: Mapping[str, Any]) -> MicroUsd | None:
        if kind.what == "instance":
            return self._usd_h_of_instance(thing)
        if kind.what == "volume":
            return usd_h_of_volume(thing)
        if kind.what == "address":
            return ADDRESS_USD_H
        return None if kind.what == "snapshot" else NOTHING  # it is billed by changed blocks

    def _usd_h_of_instance(self, thing: Mapping[str, Any]) -> MicroUsd | None:
        if thing["State"]["Name"] in ("stopping", "stopped"):
            return NOTHING  # its disk is billed, which is in the list by itself once it is free
        market = "spot" if thing.get("InstanceLifecycle") == "spot" else "on-demand"
        zone, now = thing["Placement"]["AvailabilityZone"], self._account.clock.now()
        return self._price_of(zone, thing["InstanceType"], market, now)

    def _schedules(self, region: str, kept: Collection[str]) -> Iterator[Leftover]:
        """Yield schedules whose machine is gone; while it is there, they are to end it.

        They have no tags; their group is called after the installation.
        """
        for one in listed(self._calls, region, "scheduler", "list_schedules", "Schedules"):
            group, name = str(one.get("GroupName", "")), str(one["Name"])
            whose = group.removeprefix(PREFIX)
            is_ours = group == self._group
            if whose == group or (is_ours and name in kept):
                continue
            yield Leftover(
                id=f"{group}/{name}",
                what=SCHEDULE.what,
                node=name,
                region=region,
                is_ours=is_ours,
                installation=self._installation if is_ours else whose,
                since=_instant(one.get(SCHEDULE.since_key)),
                usd_h=NOTHING,
            )

    # -- removing ----------------------------------------------------------------------------

    def _again(self, kind: Kind, leftover: Leftover) -> Mapping[str, Any] | None:
        """Return a thing as it is now, or None when it is gone; raise Denied when it is another's.

        Ids can be mistaken, tags can be changed: what is about to be removed says whose it is.
        """
        thing = kind.again(self._calls, leftover.region, leftover.id)
        if thing is None:
            return None
        whose = tags_of(thing).get(tags.INSTALLATION, "")
        if whose != self._installation:
            raise self._not_ours(leftover, whose)
        return thing

    def _remove_schedule(self, leftover: Leftover) -> None:
        group, _, name = leftover.id.partition("/")
        if group != self._group:
            raise self._not_ours(leftover, group.removeprefix(PREFIX))
        self._calls.call(
            leftover.region, "scheduler", "delete_schedule", GroupName=group, Name=name
        )

    def _not_ours(self, leftover: Leftover, whose: str) -> Denied:
        of = f"of the installation {whose}" if whose else "of nobody whom we know"
        return Denied(
            f"{leftover.what} {leftover.id} in {leftover.region} is {of}, and is not touched",
            "Let its owner remove it, or remove it in the console.",
        )


def usd_h_of_volume(volume: Mapping[str, Any]) -> MicroUsd | None:
    """Return what an hour of a volume costs, for its size alone; None for all but gp3."""
    if volume.get("VolumeType") != "gp3":
        return None
    return micro_usd(f"{volume['Size'] * DISK_USD_GIB_MONTH / HOURS_A_MONTH:.6f}")


def _instant(when: Any) -> Instant | None:
    return when.timestamp() if isinstance(when, datetime) else None
