"""libcloud's dummy driver as a cloud that outlives the controller, and a provider of it.

The dummy calls machines as it likes and forgets them with its driver. Here it keeps the names that
it was asked for, takes user data, and its machines are one list for all drivers of one cloud.
"""

from collections.abc import Callable, Mapping
from typing import Any

from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Lease
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.provider import Grounds, LaunchRequest
from cloudwhale_providers.libcloud import LibcloudProvider, OwnPrices
from cloudwhale_providers.libcloud.driving import driver_class

NOW = 1_800_000_000.0
MAILBOX = "s3://lab/whale"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDUMMY", "AWS_SECRET_ACCESS_KEY": "dummy/secret+key"}
BIG = {"size": "Big", "usd_h": 1.2, "cpu": 8, "memory_gib": 30, "disk_gib": 100}
TABLE: Mapping[str, Any] = {
    "driver": "dummy",
    "image": "Ubuntu 9.10",
    "off_is_free": True,
    "machine_environment": list(KEYS),
    "sizes": [BIG, {**BIG, "size": "XXL Big", "usd_h": 2.4, "gpu": "L4", "gpus": 1, "at_most": 2}],
}

Fault = Callable[[str, Callable[[], Any]], Any]
"""Does one call of a verb, or lets it fail, before or after it is done."""


class DummyCloud:
    """What all drivers of the cloud share."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.told: dict[str, str] = {}
        """User data by the name of the machine."""
        self.created = 0
        self.verbs: list[str] = []
        self.fault: Fault = lambda verb, do: do()
        self.makes: type[LastingDummy] = LastingDummy

    def driver(self) -> "LastingDummy":
        """Return a new driver, as in a new process."""
        return self.makes(self)

    def ours(self) -> list[Any]:
        """Return the machines that carry cloudwhale's mark."""
        return [node for node in self.nodes if node.name.startswith("cw-")]

    def do(self, verb: str, act: Callable[[], Any]) -> Any:
        """Do one call."""
        self.verbs.append(verb)
        return self.fault(verb, act)


class LastingDummy:
    """libcloud's dummy with what every real driver has: names, user data, ids of their own."""

    def __init__(self, cloud: DummyCloud) -> None:
        self._dummy: Any = driver_class("dummy", "dummy")("0")
        self._dummy.nl = cloud.nodes
        self._cloud = cloud
        self.list_sizes, self.list_images = self._dummy.list_sizes, self._dummy.list_images
        self.list_locations, self.list_volumes = (
            self._dummy.list_locations,
            self._dummy.list_volumes,
        )

    def list_nodes(self) -> Any:
        return self._cloud.do("list_nodes", lambda: list(self._dummy.list_nodes()))

    def create_node(self, name: str, size: Any, image: Any, ex_userdata: str = "") -> Any:
        def made() -> Any:
            node = self._dummy.create_node(name, size, image)
            self._cloud.created += 1
            # The dummy counts what there is, and so gives an id twice.
            node.id, node.name, node.size = str(1000 + self._cloud.created), name, size
            self._cloud.told[name] = ex_userdata
            return node

        return self._cloud.do("create_node", made)

    def destroy_node(self, node: Any) -> Any:
        def destroyed() -> bool:
            mine = [one for one in self._cloud.nodes if one.id == node.id]
            return all([self._dummy.destroy_node(one) for one in mine])

        return self._cloud.do("destroy_node", destroyed)


class LookingDummy(LastingDummy):
    """One that can be asked for a machine by its id, as most can."""

    def ex_get_node_details(self, node_id: str) -> Any:
        mine = [one for one in self._cloud.nodes if one.id == node_id]
        return self._cloud.do("get_node", lambda: mine[0] if mine else None)


class Reborn:
    """A provider whose process dies after every call."""

    def __init__(self, make: Callable[[], LibcloudProvider]) -> None:
        self._make = make

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._make(), verb)


def a_clock() -> SteppedClock:
    """Make a clock that goes when it is told to."""
    return SteppedClock(NOW)


def a_provider(
    cloud: DummyCloud,
    clock: Clock | None = None,
    installation: str = "lab",
    environment: Mapping[str, str] = KEYS,
    **said: Any,
) -> LibcloudProvider:
    """Make the provider of an installation, new as in a new process."""
    table = {**TABLE, **said}
    prices = OwnPrices("dummy", table, NOW)
    offers = offers_of(prices)
    grounds = Grounds("dummy", installation, table, lambda now: offers, clock or a_clock(), MAILBOX)
    return LibcloudProvider(grounds, cloud.driver, environment)


def offers_of(prices: OwnPrices) -> list[Offer]:
    """Return a price list as the catalogue has it."""
    from cloudwhale.control.catalogue.listed import offers_of as listed

    return list(listed(prices.shipped(), {"dummy": prices}))


def an_offer(name: str = "Big") -> Offer:
    """Return what the table offers under the name of a size."""
    (found,) = [one for one in offers_of(OwnPrices("dummy", TABLE, NOW)) if one.type == name]
    return found


def a_request(name: str = "rent-7-1", **said: Any) -> LaunchRequest:
    """Make a launch for an hour."""
    words: dict[str, Any] = {
        "request_id": name, "node": name, "offer": an_offer(), "mailbox": MAILBOX, "home": "/",
        "stop_at": NOW + 3600, "bundle": f"bundles/{'0' * 64}.tar.gz",
        "lease": Lease(
            number=1, watched_until=NOW + 900, away_until=NOW + 3480, stop_at=NOW + 3600
        ),
    }  # fmt: skip
    return LaunchRequest(**{**words, **said})
