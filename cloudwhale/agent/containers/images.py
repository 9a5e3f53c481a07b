"""Fetches container images: asked for once, with progress, and a no that says what to do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cloudwhale.agent.containers.client import Docker, DockerTrouble, NotThere, docker_client
from cloudwhale.agent.containers.pulling import Pull, Stalled, Unwanted
from cloudwhale.clock import wait
from cloudwhale.model.units import Seconds
from cloudwhale.spi.clock import Clock

TRIES = 4
TRY_AGAIN_S: Seconds = 3.0  # twice as long each time: a registry that restarts is back in seconds
SAY_EVERY_S: Seconds = 5.0
BYTES_PER_MIB = 2**20
REFUSALS = (
    "access denied", "unauthorized", "authentication required", "no basic auth", "forbidden",
    "denied:", "incorrect username", "manifest unknown", "manifest for", "name unknown",
    "not found", "no such image", "invalid reference", "no matching manifest",
    "credentials store", "does not exist",
)  # fmt: skip
"""Words of registries and of Docker that no second try will change."""
LOGIN = ("access denied", "unauthorized", "auth", "forbidden", "denied", "login", "credentials")
HUB = "docker.io"


@dataclass(frozen=True, slots=True)
class Fetching:
    """Who wants an image, and how that is told."""

    image: str
    clock: Clock
    say: Callable[[str], object]
    """Takes a line of progress."""
    wanted: Callable[[], bool] = lambda: True
    """Whether anybody still waits for it."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What it took to fetch an image."""

    seconds: Seconds
    size_bytes: int
    """As it came over the network; of layers that were here already, none."""


class ImageRefused(DockerTrouble):
    """There is no such image, or it needs a login; no second try changes that."""

    def __init__(self, image: str, words: str) -> None:
        registry = registry_of(image)
        words = " ".join(words.split())[-300:]
        if any(word in words.lower() for word in LOGIN):
            todo = f"check its name; a private one needs `docker login {registry}` on this machine"
        else:
            todo = "check its name and tag"
        super().__init__("image-refused", f"the image {image} cannot be had: {words}; {todo}")


def fetch(fetching: Fetching) -> Fetched | None:
    """Make sure that an image is here; None: it was, and no registry was asked.

    Raise ImageRefused, or DockerTrouble when it could not be fetched again and again, stalled, or
    nobody waits for it any more: that is seen within a second.
    """
    for number in range(TRIES):
        try:
            with docker_client() as client:
                if _is_here(fetching.image, client):
                    return None
            return _pulled(fetching)
        except DockerTrouble as trouble:
            if _is_refusal(trouble):
                raise ImageRefused(fetching.image, trouble.says) from trouble
            if _is_final(trouble) or number == TRIES - 1 or not fetching.wanted():
                raise DockerTrouble(
                    trouble.how, f"the image {fetching.image} could not be fetched: {trouble.says}"
                ) from trouble
            fetching.say(f"{trouble.says}; asked again soon")
        wait(TRY_AGAIN_S * 2**number)
    return None


def registry_of(image: str) -> str:
    """Return the registry that an image's name leads to."""
    first, slash, _ = image.partition("/")
    named = slash and ("." in first or ":" in first or first == "localhost")
    return first if named else HUB


def _is_here(image: str, client: Docker) -> bool:
    from docker.errors import ImageNotFound

    try:
        client.inspect_image(image)
    except ImageNotFound:
        return False
    return True


def _is_refusal(trouble: DockerTrouble) -> bool:
    low = trouble.says.lower()
    return isinstance(trouble, NotThere) or any(word in low for word in REFUSALS)


def _is_final(trouble: DockerTrouble) -> bool:
    """Say whether another try is of no use now: what stalls would stall again."""
    return trouble.how == "disk-full" or isinstance(trouble, Stalled | Unwanted)


def _pulled(fetching: Fetching) -> Fetched:
    began = fetching.clock.steady()
    fetching.say(f"fetching the image {fetching.image}")
    layers = _Layers()
    said_at = began
    for line in Pull(fetching.image, fetching.clock).progress(fetching.wanted):
        layers.hear(line)
        now = fetching.clock.steady()
        if now - said_at >= SAY_EVERY_S:
            said_at = now
            fetching.say(f"fetching the image {fetching.image}: {layers.said()}")
    fetched = Fetched(fetching.clock.steady() - began, layers.total())
    fetching.say(f"fetched the image {fetching.image} in {fetched.seconds:.1f} s")
    return fetched


class _Layers:
    """How far each layer of an image is."""

    def __init__(self) -> None:
        self._have: dict[str, int] = {}
        self._size: dict[str, int] = {}

    def hear(self, line: Mapping[str, Any]) -> None:
        """Take one line of progress; raise DockerTrouble for one that says it failed."""
        if "error" in line:
            raise DockerTrouble("start-failed", str(line["error"]))
        detail: Mapping[str, Any] = line.get("progressDetail") or {}
        if line.get("status") == "Downloading" and detail.get("total"):
            layer = str(line.get("id"))
            self._have[layer], self._size[layer] = int(detail["current"]), int(detail["total"])
        elif line.get("status") in ("Download complete", "Pull complete"):
            layer = str(line.get("id"))
            self._have[layer] = self._size.get(layer, self._have.get(layer, 0))

    def total(self) -> int:
        """Return how many bytes come over the network."""
        return sum(self._size.values())

    def said(self) -> str:
        """Return how far it is, in words."""
        have, size = sum(self._have.values()) / BYTES_PER_MIB, self.total() / BYTES_PER_MIB
        return f"{have:.0f} of {size:.0f} MiB so far"
