"""The tree of errors, named by what the caller does next.

CloudwhaleError
├── SpecError        the user's file: it names the file, the line, the value, the remedy
├── SettingsError    the user's settings: it names the key, where it was set, the remedy
├── Denied           stop, tell the operator (credentials, permission)
├── TryAnother       another offer may do
│   ├── NoCapacity
│   ├── QuotaExceeded
│   └── PriceMoved
├── Unreachable      unknown whether it happened: look before trying again
├── StaleWorld       plan again
├── Fenced           another controller holds the lock now: stop
├── StoreUnusable    the database or the mailbox cannot be used: it says why and what to do
└── IllegalTransition  a bug: an event that the state cannot meet; prints the job's story
"""


class CloudwhaleError(Exception):
    """The base; its text is a sentence for the user, `remedy` says what to do."""

    def __init__(self, says: str, remedy: str = "") -> None:
        super().__init__(f"{says}\n{remedy}" if remedy else says)
        self.says = says
        self.remedy = remedy


class SpecError(CloudwhaleError):
    """Something is wrong with what the user wrote."""

    def __init__(
        self,
        says: str,
        remedy: str = "",
        *,
        file: str = "",
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        where = ":".join(str(part) for part in (file, line, column) if part not in ("", None))
        super().__init__(f"{where}: {says}" if where else says, remedy)
        self.file, self.line, self.column = file, line, column


class NothingCanRunIt(SpecError):
    """The request is well formed, but no node and no offer could ever hold it."""


class OverBudget(SpecError):
    """The money that may be spent does not reach for what is asked."""


class DeadlineImpossible(SpecError):
    """Nothing that there is, owned or rented, would have done it in time."""


class NotThere(SpecError):
    """Something that the file names is not there: a secret, or a job to wait for."""

    def __init__(self, says: str, remedy: str, *, key: str, word: str) -> None:
        super().__init__(says, remedy)
        self.key, self.word = key, word
        """The key of the file that names it, and how."""


class SettingsError(CloudwhaleError):
    """A setting is wrong."""


class Denied(CloudwhaleError):
    """A provider refused us: credentials or permission."""


class TryAnother(CloudwhaleError):
    """This offer cannot be had; another may do."""

    def __init__(self, says: str, remedy: str = "", *, offers: tuple[str, ...] = ()) -> None:
        super().__init__(says, remedy)
        self.offers = offers
        """Others that were tried with it, and cannot be had either."""


class NoCapacity(TryAnother):
    """The provider has none of these now."""


class QuotaExceeded(TryAnother):
    """Our quota does not allow it."""


class PriceMoved(TryAnother):
    """It costs more than was planned."""


class Unreachable(CloudwhaleError):
    """No answer: it may or may not have happened."""


class StaleWorld(CloudwhaleError):
    """The rows that the plan was made from have changed."""


class Fenced(CloudwhaleError):
    """A newer controller has taken over; nothing that this one writes counts."""


class StoreUnusable(CloudwhaleError):
    """The database or the mailbox cannot be used."""


class IllegalTransition(CloudwhaleError):
    """An event that the thing's state has no edge for."""
