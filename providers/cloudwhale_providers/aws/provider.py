"""AWS EC2 as a provider: machines that are rented by the second, in every region that is meant."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Literal

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import CloudwhaleError, Denied, PriceMoved, TryAnother, Unreachable
from cloudwhale.spi.provider import Amends, Check, Grounds, LaunchRequest, Leftover, Machine, Stop
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.asking import Calls
from cloudwhale_providers.aws.checks import Checks
from cloudwhale_providers.aws.checks_bucket import environment
from cloudwhale_providers.aws.clients import Clients
from cloudwhale_providers.aws.images import Images
from cloudwhale_providers.aws.known import Known
from cloudwhale_providers.aws.launching import Launching
from cloudwhale_providers.aws.leftovers import Leftovers
from cloudwhale_providers.aws.listing import Listing, Seen
from cloudwhale_providers.aws.mending import Mends
from cloudwhale_providers.aws.network import Network
from cloudwhale_providers.aws.offers import LiveOffers
from cloudwhale_providers.aws.settings import read, regions
from cloudwhale_providers.aws.stopping import Pause, Stopping, for_real
from cloudwhale_providers.aws.template import Templates

DOCTOR_S: Seconds = 5.0
"""Who does not answer a check by then is told of: a person waits for it."""


class AwsProvider:
    """EC2's machines of one installation; safe for threads; boto3 is imported by the first call."""

    def __init__(
        self, grounds: Grounds, calls: Calls | None = None, pause: Pause = for_real
    ) -> None:
        """Raise SettingsError when its table of the settings is wrong."""
        self._grounds = grounds
        self._options = read(grounds.settings, grounds.name)
        self._account = Account(
            calls or Clients(self._options.profile), grounds.installation, self._options,
            grounds.clock,
        )  # fmt: skip
        asks, network = self._account.calls, Network(self._account)
        images = Images(asks, grounds.clock, self._options.image)
        self._live = LiveOffers(asks, grounds.listed, self._options.regions)
        self._listing = Listing(self._account, self._regions, self._every_region)
        self._known = Known(self._account, grounds.listed)
        self._templates = Templates(self._account, images, network, _bucket_region())
        self._launching = Launching(self._account, self._listing, self._templates, network)
        self._stopping = Stopping(self._account, self._listing, self._known, pause)
        self._sweep = Leftovers(self._account, self._regions, self._live.usd_h)
        self._mends = Mends(self._account, grounds.mailbox, environment(), pause)
        hasty = calls or Clients(self._options.profile, attempts=2, answer_s=DOCTOR_S)
        self._checks = Checks(
            replace(self._account, calls=hasty), grounds.mailbox, grounds.listed, environment()
        )

    @property
    def stops(self) -> frozenset[Stop]:
        """The machine itself, by its watchdog; EC2 too, where the settings name a role for that."""
        return frozenset({"cloud", "self"} if self._options.scheduler_role else {"self"})

    def offers(self, now: Instant) -> Sequence[Offer]:
        """Return what could be rented now; raise Denied or Unreachable."""
        return self._live.offers(now)

    def launch(self, request: LaunchRequest) -> Machine:
        """Return the machine of a request, made when there is none, with the cloud's stop set.

        Raise TryAnother, Denied or Unreachable. One whose stop cannot be set is ended again; if
        that fails too, it is Unreachable, and the same request finds both.
        """
        offer = request.offer
        if offer is None or request.stop_at is None or not self._account.installation:
            says = "EC2 rents machines to an installation, by an offer, until a time"
            raise Denied(says, "Please report it.")
        if request.stop_at <= self._grounds.clock.now():
            raise self._too_late(request, offer)
        try:
            made = self._launching.launched(request, offer)
        except PriceMoved:
            self._live.forget_prices(offer.region)  # else the old ones are offered again, and again
            raise
        return self._stopping.armed(request, offer, made)

    def machines(self) -> Sequence[Machine]:
        """Return every machine of ours, newest first; those that ended for about an hour.

        In passing stops are set that are missing, and those removed whose machine has ended.
        """
        found = self._listing.all()
        self._stopping.complete(found)
        self._stopping.forget(found)
        unlisted = self._known.unlisted({one.id for one in found})
        return [*unlisted, *(self._known.machine(one) for one in found)]

    def extend(self, machine: str, stop_at: Instant) -> Instant | Literal["fixed"]:
        """Move the cloud's stop; that of a machine that has ended is fixed.

        Raise Unreachable for one that is not listed.
        """
        one = self._one(machine)
        if one is None:
            raise Unreachable(f"{machine} is not among our machines", "It is asked again.")
        return self._stopping.move(one, stop_at) if one.is_alive else "fixed"

    def terminate(self, machine: str) -> None:
        """End a machine of ours; raise Denied for others', Unreachable when it may still live."""
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
        """Look for what the account lacks: bucket, roles, their policies; see `mending`."""
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
        there = self._listing.launched(offer.region, request.request_id)
        if there is not None and there.is_alive:
            self._stopping.terminate(there.id, there)
        return TryAnother(f"{request.node} was to have ended before it was launched")

    def _regions(self) -> Sequence[str]:
        """Return the regions that machines may stand in; raise Denied or Unreachable."""
        now = self._grounds.clock.now()
        named = regions(self._options) or {one.region for one in self._grounds.listed(now)}
        return self._live.regions(named, now)

    def _every_region(self) -> Sequence[str]:
        """Return where machines may stand that were launched under other settings."""
        now = self._grounds.clock.now()
        return self._live.every_region({one.region for one in self._grounds.listed(now)}, now)


def _bucket_region() -> str:
    """Return where this process looks for the mailbox's bucket, and so where it is."""
    said = environment()
    return said.get("AWS_REGION") or said.get("AWS_DEFAULT_REGION", "")
