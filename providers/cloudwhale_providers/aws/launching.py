"""How a machine is launched at EC2: once, wherever there is one at the price that was offered."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import CloudwhaleError, Denied, NoCapacity, TryAnother, Unreachable
from cloudwhale.spi.provider import LaunchRequest
from cloudwhale_providers.aws import errors, tags
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.asking import code_of
from cloudwhale_providers.aws.fleets import Made, had, words_of_fleet, words_of_instance
from cloudwhale_providers.aws.listing import Listing, Seen, part
from cloudwhale_providers.aws.network import Network
from cloudwhale_providers.aws.quotas import QUOTAS, raise_command
from cloudwhale_providers.aws.renewed import id_in
from cloudwhale_providers.aws.roles import Roles
from cloudwhale_providers.aws.template import Templates
from cloudwhale_providers.prices.aws import quota_group

SETTLES_S: Seconds = 300.0
"""An instance that is not listed by then was never made: EC2's lists are late by seconds."""
WORDS_HOLD_S: Seconds = 60.0
"""Words say how many seconds of its lease a machine has: later, it would outlast its money."""
GONE = ("InvalidLaunchTemplate", "InvalidGroup", "InvalidSecurityGroupID", "InvalidSubnet")
"""What we had made, or had looked at, and is not there any more."""
MADE = (
    "InvalidGroup.NotFound", "InvalidSecurityGroupID.NotFound",
    "InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateName.NotFound",
)  # fmt: skip
"""What the next launch makes anew."""


def token(installation: str, request_id: str) -> str:
    """Return the ClientToken of a launch: up to 64 ASCII characters, the same for the same id.

    Tokens are an account's, and two installations of one account count their rentals alike: with
    its id alone, one would get the other's machine, or be refused for its words.

    One token is enough for a launch, without a count of attempts. The house stores the rental
    before it asks, repeats its launch under the same id only while the outcome is unknown, and
    makes a new rental, with a new id, once a launch was refused. So a token whose answer held
    nothing but errors is never used for another attempt; and a lost answer, of a machine or of
    errors, is replayed by EC2 when it is asked again.
    """
    return hashlib.sha256(f"{installation} {request_id}".encode()).hexdigest()


@dataclass
class Attempts:
    """What this process remembers of launches whose outcome is not known; safe for threads."""

    words: dict[str, tuple[Seconds, dict[str, Any]]] = field(
        default_factory=dict[str, tuple[Seconds, dict[str, Any]]]
    )
    """By request: what EC2 was asked, and since when. A token must come with the same words."""
    unlike_since: dict[str, Seconds] = field(default_factory=dict[str, Seconds])
    """By request: since when EC2 says that the token came with other words before."""
    lock: Lock = field(default_factory=Lock)

    def asked(self, request_id: str, words: dict[str, Any], now: Seconds) -> None:
        """Remember what EC2 is asked now."""
        with self.lock:
            self.words[request_id] = (now, words)

    def known(self, request_id: str, now: Seconds) -> dict[str, Any] | None:
        """Return what this process has asked; None when it has not, or too long ago."""
        with self.lock:
            since, words = self.words.get(request_id, (float("-inf"), None))
        return words if now - since < WORDS_HOLD_S else None

    def unlike(self, request_id: str, now: Seconds) -> Seconds:
        """Return for how long EC2 has said that a token came with other words."""
        with self.lock:
            return now - self.unlike_since.setdefault(request_id, now)

    def over(self, request_id: str) -> None:
        """Forget a launch: its outcome is known."""
        with self.lock:
            self.words.pop(request_id, None)
            self.unlike_since.pop(request_id, None)


