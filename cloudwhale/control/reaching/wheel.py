"""Our own wheel, made from what is installed: for machines whose Python differs from this one."""

import base64
import hashlib
import io
import zipfile
from importlib import metadata

from cloudwhale.control.bundle_content import OURS, package_files
from cloudwhale.control.reaching.bundle import Package

PACKAGES = ("cloudwhale", "cloudwhale_providers", "cloudwhale_policies")
FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # the least that a zip archive can say


def wheel() -> Package:
    """Return our wheel; the same files give the same one."""
    found = metadata.distribution(OURS)
    info = f"{OURS}-{found.version}.dist-info"
    files = {path: source.read_bytes() for name in PACKAGES for path, source in package_files(name)}
    files[f"{info}/METADATA"] = _described(found).encode()
    files[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: cloudwhale\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    files[f"{info}/entry_points.txt"] = (found.read_text("entry_points.txt") or "").encode()
    record = [_row(path, body) for path, body in sorted(files.items())]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    return Package("wheel", f"{OURS}-{found.version}-py3-none-any.whl", _zip(files))


def _described(found: metadata.Distribution) -> str:
    """Return the metadata without what only an editable install needs."""
    lines = (found.read_text("METADATA") or "").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("Requires-Dist: editables"))


def _row(path: str, body: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(body)}"


def _zip(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, body in sorted(files.items()):
            entry = zipfile.ZipInfo(path, FIRST_DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, body)
    return packed.getvalue()
