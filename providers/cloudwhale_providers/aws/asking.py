"""How AWS is asked: one verb at a time, whole lists, and the code of a refusal."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from cloudwhale.spi.errors import CloudwhaleError, Unreachable

MOST_PAGES = 200
"""A list that has not ended by then is not read: a token that repeats would never end."""


class Calls(Protocol):
    """Asks a service of a region; what is wrong comes as an error of ours, with its cause."""

    def call(self, region: str, service: str, verb: str, **words: Any) -> Mapping[str, Any]:
        """Return the answer; raise Denied, TryAnother or Unreachable."""
        ...


def listed(
    calls: Calls, region: str, service: str, verb: str, key: str, **words: Any
) -> Iterator[Mapping[str, Any]]:
    """Yield all that a list has under `key`, page by page; raise as `call` does.

    Raise Unreachable for one without an end: what is missing in half a list is not gone.
    """
    token = ""
    for _ in range(MOST_PAGES):
        more = {"NextToken": token} if token else {}
        answer = calls.call(region, service, verb, **words, **more)
        yield from answer.get(key, ())
        token = str(answer.get("NextToken") or "")
        if not token:
            return
    raise Unreachable(f"{verb} in {region} has not ended after {MOST_PAGES} pages")


def code_of(error: BaseException) -> str:
    """Return AWS's code of what an error of ours was made from; empty when AWS said none."""
    cause: BaseException | None = error
    while cause is not None:
        response: Any = getattr(cause, "response", None)  # only ClientError has one
        if isinstance(response, dict):
            said: Any = response  # pyright: ignore[reportUnknownVariableType]
            return str(said.get("Error", {}).get("Code", ""))
        cause = cause.__cause__
    return ""


def says_that_it_is_gone(error: CloudwhaleError) -> bool:
    """Say whether AWS does not know the thing: what it was to do is done."""
    code = code_of(error)
    return (
        code.endswith((".NotFound", "NotFoundException", ".NotFoundException"))
        or code in GONE_CODES
    )


GONE_CODES = frozenset({"NoSuchEntity", "ResourceNotFoundException", "NoSuchBucket", "404"})


def tags_of(thing: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags that a description carries; EC2 calls those of interfaces a set."""
    found: Any = thing.get("Tags") or thing.get("TagSet") or ()
    return {str(tag["Key"]): str(tag.get("Value", "")) for tag in found}
