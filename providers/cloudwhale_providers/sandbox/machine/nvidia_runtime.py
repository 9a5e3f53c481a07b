#!/usr/bin/python3 -IS
"""Stands in for NVIDIA's container runtime: gives a container the device files that it asks for.

Before a container is made its configuration is changed; then runc does what it was told.
"""

import json
import os
import sys
from typing import Any

GPUS = "/etc/cloudwhale-machine/gpus"
MAJOR, FIRST_MINOR = 195, 128
"""As boot.sh makes them in the machine."""
NONE = ("", "void", "none")


def main(words: list[str]) -> int:
    """Become runc."""
    if "create" in words and "--bundle" in words:
        give(os.path.join(words[words.index("--bundle") + 1], "config.json"))
    os.execvp("runc", ["runc", *words])


def give(path: str) -> None:
    """Add the devices that a container's environment names to its configuration."""
    with open(path, encoding="utf-8") as file:
        config: dict[str, Any] = json.load(file)
    said = dict(word.partition("=")[::2] for word in config["process"].get("env") or ())
    numbers = wanted(said.get("NVIDIA_VISIBLE_DEVICES", ""))
    resources = config["linux"].setdefault("resources", {})
    for number in numbers:
        node = {"type": "c", "major": MAJOR, "minor": FIRST_MINOR + number}
        made = {**node, "path": f"/dev/nvidia{number}", "fileMode": 0o666, "uid": 0, "gid": 0}
        config["linux"].setdefault("devices", []).append(made)
        resources.setdefault("devices", []).append({**node, "allow": True, "access": "rw"})
    if numbers:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)


def wanted(said: str) -> list[int]:
    """Return the numbers of the GPUs that are meant: by number, by id, or all."""
    with open(GPUS, encoding="utf-8") as file:
        ids = [line.split("\t")[0] for line in file]
    if said in NONE:
        return []
    if said == "all":
        return list(range(len(ids)))
    named = {one: number for number, one in enumerate(ids)}
    named |= {str(number): number for number in range(len(ids))}
    return [named[one] for one in said.split(",") if one in named]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
