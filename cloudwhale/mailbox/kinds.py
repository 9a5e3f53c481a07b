"""Which kinds of stores over a network there are, and what is each one's own: see spi.stores."""

from functools import cache
from typing import cast
from urllib.parse import urlsplit

from cloudwhale import plugins
from cloudwhale.spi.stores import StoreKind


def is_remote(scheme: str) -> bool:
    """Say whether URLs of a scheme lead to a store over a network."""
    return bool(scheme) and scheme in plugins.names(plugins.STORES)


@cache
def kind_of(scheme: str) -> StoreKind:
    """Return what is a kind's own; raise SettingsError for an unknown one."""
    return cast(StoreKind, plugins.load(plugins.STORES, scheme)())


def every_kind() -> tuple[StoreKind, ...]:
    """Return all that are installed, in the order of their schemes."""
    return tuple(kind_of(scheme) for scheme in plugins.names(plugins.STORES))


def endpoint_of(url: str) -> str:
    """Return the address that a URL's store is to be asked at; empty: its own, or it has none."""
    scheme = urlsplit(url).scheme
    return kind_of(scheme).endpoint() if is_remote(scheme) else ""
