"""What Compute Engine would rent us now: the catalogue's offers as they are today.

Their zones, quotas and prices are asked for. What does not answer keeps what was known of it, and
a row of `doctor` says so. What nobody has said stays unknown.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from threading import Lock

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.spi.errors import CloudwhaleError, Denied
from cloudwhale.spi.provider import Check
from cloudwhale_providers.gcp import names, quotas
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.advice import Advice
from cloudwhale_providers.gcp.asking import listed, said_by
from cloudwhale_providers.gcp.settings import regions
from cloudwhale_providers.gcp.words import ATTACHED

ZONES_HOLD_S: Seconds = 3600.0  # new types come to a zone every few weeks
USE_HOLDS_S: Seconds = 55.0  # offers are asked for each minute: once for each time
PAGE = 500
FIELDS = "nextPageToken,unreachables,items/*/machineTypes/name,items/*/warning/code"
"""What is asked of tens of thousands of machine types."""

Zones = Mapping[str, frozenset[str]]
"""Types of machines, or of accelerators, by zone."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of the project; None: nobody has said yet."""

    types: Zones | None = None
    gpus: Zones | None = None
    """Accelerators that can be attached."""
    zoned_at: Instant = float("-inf")
    by_region: Mapping[str, quotas.Quotas] = field(default_factory=dict[str, quotas.Quotas])
    of_project: quotas.Quotas = field(default_factory=dict[str, quotas.Quota])
    regions: frozenset[str] | None = None
    """Those that the project may use."""
    used_at: Instant = float("-inf")
    wrong: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """By what was asked for: what went wrong when it was asked last, and how to mend it."""


class LiveOffers:
    """Makes the catalogue's offers newer; safe for several threads."""

    def __init__(
        self,
        account: Account,
        listed: Callable[[Instant], Sequence[Offer]],
        learned: quotas.Learned,
    ) -> None:
        """Take who is asked, the catalogue, and what refusals of launches have told."""
        self._account = account
        self._listed = listed
        self._learned = learned
        self._advice = Advice(account)
        self._known = _Known()
        self._prices: Mapping[tuple[str, str, str], MicroUsd] = {}
        """What an hour costs, disk and address included, by zone, type and market."""
        self._lock = Lock()
        self._turn = Lock()
        """One asks; who comes meanwhile waits, and finds what it has found."""

    def offers(self, now: Instant) -> Sequence[Offer]:
        """Return what could be rented now; raise Denied or Unreachable where nothing is known.

        Three requests when nothing is known, two a minute then, and a few for advice on prices.
        """
        every = self._listed(now)
        wanted = set(regions(self._account.options, {one.region for one in every}))
        some = [one for one in every if one.region in wanted]
        with self._turn:
            known = self._with_use(self._with_zones(some, self._known, now), now)
            self._known = known
            self._advice.renew(some, now)
        found = tuple(self._newer(some, known, now))
        with self._lock:
            self._prices = _usd_h(found)
        return found

    def usd_h(self, zone: str, type_name: str, market: str, now: Instant) -> MicroUsd | None:
        """Return what an hour of such a machine cost when offers were made last; None: unknown.

        Where none were made yet: what the catalogue says.
        """
        with self._lock:
            if not self._prices:
                self._prices = _usd_h(self._listed(now))
            return self._prices.get((zone, type_name, market))

    def rows(self) -> Sequence[Check]:
        """Return a row for each thing that could not be read when it was asked for last."""
        wrong = {**self._known.wrong, **self._advice.wrong}
        return tuple(
            Check(
                name="gcp offers", state="warning", remedy=remedy,
                says=f"{what} cannot be read: {says}; what was known is used",
            )
            for what, (says, remedy) in sorted(wrong.items())
        )  # fmt: skip

    # -- asking ------------------------------------------------------------------------------

    def _with_zones(self, some: Sequence[Offer], known: _Known, now: Instant) -> _Known:
        if now - known.zoned_at < ZONES_HOLD_S:
            return known
        try:
            types = self._by_zone("machineTypes", {one.type for one in some})
            has_attached = any(_attached(one) for one in some)
            gpus = self._by_zone("acceleratorTypes", ATTACHED.values()) if has_attached else None
        except CloudwhaleError as error:
            if known.types is None and known.regions is None and not _may_go_on(error):
                raise
            return _wrong(known, "zones", error, "compute.machineTypes.list")
        merged = types if known.types is None else {**known.types, **types}
        return replace(_well(known, "zones"), types=merged, gpus=gpus, zoned_at=now)

    def _by_zone(self, plural: str, wanted: Iterable[str]) -> Zones:
        """Return which of some types each zone has, a zone that did not answer left out."""
        some = "|".join(sorted(set(wanted)))
        told = self._account.everywhere(
            f"{plural}.aggregatedList", filter=f'name eq "({some})"', maxResults=PAGE,
            fields=FIELDS.replace("machineTypes", plural),
        )  # fmt: skip
        found = {
            zone: frozenset(str(one["name"]) for one in things)
            for zone, things in told.found.items()
        }
        return {zone: some for zone, some in found.items() if zone not in told.silent}

    def _with_use(self, known: _Known, now: Instant) -> _Known:
        if now - known.used_at < USE_HOLDS_S:
            return known
        try:
            told = list(
                listed(
                    self._account.calls, "compute", "regions.list", project=self._account.project,
                    fields="nextPageToken,items(name,status,quotas)",
                )
            )  # fmt: skip
            of_project = quotas.read(self._account.compute("projects.get", fields="quotas"))
        except CloudwhaleError as error:
            if known.regions is None and not _may_go_on(error):
                raise  # no credentials, or no network: nothing could be launched
            # What was used then says little of now: unknown, and it is tried.
            wrong = _wrong(known, "quotas", error, "compute.regions.list")
            return replace(wrong, by_region={}, of_project={})
        up = [one for one in told if one.get("status", "UP") == "UP"]
        return replace(
            _well(known, "quotas"),
            by_region={str(one["name"]): quotas.read(one) for one in up},
            regions=frozenset(str(one["name"]) for one in up),
            of_project=of_project,
            used_at=now,
        )

    # -- making ------------------------------------------------------------------------------

    def _newer(self, some: Sequence[Offer], known: _Known, now: Instant) -> Iterator[Offer]:
        """Yield the offers as they are today, one for each zone that has the type."""
        ordered = sorted(some, key=lambda one: (one.region, one.type, one.market, one.zone))
        by = groupby(ordered, key=lambda one: (one.region, one.type, one.market))
        for (region, name, _), same in by:
            if known.regions is not None and region not in known.regions:
                continue
            by_zone = {one.zone: one for one in same}
            for zone in self._where(region, name, by_zone, known):
                offer = _in_zone(by_zone, zone)
                if _is_there(offer, known):
                    yield self._advice.applied(self._counted(offer, known, now))

    def _where(
        self, region: str, name: str, by_zone: Mapping[str, Offer], known: _Known
    ) -> Sequence[str]:
        if known.types is None:
            return list(by_zone)
        told = [
            zone
            for zone, types in known.types.items()
            if names.region_of(zone) == region and name in types
        ]
        # Of a zone that nobody has told of, what the catalogue says holds.
        unsaid = [zone for zone in by_zone if zone and zone not in known.types]
        return sorted({*told, *unsaid})

    def _counted(self, offer: Offer, known: _Known, now: Instant) -> Offer:
        of_region = known.by_region.get(offer.region, {})
        left = quotas.left(offer, of_region, known.of_project, self._learned, now)
        return offer if left == offer.quota_left else offer.but(quota_left=left)


