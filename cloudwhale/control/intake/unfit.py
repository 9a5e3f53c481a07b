"""What is wrong in a job file, on its way to becoming a SpecError."""

from dataclasses import dataclass

from cloudwhale.spi.errors import SpecError


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the file; both count from 1."""

    line: int
    column: int


class Unfit(Exception):
    """A value that cannot be used. The place and the key join it on its way up."""

    def __init__(
        self,
        says: str,
        remedy: str,
        spot: Spot | None = None,
        kind: type[SpecError] = SpecError,
    ) -> None:
        super().__init__(says)
        self.kind = kind
        self.says = says
        self.remedy = remedy
        self.spot = spot
        self.keys: tuple[str, ...] = ()
        """Where in the file, as keys, outermost first."""

    def at(self, spot: Spot) -> "Unfit":
        """Return it with a place, unless it has one."""
        self.spot = self.spot or spot
        return self

    def under(self, key: str) -> "Unfit":
        """Return it as something that was found under a key."""
        self.keys = (key, *self.keys)
        return self

    def error(self, file: str) -> SpecError:
        """Return it as the error that a user sees."""
        says = f"{'.'.join(self.keys)}: {self.says}" if self.keys else self.says
        line, column = (self.spot.line, self.spot.column) if self.spot else (None, None)
        return self.kind(says, self.remedy, file=file, line=line, column=column)


def shown(text: str) -> str:
    """Return a value as an error shows it: quoted, on one line, cut when it is long."""
    cut = text if len(text) <= 60 else f"{text[:57]}..."
    return repr(cut)
