"""What a user can set: one model, units in every name; environment over files.

Read by hand with tomllib rather than pydantic-settings, whose import alone costs 0.2 s of the
0.25 s that a command may take.
"""

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field, ValidationError

from cloudwhale.model.units import Seconds
from cloudwhale.model.value import Value
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.sandbox import Machines

PREFIX = "CLOUDWHALE_"

Amount: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]

Weight: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]

_NODE = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,62})?")
_DEVICE = re.compile(
    r"(?:0*[1-9][0-9]{0,3}\s*x\s+)?\S.*?\s+[0-9]+(?:\.[0-9]+)?\s*(?:GB|GiB)", re.IGNORECASE
)
_COUNT_0 = re.compile(r"0+\s*x\s.*", re.IGNORECASE)

_NOT_SETTINGS = frozenset(
    PREFIX + name
    for name in (
        "JOB_ID", "ATTEMPT", "CHECKPOINT_DIR", "RESUME", "RESTART_COUNT", "GRACE_SECONDS",
        "NODE_RANK", "NUM_NODES", "TRACES", "CLOCK", "NOTICE_ID", "NOTICE_KIND", "NOTICE_TITLE",
        "NOTICE_TEXT", "NOTICE_SUBJECT", "NOTICE_PROJECT", "NOTICE_RUN",
    )
)  # fmt: skip
"""What cloudwhale itself says to jobs and to commands that are told, which may call it in turn."""

HOUSE_KEYS = frozenset({"mailbox", "through"})
"""Keys of a cloud's table that the house reads, and no provider."""

_WANTED = {
    "home": "the path of a folder",
    "database": "a URL, like sqlite:////data/cloudwhale.db or postgresql://ann@db/whale",
    "mailbox": "the URL of an object store, like file:///data/mailbox",
    "node": "up to 63 letters, digits, `-`, `_` and `.`, not beginning with `.`",
    "devices": 'a list of texts like "2x RTX4090 24GB", each with a count of at least 1',
    "cpu": "a number above 0, like 4 or 0.5",
    "memory_gib": "a number of GiB above 0, like 16",
    "labels": 'names with texts, like {rack = "a"}',
    "order": "a name, like priority",
    "score": "a name, like best-fit",
    "wait": "a name, like whale",
    "rent": "a name, like whale-rent",
    "rent_patience_s": "a number of seconds above 0, like 30",
    "weights": "names of scores with numbers that sum to 1, like {finish = 0.6, fit = 0.4}",
    "shares": "projects with numbers above 0, like {nlp = 2, vision = 1}",
    "match": "true or false",
    "age": "true or false",
    "hold": "true or false",
    "reserve": "true or false",
    "strict": "true or false",
    "preempt": "true or false",
    "displace": "true or false",
    "bring_home": "true or false",
    "restart_s": "a number of seconds, 0 or more, like 60",
    "preempt_after_s": "a number of seconds, 0 or more, like 60",
    "seed": "a whole number, like 0",
    "value_usd_h": "a number of dollars, 0 or more, like 20",
    "regions": 'a list of regions or patterns, like ["us-*", "CLOUD/europe-west4"]',
    "never": 'a list of machine types or patterns, like ["p5*", "CLOUD/a3-*"]',
    "max_price_usd_h": "a number of dollars above 0, like 12.5",
    "clouds": "tables, [clouds.NAME]; in the environment names, with commas between",
    "sandbox": "true or false",
    "sandbox_machines": "auto, processes or boots",
    "sandbox_script": "the path of a YAML file, like storm.yaml",
    "takes_jobs": "true or false",
    "accept_no_stop": "true or false",
    "prices": 'a list of CSV files, like ["my-prices.csv"]',
    "catalogue_max_age_days": "a number of days above 0, like 30",
    "attempt_lease_s": "a number of seconds above 0, like 600",
    "clock_skew_s": "a number of seconds, 0 or more, like 30",
    "budget_soft_share": "a share above 0 and at most 1, like 0.9",
    "auto_size": "true or false",
    "metrics_file": "the path of a file whose name ends in .prom, like /var/lib/whale.prom",
    "user": "a name, like ada",
    "notify": "tables, [notify.NAME], in a settings file",
    "timezone": "a zone of the IANA list, like Europe/Berlin",
}
"""What each setting must be, in words."""


def _node(name: str) -> str:
    """It becomes a folder of the mailbox and a word of a command line."""
    if not _NODE.fullmatch(name):
        raise ValueError(name)
    return name


def _device(text: str) -> str:
    if _COUNT_0.fullmatch(text.strip()) or not _DEVICE.fullmatch(text.strip()):
        raise ValueError(text)
    return text


