"""What a user can set: one model, units in every name; environment over files.

Read by hand with tomllib rather than pydantic-settings, whose import alone costs 0.2 s of the
0.25 s that a command may take.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import Field, ValidationError

from cloudwhale.model.units import Seconds
from cloudwhale.model.value import Value
from cloudwhale.spi.errors import SettingsError

PREFIX = "CLOUDWHALE_"

Amount: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]

_WANTED = {
    "budget_soft_share": "a share above 0 and at most 1, like 0.9",
    "cpu": "a number above 0, like 4 or 0.5",
    "memory_gib": "a number of GiB above 0, like 16",
    "attempt_lease_s": "a number of seconds above 0, like 600",
    "clock_skew_s": "a number of seconds, 0 or more, like 30",
}
"""What a setting must be, in words."""


class Settings(Value):
    """Every setting with its default; the name in the environment is CLOUDWHALE_ and upper case."""

    home: Path
    """Local state: database, mailbox of this host, keys."""
    database: str = ""
    """SQLAlchemy URL; empty: SQLite in `home`."""
    mailbox: str = ""
    """Object store URL; empty: a folder in `home`."""
    node: str = ""
    """Name of this host; empty: its host name."""
    devices: tuple[str, ...] = ()
    """Declared stand-ins for hosts without GPUs: "2x RTX4090 24GB"."""
    cpu: Amount | None = None
    """CPUs of this host that jobs may use; None: all."""
    memory_gib: Amount | None = None
    """Memory of this host that jobs may use; None: all."""
    labels: dict[str, str] = {}
    """What jobs may ask of this host with `where`; in the environment `rack=a,disk=fast`."""
    order: str = "priority"
    """Policy that says which job is planned first."""
    score: str = "best-fit"
    """Policy that says which of the places that fit is best."""
    seed: int = 0
    """What policies draw from; the same seed gives the same plans."""
    attempt_lease_s: Seconds = Field(600.0, gt=0, allow_inf_nan=False)
    """Silence of the store or the agent after which an attempt counts as lost."""
    clock_skew_s: Seconds = Field(30.0, ge=0, allow_inf_nan=False)
    """How far two clocks may differ."""
    budget_soft_share: float = Field(0.9, gt=0, le=1)
    """Share of a budget at which nothing new is rented any more."""
    user: str = ""
    """Who submits; empty: the login name."""


def default_home() -> Path:
    """Return the user's data directory for cloudwhale; CLOUDWHALE_HOME moves it."""
    moved = os.environ.get(PREFIX + "HOME")
    if moved:
        return Path(moved).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_data_dir("cloudwhale"))


def load(folder: Path, environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings that hold in a folder; raise SettingsError for a wrong one."""
    env = os.environ if environment is None else environment
    found: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for file in (_user_file(env), folder / "cloudwhale.toml"):
        for key, value in _read(file).items():
            found[key], origin[key] = value, str(file)
    for key in Settings.model_fields:
        value = env.get(PREFIX + key.upper())
        if value is not None:
            found[key], origin[key] = _from_text(key, value), f"${PREFIX}{key.upper()}"
    found.setdefault("home", default_home())
    return _checked(found, origin)


def _user_file(env: Mapping[str, str]) -> Path:
    config = env.get("XDG_CONFIG_HOME") or str(Path(env.get("HOME", "/")) / ".config")
    return Path(config) / "cloudwhale" / "cloudwhale.toml"


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SettingsError(
            f"{file}:{line}: this is not UTF-8, which TOML is written in",
            "Save the file as UTF-8.",
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: {error}", "Mend the file; it is TOML.") from error
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}") from error


def _from_text(key: str, value: str) -> Any:
    if key == "devices":
        return [part.strip() for part in value.split(",") if part.strip()]
    if key == "labels":
        return dict(_label(part) for part in value.split(",") if part.strip())
    return value


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise SettingsError(
            f"${PREFIX}LABELS: {text!r} is not NAME=VALUE", "Write labels as rack=a,disk=fast."
        )
    return name.strip(), value.strip()


def _checked(found: dict[str, Any], origin: dict[str, str]) -> Settings:
    for key in found:
        if key not in Settings.model_fields:
            close = difflib.get_close_matches(key, Settings.model_fields, 1)
            hint = f"Did you mean {close[0]}?" if close else "Remove it."
            raise SettingsError(f"{origin[key]}: unknown setting {key!r}", hint)
    try:
        settings = Settings.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        raise SettingsError(
            f"{origin.get(key, key)}: {key} must be {_WANTED.get(key, 'something else')}, "
            f"and {first['input']!r} is not",
            "Write it so, or remove it; the default holds then.",
        ) from error
    return settings.but(home=settings.home.expanduser().absolute())
