"""How a machine is launched at Compute Engine: once, in the zone of its offer.

`instances.insert` is repeatable in three ways: its name is the same for the same launch, and unique
in its zone; so is its requestId; and whoever repeats a launch looks first.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, NoReturn

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import (
    CloudwhaleError,
    Denied,
    NoCapacity,
    QuotaExceeded,
    TryAnother,
    Unreachable,
)
from cloudwhale.spi.provider import LaunchRequest
from cloudwhale_providers.gcp import names, operations, quotas
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.asking import (
    EXISTS,
    code_of,
    said_by,
    says_that_it_is_gone,
)
from cloudwhale_providers.gcp.endings import Ending
from cloudwhale_providers.gcp.errors import LACKS, Errand
from cloudwhale_providers.gcp.images import KNOWN, Image, Images
from cloudwhale_providers.gcp.listing import Listing, Seen
from cloudwhale_providers.gcp.network import interface
from cloudwhale_providers.gcp.operations import Pause
from cloudwhale_providers.gcp.words import NOTICE_S, STOPS_WITHIN_S, Frame, words_of

INSERT = "compute.instances.create"
STARTS_IN_S: Seconds = 55.0
"""maxRunDuration counts from the start, about so long after the insert. One that starts sooner is
ended sooner, within the minute by which stops may be early; one that starts a minute later is ended
a minute late, for which money is set aside."""
LACKING_S: Seconds = 6 * 3600.0
"""So long a machine type counts as not to be had in a zone that says it does not know it."""
REFUSED_NOTICE = "preemptionNoticeDuration"


@dataclass(frozen=True, slots=True)
class Made:
    """A machine that Compute Engine says it has made."""

    id: str
    zone: str
    seen: Seen | None = None
    """As it was seen; None: it is not there any more, or nobody says."""
    asked_at: Instant | None = None
    """When it was made, where it was not seen."""
    is_gone: bool = False
    """Whether it was made, and is not there any more."""
    ending: Ending | None = None
    """How it has ended; None: nobody says."""


@dataclass(frozen=True, slots=True)
class Aids:
    """What a launch asks of others."""

    told: Callable[[LaunchRequest], str]
    """What a machine's first boot is to do."""
    pause: Pause
    listed: Callable[[], Sequence[Offer]]
    """What the catalogue says that could be had."""


