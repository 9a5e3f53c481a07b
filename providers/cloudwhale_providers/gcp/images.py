"""Which image machines boot from: a family names it; looked at once an hour, and pinned then."""

import re
from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple

from cloudwhale.model.units import GiB, Instant, Seconds
from cloudwhale.spi.errors import CloudwhaleError, Denied
from cloudwhale_providers.gcp import names
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.asking import says_that_it_is_gone

DLVM = "deeplearning-platform-release"
"""Whose families are meant where a setting says no project."""
KNOWN = {
    "dlvm-ubuntu-24.04": (
        f"projects/{DLVM}/global/images/family/common-cu129-ubuntu-2404-nvidia-580"
    ),
    "dlvm-ubuntu-22.04": (
        f"projects/{DLVM}/global/images/family/common-cu129-ubuntu-2204-nvidia-580"
    ),
    "ubuntu-accelerator-24.04": (
        "projects/ubuntu-os-accelerator-images/global/images/family/"
        "ubuntu-accelerator-2404-amd64-with-nvidia-580"
    ),
    "ubuntu-24.04": "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64",
}
"""By short name: Deep Learning VM Images docs, "Choose an image"; Compute Engine docs, "Operating
system details".

The first two have driver, Docker and toolkit, the third the driver alone; what is missing is
installed at the first boot.
"""
WITH_GPUS, WITHOUT = "dlvm-ubuntu-24.04", "ubuntu-24.04"
PYTHONS = (
    (re.compile(r"ubuntu.*2204|jammy"), "3.10"),
    (re.compile(r"ubuntu.*2404|noble"), "3.12"),
    (re.compile(r"debian-?12|bookworm"), "3.11"),
)
"""How images call themselves, and the Python of such a release."""
HOLDS_S: Seconds = 3600.0  # a new one is published every few weeks
ARCHITECTURE = "X86_64"
FORM = re.compile(r"projects/([^/]+)/global/images/(family/)?([^/]+)")


class Image(NamedTuple):
    """An image: what a launch must know of it."""

    link: str
    """Names it, not its family: a launch that is repeated says the same."""
    least_gib: GiB
    """A boot disk that is smaller is refused."""
    python: str = ""
    """Version of its `python3`; empty: not known."""


class Images:
    """Finds the newest image of a family and keeps it for an hour; safe for several threads."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._known: dict[str, tuple[Instant, Image]] = {}
        self._lock = Lock()

    def named(self, has_gpus: bool) -> str:
        """Return the path of the image, or of its family, that machines are made from."""
        said = self._account.options.image or (WITH_GPUS if has_gpus else WITHOUT)
        return path_of(said)

    def image(self, has_gpus: bool) -> Image:
        """Return the image; raise Denied, naming it and the setting, or Unreachable."""
        path, now = self.named(has_gpus), self._account.clock.now()
        with self._lock:
            at, known = self._known.get(path, (float("-inf"), None))
        if known is not None and now - at < HOLDS_S:
            return known
        found = self._read(path)
        with self._lock:
            self._known[path] = (now, found)
        return found

    def forget(self) -> None:
        """Look again at the next launch: one is said to be gone."""
        with self._lock:
            self._known.clear()

    def _read(self, path: str) -> Image:
        form = FORM.fullmatch(path)
        if form is None:
            raise self._no_image(path, "is not the path of an image")
        project, family, name = form.groups()
        method, key = ("getFromFamily", "family") if family else ("get", "image")
        words: dict[str, Any] = {"project": project, key: name}
        try:
            said = self._account.calls.call("compute", f"images.{method}", **words)
        except CloudwhaleError as error:
            if not says_that_it_is_gone(error):
                raise
            raise self._no_image(path, "is not there, or this account may not see it") from error
        return self._image(path, said)

    def _image(self, path: str, said: Mapping[str, Any]) -> Image:
        architecture = said.get("architecture", ARCHITECTURE)
        if architecture != ARCHITECTURE:
            raise self._no_image(path, f"is for {architecture}, and machines are {ARCHITECTURE}")
        deprecated: Mapping[str, Any] = said.get("deprecated") or {}
        state = str(deprecated.get("state", ""))
        if state in ("OBSOLETE", "DELETED"):
            raise self._no_image(path, f"is {state.lower()}")
        project, name = path.split("/")[1], str(said["name"])
        python = python_of(f"{path} {name}")
        link = f"projects/{project}/global/images/{name}"
        return Image(link, float(said.get("diskSizeGb") or 0), python)

    def _no_image(self, path: str, says: str) -> Denied:
        return Denied(
            f"the image {path} {says}",
            f"Set `image` of [clouds.gcp] to {', '.join(KNOWN)}, or to "
            f"projects/PROJECT/global/images/family/FAMILY; `gcloud compute images list "
            f"--project={DLVM} --no-standard-images` lists those with drivers.",
        )


def path_of(said: str) -> str:
    """Return the path of what a setting names: a short name, a family, a path or a whole URL."""
    if said in KNOWN:
        return KNOWN[said]
    if "/" not in said:
        return f"projects/{DLVM}/global/images/family/{said}"
    _, found, rest = said.partition("projects/")
    return f"{found}{rest}" if found else said


def python_of(called: str) -> str:
    """Return the Python of an image by what it is called; empty: that does not say."""
    word = called.lower()
    return next((python for pattern, python in PYTHONS if pattern.search(word)), "")


def python_named(path: str) -> str:
    """Return the Python of an image that was not looked at; empty: its name does not say."""
    return python_of(names.last(path))
