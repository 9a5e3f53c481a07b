"""How a machine is launched through a driver: once, found again by its name."""

from collections.abc import Callable
from threading import Lock
from typing import Any

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import CloudwhaleError, Denied, NoCapacity, Unreachable
from cloudwhale.spi.provider import LaunchRequest
from cloudwhale_providers.libcloud.driving import Driving, lacking
from cloudwhale_providers.libcloud.ending import Ending
from cloudwhale_providers.libcloud.listing import Listing, Seen, seen
from cloudwhale_providers.libcloud.settings import LibcloudSettings
from cloudwhale_providers.libcloud.things import Things
from cloudwhale_providers.libcloud.words import LATE_NAMES

SETTLES_S: Seconds = 60.0
"""For so long after a lost answer a launch looks for its machine and makes no other."""
NO_USER_DATA = (
    "its machines could not boot themselves: create_node of this driver takes no user data"
)
LATE_NAME = (
    "this driver names a machine with a second call: one made just before a crash would have no "
    "name, and nobody would find it"
)

Tells = Callable[[LaunchRequest, Offer], str]
"""Returns the user data of a launch."""


class Launching:
    """Makes machines, each request one; safe for threads."""

    def __init__(
        self, driving: Driving, options: LibcloudSettings, listing: Listing, ending: Ending,
        clock: Clock,
    ) -> None:  # fmt: skip
        self._driving = driving
        self._options = options
        self._listing = listing
        self._ending = ending
        self._clock = clock
        self._things = Things(driving, clock)
        self._unanswered: dict[str, Seconds] = {}
        """By name: since when nobody knows whether a machine was made."""
        self._lock = Lock()

    @property
    def things(self) -> Things:
        """Return what finds sizes and images."""
        return self._things

    def launched(self, name: str, request: LaunchRequest, offer: Offer, tell: Tells) -> Seen:
        """Return the machine of a request, called so: the one that is there, or a new one.

        Raise TryAnother, Denied or Unreachable; after the last, the same request may be repeated.
        """
        refuse(self._driving, self._options)
        there = self._listing.launched(name)
        if not there:
            return self._made(name, request, offer, tell)
        self._answered(name)
        stays, *twins = there
        self._ending.end_all(twins)
        if stays.state == "gone":
            self._ending.end(stays)
            raise NoCapacity(f"{offer.type}: the machine was made and failed ({stays.said})")
        self._listing.took(stays)
        return stays

    def _made(self, name: str, request: LaunchRequest, offer: Offer, tell: Tells) -> Seen:
        now = self._clock.steady()
        with self._lock:
            since = self._unanswered.get(name, float("-inf"))
        if now - since < SETTLES_S:
            says = f"{name} was asked for and not answered {now - since:.0f} s ago"
            raise Unreachable(says, "It is looked for, and then asked for again.")
        words = self._words(name, offer, tell(request, offer))
        with self._lock:
            self._unanswered[name] = now  # also when we die of something that is none of ours
        try:
            node = self._driving.ask("create_node", **words)
        except Unreachable:
            raise
        except CloudwhaleError:
            self._answered(name)
            raise
        self._answered(name)
        return self._checked(node, name)

    def _answered(self, name: str) -> None:
        with self._lock:
            self._unanswered.pop(name, None)

    def _checked(self, node: Any, name: str) -> Seen:
        """Return a machine that was made, unless it is called something else: then it is ended."""
        one = seen(node, name)
        if one is None or one.name != name:
            self._driving.ask("destroy_node", node)
            says = f"the driver {self._options.driver} has called {name} {node.name!r} instead"
            raise Denied(says, "Nobody would find its machines again. Name another driver.")
        self._listing.took(one)
        return one

    def _words(self, name: str, offer: Offer, told: str) -> dict[str, Any]:
        """Return the words of `create_node`, those of them that this driver takes."""
        taken, options = self._driving.words_of("create_node"), self._options
        words: dict[str, Any] = {
            "name": name,
            "size": self._things.named("sizes", offer.type),
            "image": self._things.named("images", options.image),
            **options.create,
        }
        if "location" in taken and options.location:
            words["location"] = self._things.named("locations", options.location)
        place = self._driving.place()
        if place is not None and place.key:
            words[place.word] = {**words.get(place.word, {}), place.key: told}
        elif place is not None:
            words[place.word] = told
        return words


def refuse(driving: Driving, options: LibcloudSettings) -> None:
    """Raise Denied for a driver whose machines could not be had safely."""
    for says, remedy in troubles(driving, options):
        raise Denied(f"{options.driver}: {says}", remedy)


def troubles(driving: Driving, options: LibcloudSettings) -> list[tuple[str, str]]:
    """Return what a driver cannot do that is needed, each with its remedy."""
    found: list[tuple[str, str]] = []
    if options.driver in LATE_NAMES:
        found.append((LATE_NAME, "Use the provider that is made for this cloud."))
    if driving.place() is None:
        remedy = "Name the word that does as `user_data`, or another driver for the same cloud."
        found.append((NO_USER_DATA, remedy))
    absent = lacking(driving, options)
    if absent:
        says = f"its create_node wants {', '.join(absent)} too"
        found.append((says, "Say them in the table `create`, or `location` by its own key."))
    taken = driving.words_of("create_node")
    if taken and not {"name", "size", "image"} <= taken.keys():
        found.append(("its create_node does not take name, size and image", "Name another driver."))
    return found
