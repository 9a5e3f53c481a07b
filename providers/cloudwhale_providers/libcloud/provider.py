"""A cloud that a driver of libcloud reaches, as a provider of machines on demand."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.spi.errors import Denied, TryAnother
from cloudwhale.spi.provider import Amends, Check, Grounds, LaunchRequest, Leftover, Machine, Stop
from cloudwhale_providers.libcloud.checks import Checks
from cloudwhale_providers.libcloud.driving import Driving
from cloudwhale_providers.libcloud.ending import Ending
from cloudwhale_providers.libcloud.launching import Launching, refuse
from cloudwhale_providers.libcloud.leftovers import Leftovers
from cloudwhale_providers.libcloud.listing import Listing, Seen
from cloudwhale_providers.libcloud.names import name_of
from cloudwhale_providers.libcloud.settings import read
from cloudwhale_providers.libcloud.user_data import user_data


class LibcloudProvider:
    """Machines of one installation; safe for threads; libcloud is imported by the first call."""

    def __init__(
        self,
        grounds: Grounds,
        make: Callable[[], Any] | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """Raise SettingsError when its table is wrong. `make`: makes the driver, for tests."""
        self._grounds = grounds
        self._environment = environment
        self._options = read(grounds.settings, grounds.name)
        self._driving = Driving(grounds.name, self._options, make, environment)
        self._listing = Listing(self._driving, grounds.installation, grounds.clock)
        self._ending = Ending(self._driving, self._listing)
        self._launching = Launching(
            self._driving, self._options, self._listing, self._ending, grounds.clock
        )
        self._sweep = Leftovers(
            self._driving, self._listing, self._ending, self._options.region, grounds.installation
        )
        self._types: dict[str, str] = {}
        """Sizes of machines that this process has launched, by id."""

    @property
    def stops(self) -> frozenset[Stop]:
        """The machine itself, where switching itself off ends its bill; else nobody."""
        return frozenset({"self"} if self._options.off_is_free else ())

    def offers(self, now: Instant) -> Sequence[Offer]:
        """Return the sizes of the settings; raise Denied for a driver that cannot launch them.

        Asks for no list: what is left of a quota is counted by what was listed last.
        """
        refuse(self._driving, self._options)
        return [self._counted(one) for one in self._grounds.listed(now)]

    def launch(self, request: LaunchRequest) -> Machine:
        """Return the machine of a request, made when there is none.

        Raise TryAnother, Denied or Unreachable; after the last the same request finds it.
        """
        offer, installation = request.offer, self._grounds.installation
        if offer is None or request.stop_at is None or not installation:
            says = "a driver rents machines to an installation, by an offer, until a time"
            raise Denied(says, "Please report it.")
        name = name_of(installation, request.request_id, request.node)
        if request.stop_at <= self._grounds.clock.now():
            self._ending.end_all(self._listing.launched(name))
            raise TryAnother(f"{request.node} was to have ended before it was launched")
        made = self._launching.launched(name, request, offer, self._text)
        self._types[made.id] = offer.type
        return self._machine(made)

    def machines(self) -> Sequence[Machine]:
        """Return every machine of ours, newest first; in passing, what was made twice ends."""
        self._listing.all()
        self._ending.end_all(self._listing.twins())
        return [self._machine(one) for one in self._listing.now()]

    def extend(self, machine: str, stop_at: Instant) -> Instant | Literal["fixed"]:
        """Return the time that was asked for: the cloud has no stop that would have to be moved."""
        return stop_at

    def terminate(self, machine: str) -> None:
        """End a machine of ours; raise Denied for others', Unreachable when it may still live."""
        self._ending.terminate(machine)

    def leftovers(self, live: Collection[str]) -> Sequence[Leftover]:
        """Return what belongs to no live machine."""
        return self._sweep.leftovers(live, self._usd_h)

    def remove(self, leftover: Leftover) -> None:
        """Remove what is left over and ours."""
        self._sweep.remove(leftover)

    def check(self) -> Sequence[Check]:
        """Look at the driver, its credentials, and all that the settings name."""
        checks = Checks(
            self._grounds.name, self._driving, self._options, self._listing,
            self._launching.things,
        )  # fmt: skip
        return checks.rows(self._grounds.mailbox, self._environment)

    def amends(self, whose: Callable[[], str], allow: str = "") -> Amends:
        """Return the rows alone: a driver makes no accounts, keys or buckets."""
        return Amends(rows=self.check())

    def _text(self, request: LaunchRequest, offer: Offer) -> str:
        said = {one: self._environment.get(one, "") for one in self._options.machine_environment}
        return user_data(request, self._grounds.installation, self._grounds.clock.now(), said)

    def _machine(self, one: Seen) -> Machine:
        return Machine(
            id=one.id,
            node=one.called.node,
            state=one.state,
            facts=self._facts(self._type_of(one)),
            billed_from=one.since,
            owned=False,
            says=f"the driver says: {one.said or 'it is not listed any more'}"
            if one.state in ("gone", "stopping")
            else "",
        )

    def _type_of(self, one: Seen) -> str:
        """Return the size of a machine as offers call it; empty where nobody has said."""
        known = self._types.get(one.id)
        if known is not None:
            return known
        names = {one.size, str(getattr(getattr(one.thing, "size", None), "name", ""))}
        return next((size.size for size in self._options.sizes if size.size in names), "")

    def _facts(self, type_name: str) -> Facts | None:
        listed = self._grounds.listed(self._grounds.clock.now())
        return next((one.facts for one in listed if one.type == type_name), None)

    def _counted(self, offer: Offer) -> Offer:
        size = self._options.size_of(offer.type)
        if size is None or size.at_most is None:
            return offer
        used = sum(one.is_there and self._type_of(one) == offer.type for one in self._listing.now())
        return offer.but(quota_left=float(max(0, size.at_most - used)))

    def _usd_h(self, one: Seen) -> MicroUsd | None:
        size = self._options.size_of(self._type_of(one))
        return None if size is None else size.price_usd_h
