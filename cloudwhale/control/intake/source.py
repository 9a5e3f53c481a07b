"""The bytes of a job file as text; whatever is not one is refused before it is read."""

import re
import stat
from pathlib import Path

from cloudwhale.control.intake.tree import spot_of
from cloudwhale.control.intake.unfit import Unfit

# How JSON writes a character beyond U+FFFF; YAML knows other escapes for it.
_PAIR = re.compile(
    r"(?<!\\)((?:\\\\)*)((?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})+)"
)

FILE_MOST_BYTES = 5_000_000  # 1,000 jobs take some 0.3 MB


def body_of(path: Path) -> bytes:
    """Return a file's bytes; raise Unfit when it is none, too large, or cannot be read."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            kind = "is a folder" if stat.S_ISDIR(found.st_mode) else "is not a file"
            raise Unfit(f"{path} {kind}", "Name a job file.")
        if found.st_size > FILE_MOST_BYTES:
            raise Unfit(
                f"the file has {found.st_size / 1e6:.1f} MB and was not read: "
                f"a job file has {FILE_MOST_BYTES / 1e6:g} MB at most",
                "Is it a job file? Split it, or use `array`.",
            )
        return path.read_bytes()
    except FileNotFoundError as error:
        raise Unfit("there is no such file", "Look at the path.") from error
    except (OSError, ValueError) as error:
        says = getattr(error, "strerror", None) or str(error)
        raise Unfit(
            f"the file cannot be read: {says}", "Look at the path and its rights."
        ) from error


def text_of(body: bytes) -> str:
    """Return the text of UTF-8 bytes; raise Unfit with the place of what is not UTF-8."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = body[: error.start].decode("utf-8", errors="replace")
        raise Unfit(
            f"the byte 0x{body[error.start]:02x} is not UTF-8",
            "Save the file as UTF-8.",
            spot_of(before, len(before)),
        ) from error


def from_json(text: str) -> str:
    """Return JSON text as YAML understands it: pairs of escapes become the characters they mean."""
    return _PAIR.sub(lambda found: found[1] + _characters(found[2]), text)


def _characters(escapes: str) -> str:
    units = bytes.fromhex(escapes.replace("\\u", ""))
    return units.decode("utf-16-be")