class Launching:
    """Makes instances, each request one; safe for threads."""

    def __init__(
        self, account: Account, listing: Listing, templates: Templates, network: Network
    ) -> None:
        self._account = account
        self._listing = listing
        self._templates = templates
        self._network = network
        self._roles = Roles(account)
        self._attempts = Attempts()

    def launched(self, request: LaunchRequest, offer: Offer) -> Made:
        """Return the instance of a request: the one that is there, or a new one.

        Raise TryAnother, Denied or Unreachable; after the last, the same request may be repeated.
        """
        there = self._listing.launched(offer.region, request.request_id)
        if there is not None:
            self._attempts.over(request.request_id)
            return _found(there)
        try:
            made = self._made(request, offer)
        except Unreachable as error:
            if code_of(error) != errors.MISMATCH:
                raise
            return self._looked_for(request, offer, error)
        except CloudwhaleError:
            self._attempts.over(request.request_id)
            raise
        self._attempts.over(request.request_id)
        self._listing.changed()
        return made

    def _made(self, request: LaunchRequest, offer: Offer) -> Made:
        """Ask EC2 for the instance; once more where a thing of ours that it names was removed."""
        try:
            return self._asked(request, offer)
        except Denied as error:
            if not code_of(error).startswith(GONE):
                raise
            self._network.forget(offer.region)
            self._templates.forget(offer.region)
            self._attempts.over(request.request_id)
            return self._asked(request, offer)

    def _asked(self, request: LaunchRequest, offer: Offer) -> Made:
        now = self._account.clock.steady()
        words = self._attempts.known(request.request_id, now)
        if words is None:
            words = self._words(request, offer)
            self._attempts.asked(request.request_id, words, now)
        verb = "run_instances" if "MinCount" in words else "create_fleet"
        try:
            answer = self._account.calls.call(offer.region, "ec2", verb, **words)
        except TryAnother as error:
            raise type(error)(error.says, self._remedy(offer, error)) from error
        made = had(answer)
        if made is None:
            raise self._none_of(answer.get("Errors") or (), words, offer)
        own = {tag["Key"]: tag["Value"] for tag in words["TagSpecifications"][0]["Tags"]}
        return replace(made, door=tags.door(own, made.id))

    def _words(self, request: LaunchRequest, offer: Offer) -> dict[str, Any]:
        own = tags.of_machine(
            self._account.installation, request, self._account.clock.now(),
            self._roles.id_of_machines(),
        )  # fmt: skip
        choices = self._network.choices(offer)
        make = words_of_instance if self._account.options.pin_zone else words_of_fleet
        template = self._templates.named(offer.region, request)
        disks = self._templates.disks(offer.region, request)
        words = make(offer, choices, template, disks)
        return words | {
            "ClientToken": token(self._account.installation, request.request_id),
            "TagSpecifications": tags.at_creation(own, ["instance", "volume", "network-interface"]),
        }

    def _none_of(
        self, told: Sequence[Mapping[str, Any]], words: Mapping[str, Any], offer: Offer
    ) -> CloudwhaleError:
        """Return why a fleet has made nothing: the gravest of its errors, and all that it tried."""
        errand = errors.Errand("ec2:CreateFleet", offer.region, self._quota(offer))
        found = [
            errors.refusal(_code(one), f"{self._zone(offer, one)}: {_says(one)}", errand)
            for one in told
        ]
        others = self._others(words, offer)
        gravest = errors.gravest(found)
        if self._is_stale(told, offer):
            return TryAnother(f"something of ours was removed: {found[0].says}", offers=others)
        if gravest is None:
            return NoCapacity(f"EC2 has made no {offer.type}, and does not say why", offers=others)
        if isinstance(gravest, TryAnother):
            return type(gravest)(gravest.says, gravest.remedy, offers=others)
        return gravest

    def _is_stale(self, told: Sequence[Mapping[str, Any]], offer: Offer) -> bool:
        """Learn from what a fleet was refused; say whether the next launch makes it anew."""
        for one in told:
            if _code(one) in ("Unsupported", "InvalidAvailabilityZone"):
                self._network.lacks(self._zone(offer, one), offer.type)
        if not any(_code(one).startswith(GONE) for one in told):
            return False
        self._network.forget(offer.region)
        self._templates.forget(offer.region)
        is_ours = not self._account.options.security_group
        return is_ours and any(_code(one).startswith(MADE) for one in told)

    def _others(self, words: Mapping[str, Any], offer: Offer) -> tuple[str, ...]:
        """Return the offers in the other zones that a fleet has tried."""
        overrides = words["LaunchTemplateConfigs"][0]["Overrides"]
        zones = [self._network.zone_of(offer.region, choice) for choice in overrides]
        return tuple(id_in(offer, zone) for zone in zones if zone and zone != offer.zone)

    def _looked_for(self, request: LaunchRequest, offer: Offer, error: Unreachable) -> Made:
        """Find what a token has made that came with other words: an earlier process', or older."""
        there = self._listing.launched(offer.region, request.request_id)
        if there is not None:
            self._attempts.over(request.request_id)
            return _found(there)
        if self._attempts.unlike(request.request_id, self._account.clock.steady()) < SETTLES_S:
            raise error
        self._attempts.over(request.request_id)
        raise TryAnother(
            f"{request.node} was asked for before, and EC2 has made no machine of it"
        ) from error

    def _zone(self, offer: Offer, told: Mapping[str, Any]) -> str:
        choice = part(part(told, "LaunchTemplateAndOverrides"), "Overrides")
        return self._network.zone_of(offer.region, choice) or offer.zone

    def _remedy(self, offer: Offer, error: CloudwhaleError) -> str:
        return error.remedy or self._quota(offer)

    def _quota(self, offer: Offer) -> str:
        quota = QUOTAS.get((offer.market, quota_group(offer.type, offer.market)))
        if quota is None:
            return f"Ask AWS for more vCPUs of {offer.type} in {offer.region}."
        return f"`{raise_command(quota, offer.region, offer.quota_units)}` asks for more."


def _code(told: Mapping[str, Any]) -> str:
    return str(told.get("ErrorCode", ""))


def _says(told: Mapping[str, Any]) -> str:
    return str(told.get("ErrorMessage", ""))


def _found(one: Seen) -> Made:
    return Made(one.id, one.zone, one)
