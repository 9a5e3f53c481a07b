#!/usr/bin/python3 -IS
"""Stands in for nvidia-ctk: tells Docker of the stand-in for NVIDIA's runtime."""

import json
import os
import sys
from typing import Any

DAEMON = "/etc/docker/daemon.json"
RUNTIME = "/usr/bin/nvidia-container-runtime"


def main(words: list[str]) -> int:
    """Do what is asked; 1 for what is not known here."""
    if words == ["--version"]:
        print("NVIDIA Container Toolkit CLI version 1.20.0 (a stand-in)")
        return 0
    if words[:2] != ["runtime", "configure"]:
        print(f"nvidia-ctk: the sandbox's stand-in does not know {words}", file=sys.stderr)
        return 1
    said: dict[str, Any] = {}
    if os.path.exists(DAEMON) and os.path.getsize(DAEMON):
        with open(DAEMON, encoding="utf-8") as file:
            said = json.load(file)
    said.setdefault("runtimes", {})["nvidia"] = {"path": RUNTIME, "args": []}
    said["default-runtime"] = "nvidia"  # it makes the device files; the hook alone cannot
    os.makedirs(os.path.dirname(DAEMON), exist_ok=True)
    with open(f"{DAEMON}.new", "w", encoding="utf-8") as file:
        json.dump(said, file, indent=4)
    os.replace(f"{DAEMON}.new", DAEMON)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
