"""What carries our label at GCP and belongs to no live machine: found everywhere, and removed.

Whose a thing is stands in its label `cloudwhale-installation`; another installation's is shown and
never touched. Before anything is removed its label is read again.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.model.units import NOTHING, Instant, MicroUsd, micro_usd
from cloudwhale.spi.errors import CloudwhaleError, Denied, Unreachable
from cloudwhale.spi.provider import Leftover
from cloudwhale_providers.gcp import names
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.asking import code_of, says_that_it_is_gone
from cloudwhale_providers.gcp.listing import STATES
from cloudwhale_providers.prices.gcp import (
    ADDRESS_IDLE_USD_H,
    DISK_USD_GIB_MONTH,
    HOURS_A_MONTH,
)

PriceOf = Callable[[str, str, str, Instant], MicroUsd | None]
"""Returns what an hour costs in a zone, of a type, in a market; None when nobody knows."""
IN_USE = frozenset(
    {"resourceInUseByAnotherResource", "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "resourceInUse"}
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing that Compute Engine has."""

    what: str
    plural: str
    """As its methods begin: `disks.list`."""
    word: str
    """Which names one."""


KINDS: Sequence[Kind] = (
    Kind("instance", "instances", "instance"),
    Kind("volume", "disks", "disk"),
    Kind("address", "addresses", "address"),
)
"""In the order in which they are to go: what uses something before what is used."""


class Leftovers:
    """Finds what is left over, and removes; every call is safe to repeat."""

    def __init__(self, account: Account, price_of: PriceOf) -> None:
        self._account = account
        self._price_of = price_of

    def leftovers(self, live: Collection[str]) -> Sequence[Leftover]:
        """Return what is left over, what must go first first; raise Denied or Unreachable.

        In all zones and regions, whatever the settings say now. It is all or an error: a list
        without the zone that did not answer would say that nothing is there.
        """
        nodes = {names.label(node) for node in live}
        found = [one for kind in KINDS for one in self._of_kind(kind, nodes)]
        order = {kind.what: rank for rank, kind in enumerate(KINDS)}
        return tuple(sorted(found, key=lambda one: (order[one.what], one.region, one.id)))

    def remove(self, leftover: Leftover) -> None:
        """Remove something of ours; what is gone is success.

        Raises Denied for what is another's, whatever the leftover says, and Unreachable for what
        still hangs on something else: it goes with the next sweep.
        """
        if not leftover.is_ours:
            raise _not_ours(leftover, leftover.installation)
        kind = next(one for one in KINDS if one.what == leftover.what)
        try:
            words = self._where(kind, leftover.id)
            self._must_be_ours(kind, leftover, words)
            self._account.compute(f"{kind.plural}.delete", **words)
        except CloudwhaleError as error:
            if says_that_it_is_gone(error):
                return
            if code_of(error) in IN_USE:
                raise Unreachable(
                    f"{leftover.what} {leftover.id} is still in use: {error.says}",
                    "It is removed by itself when what uses it is gone.",
                ) from error
            raise

    def _of_kind(self, kind: Kind, nodes: Collection[str]) -> list[Leftover]:
        told = self._account.everywhere(
            f"{kind.plural}.aggregatedList", filter=f"labels.{names.INSTALLATION}:*"
        )
        if told.silent:
            raise Unreachable(
                f"GCP does not say what there is in {', '.join(sorted(told.silent))}",
                "It is asked again by itself.",
            )
        ours = names.label(self._account.installation)
        found: list[Leftover] = []
        for place, things in told.found.items():
            for thing in things:
                own = names.labels(thing)
                is_live = own.get(names.NODE) in nodes
                if _goes_with_its_machine(kind, thing):
                    continue
                if own.get(names.INSTALLATION) != ours or not is_live:
                    found.append(self._leftover(kind, place, thing))
        return found

    def _leftover(self, kind: Kind, place: str, thing: Mapping[str, Any]) -> Leftover:
        own = names.labels(thing)
        whose = own.get(names.INSTALLATION, "")
        return Leftover(
            id=f"{place}/{thing['name']}",
            what=kind.what,
            node=names.attributes(thing).get(names.NODE) or own.get(names.NODE),
            region=place if kind.what == "address" else names.region_of(place),
            is_ours=whose == names.label(self._account.installation),
            installation=whose,
            since=names.instant(thing.get("creationTimestamp")),
            usd_h=self._usd_h(kind, place, thing),
            project=own.get(names.PROJECT, ""),
        )

    def _usd_h(self, kind: Kind, place: str, thing: Mapping[str, Any]) -> MicroUsd | None:
        if kind.what == "volume":
            return usd_h_of_disk(thing)
        if kind.what == "address":
            return ADDRESS_IDLE_USD_H
        if STATES.get(str(thing.get("status", ""))) not in ("starting", "running"):
            return NOTHING  # its disk is billed, which is in the list by itself
        scheduling: Mapping[str, Any] = thing.get("scheduling") or {}
        market = "spot" if scheduling.get("provisioningModel") == "SPOT" else "on-demand"
        kind_of_machine = names.last(thing.get("machineType"))
        return self._price_of(place, kind_of_machine, market, self._account.clock.now())

    def _where(self, kind: Kind, id: str) -> dict[str, Any]:
        place, _, name = id.rpartition("/")
        return {("region" if kind.what == "address" else "zone"): place, kind.word: name}

    def _must_be_ours(self, kind: Kind, leftover: Leftover, words: Mapping[str, Any]) -> None:
        """Raise Denied where a thing is another's by now; what is gone raises as a call does.

        Names can be mistaken, labels can be changed: what is about to be removed says whose it is.
        """
        thing = self._account.compute(f"{kind.plural}.get", **words)
        whose = names.labels(thing).get(names.INSTALLATION, "")
        if whose != names.label(self._account.installation):
            raise _not_ours(leftover, whose)


def _goes_with_its_machine(kind: Kind, thing: Mapping[str, Any]) -> bool:
    """Say whether a disk is deleted with the machine that has it, which is in the list itself."""
    return kind.what == "volume" and bool(thing.get("users"))


def _not_ours(leftover: Leftover, whose: str) -> Denied:
    of = f"of the installation {whose}" if whose else "of nobody whom we know"
    return Denied(
        f"{leftover.what} {leftover.id} is {of}, and is not touched",
        "Let its owner remove it, or remove it in the console.",
    )


def usd_h_of_disk(disk: Mapping[str, Any]) -> MicroUsd | None:
    """Return what an hour of a disk costs, for its size alone; None for kinds without a price."""
    price = DISK_USD_GIB_MONTH.get(names.last(disk.get("type")))
    if price is None:
        return None
    return micro_usd(f"{float(disk.get('sizeGb') or 0) * price / HOURS_A_MONTH:.6f}")
