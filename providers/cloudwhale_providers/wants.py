"""What is wanted of an account, one thing at a time: looked at, made where it lacks, seen again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale.spi.provider import Check, Mending
from cloudwhale_providers.rows import Found, row

LOOKS_S: tuple[Seconds, ...] = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
"""Waits before looks at what was just made: what IAM says is seen everywhere after seconds.

AWS: IAM User Guide, "Changes that I make are not always immediately visible"; Google: IAM docs,
"Access change propagation". On a real clock.
"""


@dataclass(frozen=True, slots=True)
class Want:
    """One thing that an account is to have."""

    name: str
    """Of its row, `bucket`."""
    there: str
    """What its row says when it is there, `the bucket lab in us-east-1`."""
    does: str
    """What making it is, as a command: `make the bucket lab in us-east-1`."""
    lacks: Callable[[], bool]
    """Looks; raises CloudwhaleError when it cannot be looked at, or must not be changed."""
    make: Callable[[], None]
    hangs_on: str = ""
    """The want without which it is not even tried."""


@dataclass
class Round:
    """One look at several wants, and their making."""

    cloud: str
    """As rows begin, `aws`."""
    pause: Callable[[Seconds], object]
    refused: Callable[[CloudwhaleError], Found]
    """Returns what the cloud refuses as a row, with the permission that is missing."""
    rows: list[Check] = field(default_factory=list[Check])
    mendings: list[Mending] = field(default_factory=list[Mending])
    missed: set[str] = field(default_factory=set[str])
    """Wants that could not be looked at, or not be made."""

    def look(self, wants: Sequence[Want]) -> None:
        """Add a row for each that is there, and a mending for each that is not."""
        for want in wants:
            if want.hangs_on in self.missed:
                self.missed.add(want.name)
                continue
            try:
                is_there = not want.lacks()
            except CloudwhaleError as error:
                self.missed.add(want.name)
                self.rows.append(row(self.cloud, want.name, self.refused(error)))
                continue
            if is_there:
                self.rows.append(row(self.cloud, want.name, Found("ok", want.there)))
            else:
                self.mendings.append(
                    Mending(f"{self.cloud} {want.name}", want.does, self._making(want))
                )

    def _making(self, want: Want) -> Callable[[], Check]:
        return lambda: row(self.cloud, want.name, self._made(want))

    def _made(self, want: Want) -> Found:
        if want.hangs_on in self.missed:
            self.missed.add(want.name)
            return Found("failed", f"not tried, as there is no {want.hangs_on}")
        try:
            if not want.lacks():  # somebody was faster, or has mended it meanwhile
                return Found("ok", want.there)
            want.make()
            for wait_s in LOOKS_S:
                self.pause(wait_s)
                if not want.lacks():
                    return Found("ok", f"done: {want.there}")
        except CloudwhaleError as error:
            self.missed.add(want.name)
            return self.refused(error)
        return Found(
            "warning",
            f"done, and not seen yet: {want.there}",
            f"It shows within a minute: `cloudwhale doctor {self.cloud}`.",
        )
