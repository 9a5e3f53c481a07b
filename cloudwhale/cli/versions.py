"""The command `version`; apart, so that it costs no import of the database."""

import platform

from cloudwhale import __version__
from cloudwhale.cli.exits import Exit
from cloudwhale.cli.output import document_or
from cloudwhale.settings import default_home


def version(as_json: bool) -> int:
    """Say which version this is and where it keeps its state."""
    known = {
        "version": __version__,
        "python": platform.python_version(),
        "home": str(default_home()),
    }
    said = f"cloudwhale {known['version']}, Python {known['python']}, state in {known['home']}"
    document_or(as_json, lambda: known, lambda paper: paper.say(said))
    return Exit.DONE
