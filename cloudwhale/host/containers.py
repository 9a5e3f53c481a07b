"""Whether Docker answers on this host, and which images lie here: standard library alone."""

import json
import os
import socket
from collections.abc import Iterable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from cloudwhale.model.units import Seconds
from cloudwhale.spi.provider import Check

USUAL = "unix:///var/run/docker.sock"
ANSWERS_WITHIN_S: Seconds = 2.0  # it takes milliseconds; one that hangs holds up an agent's start
READ_BYTES = 1 << 16


def docker_address() -> str:
    """Return where Docker listens: what DOCKER_HOST says, or the usual socket."""
    return os.environ.get("DOCKER_HOST") or USUAL


def images_here() -> tuple[str, ...] | None:
    """Return the images that lie here, as their owners write them; None: Docker does not answer.

    Only a socket is asked: a job's folders must be on the machine where its container runs.
    """
    found = answer("/images/json")
    return None if found is None else tuple(sorted(set(_names(found))))


def answer(question: str) -> list[dict[str, Any]] | None:
    """Return the list that Docker answers a path with; None when it does not."""
    address = urlsplit(docker_address())
    if address.scheme != "unix":
        return None
    try:
        found: object = json.loads(_got(address.path, question))
    except (OSError, ValueError):
        return None
    return cast(list[dict[str, Any]], found) if isinstance(found, list) else None


def runtimes(images: Iterable[str] | None) -> tuple[str, ...]:
    """Return how jobs can be run here, by what `images_here` has answered."""
    return ("process",) if images is None else ("process", "container")


def check_docker() -> Check:
    """Return the row of `doctor` about containers."""
    images = images_here()
    if images is not None:
        says = f"answers at {docker_address()}, {len(images)} images here"
        return Check(name="docker", state="ok", says=says)
    return Check(
        name="docker",
        state="warning",
        says=f"no answer at {docker_address()}: jobs with an `image` do not run here",
        remedy="Install and start Docker, and let this user reach its socket (group docker).",
    )


def _got(path: str, what: str) -> bytes:
    """Ask over a UNIX socket and return the answer's body; raise OSError or ValueError.

    By hand: importing an HTTP client takes longer than all else that a start asks of this host.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(ANSWERS_WITHIN_S)
        link.connect(path)
        link.sendall(f"GET {what} HTTP/1.0\r\nHost: docker\r\n\r\n".encode())
        answer = b""
        while piece := link.recv(READ_BYTES):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    if head.split()[1:2] != [b"200"]:
        raise ValueError("no such answer was expected")
    return body


def _names(found: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for image in found:
        names: list[str] = [*(image.get("RepoTags") or ()), *(image.get("RepoDigests") or ())]
        for name in names:
            if "<none>" not in name:
                yield name
