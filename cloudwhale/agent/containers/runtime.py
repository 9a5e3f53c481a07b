"""Containers as a runtime: which shim starts them, and how those that lost theirs are removed."""

import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.containers.client import DockerTrouble, NotThere, docker_client
from cloudwhale.agent.containers.settings import ATTEMPT, HOME, JOB, home_of, labels_of
from cloudwhale.host.containers import answer
from cloudwhale.model.units import Seconds

SHIM = "cloudwhale.agent.containers.shim"
ANSWERS_WITHIN_S: Seconds = 10.0


class Containers:
    """Runs a job in a container of its image; see `spi/runtime`."""

    name = "container"

    def shim(self, folder: str) -> list[str]:
        """Return the command that runs a shim for an attempt's folder."""
        return [sys.executable, "-P", "-m", SHIM, folder]

    def passed_on(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Return our language and user name; where programs lie, the image says.

        Programs that ask who they are would fail for a user that the image does not know.
        """
        return {name: ours[name] for name in ("LANG", "USER") if name in ours}

    def unmountable(self, mounts: Mapping[str, str]) -> str:
        """Say which host path is not here, or is the door of a service such as Docker's own."""
        for host in mounts:
            if not os.path.exists(host):
                return f"{host} is not on this machine"
            if stat.S_ISSOCK(os.stat(host).st_mode):
                return f"{host} is a socket: whoever talks to Docker is root on this machine"
        return ""


def marked(folder: AttemptFolder) -> bool:
    """Say whether a container may have been made for an attempt."""
    return (folder.path / "container.json").exists()


def remove(folder: AttemptFolder) -> bool:
    """Kill and remove an attempt's container; False when Docker did not say that it is gone."""
    labels = [f"{name}={value}" for name, value in labels_of(folder.path).items()]
    try:
        with docker_client(ANSWERS_WITHIN_S) as client:
            for one in client.containers(all=True, filters={"label": labels}):
                with suppress(NotThere):
                    client.remove_container(one["Id"], force=True, v=True)
    except DockerTrouble:
        return False
    return True


def sweep(attempts: Path) -> int:
    """Remove the containers of attempts that are over, or unknown; return how many went.

    A shim that could not reach Docker at the end has left one, and so has one that was killed
    while Docker made its container.
    """
    left = list(_left(attempts))
    if not left:
        return 0
    try:
        with docker_client(ANSWERS_WITHIN_S) as client:
            for container in left:
                with suppress(NotThere):
                    client.remove_container(container, force=True, v=True)
    except DockerTrouble:
        return 0  # tried again in an hour
    return len(left)


def _left(attempts: Path) -> Iterator[str]:
    """Return the containers that nobody needs; asked without the SDK, as there mostly are none."""
    wanted = quote(json.dumps({"label": [f"{HOME}={home_of(attempts)}"]}))
    for one in answer(f"/containers/json?all=1&filters={wanted}") or ():
        folder = _folder(attempts, one.get("Labels") or {})
        if folder is None or _is_over(folder):
            yield str(one["Id"])


def _folder(attempts: Path, labels: Mapping[str, str]) -> AttemptFolder | None:
    job, attempt = labels.get(JOB, ""), labels.get(ATTEMPT, "")
    return AttemptFolder(attempts, (job, int(attempt))) if job and attempt.isdecimal() else None


def _is_over(folder: AttemptFolder) -> bool:
    if folder.shim_lives():
        return False
    return folder.has_ended or folder.exit() is not None or not folder.is_known