def prom(file: Path) -> Path:
    """Return a file that node_exporter reads; raise ValueError for one that it does not."""
    if file.suffix != ".prom":
        raise ValueError(file)
    return file


def _weights(weights: dict[str, float]) -> dict[str, float]:
    if weights and abs(sum(weights.values()) - 1.0) > 1e-6:
        raise ValueError(weights)
    return weights


class Settings(Value):
    """Every setting with its default; the name in the environment is CLOUDWHALE_ and upper case."""

    home: Path
    """Local state: database, mailbox of this host, keys."""
    database: str = ""
    """`sqlite:////path` or `postgresql://user@host/database`; empty: SQLite in `home`."""
    mailbox: str = ""
    """Object store URL; empty: a folder in `home`."""
    node: Annotated[str, AfterValidator(_node)] = ""
    """Name of this host; empty: its host name."""
    devices: tuple[Annotated[str, AfterValidator(_device)], ...] = ()
    """Declared stand-ins for hosts without GPUs: "2x RTX4090 24GB"."""
    cpu: Amount | None = None
    """CPUs of this host that jobs may use; None: all."""
    memory_gib: Amount | None = None
    """Memory of this host that jobs may use; None: all."""
    labels: dict[str, str] = {}
    """What jobs may ask of this host with `where`; in the environment `rack=a,disk=fast`."""
    order: str = "whale"
    """Policy that says which job is planned first."""
    score: str = "whale"
    """Policy that says which of the places that fit is best."""
    wait: str = "whale"
    """Policy that says who starts, who waits for a start, and who had better be rented for."""
    rent: str = "whale-rent"
    """Policy that says which machines are rented for those who had better not wait."""
    rent_patience_s: Seconds = Field(30.0, gt=0, allow_inf_nan=False)
    """A choice of machines for one payer that takes longer gives way to a simpler one."""
    seed: int = 0
    """What policies draw from; the same seed gives the same plans."""
    weights: Annotated[dict[str, Weight], AfterValidator(_weights)] = {}
    """How much each named score counts; they sum to 1. Empty: as the score policy has it."""
    shares: dict[str, Amount] = {}
    """What projects are entitled to, beside one another; in the environment `nlp=2,vision=1`."""
    match: bool = True
    """Whether the jobs of a class are matched to places together; else one by one."""
    age: bool = True
    """Whether those who have waited too long go first, which bounds every wait."""
    hold: bool = True
    """Whether a job may wait for a better place although it fits somewhere."""
    reserve: bool = True
    """Whether room is kept for the oldest job that is too large for what is free."""
    strict: bool = False
    """Whether nobody may pass a job that does not fit yet."""
    preempt: bool = True
    """Whether a job may be stopped, checkpoint first, for one of a higher class."""
    displace: bool = False
    """Whether jobs may be stopped for others of their class where that pays."""
    bring_home: bool = True
    """Whether a job may be moved from a rented machine to one of ours, where that pays."""
    restart_s: Seconds = Field(60.0, ge=0, allow_inf_nan=False)
    """What stopping, placing and restoring a job is expected to cost it."""
    preempt_after_s: Seconds = Field(60.0, ge=0, allow_inf_nan=False)
    """A job that has run for less is not stopped for another."""
    value_usd_h: float = Field(20.0, ge=0, allow_inf_nan=False)
    """What an hour of a job's waiting is worth, in dollars, where its file does not say."""
    regions: tuple[str, ...] = ()
    """Where machines may be rented; empty: everywhere."""
    never: tuple[str, ...] = ()
    """Machine types that are never rented."""
    max_price_usd_h: Amount | None = None
    """The most that an hour of a machine may cost, disk and address included; None: anything."""
    clouds: dict[str, dict[str, Any]] = {}
    """Clouds that machines are rented from, each with what its provider is told."""
    sandbox: bool = False
    """Whether machines are rented in a cloud on this host, with money of its own."""
    sandbox_machines: Machines = "auto"
    """How the machines there run: `processes` of this host, systems that `boots`, or as it can."""
    sandbox_script: str = ""
    """The weather of that cloud: a YAML file; a relative one lies beside the settings file."""
    takes_jobs: bool = True
    """Whether this host runs jobs itself."""
    accept_no_stop: bool = False
    """Whether machines may be rented that neither their cloud nor they themselves end in time."""
    prices: tuple[str, ...] = ()
    """CSV files with prices of your own; relative ones lie beside the settings file."""
    catalogue_max_age_days: Amount = 30.0
    """After so many days prices are called old; they are used all the same."""
    attempt_lease_s: Seconds = Field(600.0, gt=0, allow_inf_nan=False)
    """Silence of the store or the agent after which an attempt counts as lost."""
    clock_skew_s: Seconds = Field(30.0, ge=0, allow_inf_nan=False)
    """How far two clocks may differ."""
    budget_soft_share: float = Field(0.9, gt=0, le=1)
    """Share of a budget at which nothing new is rented any more."""
    auto_size: bool = False
    """Whether jobs ask for what their family was seen to use, where their file does not say."""
    metrics_file: Annotated[Path, AfterValidator(prom)] | None = None
    """Where controllers write their metrics, for node_exporter; a relative path lies beside the
    settings file."""
    user: str = ""
    """Who submits; empty: the login name."""
    notify: dict[str, dict[str, Any]] = {}
    """Whom to tell of what happens: tables [notify.NAME]."""
    timezone: str = ""
    """In which days, months and nights begin, like Europe/Berlin; empty: this host's."""


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
            found[key], origin[key] = _beside(file, key, value), str(file)
    for key in Settings.model_fields:
        value = env.get(PREFIX + key.upper())
        if value is not None:
            found[key], origin[key] = _from_text(key, value), f"${PREFIX}{key.upper()}"
    for name in env:
        if name.startswith(PREFIX) and name not in _NOT_SETTINGS:
            key = name.removeprefix(PREFIX).lower()
            if key not in Settings.model_fields:
                raise _unknown(key, f"${name}")
    found.setdefault("home", default_home())
    return _checked(found, origin)


