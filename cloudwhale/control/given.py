"""Commands that sentences name, as they have to be given where this one was: in the sandbox."""

import os
import re

ASKED = "CLOUDWHALE_SANDBOX"  # the option puts it there, for all that a command starts
WITHOUT = frozenset({"agent", "simulate", "catalog", "offers", "version", "sandbox"})
"""Commands to which the sandbox would mean nothing."""
_COMMAND = re.compile(r"`cloudwhale ([a-z]+)([^`]*)`")


def as_given_here(text: str) -> str:
    """Return a text whose commands lead where this one is: with --sandbox, where that was said."""
    if os.environ.get(ASKED) != "true" or "`cloudwhale " not in text:
        return text
    return _COMMAND.sub(_with_option, text)


def _with_option(found: re.Match[str]) -> str:
    name, rest = found[1], found[2]
    if name in WITHOUT or "--sandbox" in rest:
        return found[0]
    before, dashes, command = rest.partition(" -- ")  # what stands behind is another's command
    return f"`cloudwhale {name}{before} --sandbox{dashes}{command}`"
