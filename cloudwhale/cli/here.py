"""What is shown, with the commands that it names as they have to be given where this one was."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from cloudwhale.control.given import as_given_here

if TYPE_CHECKING:
    from cloudwhale.model.morning import Morning
    from cloudwhale.model.reason import Reason
    from cloudwhale.reporting.explain import Story
    from cloudwhale.reporting.sheet import Sheet

SENTENCES = frozenset({"says", "change", "why", "remedy"})
"""Keys of documents whose texts are ours; those of others are what users have written."""


def sheet_here(sheet: "Sheet") -> "Sheet":
    """Return a table with the commands in it as they are given here."""
    return replace(
        sheet,
        rows=tuple(
            tuple(replace(cell, text=as_given_here(cell.text)) for cell in row)
            for row in sheet.rows
        ),
        title=as_given_here(sheet.title),
        notes=tuple(map(as_given_here, sheet.notes)),
        asides=tuple(map(as_given_here, sheet.asides)),
    )


def document_here(document: Any, key: str = "") -> Any:
    """Return a document, or a part of it, with the commands in its sentences as given here."""
    if isinstance(document, str):
        return as_given_here(document) if key in SENTENCES else document
    if isinstance(document, Mapping):
        parts = cast("Mapping[str, Any]", document)
        return {name: document_here(part, name) for name, part in parts.items()}
    if isinstance(document, list | tuple):
        rows = cast("Sequence[Any]", document)
        return [document_here(row, key) for row in rows]
    return document


def morning_here(told: "Morning") -> "Morning":
    """Return the report of a night with the commands in it as they are given here."""
    jobs = (
        job.but(why=as_given_here(job.why), change=as_given_here(job.change)) for job in told.jobs
    )
    return told.but(jobs=tuple(jobs))


def reason_here(reason: "Reason | None") -> "Reason | None":
    """Return a reason with its commands as they are given here."""
    if reason is None:
        return None
    return reason.but(says=as_given_here(reason.says), change=as_given_here(reason.change))


def story_here(story: "Story") -> "Story":
    """Return a job's story with the commands in it as they are given here."""
    return story.but(
        job=story.job.but(reason=reason_here(story.job.reason)),
        tellings=tuple(one.but(reason=reason_here(one.reason)) for one in story.tellings),
    )
