"""What `[clouds.gcp]` can say, with its defaults; each key is for those who asked for it."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from cloudwhale.model.value import Value
from cloudwhale.spi.errors import SettingsError
from cloudwhale_providers.prices.gcp import REGION
from cloudwhale_providers.prices.regions import meant

WANTED = {
    "project": "the id of a project, like my-lab-123456",
    "regions": 'a list of regions or patterns, like ["us-*", "europe-west4"]',
    "service_account": "an e-mail, like machine@my-lab-123456.iam.gserviceaccount.com",
    "network": "the name of a network, like default",
    "subnetwork": "the name of a subnetwork, the same in each region, or its whole path",
    "external_address": "true or false",
    "image": "a family or an image, like projects/PROJECT/global/images/family/FAMILY",
    "endpoint": "the URL of another Compute Engine; leave it out for Google's own",
    "mailbox": "the URL of a folder in a bucket, like gs://my-bucket/cloudwhale",
}
PROJECT = re.compile(r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
"""Resource Manager docs, "Creating and managing projects"; a domain's have it before a colon."""
ACCOUNT = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
ZONE = re.compile(r"([a-z]+-[a-z]+[0-9]+)-[a-z]")


class GcpSettings(Value):
    """Every key of `[clouds.gcp]`."""

    project: str = ""
    """Empty: that of the credentials."""
    regions: tuple[str, ...] = ()
    """Where machines may be rented, names or patterns; none: all that the catalogue lists."""
    service_account: str = ""
    """Who machines are, by e-mail: they read and write the mailbox so; empty: nobody."""
    network: str = "default"
    subnetwork: str = ""
    """Empty: that of the network, in each region."""
    external_address: bool = True
    """Whether machines have an address of their own; else they need Cloud NAT, or only reach
    Google by Private Google Access."""
    image: str = ""
    """Empty: one with drivers for machines with GPUs, plain Ubuntu for others."""
    endpoint: str = ""
    """Where Google's APIs are asked instead; a sandbox says it."""
    mailbox: str = ""
    """What machines of this cloud meet their controller in; the house reads it, nobody here."""


def read(table: Mapping[str, Any], name: str = "gcp") -> GcpSettings:
    """Return the settings of a table; raise SettingsError, naming table, key and remedy."""
    for key in table:
        if key not in GcpSettings.model_fields:
            raise SettingsError(f"[clouds.{name}]: unknown key {key!r}", _near(key, WANTED))
    try:
        options = GcpSettings.model_validate(dict(table))
    except ValidationError as error:
        first = error.errors()[0]
        raise _wrong(name, str(first["loc"][0]), first["input"]) from error
    forms = {"project": PROJECT, "service_account": ACCOUNT, "endpoint": re.compile("https?://.+")}
    for key, form in forms.items():
        said: str = getattr(options, key)
        if said and not form.fullmatch(said):
            raise _wrong(name, key, said)
    for word in options.regions:
        _must_be_a_region(name, word)
    return options


def regions(options: GcpSettings, known: Iterable[str]) -> Sequence[str]:
    """Return the regions that are meant, of those that are known; all where nothing is said."""
    return meant(options.regions, "gcp", known, REGION)


def _must_be_a_region(name: str, word: str) -> None:
    zone = ZONE.fullmatch(word)
    if zone is not None:
        raise SettingsError(
            f"cloudwhale.toml, [clouds.{name}]: {word!r} is a zone", f"Write {zone[1]!r}."
        )
    if not REGION.fullmatch(word) and not any(sign in word for sign in "*?["):
        raise SettingsError(
            f"cloudwhale.toml, [clouds.{name}]: no region is called {word!r}",
            "`gcloud compute regions list` lists those there are.",
        )


def _wrong(name: str, key: str, said: object) -> SettingsError:
    return SettingsError(
        f"[clouds.{name}]: {key} must be {WANTED[key]}, and {said!r} is not",
        "Write it so in cloudwhale.toml, or remove it.",
    )


def _near(word: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(word, list(known), 3, cutoff=0.5)
    return f"Did you mean {' or '.join(close)}?" if close else "Known: " + ", ".join(known)
