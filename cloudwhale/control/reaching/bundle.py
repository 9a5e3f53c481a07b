"""What is sent to another machine: one content-hashed archive of an agent and all it imports."""

import gzip
import hashlib
import io
import platform
import re
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata, util
from pathlib import Path, PurePosixPath

from cloudwhale.control.reaching.look import Look
from cloudwhale.spi.errors import SettingsError

OURS = "cloudwhale"
NEEDED = (
    "pydantic", "obstore", "pynacl", "inotify-simple", "psutil", "nvidia-ml-py", "docker",
    "platformdirs",
)  # fmt: skip
"""What an agent imports; of the controller's packages it needs neither database nor numpy."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")

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
    return Package("bundle", "agent.tar.gz", _tar(agent_files()))


def agent_files() -> Files:
    """Return the files of the agent's packages; raise SettingsError when one is missing."""
    files = dict(package_files(OURS))
    for name in sorted(_closure()):
        found = metadata.distribution(name)
        for entry in found.files or ():
            path = PurePosixPath(str(entry))
            source = Path(str(found.locate_file(entry)))
            if _belongs(path) and source.is_file():
                files[str(path)] = source
    return files


def package_files(package: str) -> Iterator[tuple[str, Path]]:
    """Return the files of an importable package, wherever it lies."""
    spec = util.find_spec(package)
    for root in () if spec is None else spec.submodule_search_locations or ():
        for source in sorted(Path(root).rglob("*")):
            path = PurePosixPath(package, source.relative_to(root).as_posix())
            if source.is_file() and _belongs(path):
                yield str(path), source


def _belongs(path: PurePosixPath) -> bool:
    return ".." not in path.parts and "__pycache__" not in path.parts and path.suffix != ".pyc"


def _closure() -> set[str]:
    """Return the names of the distributions that an agent needs, as far as they are here."""
    found: set[str] = set()
    ahead: list[str] = [*NEEDED]
    while ahead:
        name = ahead.pop().lower().replace("_", "-")
        if name in found:
            continue
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError as error:
            if name in NEEDED:
                raise SettingsError(
                    f"{name}, which an agent needs, is not installed here", "Install it by pip."
                ) from error
            continue  # for another system, or another Python
        found.add(name)
        for requirement in requires:
            wanted = _NAME.match(requirement)
            if wanted and "extra ==" not in requirement:
                ahead.append(wanted[0])
    return found


def _tar(files: Files) -> bytes:
    """Return an archive that depends on nothing but the files' names and contents."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, source in sorted(files.items()):
            body = source.read_bytes()
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(body), 0o644
            archive.addfile(entry, io.BytesIO(body))
    return packed.getvalue()


def _packed(body: bytes) -> bytes:
    # Level 6 takes a second more of CPU, and saves one MiB of twelve.
    return gzip.compress(body, compresslevel=1, mtime=0)
