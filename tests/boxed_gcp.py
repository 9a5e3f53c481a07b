"""The sandbox's Compute Engine in this process: over HTTP as a project would be, or without."""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from renting_gcp import an_offer

from cloudwhale.clock import SystemClock
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.provider import Grounds
from cloudwhale_providers.gcp import GcpProvider
from cloudwhale_providers.gcp.clients import Clients
from cloudwhale_providers.gcp.operations import Pause, for_real
from cloudwhale_providers.sandbox.compute import Compute
from cloudwhale_providers.sandbox.compute.discovery import api
from cloudwhale_providers.sandbox.compute.places import MACHINE_ACCOUNT, PROJECT
from cloudwhale_providers.sandbox.endpoint import Instance, Weather
from cloudwhale_providers.sandbox.endpoint.messages import Asked

MAILBOX = "gs://cloudwhale-sandbox-gcp/mailbox"


def settings(url: str = "", **said: Any) -> dict[str, Any]:
    """Return a table `[clouds.gcp]` for the box."""
    usual = {"project": PROJECT, "service_account": MACHINE_ACCOUNT, "endpoint": url}
    return {**usual, "regions": ["us-central1", "us-east4"], **said}


@dataclass(frozen=True)
class Box:
    """A cloud, and the clock that it goes by."""

    endpoint: Compute
    clock: Clock
    pause: Pause = for_real
    clients: Callable[[], Clients] | None = None
    """How it is asked where not over HTTP."""
    log: list[str] = field(default_factory=list[str])
    """Methods and paths that were asked so, also in vain."""

    def provider(
        self, installation: str, *listed: Offer, mailbox: str = MAILBOX, **said: Any
    ) -> GcpProvider:
        """Return the provider of an installation, new as in a new process."""
        offers: Sequence[Offer] = listed or [an_offer()]
        url = "http://box" if self.clients else self.endpoint.url
        table = settings(url, **said)
        grounds = Grounds("gcp", installation, table, lambda now: offers, self.clock, mailbox)
        calls = None if self.clients is None else self.clients()
        return GcpProvider(grounds, calls, self.pause)

    def standing(self) -> list[Instance]:
        """Return the machines that have not ended."""
        return [one for one in self.endpoint.instances() if one.ended_at is None]

    def forget_stops(self) -> None:
        """Let no machine say any more when it is deleted, nor be deleted then."""
        for one in self.endpoint.services.machines:
            one.runs_for_s = one.ends_at = None

    def insert(
        self, name: str, zone: str, labels: Mapping[str, str], items: Mapping[str, str]
    ) -> None:
        """Make a machine as somebody else would, past the provider."""
        image = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64"
        body = {
            "name": name,
            "machineType": f"zones/{zone}/machineTypes/e2-standard-4",
            "labels": dict(labels),
            "metadata": {"items": [{"key": key, "value": items[key]} for key in items]},
            "disks": [
                {
                    "boot": True,
                    "autoDelete": True,
                    "initializeParams": {"sourceImage": image, "labels": dict(labels)},
                }
            ],
            "networkInterfaces": [{"network": "global/networks/default"}],
        }
        assert self.clients is not None
        self.clients().call("compute", "instances.insert", project=PROJECT, zone=zone, body=body)


class PacedClock:
    """A real clock that is faster from now on."""

    def __init__(self, pace: float) -> None:
        self._real, self._pace = SystemClock(), pace
        self._began_at = self._real.now()

    def now(self) -> Instant:
        return self._began_at + (self._real.now() - self._began_at) * self._pace

    def steady(self) -> Seconds:
        return self._real.steady() * self._pace

    def real(self, for_s: Seconds) -> Seconds:
        """Return how long a time takes outside."""
        return for_s / self._pace


@dataclass(frozen=True)
class Word:
    """A call that the cloud was asked."""

    method: str
    body: Mapping[str, Any]


def boxed_words(box: Box) -> list[Word]:
    """Return a list that fills with the calls that the cloud is asked from now on."""
    words: list[Word] = []
    services = box.endpoint.services
    answer = services.answer

    def noted(call: Any) -> Any:
        words.append(Word(call.method.id, call.body))
        return answer(call)

    services.answer = noted  # type: ignore[method-assign]
    return words


@contextmanager
def boxed(folder: Path, weather: Weather | None = None, pace: float = 1.0) -> Generator[Box]:
    """Open a cloud and put the way to it into the environment, as a sandbox does.

    `pace`: how much faster time goes there.
    """
    clock = PacedClock(pace)
    cloud = Compute(clock, weather, real=clock.real, checked=True)
    cloud.outside = SystemClock().now
    with pytest.MonkeyPatch.context() as patch:
        try:
            cloud.start()
            key = folder / "key.json"
            key.write_text(json.dumps(cloud.key_file()))
            patch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
            patch.setenv("NO_GCE_CHECK", "true")
            yield Box(cloud, clock)
        finally:
            cloud.close()
    assert cloud.complaints == []


def stepped(weather: Weather | None = None, checked: bool = True) -> Box:
    """Make a cloud that is asked without a socket, and whose time goes when somebody waits.

    `checked`: every answer is held against Google's own description.
    """
    clock = SteppedClock(1_800_000_000.0)
    cloud = Compute(clock, weather, real=lambda for_s: 0.0, checked=checked)
    cloud.mount(api("compute", "v1"))
    for described, methods in cloud.project_apis.described():
        cloud.mount(described, methods)
    log: list[str] = []

    def clients() -> Clients:
        return Clients("http://box", credentials=_anybody, transport=lambda s: Wire(cloud, log))

    def pause(for_s: Seconds) -> None:
        clock.advance_to(clock.now() + for_s)

    return Box(cloud, clock, pause, clients, log)


class Wire:
    """Stands where httplib2's connection does."""

    def __init__(self, cloud: Compute, log: list[str]) -> None:
        self._log = log
        self._cloud, self._answer = cloud, cloud._answer  # pyright: ignore[reportPrivateUsage]

    def request(
        self, uri: str, method: str = "GET", body: Any = None, headers: Any = None, **_: Any
    ) -> tuple[Any, bytes]:
        parts = urlsplit(uri)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        self._log.append(f"{method} {parts.path}")
        said: Mapping[str, str] = headers or {}
        named = {name.lower(): value for name, value in said.items()}
        named["authorization"] = f"Bearer {self._cloud.user_token()}"
        content = body.encode() if isinstance(body, str) else body or b""
        answer = self._answer(Asked(method, target, named, content))
        if answer is None:
            raise TimeoutError("the read operation timed out")
        response = import_module("httplib2").Response({"status": str(answer.status)})
        response.reason = "said so"
        return response, answer.body


def _anybody() -> tuple[Any, str]:
    base: Any = import_module("google.auth.credentials").Credentials

    class Anybody(base):  # type: ignore[misc]
        def refresh(self, request: Any) -> None:
            self.token = "renewed"

    return Anybody(), PROJECT
