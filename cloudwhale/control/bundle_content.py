"""What lies in the agent's archive: our own packages, first boot's scripts, libraries."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata, util
from itertools import groupby
from pathlib import Path, PurePosixPath

from cloudwhale.control.bundle_distributions import Content, Files, Source, belongs

OURS = "cloudwhale"
ABOUT = "bundle.json"
GROUPS = ("cloudwhale.notices", "cloudwhale.stores")
"""The entry points that agents look for; all others are the controller's."""
ROOMS = ("agent", "host", "mailbox", "model", "spi")
MODULES = ("__init__.py", "clock.py", "plugins.py", "py.typed")
"""What of the house an agent may import, see the layers in pyproject.toml."""
BOOT = f"{OURS}/agent/boot/"
"""First boot's scripts stand at the archive's top: they run before Python is looked for."""
PYTHONS = ("3.11", "3.12")
"""Those of the images that machines boot from: Debian 12 has 3.11, Ubuntu 24.04 has 3.12."""


@dataclass(frozen=True, slots=True)
class Libraries:
    """Where each distribution comes from, for each Python that all of them were had for."""

    by_python: Mapping[str, Sequence[Source]]
    """All of a Python's, in the order of their names."""
    missing: Mapping[str, str]
    """Why a Python has none; a sentence."""


def package_files(package: str) -> Iterator[tuple[str, Path]]:
    """Return the files of an importable package, wherever it lies, by their path."""
    spec = util.find_spec(package)
    for root in () if spec is None else spec.submodule_search_locations or ():
        for source in sorted(Path(root).rglob("*")):
            path = PurePosixPath(package, source.relative_to(root).as_posix())
            if source.is_file() and belongs(path):
                yield str(path), source


def ours() -> Mapping[str, bytes]:
    """Return what of our packages travels, by its path in the archive.

    Read once, by whoever names the archive and by whoever writes it: an editable installation may
    change between the two.
    """
    return {path: file.read_bytes() for path, file in (*_house(), *_plugins())} | _about_us()


def beside_us() -> Mapping[str, bytes]:
    """Return what agents look for beside our package, by its path: plugins, and who names them."""
    found = {path: file.read_bytes() for path, file in _plugins()} | _about_us()
    return {path.removeprefix("lib/"): body for path, body in found.items()}


def _plugins() -> Iterator[tuple[str, Path]]:
    """Return who hears notices and knows stores: modules side by side, folders are for renting."""
    for package in sorted({point.module.split(".")[0] for point in _entry_points()} - {OURS}):
        for path, file in package_files(package):
            if path.count("/") == 1:
                yield f"lib/{path}", file


def _house() -> Iterator[tuple[str, Path]]:
    for path, file in package_files(OURS):
        room = path.split("/")[1]
        if path.startswith(BOOT):
            yield f"boot/{path.removeprefix(BOOT)}", file
        elif room in ROOMS or room in MODULES:
            yield f"lib/{path}", file


def _entry_points() -> Sequence[metadata.EntryPoint]:
    found = metadata.distribution(OURS).entry_points
    mine = (point for group in GROUPS for point in found.select(group=group))
    return sorted(mine, key=lambda point: (point.group, point.name))


def _about_us() -> dict[str, bytes]:
    """Return what is said of our own distribution: its version, and what agents look for."""
    version = metadata.distribution(OURS).version
    info = f"lib/{OURS}-{version}.dist-info"
    points = "".join(
        f"[{group}]\n" + "".join(f"{one.name} = {one.value}\n" for one in these)
        for group, these in groupby(_entry_points(), key=lambda point: point.group)
    )
    said = f"Metadata-Version: 2.1\nName: {OURS}\nVersion: {version}\n"
    return {
        f"{info}/METADATA": said.encode(),
        f"{info}/entry_points.txt": points.encode(),
    }


def content(own: Mapping[str, bytes], libraries: Libraries) -> Files:
    """Return all files of an archive in their order; what is said of it is the first."""
    placed: dict[str, Content] = {path: _constantly(body) for path, body in own.items()}
    for python, sources in libraries.by_python.items():
        for source in sources:
            for path, body in source.files().items():
                placed[f"{_folder(source, python)}/{path}"] = body
    about = json.dumps(_about(libraries), indent=1, sort_keys=True)
    return {ABOUT: _constantly(about.encode()), **dict(sorted(placed.items()))}


def _constantly(body: bytes) -> Content:
    return lambda: body


def _folder(source: Source, python: str) -> str:
    """Return where a distribution lies: once, where one form of it runs on every Python."""
    if all(source.runs_on(each) for each in PYTHONS):
        return "lib"
    return f"lib-cp{python.replace('.', '')}"


def _about(libraries: Libraries) -> Mapping[str, object]:
    sources = [source for each in libraries.by_python.values() for source in each]
    return {
        "version": metadata.distribution(OURS).version,
        "pythons": list(libraries.by_python),
        "missing": dict(libraries.missing),
        "distributions": {source.name: source.version for source in sources},
    }
