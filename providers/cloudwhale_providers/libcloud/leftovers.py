"""What is left at a driver's cloud and belongs to no live machine: nodes, and volumes by name."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.errors import Denied
from cloudwhale.spi.provider import Leftover
from cloudwhale_providers.libcloud.driving import Driving
from cloudwhale_providers.libcloud.ending import Ending
from cloudwhale_providers.libcloud.listing import Listing, Seen
from cloudwhale_providers.libcloud.names import said_by, short

MACHINE, VOLUME = "instance", "volume"


class Leftovers:
    """The sweep by name; safe for threads."""

    def __init__(
        self, driving: Driving, listing: Listing, ending: Ending, region: str, installation: str
    ) -> None:
        self._driving = driving
        self._listing = listing
        self._ending = ending
        self._region = region
        self._installation = short(installation)

    def leftovers(
        self, live: Collection[str], usd_h: Callable[[Seen], MicroUsd | None]
    ) -> Sequence[Leftover]:
        """Return what belongs to no live machine, and what other installations have.

        `usd_h`: what a machine costs, None where that is not known.
        """
        machines = [
            Leftover(
                id=one.id, what=MACHINE, node=one.called.node, region=self._region,
                is_ours=self._listing.is_ours(one), installation=one.called.installation,
                since=one.since, usd_h=usd_h(one),
            )
            for one in self._listing.read()
            if one.is_there
        ]  # fmt: skip
        found = [*machines, *self._volumes()]
        return [one for one in found if not one.is_ours or one.node not in live]

    def remove(self, leftover: Leftover) -> None:
        """Remove something of ours; what is gone already is success."""
        if not leftover.is_ours:
            raise Denied(f"{leftover.id} is of installation {leftover.installation}")
        if leftover.what == MACHINE:
            self._ending.terminate(leftover.id)
            return
        for one in self._listed_volumes():
            if str(one.id) == leftover.id:
                self._ending.destroyed("destroy_volume", one)

    def _volumes(self) -> Iterator[Leftover]:
        """Yield the volumes that are called as our machines are: some clouds leave them behind."""
        for one in self._listed_volumes():
            called = said_by(str(one.name or ""))
            if called is not None:
                yield Leftover(
                    id=str(one.id), what=VOLUME, node=called.node, region=self._region,
                    is_ours=called.installation == self._installation,
                    installation=called.installation,
                )  # fmt: skip

    def _listed_volumes(self) -> Sequence[Any]:
        return self._driving.asked_if_it_can("list_volumes") or ()
