"""What lies over the image in all machines of a box: stand-ins for what hardware and systemd do."""

import os
from collections.abc import Mapping
from importlib.resources import files as resources
from pathlib import Path

_MACHINE = resources("cloudwhale_providers.sandbox.machine")
SERIAL = "ec2c1d3e-0000-4000-8000-c10d00a1e000"
"""Instances of EC2 have serials that begin with ec2: EC2 User Guide, "Detect EC2 instances"."""
LINKS: Mapping[str, str] = dict.fromkeys(
    ("usr/sbin/poweroff", "usr/sbin/halt", "usr/sbin/reboot"), "shutdown"
)


def files() -> dict[str, str]:
    """Return the files by path; those in `sbin` are programs."""
    return {
        "usr/sbin/cloudwhale-init": text("first_process.py"),
        "usr/sbin/shutdown": text("shutdown.sh"),
        "etc/cloud/cloud.cfg": text("cloud.cfg"),
        "etc/cloudwhale-machine/product_uuid": f"{SERIAL}\n",
        "etc/cloudwhale-machine/product_serial": f"{SERIAL}\n",
        "etc/cloudwhale-machine/sys_vendor": "Amazon EC2\n",
        "etc/resolv.conf": "",
    }


def write(root: Path) -> None:
    """Write them into a folder; raise OSError."""
    for name, text in files().items():
        put(root, name, text)
    for name, target in LINKS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).unlink(missing_ok=True)
        os.symlink(target, root / name)


def put(root: Path, name: str, text: str) -> None:
    """Write one file below a root, with its folders; programs can be run."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(0o755 if "bin" in path.parent.name else 0o644)


def text(name: str) -> str:
    """Return a file of the package that lies in machines."""
    return (_MACHINE / name).read_text()
