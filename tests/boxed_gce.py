"""A Compute Engine of the sandbox for tests: its client is Google's own, its clock moved by hand.

Every request and every answer is held against the discovery document of the API.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from cloudwhale.model.units import Instant
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale_providers.sandbox.compute import Compute
from cloudwhale_providers.sandbox.compute.places import MACHINE_ACCOUNT, PROJECT
from cloudwhale_providers.sandbox.endpoint import Weather

NOON: Instant = 1_800_000_000.0
ZONE, REGION = "us-central1-a", "us-central1"
TYPE, PLAIN = "g2-standard-8", "e2-standard-4"
IMAGES = "projects/deeplearning-platform-release/global/images"
FAMILY = f"{IMAGES}/family/common-cu129-ubuntu-2204-nvidia-580"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_DISCOVERY: Any = import_module("googleapiclient.discovery")
_SHIPPED: Any = import_module("googleapiclient.discovery_cache")
_ERRORS: Any = import_module("googleapiclient.errors")
_HTTP: Any = import_module("httplib2")


@cache
def _document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_SHIPPED.get_static_doc("compute", "v1"))
    return found


@dataclass
class Gce:
    """A cloud that listens, and what its hypervisor would have heard."""

    compute: Compute
    clock: SteppedClock
    heard: list[tuple[str, str]] = field(default_factory=list)
    """`started`, `noticed` and `ended`, with the name of the machine."""
    token: str = ""
    """Of who asks; empty: a new one of the user."""
    _client: Any = None
    _resources: dict[str, Any] = field(default_factory=dict[str, Any])

    def client(self) -> Any:
        """Return Google's client of the API."""
        if self._client is None:
            options = {"api_endpoint": f"{self.compute.url}/compute/v1/"}
            self._client = _DISCOVERY.build_from_document(
                _document(), http=_HTTP.Http(), client_options=options
            )
        return self._client

    def _resource(self, name: str) -> Any:
        """Return the part of the client that asks about `instances`; it takes a while to make."""
        if name not in self._resources:
            self._resources[name] = getattr(self.client(), name)()
        return self._resources[name]

    def ask(self, method: str, **words: Any) -> dict[str, Any]:
        """Return the answer of `instances.insert`, asked once."""
        resource, verb = method.split(".")
        words.setdefault("project", PROJECT)
        request = getattr(self._resource(resource), verb)(**words)
        token = self.token or self.compute.user_token()
        request.headers["authorization"] = f"Bearer {token}"
        http = _HTTP.Http()
        try:
            answer: Any = request.execute(http=http, num_retries=0)
        finally:
            http.close()
        return answer if isinstance(answer, dict) else {}

    def refusal(self, method: str, **words: Any) -> tuple[int, str]:
        """Return the status and the reason with which a call is refused."""
        error = self.error(method, **words)
        return int(error["code"]), str(error["errors"][0]["reason"])

    def error(self, method: str, **words: Any) -> dict[str, Any]:
        """Return what is answered to a call that is refused."""
        try:
            self.ask(method, **words)
        except _ERRORS.HttpError as error:
            told: dict[str, Any] = json.loads(error.content)["error"]
            return told
        raise AssertionError(f"{method} was not refused")

    def wait(self, for_s: float) -> None:
        """Let time pass, and what is due happen."""
        self.clock.advance_to(self.clock.now() + for_s)
        self.compute.step(self.clock.now())

    # -- machines ----------------------------------------------------------------------------

    def insert(
        self, name: str, zone: str = ZONE, request: str = "", **words: Any
    ) -> dict[str, Any]:
        """Ask for a machine; return the operation, done or not."""
        more = {"requestId": request} if request else {}
        return self.ask("instances.insert", zone=zone, body=body(name, zone, **words), **more)

    def made(self, name: str, zone: str = ZONE, **words: Any) -> dict[str, Any]:
        """Make a machine, which runs; return it as it is listed."""
        operation = self.insert(name, zone, **words)
        self.wait(0.0)
        done = self.operation(operation)
        assert done["status"] == "DONE" and "error" not in done, done
        return self.described(name, zone)

    def failure(self, name: str, zone: str = ZONE, **words: Any) -> dict[str, Any]:
        """Return the error of the operation of an insert that fails."""
        operation = self.insert(name, zone, **words)
        done = self.operation(operation)
        assert done["status"] == "DONE", done
        found: dict[str, Any] = done["error"]["errors"][0]
        return found

    def operation(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Return an operation as it is now."""
        zone = str(told["zone"]).rpartition("/")[2]
        return self.ask("zoneOperations.get", zone=zone, operation=told["name"])

    def described(self, name: str, zone: str = ZONE) -> dict[str, Any]:
        return self.ask("instances.get", zone=zone, instance=name)

    def status(self, name: str, zone: str = ZONE) -> str:
        return str(self.described(name, zone)["status"])

    def events(self, zone: str = ZONE) -> list[str]:
        """Return the types of the operations that nobody has asked for."""
        found = self.ask("zoneOperations.list", zone=zone).get("items", [])
        return [one["operationType"] for one in found if one["user"] == "system"]


def scheduling(market: str = "spot", **more: Any) -> dict[str, Any]:
    """Return how a machine of a market is scheduled."""
    found: dict[str, Any] = {"onHostMaintenance": "TERMINATE", "automaticRestart": False}
    if market == "spot":
        found |= {"provisioningModel": "SPOT", "instanceTerminationAction": "DELETE"}
    return {**found, **more}


def disk(kind: str = "pd-balanced", zone: str = ZONE, **more: Any) -> dict[str, Any]:
    """Return a boot disk that goes with its machine."""
    params = {
        "sourceImage": FAMILY, "diskSizeGb": "200",
        "diskType": f"projects/{PROJECT}/zones/{zone}/diskTypes/{kind}", **more,
    }  # fmt: skip
    return {"boot": True, "autoDelete": True, "initializeParams": params}


def body(name: str, zone: str = ZONE, kind: str = TYPE, **more: Any) -> dict[str, Any]:
    """Return what an insert says."""
    disk_kind = more.pop("disk_kind", "pd-balanced")
    access = {"type": "ONE_TO_ONE_NAT", "name": "External NAT"}
    return {
        "name": name,
        "machineType": f"zones/{zone}/machineTypes/{kind}",
        "disks": [disk(disk_kind, zone)],
        "networkInterfaces": [{"network": "global/networks/default", "accessConfigs": [access]}],
        "scheduling": scheduling(),
        "labels": {"cloudwhale-installation": "lab"},
        "serviceAccounts": [{"email": MACHINE_ACCOUNT, "scopes": [SCOPE]}],
        **more,
    }


def metadata(**items: str) -> dict[str, Any]:
    """Return metadata; `cloudwhale_node` is the key `cloudwhale-node`."""
    return {"items": [{"key": key.replace("_", "-"), "value": one} for key, one in items.items()]}


@contextmanager
def a_gce(
    weather: Weather | None = None, real: Callable[[float], float] = lambda for_s: for_s
) -> Iterator[Gce]:
    """Give a cloud; every thread of it has ended afterwards, and no answer was wrong."""
    before = set(threading.enumerate())
    clock = SteppedClock(NOON)
    compute = Compute(clock, weather, real=real, checked=True)
    box = Gce(compute, clock)
    compute.on_started = lambda one: box.heard.append(("started", one.name))
    compute.on_noticed = lambda one: box.heard.append(("noticed", one.name))
    compute.on_ended = lambda one: box.heard.append(("ended", one.name))
    try:
        compute.start()
        yield box
    finally:
        compute.close()
        assert set(threading.enumerate()) <= before
    assert compute.complaints == []
