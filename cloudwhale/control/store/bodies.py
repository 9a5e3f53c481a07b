"""Values to JSON bodies of rows and back."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import fields
from typing import TypeVar, cast, get_args

from pydantic import ValidationError

from cloudwhale.control.store.faults import WHOLE_COPY
from cloudwhale.control.store.folding import Family
from cloudwhale.model.event import Event
from cloudwhale.model.peak import History, Peak
from cloudwhale.model.value import Value
from cloudwhale.spi.errors import StoreUnusable

V = TypeVar("V", bound=Value)

_OF_PEAK = tuple(field.name for field in fields(Peak))

KINDS: dict[str, type[Value]] = {
    kind.model_fields["kind"].default: kind for kind in get_args(get_args(Event)[0])
}
"""Class of an event by its kind, so that only the schemas of kinds that are met get built."""


def body(value: Value) -> str:
    """Return a value as JSON, defaults included: a default may change, what was meant may not."""
    return value.model_dump_json()


def read(kind: type[V], text: str) -> V:
    """Return a value; raise StoreUnusable for a body that is not one."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise _unreadable(kind.__name__, text, str(error.errors()[0]["msg"])) from error


def read_event(kind: str, text: str) -> Event:
    """Return an event; raise StoreUnusable for a body that is not one, or an unknown kind."""
    if kind not in KINDS:
        raise _unreadable(kind, text, "unknown kind of event")
    return cast(Event, read(KINDS[kind], text))


def read_family(row: Sequence[str]) -> tuple[Family, History]:
    """Return a family and what is known of it, from (project, name, run times, peaks)."""
    project, name, times, peaks = row
    return (project, name), History(
        tuple(json.loads(times)), tuple(Peak(*peak) for peak in json.loads(peaks))
    )


def family_texts(history: History) -> tuple[str, str]:
    """Return run times and peaks as JSON: lists, as there are many."""
    peaks = [[getattr(peak, name) for name in _OF_PEAK] for peak in history.peaks]
    return json.dumps(history.run_times), json.dumps(peaks)


def packed(text: str) -> bytes:
    """Return a long text as it is kept."""
    return zlib.compress(text.encode())


def unpacked(kept: bytes) -> str:
    """Return a long text; raise StoreUnusable when it is none."""
    try:
        return zlib.decompress(kept).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise _unreadable("list of offers", repr(kept[:20]), str(error)) from error


def _unreadable(what: str, text: str, why: str) -> StoreUnusable:
    return StoreUnusable(
        f"the database holds a {what} that this program cannot read ({why}): {text[:80]}…",
        f"It was changed by hand or by another program. {WHOLE_COPY}",
    )