def provider_of(name: str, table: Mapping[str, Any]) -> str:
    """Return the provider that a cloud is reached through: what its table names, else its name."""
    return str(table.get("through", name))


def own_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a cloud's provider is told of its table: what is ours is left out."""
    return {key: value for key, value in table.items() if key not in HOUSE_KEYS}


def checked(found: Mapping[str, Any], origin: str) -> Settings:
    """Return the settings with these values; raise SettingsError, naming where they come from."""
    return _checked(dict(found), dict.fromkeys(found, origin))


def _user_file(env: Mapping[str, str]) -> Path:
    config = env.get("XDG_CONFIG_HOME") or str(Path(env.get("HOME", "/")) / ".config")
    return Path(config) / "cloudwhale" / "cloudwhale.toml"


def _read(file: Path) -> dict[str, Any]:
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # a pipe would be waited for without end
            raise SettingsError(f"{file} is not a regular file", "Remove it, or write a file.")
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


def _beside(file: Path, key: str, value: Any) -> Any:
    """Return a value; the files that a settings file names lie beside it."""
    names: Any = value  # of a list that the file gave, nothing is known
    if key == "notify" and isinstance(value, dict):
        return {name: _files_beside(file, table) for name, table in names.items()}
    if key in ("sandbox_script", "metrics_file"):
        return _path_beside(file, value)
    if key != "prices" or not isinstance(value, list):
        return value
    return [_path_beside(file, name) for name in names]


def _files_beside(file: Path, table: Any) -> Any:
    if not isinstance(table, dict):
        return table
    found: dict[str, Any] = {**table}
    return {
        key: _path_beside(file, value) if key.endswith("_file") else value
        for key, value in found.items()
    }


def _path_beside(file: Path, name: Any) -> Any:
    return str(file.parent / Path(name).expanduser()) if isinstance(name, str) else name


def _from_text(key: str, value: str) -> Any:
    if key in ("devices", "regions", "never", "prices"):
        return [part.strip() for part in value.split(",") if part.strip()]
    if key == "clouds":
        names = [part.strip() for part in value.split(",") if part.strip()]
        return {name: dict[str, Any]() for name in names}
    if key in ("labels", "weights", "shares"):
        return dict(_named(key, part) for part in value.split(",") if part.strip())
    return value


def _named(key: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise SettingsError(
            f"${PREFIX}{key.upper()}: {text!r} is not NAME=VALUE",
            f"Write {key} as one=VALUE,other=VALUE.",
        )
    return name.strip(), value.strip()


def _unknown(key: str, origin: str) -> SettingsError:
    close = difflib.get_close_matches(key, Settings.model_fields, 1)
    hint = f"Did you mean {close[0]}?" if close else "Remove it."
    return SettingsError(f"{origin}: unknown setting {key!r}", hint)


def _checked(found: dict[str, Any], origin: dict[str, str]) -> Settings:
    for key in found:
        if key not in Settings.model_fields:
            raise _unknown(key, origin[key])
    try:
        settings = Settings.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        raise SettingsError(
            f"{origin.get(key, key)}: {key} must be {_WANTED[key]}, and {first['input']!r} is not",
            "Write it so, or remove it; the default holds then.",
        ) from error
    return settings.but(home=settings.home.expanduser().absolute())
