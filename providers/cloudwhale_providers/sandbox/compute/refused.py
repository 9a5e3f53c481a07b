"""A call that is refused, as Google's APIs write it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cloudwhale_providers.sandbox.endpoint.messages import Answer
from cloudwhale_providers.sandbox.endpoint.refused import Refused

STATUSES: Mapping[str, int] = {
    "invalid": 400, "badRequest": 400, "required": 400, "resourceNotReady": 400,
    "resourceInUseByAnotherResource": 400, "fingerprintMismatch": 412, "conditionNotMet": 412,
    "authError": 401, "forbidden": 403, "accessNotConfigured": 403,
    "quotaExceeded": 403, "rateLimitExceeded": 403, "userRateLimitExceeded": 403,
    "notFound": 404, "alreadyExists": 409, "resourceExhausted": 429, "internalError": 500,
    "backendError": 503, "insufficientCapacity": 503, "billingDisabled": 403,
}  # fmt: skip
"""Reasons in the errors of Google's APIs, and the HTTP status that each comes with."""
NAMES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    409: "ALREADY_EXISTS", 412: "FAILED_PRECONDITION", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL",
    503: "UNAVAILABLE",
}  # fmt: skip
DOMAINS = {
    "quotaExceeded": "usageLimits", "rateLimitExceeded": "usageLimits",
    "userRateLimitExceeded": "usageLimits", "accessNotConfigured": "usageLimits",
}  # fmt: skip
NAMED = frozenset({"badRequest", "authError", "accessNotConfigured", "resourceExhausted"})
"""Those that the front of Google's APIs gives: it says the name of the status too."""


class GoogleRefused(Refused):
    """Raised by whoever answers; `code` is the reason that Google gives."""

    def __init__(
        self, reason: str, says: str, status: int | None = None, details: Sequence[Any] = ()
    ) -> None:
        super().__init__(reason, says, STATUSES.get(reason, 400) if status is None else status)
        self.details = tuple(details)


def invalid(field: str, value: object, says: str) -> GoogleRefused:
    """Return how a value of a request is refused."""
    return GoogleRefused("invalid", f"Invalid value for field '{field}': '{value}'. {says}")


def not_found(path: str) -> GoogleRefused:
    """Return how something is refused that is not there."""
    return GoogleRefused("notFound", f"The resource '{path}' was not found")


def written(refused: Refused) -> Answer:
    """Return a refusal as it is sent."""
    details = refused.details if isinstance(refused, GoogleRefused) else ()
    status = STATUSES.get(refused.code, refused.status)
    if isinstance(refused, GoogleRefused):
        status = refused.status
    one = {
        "message": refused.says,
        "domain": DOMAINS.get(refused.code, "global"),
        "reason": refused.code,
    }
    error: dict[str, Any] = {"code": status, "message": refused.says, "errors": [one]}
    if refused.code in NAMED or details:
        error["status"] = NAMES.get(status, "UNKNOWN")
    if details:
        error["details"] = list(details)
    return as_json({"error": error}, status)


def as_json(told: Mapping[str, Any], status: int = 200) -> Answer:
    """Return an answer of JSON."""
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    return Answer(status, headers, json.dumps(told).encode())
