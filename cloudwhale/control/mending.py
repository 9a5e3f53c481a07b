"""What `doctor --fix` makes: what a cloud's account lacks, and what the settings lack then."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cloudwhale import plugins
from cloudwhale.control.desk import open_desk, providers
from cloudwhale.control.installation import installation
from cloudwhale.settings import Settings, provider_of
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.provider import Amends, Provider

FILE = "cloudwhale.toml"


@dataclass(frozen=True, slots=True)
class Patient:
    """A cloud whose account is looked at, under the settings as they are."""

    settings: Settings
    name: str
    provider: Provider

    def amends(self, allow: str = "") -> Amends:
        """Look at the account; see `Provider.amends`."""
        found: Amends | None = None

        def whose() -> str:
            """Return our name; asked when the mailbox has been made."""
            with open_desk(self.settled(found or Amends())) as desk:
                return installation(desk)

        found = self.provider.amends(whose, allow)
        return found

    def settled(self, amends: Amends) -> Settings:
        """Return the settings as they are when all is written that they lack."""
        table = {**amends.settings, **self.settings.clouds.get(self.name, {})}
        return self.settings.but(
            mailbox=amends.mailbox or self.settings.mailbox,
            clouds={**self.settings.clouds, self.name: table},
        )

    def unwritten(self, amends: Amends) -> "Unwritten":
        """Return what the settings do not say yet."""
        said = self.settings.clouds.get(self.name, {})
        lacks = {key: value for key, value in amends.settings.items() if key not in said}
        return Unwritten(self.name, amends.mailbox, lacks)

    def cured(self, amends: Amends) -> Provider:
        """Return the provider as it is made of the settings that were lacking."""
        return providers(self.settled(amends))[self.name]


@dataclass(frozen=True, slots=True)
class Unwritten:
    """Keys that are to be written into the settings file."""

    cloud: str
    mailbox: str
    table: Mapping[str, Any]

    def __bool__(self) -> bool:
        return bool(self.mailbox or self.table)

    def added_to(self, text: str) -> str:
        """Return a settings file with these keys in it; what it says otherwise stays."""
        lines = text.splitlines()
        head = f"[clouds.{self.cloud}]"
        if self.table:
            at = next((n for n, line in enumerate(lines) if line.strip().startswith(head)), None)
            if at is None:
                lines += [*([""] * bool(lines)), head]
                at = len(lines) - 1
            lines[at + 1 : at + 1] = [f"{key} = {_toml(one)}" for key, one in self.table.items()]
        if self.mailbox:
            lines = _with_mailbox(lines, f"mailbox = {_toml(self.mailbox)}")
        return "\n".join(lines) + "\n"

    def lines(self) -> str:
        """Return the keys alone, as a settings file has them."""
        return self.added_to("")

    def fits(self, text: str) -> bool:
        """Say whether a file with these keys in it would be read as they are meant."""
        try:
            tomllib.loads(self.added_to(text))
        except tomllib.TOMLDecodeError:
            return False
        return True


def patient(settings: Settings, name: str) -> Patient:
    """Return a cloud, also one that the settings do not name yet; raise SettingsError for none.

    Without a name: the only one that they name.
    """
    if not name and len(settings.clouds) == 1:
        (name,) = settings.clouds
    provider = provider_of(name, settings.clouds.get(name, {}))
    if provider == "local" or provider not in plugins.names(plugins.PROVIDERS):
        clouds = [one for one in plugins.names(plugins.PROVIDERS) if one != "local"]
        says = f"there is no cloud called {name!r}" if name else "no cloud is named"
        raise SettingsError(
            f"{says}, whose account could be set up", f"Say which: {', '.join(clouds)}."
        )
    named = settings.but(clouds={name: {}, **settings.clouds})
    return Patient(named, name, providers(named)[name])


def _with_mailbox(lines: list[str], line: str) -> list[str]:
    """Return a file's lines with its mailbox in place of another, else before its first table."""
    first = next((n for n, one in enumerate(lines) if one.lstrip().startswith("[")), len(lines))
    for at in range(first):
        if re.match(r"\s*mailbox\s*=", lines[at]):
            return [*lines[:at], line, *lines[at + 1 :]]
    return [*lines[:first], line, *([""] * (first < len(lines))), *lines[first:]]


def _toml(value: Any) -> str:
    """Return a value as TOML; texts, lists of texts, numbers and truths are written as in JSON."""
    return json.dumps(value, ensure_ascii=False)
