"""The words of Cloud Storage: conditions, generations, refusals, as its references have them."""

from collections.abc import Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.objects import Stored
from cloudwhale_providers.sandbox.endpoint.refused import Refused

GENERATION = "x-goog-generation"
"""Kept with an object's own headers, so that it is found again by another process."""
METAGENERATION, STORED_LENGTH = "x-goog-metageneration", "x-goog-stored-content-length"
IF_GENERATION, COPY_SOURCE = "x-goog-if-generation-match", "x-goog-copy-source"
DIRECTIVE = "x-goog-metadata-directive"
KEPT = ("content-type", "content-encoding", "content-disposition", "cache-control")
HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
UNSIGNED = Refused(
    "AuthenticationRequired",
    "Anonymous caller does not have storage.objects.get access to the Google Cloud Storage object.",
    401,
)  # fmt: skip
STRANGER = Refused("InvalidCredentials", "Invalid Credentials", 401)
NO_GENERATION = Refused("InvalidArgument", "x-goog-if-generation-match is no number.", 400)
OUT = Refused("ServiceUnavailable", "We encountered an internal error. Please try again.", 503)
UNMET = Refused(
    "PreconditionFailed", "At least one of the pre-conditions you specified did not hold.", 412
)  # fmt: skip
TOO_SMALL = Refused(
    "EntityTooSmall", "Your proposed upload is smaller than the minimum object size.", 400
)  # fmt: skip


def denied(permission: str, resource: str) -> Refused:
    """Return how somebody is refused who may not."""
    return Refused("AccessDenied", f"Access denied: {permission} on {resource}.", 403)


@dataclass(frozen=True, slots=True)
class Match:
    """What generation an object must have; 0: there is none of that name; None: any."""

    generation: int | None = None

    def check(self, there: Stored | None) -> None:
        """Raise Refused when it has another: Cloud Storage, "Request preconditions"."""
        if self.generation is None:
            return
        if self.generation != (0 if there is None else generation_of(there)):
            raise UNMET


def match_of(headers: Mapping[str, str]) -> Match:
    """Return what a request demands; raise Refused for what is no number."""
    said = headers.get(IF_GENERATION)
    if said is None:
        return Match()
    if not said.isdecimal():
        raise NO_GENERATION
    return Match(int(said))


def generation_of(stored: Stored) -> int:
    """Return which of all objects of its name it is."""
    return int(stored.headers[GENERATION])


def kept_headers(asked: Asked) -> dict[str, str]:
    """Return the headers that are given back with an object."""
    return {
        name: value
        for name, value in asked.headers.items()
        if name in KEPT or name.startswith("x-goog-meta-")
    }


def told_of(stored: Stored) -> dict[str, str]:
    """Return what an answer says of an object beside its own headers."""
    return {METAGENERATION: "1", STORED_LENGTH: str(stored.body.size)}


def refused(error: Refused) -> Answer:
    """Return a refusal as the XML API writes it."""
    text = f"<Code>{escape(error.code)}</Code><Message>{escape(error.says)}</Message>"
    body = f"{HEAD}<Error>{text}</Error>".encode()
    return Answer(error.status, {"Content-Type": "application/xml; charset=UTF-8"}, body)


def xml(name: str, told: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer in XML."""
    text = f'{HEAD}<{name} xmlns="http://doc.s3.amazonaws.com/2006-03-01">{told}</{name}>'
    return Answer(200, {"Content-Type": "application/xml", **(headers or {})}, text.encode())
