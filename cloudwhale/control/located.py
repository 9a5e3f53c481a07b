"""Asks stores where what jobs read lies, and how much it is, before a machine is looked for."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urlsplit

from cloudwhale.mailbox.addresses import BUCKETS
from cloudwhale.model.job import Data, JobSpec

if TYPE_CHECKING:
    from obstore.store import RetryConfig

AT_ONCE = 8
RETRY: "RetryConfig" = {"max_retries": 1, "retry_timeout": timedelta(seconds=5)}


def located(specs: Sequence[JobSpec]) -> tuple[JobSpec, ...]:
    """Return jobs with what can be known of their inputs; of the others nobody says anything.

    Asks the network, for each input in a bucket once in this process: how much lies there, and in
    which region. What this host may not see counts as lying everywhere.
    """
    urls = dict.fromkeys(url for spec in specs for url in spec.inputs if _is_asked(url))
    if not urls:
        return tuple(specs)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="located") as pool:
        found = dict(zip(urls, pool.map(_data, urls), strict=True))
    return tuple(_with_data(spec, found) for spec in specs)


def _with_data(spec: JobSpec, found: Mapping[str, Data | None]) -> JobSpec:
    data: Iterable[Data | None] = (found.get(url) for url in spec.inputs)
    known = tuple(one for one in data if one is not None)
    return spec.but(data=known) if known else spec


def _is_asked(url: str) -> bool:
    return urlsplit(url).scheme in BUCKETS


@cache
def _data(url: str) -> Data | None:
    from cloudwhale.mailbox.kinds import kind_of
    from cloudwhale.mailbox.sources import NothingThere, Source
    from cloudwhale.spi.errors import Denied, StoreUnusable

    parts = urlsplit(url)
    region = kind_of(parts.scheme).region_of(parts.netloc)
    if not region:
        return None
    try:
        found = Source(url, retry=RETRY).listed()
    except (NothingThere, Denied, StoreUnusable):
        return None  # the machine may be allowed what this host is not, and says so if it is not
    size_bytes = sum(one.size_bytes or 0 for one in found)
    return Data(url=urldefrag(url).url, region=region, size_bytes=size_bytes)