def _attached(offer: Offer) -> str:
    """Return the type of GPUs that must be attached to a machine; empty: none."""
    devices = offer.facts.devices
    is_n1 = offer.type.startswith("n1-")
    return ATTACHED.get(devices[0].model, "") if devices and is_n1 else ""


def _is_there(offer: Offer, known: _Known) -> bool:
    """Say whether a zone has the GPUs that an offer needs attached; unknown is tried."""
    gpu = _attached(offer)
    if not gpu or known.gpus is None or offer.zone not in known.gpus:
        return not gpu or known.gpus is None
    return gpu in known.gpus[offer.zone]


def _in_zone(by_zone: Mapping[str, Offer], zone: str) -> Offer:
    """Return the offer of a zone; of one that the catalogue does not name the same as elsewhere."""
    if zone in by_zone:
        return by_zone[zone]
    first = next(iter(by_zone.values()))
    return first.but(id=f"{first.provider}/{zone}/{first.type}/{first.market}", zone=zone)


def _usd_h(offers: Iterable[Offer]) -> Mapping[tuple[str, str, str], MicroUsd]:
    return {(one.zone, one.type, one.market): one.usd_h for one in offers if one.usd_h is not None}


def _may_go_on(error: CloudwhaleError) -> bool:
    """Say whether what was refused is this alone: the catalogue's words hold without it."""
    said = said_by(error)
    is_permission = said is not None and said.status == 403 and "permission" in said.says
    return isinstance(error, Denied) and is_permission


def _wrong(known: _Known, what: str, error: CloudwhaleError, permission: str) -> _Known:
    remedy = error.remedy or f"Allow {permission} to whom the controller runs as."
    return replace(known, wrong={**known.wrong, what: (error.says, remedy)})


def _well(known: _Known, what: str) -> _Known:
    return replace(known, wrong={name: one for name, one in known.wrong.items() if name != what})
