"""How boots that failed are written down, so that a controller that starts again knows of them."""

from typing import NamedTuple

from cloudwhale.model import event as e
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import Instant

SUBJECT = "boots"
"""What the notes are of, so that they are found without looking through everything."""

ALL = "*"
NONE = "-"


class Scope(NamedTuple):
    """What has an image, a network and a quota in common: machines that fail to boot together."""

    provider: str
    region: str
    family: str
    """`g5` of `g5.xlarge`, `a2` of `a2-highgpu-1g`."""

    @property
    def whole(self) -> "Scope":
        """Return the provider whole."""
        return Scope(self.provider, ALL, ALL)

    @property
    def words(self) -> str:
        """Return it in words, without spaces in any of them."""
        if self.region == ALL:
            return f"all of {self.provider}"
        return f"{self.family} in {self.provider} {self.region}"


def scope_of(offer: Offer) -> Scope:
    """Return what an offer's machine boots with."""
    family = offer.type.split(".")[0].split("-")[0]
    return Scope(offer.provider, offer.region or NONE, family or NONE)


def noted(rental: Rental, code: Code, says: str, at: Instant) -> e.Noted | None:
    """Return the note of a boot that failed or, after some that did, succeeded.

    None for a machine of which nobody knows what it was taken as.
    """
    if rental.taken is None:
        return None
    scope = scope_of(rental.taken)
    reason = Reason(code=code, says=f"{' '.join(scope)}: {says}")
    return e.Noted(at=at, subject=SUBJECT, reason=reason)


def scope_in(note: e.Noted) -> Scope | None:
    """Return what a note is of; None for one that nobody can read."""
    words = note.reason.says.split(": ")[0].split(" ")
    return Scope(*words) if len(words) == len(Scope._fields) else None
