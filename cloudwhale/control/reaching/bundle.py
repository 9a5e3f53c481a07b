"""What is sent to another machine: one content-hashed archive of an agent and all it imports."""

import gzip
import hashlib
import io
import platform
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path, PurePosixPath

from cloudwhale.control.bundle_content import OURS, beside_us, package_files
from cloudwhale.control.bundle_distributions import belongs, closure
from cloudwhale.control.reaching.look import Look

Files = Mapping[str, Path]
"""Where each file comes from, by its path in site-packages."""


@dataclass(frozen=True)
class Package:
    """An archive to be sent."""

    kind: str
    """`bundle`, to be unpacked, or `wheel`, to be installed by pip."""
    name: str
    content: bytes
    """The archive; a bundle's is compressed only when it is sent, as it may lie there already."""

    @cached_property
    def folder(self) -> str:
        """Return the name of the folder that it is installed in: the same content, the same one."""
        return f"{self.kind}-{hashlib.sha256(self.content).hexdigest()[:16]}"

    @cached_property
    def body(self) -> bytes:
        """Return what is sent."""
        return _packed(self.content) if self.kind == "bundle" else self.content


def fits(seen: Look) -> bool:
    """Say whether what this Python has installed runs there as it is."""
    ours = (".".join(map(str, sys.version_info[:2])), platform.machine(), platform.libc_ver()[0])
    return ours == (seen.version, seen.machine, seen.libc.partition("-")[0])


def bundle() -> Package:
    """Return the agent with all it imports, as it is installed here."""
    return Package("bundle", "agent.tar.gz", _tar(agent_files(), beside_us()))


def agent_files() -> Files:
    """Return the files of the agent's packages; raise SettingsError when one is missing."""
    files = dict(package_files(OURS))
    for name in sorted(closure()):
        found = metadata.distribution(name)
        for entry in found.files or ():
            path = PurePosixPath(str(entry))
            source = Path(str(found.locate_file(entry)))
            if belongs(path) and source.is_file():
                files[str(path)] = source
    return files


def _tar(files: Files, beside: Mapping[str, bytes]) -> bytes:
    """Return an archive that depends on nothing but the files' names and contents."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        bodies = {path: source.read_bytes() for path, source in files.items()}
        bodies.update(beside)
        for path, body in sorted(bodies.items()):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(body), 0o644
            archive.addfile(entry, io.BytesIO(body))
    return packed.getvalue()


def _packed(body: bytes) -> bytes:
    # Level 6 takes a second more of CPU, and saves one MiB of twelve.
    return gzip.compress(body, compresslevel=1, mtime=0)
