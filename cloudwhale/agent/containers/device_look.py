"""Asks the kernel, from inside a control group, which devices its members may open.

Run as `python -I -S device_look.py PROCS DEVICE…`: becomes a member by the group's file of
processes, and prints those that cannot be opened there, and could before. Nothing is opened, which
would wake a sleeping GPU: the kernel asks a group's rules for access(2) too (`inode_permission`).
"""

from __future__ import annotations

import os
import sys


def main(procs: str, devices: list[str]) -> int:
    """Print one device a line; fail when this process cannot become a member."""
    open_outside = [one for one in devices if os.access(one, os.R_OK | os.W_OK)]
    with open(procs, "w") as file:
        file.write("0")
    for one in open_outside:
        if not os.access(one, os.R_OK | os.W_OK):
            print(one)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
