"""GCP Compute Engine as a provider: machines by the second, in every zone that is meant."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Literal

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import CloudwhaleError, Denied, TryAnother
from cloudwhale.spi.provider import Amends, Check, Grounds, LaunchRequest, Leftover, Machine, Stop
from cloudwhale_providers.gcp import names
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.asking import Calls
from cloudwhale_providers.gcp.checks import Checks
from cloudwhale_providers.gcp.clients import Clients
from cloudwhale_providers.gcp.images import Images
from cloudwhale_providers.gcp.known import Known
from cloudwhale_providers.gcp.launching import Aids, Launching
from cloudwhale_providers.gcp.leftovers import Leftovers
from cloudwhale_providers.gcp.listing import Listing, Seen
from cloudwhale_providers.gcp.mending import Mends
from cloudwhale_providers.gcp.offers import LiveOffers
from cloudwhale_providers.gcp.operations import Pause, for_real
from cloudwhale_providers.gcp.settings import read
from cloudwhale_providers.gcp.stopping import Stopping
from cloudwhale_providers.gcp.user_data import user_data

DOCTOR_S: Seconds = 5.0
"""Who does not answer a check by then is told of: a person waits for it."""


class GcpProvider:
    """Machines of one installation in one project; safe for threads; imports Google's libraries
    with its first call."""

    def __init__(
        self, grounds: Grounds, calls: Calls | None = None, pause: Pause = for_real
    ) -> None:
        """Raise SettingsError when its table of the settings is wrong."""
        self._grounds = grounds
        self._options = read(grounds.settings, grounds.name)
        self._account = Account(
            calls or Clients(self._options.endpoint), grounds.installation, self._options,
            grounds.clock,
        )  # fmt: skip
        images = Images(self._account)
        self._listing = Listing(self._account)
        self._known = Known(self._account, grounds.listed)
        aids = Aids(_told, pause, self._catalogue)
        self._launching = Launching(self._account, self._listing, images, aids)
        self._live = LiveOffers(self._account, grounds.listed, self._launching.learned)
        self._stopping = Stopping(self._account, self._listing, self._known, pause)
        self._sweep = Leftovers(self._account, self._live.usd_h)
        self._mends = Mends(self._account, grounds.mailbox, pause)
        hasty = calls or Clients(self._options.endpoint, answer_s=DOCTOR_S)
        self._checks = Checks(replace(self._account, calls=hasty), grounds.mailbox, grounds.listed)

    @property
    def stops(self) -> frozenset[Stop]:
        """The machine itself, by its watchdog, and Compute Engine, by its maxRunDuration."""
        return frozenset({"cloud", "self"})

    def offers(self, now: Instant) -> Sequence[Offer]:
        """Return what could be rented now; raise Denied or Unreachable."""
        return self._live.offers(now)

    def launch(self, request: LaunchRequest) -> Machine:
        """Return the machine of a request, made when there is none, that ends by itself in time.

        Raise TryAnother, Denied or Unreachable.
        """
        offer = request.offer
        if offer is None or request.stop_at is None or not self._account.installation:
            says = "Compute Engine rents machines to an installation, by an offer, until a time"
            raise Denied(says, "Please report it.")
        if request.stop_at <= self._grounds.clock.now():
            raise self._too_late(request, offer)
        made = self._launching.launched(request, offer)
        return self._stopping.armed(request, offer, made)

    def machines(self) -> Sequence[Machine]:
        """Return every machine of ours, newest first; those that ended for about an hour.

        In passing those are deleted that have shut down by themselves: their disks cost on.
        """
        found = self._listing.all()
        self._stopping.tidy(found)
        unlisted = self._known.unlisted({one.id for one in found})
        return [*unlisted, *(self._known.machine(one) for one in found)]

    def extend(self, machine: str, stop_at: Instant) -> Instant | Literal["fixed"]:
        """Say that it is fixed: maxRunDuration of a machine that runs cannot be changed."""
        return "fixed"

    def terminate(self, machine: str) -> None:
        """Delete a machine of ours; raise Denied or Unreachable when it may still live."""
        self._stopping.terminate(machine, self._one(machine))

    def leftovers(self, live: Collection[str]) -> Sequence[Leftover]:
        """Return what belongs to no live machine."""
        return self._sweep.leftovers(live)

    def remove(self, leftover: Leftover) -> None:
        """Remove what is left over and ours."""
        self._sweep.remove(leftover)

    def check(self) -> Sequence[Check]:
        """Look at what launches need."""
        return (*self._checks.rows(), *self._live.rows())

    def amends(self, whose: Callable[[], str], allow: str = "") -> Amends:
        """Look for what the project lacks: APIs, roles, account, bucket; see `mending`."""
        return self._mends.amends(whose, allow)

    def _one(self, machine: str) -> Seen | None:
        """Return a machine of ours as it was listed; None for one that is not."""
        known = self._listing.known(machine)
        if known is None:
            self._listing.all()
            known = self._listing.known(machine)
        return known

    def _too_late(self, request: LaunchRequest, offer: Offer) -> CloudwhaleError:
        """End what a launch may have made before its time was over; return what to say."""
        name = names.machine_name(self._account.installation, request.request_id)
        there = self._listing.one(offer.zone, name)
        if there is not None and there.is_alive:
            self._stopping.terminate(name, there)
        return TryAnother(f"{request.node} was to have ended before it was launched")

    def _catalogue(self) -> Sequence[Offer]:
        return self._grounds.listed(self._grounds.clock.now())


def _told(request: LaunchRequest) -> str:
    region = "" if request.offer is None else request.offer.region
    return user_data(request.mailbox, region, request.bundle)
