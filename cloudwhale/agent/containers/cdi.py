"""Which of a job's GPUs Docker can give by their names in CDI, the Container Device Interface."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

KIND = "nvidia.com/gpu"


def cdi_devices(gpus: Sequence[str], here: Mapping[str, Any]) -> list[str]:
    """Return their names in CDI; empty when Docker does not know each of them.

    `here`: what `docker info` says. From API 1.51 on it lists the devices; from Docker 25 on it
    says where their specifications lie, if it reads them at all; before, it knows none
    (docs.docker.com "CDI devices").
    """
    names = [f"{KIND}={one}" for one in gpus]
    listed = here.get("DiscoveredDevices")
    if listed is not None:
        known = {str(one.get("ID")) for one in listed if one.get("Source") == "cdi"}
        return names if known.issuperset(names) else []
    texts = list(_specifications(here.get("CDISpecDirs") or ()))
    return names if all(any(one in text for text in texts) for one in gpus) else []


def _specifications(folders: Sequence[str]) -> Iterator[str]:
    """Return the texts of those of NVIDIA; a file that cannot be read names no device."""
    for folder in folders:
        for path in sorted(Path(folder).glob("*")):
            if path.suffix not in (".json", ".yaml", ".yml"):
                continue
            try:
                text = path.read_text(errors="replace")
            except OSError:
                continue
            if KIND in text:
                yield text
