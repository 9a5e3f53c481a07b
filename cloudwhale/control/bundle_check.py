"""The row of `doctor` for the agent's archive: it is made, and what it lacks is said."""

from pathlib import Path

from cloudwhale.control.bundle import Bundle, made
from cloudwhale.control.bundle_content import PYTHONS
from cloudwhale.control.saying import Say
from cloudwhale.spi.errors import Denied
from cloudwhale.spi.provider import Check

NAME = "bundle"


def check(say: Say, folder: Path | None = None) -> Check:
    """Make the archive unless there is one; takes seconds the first time, `say` is then told."""
    try:
        found = made(folder, say)
    except Denied as error:
        return Check(name=NAME, state="failed", says=error.says, remedy=error.remedy)
    size = f"{found.size_bytes / 2**20:.1f} MiB"
    if not found.missing:
        says = f"what machines fetch at boot has {size}, for Python {' and '.join(found.pythons)}"
        return Check(name=NAME, state="ok", says=says)
    return Check(name=NAME, state="warning", says=_lacking(found, size), remedy=_remedy(found))


def _lacking(found: Bundle, size: str) -> str:
    return f"what machines fetch at boot has {size}; {'; '.join(found.missing)}"


def _remedy(found: Bundle) -> str:
    lost = " or ".join(python for python in PYTHONS if python not in found.pythons)
    return (
        f"Images with Python {lost} are refused until then. Let `pip download` reach a package "
        "index once; what it has fetched is kept."
    )
