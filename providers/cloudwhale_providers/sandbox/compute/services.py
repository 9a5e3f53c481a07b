"""All of Compute Engine in memory: which method is answered by whom, one call at a time."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.compute.advice import Advice
from cloudwhale_providers.sandbox.compute.calls import Call, Does
from cloudwhale_providers.sandbox.compute.catalogue import catalogue
from cloudwhale_providers.sandbox.compute.disks import Addresses, Disks
from cloudwhale_providers.sandbox.compute.images import FAMILIES, Images
from cloudwhale_providers.sandbox.compute.instances import Estate, Instances
from cloudwhale_providers.sandbox.compute.lists import silence
from cloudwhale_providers.sandbox.compute.machines import Machines
from cloudwhale_providers.sandbox.compute.networks import Networks
from cloudwhale_providers.sandbox.compute.operations import Failure
from cloudwhale_providers.sandbox.compute.permits import Permits, needs_of
from cloudwhale_providers.sandbox.compute.places import PROJECT, PROJECT_NUMBER
from cloudwhale_providers.sandbox.compute.quotas import Quotas
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused, invalid, not_found
from cloudwhale_providers.sandbox.compute.regions import Regions, Told
from cloudwhale_providers.sandbox.compute.room import GcpMarket, Room
from cloudwhale_providers.sandbox.compute.wishes import Things
from cloudwhale_providers.sandbox.compute.wording import Words, number
from cloudwhale_providers.sandbox.endpoint.weather_values import Weather

API = "compute.googleapis.com"
OURS = frozenset({PROJECT, PROJECT_NUMBER})


class Services:
    """Answers calls; `turn` is held for each."""

    def __init__(self, weather: Weather, now: Callable[[], Instant]) -> None:
        began_at = now()
        self._weather = weather
        self.turn = threading.RLock()
        self.permits = Permits()
        self.quotas = Quotas(weather.quotas)
        self.closed_apis = set(weather.closed_apis)
        """APIs that the project has not enabled; whoever enables one takes it out."""
        self.machines = Machines(weather, began_at)
        self.disks = Disks(self.machines.operations, self.machines.plan)
        self.market = GcpMarket(weather, began_at)
        self._does = dict(self._methods(began_at))

    def _methods(self, began_at: Instant) -> Mapping[str, Does]:
        weather, machines = self._weather, self.machines
        images, networks = Images(weather.image), Networks(weather.default_network)
        room = Room(machines, self.disks, self.quotas, (weather, began_at))
        things = Things(weather, images, networks, self.disks.size_of)
        estate = Estate(machines, self.disks, room, self.market, things, weather)
        found: dict[str, Does] = {}
        for one in (
            images, networks, self.disks, Addresses(machines.operations), Instances(estate),
            Regions(self.quotas, room), Told(machines), Advice(self.market, weather, began_at),
        ):  # fmt: skip
            found |= one.methods()
        return found

    def add(self, methods: Mapping[str, Does]) -> None:
        """Answer other methods too, of this API or of another."""
        self._does |= methods

    def answer(self, call: Call) -> Words:
        """Return an answer; raise Refused. `turn` is held."""
        self.machines.advance(call.now)
        do = self._does.get(call.method.id)
        if do is None:
            raise GoogleRefused("notImplemented", f"the sandbox knows no {call.method.id}", 501)
        if call.method.id.startswith("compute."):
            self._check_place(call)
        if call.method.answers == "Operation":
            begun = self.machines.operations.replayed(call)
            if begun is not None:
                return begun.words()
        found = do(call)
        if call.method.id.endswith(".aggregatedList"):
            silence(found, self._weather.silent_zones)
        return found

    def failed(self, call: Call, code: str) -> Words:
        """Return an operation that fails, because it is asked for; nothing else happens."""
        name = call.body.get("name") or call.path.get("instance", "")
        path = f"projects/{PROJECT}/{call.scope}/instances/{name}"
        failure = Failure(code, f"{code}, as was asked for")
        done_at = call.now + self._weather.operation_s
        target = (path, number(path, call.now))
        return self.machines.operations.begin(call, target, done_at, failure).words()

    def _check_place(self, call: Call) -> None:
        project = call.path.get("project", PROJECT)
        is_image = call.method.id.startswith("compute.images.") and project in FAMILIES
        if project not in OURS and not is_image:
            if project in self._weather.foreign_projects:
                says = f"Required '{needs_of(call)[0]}' permission for 'projects/{project}'"
                raise GoogleRefused("forbidden", says)
            raise not_found(f"projects/{project}")
        if API in self.closed_apis:
            raise disabled(API)
        self.permits.check(call)
        if "zone" in call.path and call.zone not in catalogue().zones:
            raise invalid("zone", call.zone, "Unknown zone.")
        if call.zone in self._weather.silent_zones:
            raise GoogleRefused("backendError", f"Zone '{call.zone}' is unreachable.")
        if call.path.get("region", "") not in ("", *catalogue().regions):
            raise invalid("region", call.path["region"], "Unknown region.")


def disabled(service: str) -> GoogleRefused:
    """Return how an API refuses that the project has not enabled."""
    where = f"https://console.developers.google.com/apis/api/{service}/overview"
    says = (
        f"{service} has not been used in project {PROJECT_NUMBER} before or it is disabled. Enable "
        f"it by visiting {where}?project={PROJECT_NUMBER} then retry."
    )
    info: dict[str, Any] = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "SERVICE_DISABLED",
        "domain": "googleapis.com",
        "metadata": {"service": service, "consumer": f"projects/{PROJECT_NUMBER}"},
    }
    return GoogleRefused("accessNotConfigured", says, details=(info,))
