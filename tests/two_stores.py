"""A stage with two clouds, each with a mailbox of its own, one of which may fail."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from clouding import a_cloudy_stage, an_offer
from staging import program_of

from cloudwhale.mailbox.objects import Objects, open_objects
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, Seconds, micro_usd
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud
from cloudwhale.simulation.stage import Stage
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.store import Store

T = TypeVar("T")


class Ailing:
    """A store that can be away for the controller, not for its machines; see mailbox/objects."""

    folder: Path | None = None

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.is_away = False

    def _asked(self, do: Callable[[], T]) -> T:
        if self.is_away:
            raise StoreUnusable("cannot read it in the mailbox: away", "Wait.")
        return do()

    def create(self, key: str, body: bytes) -> bool:
        return self._asked(lambda: self.objects.create(key, body))

    def get(self, key: str) -> bytes | None:
        return self._asked(lambda: self.objects.get(key))

    def keys(self, prefix: str) -> Sequence[str]:
        return self._asked(lambda: self.objects.keys(prefix))

    def folders(self, prefix: str) -> Sequence[str]:
        return self._asked(lambda: self.objects.folders(prefix))

    def modified_at(self, key: str) -> Instant | None:
        return self._asked(lambda: self.objects.modified_at(key))

    def size_bytes(self, key: str) -> int | None:
        return self._asked(lambda: self.objects.size_bytes(key))

    def delete(self, keys: Sequence[str]) -> None:
        self._asked(lambda: self.objects.delete(keys))

    def put_chunks(self, key: str, chunks: Iterable[bytes]) -> None:
        self._asked(lambda: self.objects.put_chunks(key, chunks))

    def put_file(self, key: str, path: Path) -> str:
        return self._asked(lambda: self.objects.put_file(key, path))

    def get_file(self, key: str, path: Path) -> str | None:
        return self._asked(lambda: self.objects.get_file(key, path))


def an_offer_of(provider: str, price: str = "3.6", egress_usd_gb: float | None = None) -> Offer:
    """Make an offer of one of the clouds, which has its own region."""
    return an_offer(
        f"{provider}/big", provider=provider, region=f"{provider}-r", zone=f"{provider}-r-a",
        price_usd_h=micro_usd(price), cap_usd_h=micro_usd(price), egress_usd_gb=egress_usd_gb,
    )  # fmt: skip


def two_clouds(
    names: Sequence[str] = ("quick", "quick"),
    amounts: tuple[int, int] = (1, 1),
    dry_after_s: Seconds = math.inf,
    store: Store | None = None,
    egress_usd_gb: float | None = None,
) -> tuple[Stage, Ailing, Ailing]:
    """Make a stage whose `cloud` is cheaper than its `other`; return both clouds' stores, too.

    `amounts`: how many machines each of them has; `dry_after_s`: from when on the first has none;
    `egress_usd_gb`: what the first asks for what leaves it.
    """
    stage = a_cloudy_stage(names, store=store)
    dry_at = stage.scenery.clock.now() + dry_after_s
    stores = Ailing(open_objects("memory://")), Ailing(open_objects("memory://"))
    shelves = (
        Shelf(
            an_offer_of("cloud", egress_usd_gb=egress_usd_gb),
            amounts[0],
            droughts=((dry_at, math.inf),),
        ),
        Shelf(an_offer_of("other", "3.8"), capacity=amounts[1]),
    )
    clouds = {
        shelf.offer.provider: SimulatedCloud(
            [shelf], ailing.objects, program_of, lambda: stage.machine_time
        )
        for shelf, ailing in zip(shelves, stores, strict=True)
    }
    others = {"cloud": stores[0], "other": stores[1]}
    stage.scenery = replace(stage.scenery, clouds=clouds, others=others)
    return stage, *stores
