"""Tables of a settings file, such as `[[node]]`: read, or refused with their number and key."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from cloudwhale.host.options import declared
from cloudwhale.model.node import Device
from cloudwhale.model.value import Value
from cloudwhale.spi.errors import SettingsError

NAME = r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,62}$"


class Machine(Value):
    """What tables of machines have in common."""

    devices: tuple[str, ...] = ()
    """Like the setting `devices`: "2x RTX4090 24GB"."""


Made = TypeVar("Made", bound=Machine)


@dataclass(frozen=True, slots=True)
class Tables(Generic[Made]):
    """One kind of table."""

    kind: str
    made: type[Made]
    wanted: Mapping[str, str]
    """What each key must be, in words."""
    example: str

    def read(self, file: Path, number: int, table: object) -> tuple[Made, tuple[Device, ...]]:
        """Return what a table says, and its devices; raise SettingsError for a wrong one."""
        try:
            one = self.made.model_validate(table)
            return one, declared(one.devices)
        except ValidationError as error:
            first = error.errors()[0]
            key = str(first["loc"][0]) if first["loc"] else self.kind
            says = f"must be {self.wanted[key]}" if key in self.wanted else "is no key of it"
            raise SettingsError(
                f"{file}: in {self.kind} {number}, {key} {says}",
                f"Its keys are {', '.join(self.wanted)}. {self.example}",
            ) from error
        except SettingsError as error:
            raise SettingsError(
                f"{file}: in {self.kind} {number}, {error.says}", error.remedy
            ) from error
