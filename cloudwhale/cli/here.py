"""Commands that sentences name, as they have to be given where this one was: in the sandbox."""

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudwhale.model.reason import Reason
    from cloudwhale.model.receipt import RunReceipt
    from cloudwhale.reporting.explain import Story

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


def reason_here(reason: "Reason | None") -> "Reason | None":
    """Return a reason with its commands as they are given here."""
    if reason is None:
        return None
    return reason.but(says=as_given_here(reason.says), change=as_given_here(reason.change))


def receipt_here(receipt: "RunReceipt") -> "RunReceipt":
    """Return a receipt with the commands in it as they are given here."""
    return receipt.but(jobs=tuple(job.but(reason=reason_here(job.reason)) for job in receipt.jobs))


def story_here(story: "Story") -> "Story":
    """Return a job's story with the commands in it as they are given here."""
    return story.but(
        job=story.job.but(reason=reason_here(story.job.reason)),
        tellings=tuple(one.but(reason=reason_here(one.reason)) for one in story.tellings),
    )
