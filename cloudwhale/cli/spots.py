"""Where in its file a job asks for what nobody has."""

from collections.abc import Iterator
from pathlib import Path

from cloudwhale.control.intake.tree import Entry, Items, Node, Scalar, Section, parse
from cloudwhale.control.intake.unfit import Spot, Unfit
from cloudwhale.spi.errors import NotThere, SpecError

ASKING = ("resources", "where", "market", "mounts", "image", "nodes", "gpu_mem_needed", "command")
"""Keys that can ask for too much, the likeliest first."""


def spot_of_job(path: Path, name: str) -> Spot | None:
    """Return where the job of a file that was read before says what it needs, if that is found."""
    root = _tree(path)
    section = None if root is None else _section_of(root, name)
    if section is None:
        return None
    for key in ASKING:
        if key in section.entries:
            return section.entries[key].key
    return section


def in_its_place(error: NotThere, path: Path) -> SpecError:
    """Return an error with the line of the file that names what is not there, if it is found."""
    spot = _spot_of_word(path, error.key, error.word)
    return SpecError(
        error.says,
        error.remedy,
        file=str(path),
        line=spot.line if spot else None,
        column=spot.column if spot else None,
    )


def _spot_of_word(path: Path, key: str, word: str) -> Spot | None:
    root = _tree(path)
    for section in _sections(root):
        if key in section.entries:
            value = section.entries[key].value
            words = value.items if isinstance(value, Items) else (value,)
            for each in words:
                if isinstance(each, Scalar) and each.text == word:
                    return each
    return None


def _tree(path: Path) -> Node | None:
    """Return the tree of a file that was read before; None when it has changed since."""
    try:
        return parse(path.read_text(encoding="utf-8-sig"))
    except (OSError, Unfit):
        return None


def _sections(node: Node | None) -> Iterator[Section]:
    """Yield every section at or below a node, in the order of the file."""
    if isinstance(node, Section):
        yield node
        for entry in node.entries.values():
            yield from _sections(entry.value)
    elif isinstance(node, Items):
        for item in node.items:
            yield from _sections(item)


def _section_of(root: Node, name: str) -> Section | None:
    if isinstance(root, Section) and "jobs" not in root.entries:
        return root
    listed: Node | None = root
    if isinstance(root, Section):
        listed = root.entries["jobs"].value
    if not isinstance(listed, Items):
        return None
    sections = [item for item in listed.items if isinstance(item, Section)]
    return next((each for each in sections if _is_named(each, name)), None)


def _is_named(section: Section, name: str) -> bool:
    found: Entry | None = section.entries.get("name") or section.entries.get("id")
    return found is not None and isinstance(found.value, Scalar) and found.value.text == name
