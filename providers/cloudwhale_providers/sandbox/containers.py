"""What the jobs of a machine in the box leave at this host's Docker and in its control groups."""

import hashlib
import http.client
import json
import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from cloudwhale.model.units import Seconds

USUAL = "unix:///var/run/docker.sock"
ANSWERS_WITHIN_S: Seconds = 10.0
GROUPS = "/sys/fs/cgroup/"
HOME = "cloudwhale.home"
"""The label by which an agent's containers are known; its value comes from their folder."""


class _Unix(http.client.HTTPConnection):
    """A connection over the socket that Docker listens on."""

    def __init__(self, path: str) -> None:
        super().__init__("docker", timeout=ANSWERS_WITHIN_S)
        self._path = path

    def connect(self) -> None:
        """Open the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(ANSWERS_WITHIN_S)
        self.sock.connect(self._path)


def can_have_containers() -> bool:
    """Say whether jobs on machines of the box can run in containers: for root, with Docker.

    Another user's containers would outlive the machine's processes, and be root's.
    """
    return os.geteuid() == 0 and _asked("GET", "/images/json") is not None


def remove(home: Path) -> None:
    """Kill and remove the containers of a machine's jobs; Docker may be silent."""
    for attempts in sorted(home.glob("nodes/*/attempts")):
        label = f"{HOME}={hashlib.sha256(os.fsencode(attempts)).hexdigest()[:16]}"
        filters = quote(json.dumps({"label": [label]}))
        for one in _asked("GET", f"/containers/json?all=1&filters={filters}") or ():
            _asked("DELETE", f"/containers/{one['Id']}?force=1&v=1")


def remove_groups(home: Path) -> None:
    """Remove the control groups of a machine's jobs, of which no process is left."""
    for path in home.glob("nodes/*/attempts/*/*/pids.json"):
        for group in _groups(path):
            try:
                os.rmdir(group)
            except OSError:
                continue  # it is gone, or the kernel has not let go of its last process yet


def _groups(path: Path) -> Iterator[str]:
    try:
        groups: list[str] = json.loads(path.read_text())["groups"]
    except (OSError, ValueError, KeyError, TypeError):
        return  # no shim has said what it made
    yield from (group for group in groups if group.startswith(GROUPS))


def _asked(verb: str, what: str) -> Sequence[Any] | None:
    """Return the list that Docker answers, an empty one for nothing; None when it does not."""
    address = urlsplit(os.environ.get("DOCKER_HOST") or USUAL)
    if address.scheme != "unix":
        return None
    link = _Unix(address.path)
    try:
        link.request(verb, what)
        answer = link.getresponse()
        body = answer.read()
        if answer.status >= 300:
            return None
        found: list[Any] = json.loads(body) if body else []
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        link.close()
    return found
