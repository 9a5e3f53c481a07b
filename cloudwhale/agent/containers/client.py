"""The door to Docker: a client with a time limit, and what goes wrong there in our own words."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, cast

from cloudwhale.host.containers import docker_address
from cloudwhale.model.job import Ending
from cloudwhale.model.units import Seconds

ANSWERS_WITHIN_S: Seconds = 60.0  # to make and start a container on a busy disk takes seconds


class Docker(Protocol):
    """What is asked of the SDK's client; its own types leave most answers open."""

    def info(self) -> dict[str, Any]:
        """Return what Docker says of itself."""
        ...

    def create_host_config(self, **given: Any) -> dict[str, Any]:
        """Return what a container gets of this machine, in Docker's words."""
        ...

    def create_container(self, **given: Any) -> dict[str, Any]:
        """Make a container."""
        ...

    def start(self, container: str) -> None:
        """Start a container."""
        ...

    def inspect_container(self, container: str) -> dict[str, Any]:
        """Return all that is known of a container."""
        ...

    def logs(self, container: str, *, tail: int) -> bytes:
        """Return the last lines that its own programs wrote."""
        ...

    def containers(
        self, *, all: bool, filters: Mapping[str, Sequence[str]]
    ) -> list[dict[str, Any]]:
        """Return containers, those that do not run too."""
        ...

    def remove_container(self, container: str, *, v: bool, force: bool) -> None:
        """Kill and remove a container with its anonymous volumes."""
        ...

    def inspect_image(self, image: str) -> dict[str, Any]:
        """Return all that is known of an image that lies here."""
        ...

    def pull(self, image: str, *, stream: bool, decode: bool) -> Iterator[dict[str, Any]]:
        """Fetch an image with the user's login; yield what is said of its progress."""
        ...


class DockerTrouble(Exception):
    """Docker did not do it; `how` is what an attempt's end for that reason is called."""

    def __init__(self, how: Ending, says: str) -> None:
        super().__init__(says)
        self.how: Ending = how
        self.says = says


class DockerSilent(DockerTrouble):
    """Docker does not answer: it may or may not have done what it was asked for."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            "start-failed", f"Docker does not answer at {docker_address()}: {_short(str(error))}"
        )


class NotThere(DockerTrouble):
    """Docker knows no such container or image."""

    def __init__(self, says: str) -> None:
        super().__init__("start-failed", says)


@contextmanager
def docker_client(within_s: Seconds = ANSWERS_WITHIN_S) -> Generator[Docker, None, None]:
    """Give a client for a while; whatever fails inside is raised as DockerTrouble.

    The SDK is imported here: it takes as long as all else that an agent imports.
    """
    import docker
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException

    try:
        client = docker.from_env(timeout=int(within_s))
        try:
            yield cast(Docker, client.api)
        finally:
            client.close()
    except APIError as error:
        raise trouble(_explanation(error)) from error
    except (DockerException, RequestException, ConnectionError, TimeoutError) as error:
        raise DockerSilent(error) from error


def trouble(text: str) -> DockerTrouble:
    """Return what Docker's own words about a container mean for an attempt."""
    low = text.lower()
    if "could not select device driver" in low or "unknown runtime" in low or "cdi" in low.split():
        return DockerTrouble(
            "no-gpus",
            f"Docker here cannot give GPUs to containers ({_short(text)}); install"
            " nvidia-container-toolkit, run `nvidia-ctk runtime configure`, restart Docker",
        )
    if "nvidia-container-cli" in low or "nvidia-container-runtime" in low:
        lost = "unknown device" in low or "device is lost" in low
        return DockerTrouble("device-lost" if lost else "no-gpus", _short(text))
    if "no space left on device" in low:
        return DockerTrouble("disk-full", _short(text))
    if "no such container" in low or "no such image" in low:
        return NotThere(_short(text))
    return DockerTrouble("start-failed", f"Docker says: {_short(text)}")


def _explanation(error: Exception) -> str:
    said: object = getattr(error, "explanation", None) or str(error)
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _short(text: str) -> str:
    """Return a text in one line that a person can read."""
    return " ".join(text.split())[-400:]
