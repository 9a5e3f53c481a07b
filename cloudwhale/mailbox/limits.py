"""How long a client of a store waits: documents are soon there, large bodies take their time.

obstore ends a request after 30 s by itself, body included, which on a line of 2 Mbit/s is enough
for 7 MB. Its time limits are part of what a client is made with, and what is said there replaces
what it would read of its client from the environment, so that is read here.
"""

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from obstore.store import ObjectStore, from_url

from cloudwhale.mailbox.kinds import kind_of
from cloudwhale.model.units import Seconds
from cloudwhale.spi.stores import StoreKind

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

CONNECT_S: Seconds = 5.0
RETRY: "RetryConfig" = {"max_retries": 3, "retry_timeout": timedelta(seconds=15)}
"""Who waits for the store tries again by itself, and has other things to do meanwhile."""
OF_CLIENT = (
    "allow_http", "allow_invalid_certificates", "default_content_type", "http1_only", "http2_only",
    "pool_idle_timeout", "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes",
    "proxy_url", "randomize_addresses", "root_certificate", "user_agent",
)  # fmt: skip
"""What the environment may say of a client, behind the prefix of its kind, in capitals."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a request is given up."""

    whole_s: Seconds
    """From its beginning to the end of what it brings."""
    silent_s: Seconds | None = None
    """While nothing comes; None: that is not looked at. Of an upload nothing comes to its end."""


DOCUMENT = Limits(30.0)
"""A store that hangs is noticed."""
UPLOAD = Limits(600.0)
"""Four parts of 8 MiB at once pass a line of half a megabit each second."""
DOWNLOAD = Limits(7 * 86400.0, silent_s=30.0)
"""However large it is, as long as some of it comes."""


def opened(url: str, limits: Limits, retry: "RetryConfig" = RETRY, region: str = "") -> ObjectStore:
    """Open a bucket by URL; raise SettingsError, obstore's BaseError or ValueError."""
    kind = kind_of(urlsplit(url).scheme)
    told: Any = {**kind.options(), **({"region": region} if region else {})}
    return from_url(url, **told, client_options=_options(kind, limits), retry_config=retry)


def _options(kind: StoreKind, limits: Limits) -> "ClientConfig":
    # Words of the environment are taken as they are: obstore reads `true` as it reads True.
    said = dict(kind.client())
    for name in OF_CLIENT:
        value = os.environ.get(kind.variables + name.upper())
        if value:
            said[name] = value
    options: ClientConfig = {
        "connect_timeout": timedelta(seconds=CONNECT_S),
        "timeout": timedelta(seconds=limits.whole_s),
    }
    if limits.silent_s is not None:
        options["read_timeout"] = timedelta(seconds=limits.silent_s)
    options.update(said)  # type: ignore[typeddict-item]  # pyright: ignore
    return options
