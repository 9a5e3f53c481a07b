"""What a table `[clouds.NAME]` with `provider = "libcloud"` can say."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from cloudwhale.model.gpus import FAMILIES, MODELS
from cloudwhale.model.units import GiB, MicroUsd, Seconds
from cloudwhale.model.value import Value
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.spelling import NAMES, hourly, is_name

Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]

WANTED = {
    "driver": "the name of a driver of libcloud, like openstack",
    "credentials": 'words of the driver with names of variables, like {key = "OS_USERNAME"}',
    "options": 'more words of the driver, like {ex_force_service_region = "GRA11"}',
    "region": "a name, like GRA11",
    "location": "the id or the name of one of the driver's locations",
    "image": "the id or the name of one of the driver's images, like Ubuntu 24.04",
    "create": 'more words of the driver\'s create_node, like {ex_keyname = "ada"}',
    "user_data": "the word of create_node that takes user data, like ex_userdata",
    "machine_environment": 'names of variables, like ["AWS_ACCESS_KEY_ID"]',
    "off_is_free": "true or false",
    "billing_step_s": "a number of seconds, 1 or more, like 3600",
    "boot_s": "a number of seconds above 0, like 300",
    "egress_usd_gb": "a number of dollars, 0 or more, like 0.01",
    "sizes": "tables, [[clouds.NAME.sizes]]",
}
"""What each key must be, in words."""
OF_SIZE = {
    "size": "the id or the name of one of the driver's sizes, without `/`, `;` and `=`",
    "usd_h": "a number of dollars above 0, disk and address included",
    "gpu": "a GPU model, like L4 or A100-80GB",
    "gpus": "a whole number, 0 or more",
    "gpu_gib": "a number of GiB above 0",
    "cpu": "a number above 0",
    "memory_gib": "a number of GiB above 0",
    "disk_gib": "a number of GiB above 0",
    "at_most": "a whole number of machines, 1 or more",
}
"""The same for the keys of a size."""


def _named(text: str) -> str:
    if not is_name(text):
        raise ValueError(NAMES)
    return text


class Size(Value):
    """A machine type that may be rented: what it has and costs, which no driver tells."""

    size: Annotated[str, AfterValidator(_named)]
    """As the driver calls it, by id or by name."""
    usd_h: Amount
    """Dollars an hour, its disk and its address included."""
    cpu: Amount
    memory_gib: Amount
    disk_gib: Amount
    """Disk that jobs find."""
    gpu: str = ""
    """Canonical model; empty: it has none."""
    gpus: int = Field(0, ge=0, le=64)
    gpu_gib: Annotated[GiB, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Memory of each that a driver shows; 0: the nominal memory of the model."""
    at_most: int | None = Field(None, ge=1)
    """So many at once, by the account's quota; None: nobody has said."""

    @property
    def price_usd_h(self) -> MicroUsd:
        """Return what an hour costs."""
        return hourly(str(self.usd_h))


class LibcloudSettings(Value):
    """Every key of such a table."""

    driver: str
    """A constant of libcloud's `Provider`, in lower case."""
    image: str
    """By id or by name; a system with cloud-init."""
    sizes: tuple[Size, ...] = Field(min_length=1)
    credentials: Mapping[str, str] = {}
    """Words of the driver's constructor, each with the variable that holds its value."""
    options: Mapping[str, Any] = {}
    """More of its words; nothing secret."""
    region: Annotated[str, AfterValidator(_named)] = "here"
    """What offers call the place; words of the driver choose it."""
    location: str = ""
    """By id or by name; empty: the driver's only one, or its own choice."""
    create: Mapping[str, Any] = {}
    """More words of `create_node`: keys, networks, security groups."""
    user_data: str = ""
    """Word of `create_node`, `ex_userdata`, or a key within one, `ex_create_attr.user_data`.

    Empty: as the driver is known to call it.
    """
    machine_environment: tuple[str, ...] = ()
    """Variables that machines are given as they are here, in their user data."""
    off_is_free: bool = False
    """Whether a machine that has switched itself off costs nothing more."""
    billing_step_s: Seconds = Field(3600.0, ge=1, allow_inf_nan=False)
    """Time is billed in such steps, one at least."""
    boot_s: Seconds = Field(600.0, gt=0, allow_inf_nan=False)
    """From the launch until a job can start."""
    egress_usd_gb: float | None = Field(None, ge=0, allow_inf_nan=False)
    """Price of a GB that leaves; None: nobody has said."""

    def size_of(self, name: str) -> Size | None:
        """Return a size by the name that offers have; None: there is none."""
        return next((one for one in self.sizes if one.size == name), None)


def read(table: Mapping[str, Any], name: str) -> LibcloudSettings:
    """Return the settings of a table; raise SettingsError, naming table, key and remedy."""
    where = f"[clouds.{name}]"
    for key in table:
        if key not in LibcloudSettings.model_fields:
            raise SettingsError(f"{where}: unknown key {key!r}", _near(key, WANTED))
    for key in ("driver", "image", "sizes"):
        if not table.get(key):
            raise SettingsError(f"{where} lacks {key!r}", f"It is {WANTED[key]}.")
    try:
        options = LibcloudSettings.model_validate(dict(table))
    except ValidationError as error:
        raise _wrong(error, where) from error
    _check_sizes(options, where)
    return options


def _wrong(error: ValidationError, where: str) -> SettingsError:
    first = error.errors()[0]
    key, *deeper = [str(part) for part in first["loc"]]
    wanted = WANTED[key]
    if key == "sizes" and len(deeper) > 1:
        number, key = int(deeper[0]) + 1, deeper[1]
        if key not in OF_SIZE:
            says = f"{where}: its size {number} has an unknown key {key!r}"
            return SettingsError(says, _near(key, OF_SIZE))
        where, wanted = f"{where}, size {number}", OF_SIZE[key]
    if first["type"] == "missing":
        return SettingsError(f"{where} lacks {key!r}", f"It is {wanted}.")
    return SettingsError(
        f"{where}: {key} must be {wanted}, and {first['input']!r} is not",
        "Write it so in cloudwhale.toml.",
    )


def _check_sizes(options: LibcloudSettings, where: str) -> None:
    """Refuse what each size may be by itself, and no size is."""
    names = [one.size for one in options.sizes]
    for one in options.sizes:
        if names.count(one.size) > 1:
            raise SettingsError(f"{where}: the size {one.size} stands there twice", "Remove one.")
        if bool(one.gpu) != bool(one.gpus):
            says = f"{where}: the size {one.size} has {one.gpus} GPUs of model {one.gpu!r}"
            raise SettingsError(says, "Say both `gpu` and `gpus`, or neither.")
        if one.gpu and one.gpu not in MODELS:
            near = FAMILIES.get(one.gpu.upper()) or difflib.get_close_matches(one.gpu, MODELS, 3)
            says = f"{where}: the size {one.size} has GPUs of an unknown model {one.gpu!r}"
            raise SettingsError(says, f"Write {' or '.join(near) or 'a model like L4'}.")


def _near(word: str, known: Sequence[str] | Mapping[str, str]) -> str:
    close = difflib.get_close_matches(word, list(known), 3, cutoff=0.5)
    return f"Did you mean {' or '.join(close)}?" if close else "Known: " + ", ".join(known)
