"""Where in its file a job asks for what nobody has."""

from pathlib import Path

from cloudwhale.control.intake.tree import Entry, Items, Node, Scalar, Section, parse
from cloudwhale.control.intake.unfit import Spot, Unfit

ASKING = ("resources", "where", "market", "mounts", "image", "nodes", "gpu_mem_needed", "command")
"""Keys that can ask for too much, the likeliest first."""


def spot_of_job(path: Path, name: str) -> Spot | None:
    """Return where the job of a file that was read before says what it needs, if that is found."""
    try:
        root = parse(path.read_text(encoding="utf-8-sig"))
    except (OSError, Unfit):
        return None  # it has changed since it was read
    section = _section_of(root, name)
    if section is None:
        return None
    for key in ASKING:
        if key in section.entries:
            return section.entries[key].key
    return section


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
