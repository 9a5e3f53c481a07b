"""Removes what ended attempts have left in their folders, once it is old or the disk is short."""

import shutil
from pathlib import Path

from cloudwhale.agent.attempts import ended_folders
from cloudwhale.model.units import Instant, Seconds

KEPT_S: Seconds = 7 * 24 * 3600.0  # a person may look for what a job left in its workdir
FREE_SHARE = 0.1  # with less of the disk free, the oldest go at once


def tidy(attempts: Path, now: Instant) -> int:
    """Remove what is old, then the oldest while the disk is short; return how many went.

    An attempt's order and its end stay until it is old: they say that it must not run again.
    """
    removed = 0
    for ended_at, folder in sorted(ended_folders(attempts)):
        if now - ended_at > KEPT_S:
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
        elif _is_short(attempts):
            removed += _emptied(folder)
        else:
            break
    return removed


def _is_short(folder: Path) -> bool:
    found = shutil.disk_usage(folder)
    return found.free < FREE_SHARE * found.total


def _emptied(folder: Path) -> int:
    big = [path for path in (folder / "work", folder / "checkpoints") if path.exists()]
    for path in big:
        shutil.rmtree(path, ignore_errors=True)
    return 1 if big else 0