class Launching:
    """Makes instances, each request one; safe for threads."""

    def __init__(
        self,
        account: Account,
        listing: Listing,
        images: Images,
        aids: "Aids",
    ) -> None:
        self._account = account
        self._listing = listing
        self._images = images
        self._aids = aids
        self.learned = quotas.Learned()
        self._lacking: dict[tuple[str, str], Seconds] = {}
        """By zone and type: when it was said that the zone does not have it."""
        self._has_notices = True
        """Whether spot machines may ask for a longer notice; not everywhere, it is new."""
        self._lock = Lock()

    def launched(self, request: LaunchRequest, offer: Offer) -> Made:
        """Return the instance of a request: the one that is there, or a new one.

        Raise TryAnother, Denied or Unreachable; after the last, the same request may be repeated.
        """
        name = names.machine_name(self._account.installation, request.request_id)
        there = self._listing.one(offer.zone, name)
        if there is not None and there.state != "starting":
            return Made(name, offer.zone, there)
        # What is begun is asked for again, which tells how it goes: it may fail yet.
        if there is None and self.lacks(offer.zone, offer.type):
            raise NoCapacity(f"{offer.zone} has no {offer.type}")
        made = self._made(name, request, offer, there)
        self._listing.changed()
        return made

    def lacks(self, zone: str, type_name: str) -> bool:
        """Say whether a zone has said, not long ago, that it does not know a machine type."""
        with self._lock:
            since = self._lacking.get((zone, type_name), float("-inf"))
        return self._account.clock.steady() - since < LACKING_S

    def _made(self, name: str, request: LaunchRequest, offer: Offer, begun: Seen | None) -> Made:
        errand = self._errand(offer)
        try:
            operation = self._inserted(name, request, offer)
        except CloudwhaleError as error:
            if code_of(error) in EXISTS:
                return self._adopted(name, offer, error)
            if begun is not None and not isinstance(error, Unreachable):
                return Made(name, offer.zone, begun)  # what forbids another has not undone this one
            self._refuse(error, offer)
        done = operations.done(self._account, operation, errand, self._aids.pause)
        why = operations.why_failed(done, errand)
        if why is None:
            return self._seen_new(name, offer, done)
        if code_of(why) in EXISTS:
            return self._adopted(name, offer, why)
        self._cleared(offer.zone, name, why)
        self._refuse(why, offer)

    def _inserted(self, name: str, request: LaunchRequest, offer: Offer) -> Mapping[str, Any]:
        """Ask for the instance; once more without a longer notice where that is not to be had."""
        has_notice = self._has_notices and offer.market == "spot"
        body = self._words(name, request, offer, has_notice)
        try:
            return self._insert(body, request, offer, "" if has_notice else "plain")
        except Denied as error:
            if not has_notice or REFUSED_NOTICE not in error.says:
                raise
        self._has_notices = False
        return self._insert(self._words(name, request, offer, False), request, offer, "plain")

    def _insert(
        self, body: Mapping[str, Any], request: LaunchRequest, offer: Offer, attempt: str
    ) -> Mapping[str, Any]:
        token = names.token(self._account.installation, request.request_id, attempt)
        return self._account.compute(
            "instances.insert", zone=offer.zone, body=body, requestId=token
        )

    def _words(
        self, name: str, request: LaunchRequest, offer: Offer, has_notice: bool
    ) -> dict[str, Any]:
        now, ours = self._account.clock.now(), self._account.installation
        image = self._image(request, offer)
        attributes = names.attributes_of(ours, request, now)
        said = attributes | {names.USER_DATA: self._aids.told(request)}
        if has_notice:
            said[names.NOTICE_S] = str(NOTICE_S)
        frame = Frame(
            name=name,
            image=image,
            interface=interface(self._account, offer.region),
            service_account=self._account.options.service_account,
            labels=names.labels_of(ours, request),
            items=names.as_items(said),
            runs_s=runs_s(request, now),
            has_notice=has_notice,
        )
        return words_of(frame, request, offer)

    def _image(self, request: LaunchRequest, offer: Offer) -> Image:
        image = self._images.image(bool(offer.facts.devices))
        if request.pythons and image.python and image.python not in request.pythons:
            raise Denied(
                f"the image {image.link} has Python {image.python}, and the agent's archive is "
                f"for {', '.join(request.pythons)}",
                f"Set `image` in [clouds.gcp] to {' or '.join(KNOWN)}.",
            )
        return image

    def _seen_new(self, name: str, offer: Offer, done: Mapping[str, Any]) -> Made:
        """Return a machine whose operation is done: as it is, or how it has ended since.

        An insert that is repeated long after is answered as the first was; what it made may be
        gone by then.
        """
        asked_at = names.instant(done.get("insertTime"))
        try:
            seen = self._listing.one(offer.zone, name)
        except CloudwhaleError:
            return Made(name, offer.zone, None, asked_at)
        if seen is not None:
            return Made(name, offer.zone, seen, asked_at)
        ending = self._listing.ending(offer.zone, name, str(done.get("targetId") or ""))
        return Made(name, offer.zone, None, asked_at, True, ending)

    def _adopted(self, name: str, offer: Offer, error: CloudwhaleError) -> Made:
        """Return the machine that bears the name already; raise Denied when it is not ours.

        Only the disk of it may be there, left by a launch that failed: it is removed.
        """
        there = self._listing.one(offer.zone, name)
        if there is not None:
            return Made(name, offer.zone, there)
        if "/disks/" in error.says:
            self._cleared(offer.zone, name, error)
            raise TryAnother(f"{error.says}; it was left over, and is removed") from error
        try:
            self._account.compute("instances.get", zone=offer.zone, instance=name)
        except CloudwhaleError as gone:
            if says_that_it_is_gone(gone):
                raise Unreachable(error.says, "It is asked again by itself.") from error
            raise
        raise Denied(
            f"{offer.zone} has a machine {name} that is not ours",
            f"Look at it: `gcloud compute instances describe {name} --zone={offer.zone} "
            f"--project={self._account.project}`.",
        ) from error

    def _cleared(self, zone: str, name: str, why: CloudwhaleError) -> None:
        """Delete what a launch that failed may have left: half a machine, or its disk.

        Raise Unreachable where that is not certain to be done: the launch is looked at again.
        """
        for method, word in (("instances.delete", "instance"), ("disks.delete", "disk")):
            words: dict[str, Any] = {word: name}
            try:
                self._account.compute(method, zone=zone, **words)
            except CloudwhaleError as error:
                if says_that_it_is_gone(error) or method == "disks.delete":
                    continue  # the disk goes with its machine, or is swept as what is left over
                raise Unreachable(
                    f"{why.says}; and what is left of {name} could not be deleted: {error.says}",
                    "It is asked again by itself.",
                ) from error

    def _refuse(self, error: CloudwhaleError, offer: Offer) -> NoReturn:
        """Learn from a refusal, and raise it with what is to be done, and what it holds for."""
        if isinstance(error, QuotaExceeded):
            raise self._no_quota(error, offer) from error
        if isinstance(error, NoCapacity) and LACKS.search(error.says):
            with self._lock:
                self._lacking[offer.zone, offer.type] = self._account.clock.steady()
        if "/images/" in error.says:
            self._images.forget()
        raise error

    def _no_quota(self, error: QuotaExceeded, offer: Offer) -> QuotaExceeded:
        said = said_by(error)
        metric = (said.metric if said else "") or quotas.metric_of(offer)
        if said is not None and said.limit is not None:
            self.learned.hears(offer.region, metric, said.limit, self._account.clock.now())
        wanted = offer.quota_units + (said.limit if said and said.limit else 0.0)
        command = quotas.raise_command(metric, offer.region, self._account.project, wanted)
        others = quotas.of_all(self._aids.listed(), metric, offer)
        return QuotaExceeded(error.says, f"`{command}` asks for more.", offers=others)

    def _errand(self, offer: Offer) -> Errand:
        return Errand(
            INSERT, offer.zone, self._account.project, self._account.options.service_account
        )


def runs_s(request: LaunchRequest, now: Instant) -> int:
    """Return after how many seconds of running a machine must be deleted.

    Raise TryAnother where that is less than Compute Engine takes.
    """
    least, most = STOPS_WITHIN_S
    left = (now if request.stop_at is None else request.stop_at) - now
    if left < least:
        raise TryAnother(
            f"{request.node} would be there for {left:.0f} s, and {least:.0f} are least"
        )
    return math.floor(min(most, max(least, left - STARTS_IN_S)))
