"""How Google is asked: one method at a time, whole lists, and the code of a refusal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cloudwhale.spi.errors import CloudwhaleError, Unreachable

MOST_PAGES = 200
"""A list that has not ended by then is not read: a token that repeats would never end."""
NOT_FOUND = frozenset({"notFound", "NOT_FOUND", "RESOURCE_NOT_FOUND", "404"})
EXISTS = frozenset({"alreadyExists", "ALREADY_EXISTS", "RESOURCE_ALREADY_EXISTS", "409"})


class Calls(Protocol):
    """Asks an API of Google; what is wrong comes as an error of ours, with its cause."""

    def call(self, service: str, method: str, **words: Any) -> Mapping[str, Any]:
        """Return the answer of `compute`, `instances.insert`, and the like.

        Raise Denied, TryAnother or Unreachable; `code_of` tells Google's code.
        """
        ...

    def project(self) -> str:
        """Return the project that the credentials are for; empty: they do not say.

        Raise Denied when there are no credentials.
        """
        ...


@dataclass(frozen=True, slots=True)
class Said:
    """What Google says to a call, or in an operation, that it refuses."""

    code: str
    """`quotaExceeded`, `ZONE_RESOURCE_POOL_EXHAUSTED`, `SERVICE_DISABLED`; else the status."""
    says: str
    status: int = 400
    metric: str = ""
    """Of a quota: `GPUS_ALL_REGIONS`."""
    limit: float | None = None
    """What the quota is."""
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Its `metadata`: the service that is disabled, the constraint that forbids."""


class Refused(Exception):
    """What an error of ours was made from: it is its cause."""

    def __init__(self, said: Said) -> None:
        super().__init__(f"{said.code}: {said.says}")
        self.said = said


def said_by(error: BaseException | None) -> Said | None:
    """Return what Google said that an error of ours was made from; None: it said nothing."""
    while error is not None:
        if isinstance(error, Refused):
            return error.said
        error = error.__cause__
    return None


def code_of(error: BaseException) -> str:
    """Return Google's code of what an error of ours was made from; empty when it said none."""
    said = said_by(error)
    return "" if said is None else said.code


def says_that_it_is_gone(error: CloudwhaleError) -> bool:
    """Say whether Google does not know the thing: what it was to do is done."""
    said = said_by(error)
    return said is not None and (said.status == 404 or said.code in NOT_FOUND)


def listed(calls: Calls, service: str, method: str, **words: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all that a list has, page by page; raise as `call` does."""
    for page in pages(calls, service, method, **words):
        yield from page.get("items") or ()


def pages(calls: Calls, service: str, method: str, **words: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the pages of a list; raise as `call` does.

    Raise Unreachable for one without an end: what is missing in half a list is not gone.
    """
    token = ""
    for _ in range(MOST_PAGES):
        more = {"pageToken": token} if token else {}
        answer = calls.call(service, method, **words, **more)
        yield answer
        token = str(answer.get("nextPageToken") or "")
        if not token:
            return
    raise Unreachable(f"{method} has not ended after {MOST_PAGES} pages")


@dataclass(frozen=True, slots=True)
class Everywhere:
    """What a list over all zones or regions has said."""

    found: Mapping[str, Sequence[Mapping[str, Any]]]
    """By zone or region; those that have none of it, and said so, are there too."""
    silent: frozenset[str] = frozenset()
    """Zones or regions that did not answer: nothing is known of what is there."""


def everywhere(calls: Calls, method: str, **words: Any) -> Everywhere:
    """Return what `….aggregatedList` of compute says, `unreachables` told apart.

    Asks for whatever part answers: one zone that is broken would fail the whole list.
    """
    key = method.partition(".")[0]
    found: dict[str, list[Mapping[str, Any]]] = {}
    silent: set[str] = set()
    for page in pages(calls, "compute", method, returnPartialSuccess=True, **words):
        silent |= {_place(one) for one in page.get("unreachables") or ()}
        parts: Mapping[str, Mapping[str, Any]] = page.get("items") or {}
        for place, part in parts.items():
            if _did_not_answer(part):
                silent.add(_place(place))
            else:
                found.setdefault(_place(place), []).extend(part.get(key) or ())
    return Everywhere(found, frozenset(silent))


def _place(name: str) -> str:
    """Return the zone or region of `zones/us-central1-a`, or of a whole URL of it."""
    return name.rpartition("/")[2]


def _did_not_answer(part: Mapping[str, Any]) -> bool:
    warning: Mapping[str, Any] = part.get("warning") or {}
    return warning.get("code") == "UNREACHABLE"
