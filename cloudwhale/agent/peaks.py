"""The most that an attempt has used, kept in its folder for an agent that starts again."""

from pathlib import Path

from pydantic import ValidationError

from cloudwhale.agent.place import write_whole
from cloudwhale.model.job import Peaks

NAME = "peaks.json"


def keep(folder: Path, peaks: Peaks) -> None:
    """Remember an attempt's peaks; on a full disk they are forgotten with the agent."""
    try:
        write_whole(folder / NAME, peaks.model_dump_json())
    except OSError:
        pass


def kept(folder: Path) -> Peaks:
    """Return what is remembered of an attempt's peaks; nothing when that cannot be read."""
    try:
        return Peaks.model_validate_json((folder / NAME).read_bytes())
    except (OSError, ValidationError):
        return Peaks()
