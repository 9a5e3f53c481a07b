"""Which image machines boot from: a public parameter of AWS names it; looked at once an hour."""

import re
from threading import Lock
from typing import Any, NamedTuple

from cloudwhale.model.units import GiB, Instant, Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import CloudwhaleError, Denied
from cloudwhale_providers.aws.asking import Calls, code_of


class Known(NamedTuple):
    """An image that first boots are written for."""

    parameter: str
    """Public parameter of AWS that names its newest AMI in each region."""
    python: str
    """Version of its `python3`, for which the agent's archive must hold packages."""
    user: str
    """Who may log in, for people that look at a machine."""


KNOWN = {
    "dlami-ubuntu-24.04": Known(
        "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
        "3.12", "ubuntu",
    ),
    "ubuntu-24.04": Known(
        "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
        "3.12", "ubuntu",
    ),
    "debian-12": Known("/aws/service/debian/release/12/latest/amd64", "3.11", "admin"),
}  # fmt: skip
"""By short name: AWS Deep Learning AMIs Developer Guide, "Find DLAMI ID by Systems Manager";
Ubuntu on AWS, "Find Ubuntu images on AWS"; Debian wiki, "Cloud/AmazonEC2Image/Bookworm".

The first has driver, Docker and nvidia-container-toolkit: its open kernel modules need GPUs from
Turing on, so P3 (V100) is not among its families. On the second they are installed at each first
boot. The third has no driver for GPUs.
"""
DEFAULT = "dlami-ubuntu-24.04"
PYTHONS = (
    (re.compile(r"ubuntu.*22\.04|jammy"), "3.10"),
    (re.compile(r"ubuntu.*24\.04|noble"), "3.12"),
    (re.compile(r"debian-?12|bookworm"), "3.11"),
)
"""How images call themselves, and the Python of such a release."""
HOLDS_S: Seconds = 3600.0  # a new one is published every few weeks
SETTING = "image"
ARCHITECTURE = "x86_64"


class Image(NamedTuple):
    """An AMI: what a launch must know of it."""

    id: str
    root_device: str
    """Name of its root disk, `/dev/sda1`."""
    least_gib: GiB
    """Size of its snapshot: a root disk that is smaller is refused."""
    python: str = ""
    """Version of its `python3`; empty: not known."""


class Images:
    """Finds the AMI of each region and keeps it for an hour; safe for several threads."""

    def __init__(self, calls: Calls, clock: Clock, named: str = DEFAULT) -> None:
        """Take what the setting names: a short name, a parameter, or an AMI's own id."""
        self._calls = calls
        self._clock = clock
        known = KNOWN.get(named)
        self._python = known.python if known else ""
        self._named = known.parameter if known else named
        self._known: dict[str, tuple[Instant, Image]] = {}
        self._lock = Lock()

    def image(self, region: str) -> Image:
        """Return the image; raise Denied, naming the parameter and the setting, or Unreachable."""
        now = self._clock.now()
        with self._lock:
            at, known = self._known.get(region, (float("-inf"), None))
        if known is not None and now - at < HOLDS_S:
            return known
        found = self._read(region)
        with self._lock:
            self._known[region] = (now, found)
        return found

    def _read(self, region: str) -> Image:
        ami = self._named if self._named.startswith("ami-") else self._parameter(region)
        try:
            answer = self._calls.call(region, "ec2", "describe_images", ImageIds=[ami])
        except CloudwhaleError as error:
            if not code_of(error).startswith("InvalidAMIID"):
                raise
            raise self._no_image(region, ami) from error
        images = answer.get("Images", ())
        if not images:
            raise self._no_image(region, ami)
        found = _image(images[0])
        python = self._python or python_of(f"{self._named} {images[0].get('Name', '')}")
        return found._replace(python=python)

    def _parameter(self, region: str) -> str:
        try:
            answer = self._calls.call(region, "ssm", "get_parameter", Name=self._named)
        except CloudwhaleError as error:
            if code_of(error) not in ("ParameterNotFound", "ParameterVersionNotFound"):
                raise
            raise Denied(
                f"{region} has no parameter {self._named}, which names the image of machines",
                f"Set `{SETTING}` in [clouds.aws] to {' or '.join(KNOWN)}, to a parameter that is "
                f"there, or to the id of an AMI; `aws ssm get-parameters-by-path --path "
                f"/aws/service/deeplearning/ami/{ARCHITECTURE} --recursive --region {region}` "
                f"lists those of AWS.",
            ) from error
        return str(answer["Parameter"]["Value"])

    def _no_image(self, region: str, ami: str) -> Denied:
        of = "" if ami == self._named else f", which {self._named} names,"
        return Denied(
            f"{region} has no image {ami}{of} that this account can see",
            f"Set `{SETTING}` in [clouds.aws] to another parameter, or to an AMI of {region}.",
        )


def python_of(called: str) -> str:
    """Return the Python of an image by what it is called; empty: that does not say."""
    word = called.lower()
    return next((python for pattern, python in PYTHONS if pattern.search(word)), "")


def _image(said: Any) -> Image:
    """Return an image as DescribeImages describes it; raise Denied for one that cannot boot."""
    ami, root = str(said["ImageId"]), str(said.get("RootDeviceName", ""))
    architecture = said.get("Architecture", ARCHITECTURE)
    if architecture != ARCHITECTURE:
        raise Denied(
            f"the image {ami} is for {architecture}; machines that are rented are {ARCHITECTURE}",
            f"Set `{SETTING}` in [clouds.aws] to an image for {ARCHITECTURE}.",
        )
    disks: dict[str, Any] = {
        disk["DeviceName"]: disk.get("Ebs") or {} for disk in said.get("BlockDeviceMappings", ())
    }
    if root not in disks:
        raise Denied(
            f"the image {ami} has no root disk of EBS",
            f"Set `{SETTING}` in [clouds.aws] to an image whose root device is a volume.",
        )
    return Image(ami, root, float(disks[root].get("VolumeSize") or 0))
