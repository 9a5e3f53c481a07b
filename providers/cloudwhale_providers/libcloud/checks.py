"""The rows of `doctor` for a cloud that a driver of libcloud reaches."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale.spi.provider import Check
from cloudwhale_providers.libcloud.driving import Driving
from cloudwhale_providers.libcloud.launching import troubles
from cloudwhale_providers.libcloud.listing import Listing
from cloudwhale_providers.libcloud.settings import LibcloudSettings
from cloudwhale_providers.libcloud.things import Things

State = Literal["ok", "warning", "failed"]
NO_STOP = (
    "a machine that switches itself off is billed on, and nothing of the cloud ends it: while no "
    "controller runs, a machine may outlive its lease"
)
STOPS = (
    "Set off_is_free = true in its table if it costs nothing when it is off, or accept_no_stop = "
    "true beside the tables."
)


class Checks:
    """Looks at what launches need; every answer of the driver is one row."""

    def __init__(
        self, name: str, driving: Driving, options: LibcloudSettings, listing: Listing,
        things: Things,
    ) -> None:  # fmt: skip
        self._name = name
        self._driving = driving
        self._options = options
        self._listing = listing
        self._things = things

    def rows(self, mailbox: str, environment: Mapping[str, str]) -> Sequence[Check]:
        """Return all rows; of a driver that cannot be made, that alone and what needs none."""
        first = self._looked("driver", self._driver)
        rest = [] if first.state == "failed" else [*self._of_driver()]
        return [first, *rest, self._stop(), *self._told(mailbox, environment)]

    def _of_driver(self) -> Iterator[Check]:
        found = troubles(self._driving, self._options)
        for says, remedy in found:
            yield self._row("launches", "failed", f"{self._options.driver}: {says}", remedy)
        if not found:
            yield self._row("launches", "ok", f"machines are told by `{self._word()}`")
        yield self._looked("machines", self._machines)
        yield self._looked("sizes", self._sizes)
        yield self._looked("image", lambda: self._found("images", self._options.image))
        if self._options.location:
            place = self._options.location
            yield self._looked("location", lambda: self._found("locations", place))

    def _driver(self) -> str:
        self._driving.driver()
        return f"{self._options.driver} of libcloud"

    def _word(self) -> str:
        place = self._driving.place()
        return "" if place is None else ".".join(filter(None, place))

    def _machines(self) -> str:
        found = self._listing.read()
        ours = sum(self._listing.is_ours(one) for one in found)
        return f"the driver lists {ours} of ours and {len(found) - ours} of other installations"

    def _sizes(self) -> str:
        for one in self._options.sizes:
            self._things.named("sizes", one.size)
        return f"{', '.join(one.size for one in self._options.sizes)}: there"

    def _found(self, kind: str, name: str) -> str:
        found = self._things.named(kind, name)
        return f"{found.name} ({found.id})"

    def _stop(self) -> Check:
        if self._options.off_is_free:
            return self._row("stop", "ok", "a machine switches itself off, which ends its bill")
        return self._row("stop", "warning", NO_STOP, STOPS)

    def _told(self, mailbox: str, environment: Mapping[str, str]) -> Iterator[Check]:
        """Yield what machines are told, which holds what opens the mailbox."""
        names = self._options.machine_environment
        absent = [name for name in names if not environment.get(name)]
        if absent:
            says = f"${', $'.join(absent)} is not set, which machines are to be given"
            yield self._row("mailbox", "failed", says, "Set it, or drop it from its table.")
        elif not mailbox.startswith("s3://"):
            says = f"its machines cannot open {mailbox}: they speak S3 with a key"
            yield self._row(
                "mailbox", "failed", says, "Give it a `mailbox` that begins with s3://."
            )
        elif not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} <= set(names):
            says = "its machines are given no key to the mailbox"
            remedy = "Name AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in machine_environment."
            yield self._row("mailbox", "failed", says, remedy)
        else:
            says = f"whoever may look at a machine's user data reads {', '.join(names)}"
            remedy = "Let the key open nothing but the mailbox's folder."
            yield self._row("mailbox", "warning", says, remedy)

    def _looked(self, what: str, look: Callable[[], str]) -> Check:
        try:
            return self._row(what, "ok", look())
        except CloudwhaleError as error:
            return self._row(what, "failed", error.says, error.remedy or "Ask again later.")

    def _row(self, what: str, state: State, says: str, remedy: str = "") -> Check:
        return Check(name=f"{self._name} {what}", state=state, says=says, remedy=remedy)
