"""Operations: what Compute Engine does takes time, and says how it went."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.compute.calls import Call
from cloudwhale_providers.sandbox.compute.places import PROJECT
from cloudwhale_providers.sandbox.compute.refused import invalid, not_found
from cloudwhale_providers.sandbox.compute.wording import Words, last, link, number, written_at

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
NO_UUID = "00000000-0000-0000-0000-000000000000"
SYSTEM = "system"
"""Who does what Compute Engine does by itself."""
HTTP = {
    "ZONE_RESOURCE_POOL_EXHAUSTED": (503, "SERVICE UNAVAILABLE"),
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": (503, "SERVICE UNAVAILABLE"),
    "RESOURCE_POOL_EXHAUSTED": (503, "SERVICE UNAVAILABLE"),
    "QUOTA_EXCEEDED": (403, "FORBIDDEN"),
    "RESOURCE_OPERATION_RATE_EXCEEDED": (403, "FORBIDDEN"),
    "CONDITION_NOT_MET": (412, "PRECONDITION FAILED"),
    "RESOURCE_NOT_FOUND": (404, "NOT FOUND"),
    "RESOURCE_ALREADY_EXISTS": (409, "CONFLICT"),
    "INTERNAL_ERROR": (500, "INTERNAL SERVER ERROR"),
}
"""What an operation that has failed says it would have been, had it been asked for at once."""
OTHERWISE = (400, "BAD REQUEST")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an operation has failed."""

    code: str
    """`ZONE_RESOURCE_POOL_EXHAUSTED`."""
    says: str
    details: Sequence[Words] = ()


@dataclass(slots=True)
class Operation:
    """One operation."""

    name: str
    kind: str
    """`insert`, `delete`, `compute.instances.preempted`."""
    scope: str
    """`zones/ZONE`, `regions/REGION` or `global`."""
    target: str
    """Path of what it is done to."""
    target_id: str
    user: str
    begun_at: Instant
    done_at: Instant
    """When it is, or was, done."""
    request_id: str = ""
    failure: Failure | None = None
    is_done: bool = False
    is_fresh: bool = True
    """Whether nobody has read it yet: it is pending."""

    def words(self) -> Words:
        """Return it as it is listed now."""
        status = "DONE" if self.is_done else "PENDING" if self.is_fresh else "RUNNING"
        self.is_fresh = False
        home = f"projects/{PROJECT}/{self.scope}"
        found: Words = {
            "kind": "compute#operation",
            "id": number(home, self.name),
            "name": self.name,
            "operationType": self.kind,
            "targetLink": link(self.target),
            "targetId": self.target_id,
            "status": status,
            "user": self.user,
            "progress": 100 if self.is_done else 0,
            "insertTime": written_at(self.begun_at),
            "startTime": written_at(self.begun_at),
            "selfLink": link(f"{home}/operations/{self.name}"),
        }
        if self.request_id:
            found["clientOperationId"] = self.request_id
        if self.scope != "global":
            kind = "zone" if self.scope.startswith("zones/") else "region"
            found[kind] = link(f"projects/{PROJECT}/{self.scope}")
        if self.is_done:
            found["endTime"] = written_at(self.done_at)
            if self.failure is not None:
                found |= _failed(self.failure)
        return found


class Operations:
    """All operations there were; not for threads."""

    def __init__(self, plan: Callable[[Instant, Callable[[Instant], None]], None]) -> None:
        """`plan` lets something happen at a time."""
        self._plan = plan
        self._all: dict[tuple[str, str], Operation] = {}
        self._asked: dict[tuple[str, str], Operation] = {}
        self._count = 0

    def replayed(self, call: Call) -> Operation | None:
        """Return what the same request has begun already; raise Refused for an id that is none."""
        asked = call.query.get("requestId", "")
        if not asked:
            return None
        if not UUID.fullmatch(asked) or asked == NO_UUID:
            raise invalid("requestId", asked, "The request ID must be a valid, non-zero UUID.")
        return self._asked.get((call.method.id, asked.lower()))

    def begin(
        self, call: Call, target: tuple[str, str], done_at: Instant, failure: Failure | None = None
    ) -> Operation:
        """Begin what a call asks for; `target`: path and id of what it is done to."""
        kind, asked = last(call.method.id.replace(".", "/")), call.query.get("requestId", "")
        self._count += 1
        found = Operation(
            f"operation-{int(call.now * 1000)}-{self._count:08x}", kind, call.scope, *target,
            call.caller.email, call.now, done_at, asked, failure,
        )  # fmt: skip
        self._all[found.scope, found.name] = found
        if asked:
            self._asked[call.method.id, asked.lower()] = found
        self._plan(done_at, lambda at: _finish(found))
        return found

    def happened(self, kind: str, scope: str, target: tuple[str, str], at: Instant) -> Operation:
        """Note what Compute Engine has done by itself."""
        self._count += 1
        name = f"systemevent-{int(at * 1000)}-{self._count:08x}"
        found = Operation(name, kind, scope, *target, SYSTEM, at, at, is_done=True, is_fresh=False)
        self._all[scope, name] = found
        return found

    def get(self, call: Call) -> Operation:
        """Return the operation that a call names; raise Refused."""
        name = call.path["operation"]
        found = self._all.get((call.scope, name))
        if found is None:
            raise not_found(f"projects/{call.path['project']}/{call.scope}/operations/{name}")
        return found

    def of(self, scope: str) -> Iterator[Operation]:
        """Yield those of a scope, oldest first."""
        return (one for (where, _), one in self._all.items() if where == scope)

    def forget(self, call: Call) -> None:
        """Let an operation not be listed any more; raise Refused."""
        found = self.get(call)
        del self._all[found.scope, found.name]


def _finish(one: Operation) -> None:
    one.is_done = True


def _failed(failure: Failure) -> Words:
    status, message = HTTP.get(failure.code, OTHERWISE)
    error: Words = {"code": failure.code, "message": failure.says}
    if failure.details:
        error["errorDetails"] = list(failure.details)
    return {
        "error": {"errors": [error]}, "httpErrorStatusCode": status, "httpErrorMessage": message,
    }  # fmt: skip
