"""What to say when a store does not do what it is asked, and what to do about it."""

from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.stores import StoreKind

REFUSED = ("403 Forbidden", "401 Unauthorized")  # to a list: obstore has no error for it
NO_CREDENTIALS = (
    "There are no credentials for the store in the environment that are of use, nor on this "
    "machine: `cloudwhale doctor` says how to make some."
)


def is_refused(error: Exception) -> bool:
    """Say whether a store has refused us, whatever it was asked."""
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return True
    return any(word in str(error) for word in REFUSED)


def unusable(verb: str, key: str, error: Exception, kind: StoreKind | None) -> StoreUnusable:
    """Return the error of a request that failed; `kind`: None where nothing goes over a network."""
    words = str(error)
    says = f"cannot {verb} {key} in the mailbox: {words.splitlines()[0]}"
    if kind is not None and kind.lacks_credentials(words):
        return StoreUnusable(says, NO_CREDENTIALS)
    if is_refused(error):
        who = "" if kind is None else kind.refusal(words)
        if who:
            says = f"cannot {verb} {key} in the mailbox"
        return StoreUnusable(
            f"{says}: the store refuses us" + (f": {who}" if who else ""),
            "The credentials in the environment are wrong, have run out, or do not allow it, or "
            "the bucket is another's: `cloudwhale doctor` looks at that.",
        )
    return StoreUnusable(says, "Is the folder or bucket there, writable, and not full?")
