"""What drivers raise, as errors of ours: libcloud's own, HTTP's, the network's, and their bugs."""

import re

from cloudwhale.spi.errors import (
    CloudwhaleError,
    Denied,
    NoCapacity,
    QuotaExceeded,
    TryAnother,
    Unreachable,
)

LOOKS = "cloudwhale doctor tells what the driver answers."
QUOTA = re.compile(r"quota|limit\w* (?:was |is )?(?:exceeded|reached)|exceed\w* .{0,40}limit", re.I)
CAPACITY = re.compile(
    r"no valid host|(?:insufficient|not enough|no|out of) (?:free |available )?"
    r"(?:capacity|resources|stock|hosts?)|out of stock|sold out|unavailable in",
    re.IGNORECASE,
)
GONE = frozenset({404, 410})
REFUSED = frozenset({400, 402, 405, 413, 415, 422})
"""It was understood and not done: the same words are refused again."""


def code_of(error: BaseException) -> int:
    """Return the HTTP status that an error stands for; 0: it tells none."""
    for word in ("http_code", "code", "status"):
        found = getattr(error, word, None)
        if isinstance(found, int | str) and str(found).isdecimal():
            return int(found)
    return 0


class Lacking(Exception):
    """A driver does not have what is asked of it."""


def is_lacking(error: BaseException) -> bool:
    """Say whether a driver does not have what it was asked for: the base of all drivers says so."""
    return isinstance(error, Lacking) or type(error).__name__.startswith("NotImplemented")


def is_gone(error: BaseException) -> bool:
    """Say whether a driver tells that the machine that it was asked for is not there."""
    cause = error.__cause__ or error
    name = type(cause).__name__
    return code_of(cause) in GONE or "NotFound" in name or "DoesNotExist" in name


def said(error: BaseException) -> str:
    """Return what an error says, in one line."""
    words = getattr(error, "value", None) or getattr(error, "message", None) or error
    line = " ".join(str(words).split())
    return (line or type(error).__name__)[:300]


def translated(error: Exception, verb: str, driver: str) -> CloudwhaleError:
    """Return an error of ours for what a driver raised when it was asked for something.

    What nobody can tell was done is Unreachable: the list shows it later.
    """
    says, code = f"{driver} answers {verb} with: {said(error)}", code_of(error)
    if is_lacking(error):
        return Denied(f"the driver {driver} of libcloud has no {verb}", "Name another driver.")
    if "InvalidCreds" in type(error).__name__ or code == 401:
        return Denied(says, "Look at `credentials` of its table, and at the variables it names.")
    refusal = _refusal(says, code) if verb == "create_node" else None
    if refusal is not None:
        return refusal
    if code == 403:
        return Denied(says, "Give the account that the credentials are of this permission.")
    if code in REFUSED or code in GONE:
        return Denied(says, LOOKS)
    return Unreachable(says, "It is asked again.")


def _refusal(says: str, code: int) -> TryAnother | None:
    """Return why a machine cannot be had though another may; None: it is nothing of the kind."""
    if not (code == 0 or 400 <= code < 500 or code == 503) or code == 429:
        return None
    if QUOTA.search(says) and code != 503:
        return QuotaExceeded(says, "Ask the cloud for more, or set `at_most` of the size.")
    return NoCapacity(says) if CAPACITY.search(says) else None
