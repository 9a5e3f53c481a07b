"""The images that machines boot from, by project and family."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cloudwhale_providers.sandbox.compute.calls import Call, Does
from cloudwhale_providers.sandbox.compute.catalogue import MADE
from cloudwhale_providers.sandbox.compute.lists import listed
from cloudwhale_providers.sandbox.compute.refused import invalid, not_found
from cloudwhale_providers.sandbox.compute.wording import Words, fingerprint, link, number, path_of

VERSION = "v20261105"
FAMILIES: Mapping[str, Mapping[str, int]] = {
    "deeplearning-platform-release": {
        "common-cu129-ubuntu-2204-nvidia-580": 50, "common-cu129-ubuntu-2404-nvidia-580": 50,
        "common-cu128-ubuntu-2204-nvidia-570": 50, "common-cpu-ubuntu-2204": 50,
    },
    "ml-images": {
        "common-cu129-ubuntu-2204-nvidia-580": 50, "common-cu129-ubuntu-2404-nvidia-580": 50,
    },
    "ubuntu-os-cloud": {
        "ubuntu-2204-lts": 10, "ubuntu-2404-lts-amd64": 10, "ubuntu-minimal-2404-lts-amd64": 10,
    },
    "ubuntu-os-accelerator-images": {
        "ubuntu-accelerator-2404-amd64-with-nvidia-580": 20,
        "ubuntu-accelerator-2404-amd64-with-nvidia-570": 20,
    },
    "debian-cloud": {"debian-12": 10},
}  # fmt: skip
"""By project: families, and the size of their newest image in GB."""


@dataclass(frozen=True, slots=True)
class Image:
    """One image."""

    project: str
    family: str
    gib: int

    @property
    def path(self) -> str:
        """Return what its link names."""
        return f"projects/{self.project}/global/images/{self.family}-{VERSION}"

    def words(self) -> Words:
        """Return it as it is listed."""
        return {
            "kind": "compute#image", "id": number(self.path), "creationTimestamp": MADE,
            "name": f"{self.family}-{VERSION}", "family": self.family, "status": "READY",
            "diskSizeGb": str(self.gib), "archiveSizeBytes": str(self.gib << 28),
            "sourceType": "RAW", "architecture": "X86_64", "selfLink": link(self.path),
            "labelFingerprint": fingerprint({}),
        }  # fmt: skip


class Images:
    """Answers the methods of images."""

    def __init__(self, are_there: bool) -> None:
        """`are_there`: whether the families still are."""
        self._families: Mapping[str, Mapping[str, int]] = FAMILIES if are_there else {}

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method."""
        return {
            "compute.images.get": self.get,
            "compute.images.getFromFamily": self.get_from_family,
            "compute.images.list": self.list,
        }

    def get(self, call: Call) -> Words:
        """Return an image by name; raise Refused."""
        return self._by_name(call.path["project"], call.path["image"]).words()

    def get_from_family(self, call: Call) -> Words:
        """Return the newest image of a family; raise Refused."""
        return self._newest(call.path["project"], call.path["family"]).words()

    def list(self, call: Call) -> Words:
        """Return the images of a project."""
        families = self._families.get(call.path["project"], {})
        found = [Image(call.path["project"], *one).words() for one in families.items()]
        return listed(call, "image", found)

    def named(self, said: str, where: str) -> Image:
        """Return the image that a disk is made from, by link, path or family; raise Refused."""
        parts = path_of(said).split("/")
        field = f"{where}.initializeParams.sourceImage"
        if len(parts) < 4 or parts[0] != "projects" or parts[2:4] != ["global", "images"]:
            raise invalid(field, said, "The URL is malformed.")
        read: Callable[[str, str], Image] = self._by_name
        if len(parts) > 5 and parts[4] == "family":
            read = self._newest
        return read(parts[1], parts[-1])

    def _newest(self, project: str, family: str) -> Image:
        gib = self._families.get(project, {}).get(family)
        if gib is None:
            raise not_found(f"projects/{project}/global/images/family/{family}")
        return Image(project, family, gib)

    def _by_name(self, project: str, name: str) -> Image:
        family = name.removesuffix(f"-{VERSION}")
        gib = self._families.get(project, {}).get(family)
        if gib is None or family == name:
            raise not_found(f"projects/{project}/global/images/{name}")
        return Image(project, family, gib)
