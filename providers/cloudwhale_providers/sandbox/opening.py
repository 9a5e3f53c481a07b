"""Starts the clouds of a box: each by its name, with what stands beside it."""

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cloudwhale.spi.clock import Clock
from cloudwhale_providers.sandbox.clouds import Cloud, Clouds, Listening, begun
from cloudwhale_providers.sandbox.endpoint import Instance
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.hypervisor import Guest
from cloudwhale_providers.sandbox.names import AWS, CREDENTIALS, GCP, GCP_STORE
from cloudwhale_providers.sandbox.pace import PacedClock
from cloudwhale_providers.sandbox.weather import Script

if TYPE_CHECKING:
    from cloudwhale_providers.sandbox.compute import Compute

Environments = Mapping[str, Mapping[str, str]]
"""What machines are told, by the name of their cloud."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What all clouds of a box stand on."""

    folder: Path
    script: Script
    clock: PacedClock
    outside: Clock
    """The real one, by which clients sign."""
    ports: Mapping[str, int] = field(default_factory=dict[str, int])
    """Where they listened last: agents and controllers that outlive a box find the next there."""
    stack: ExitStack = field(default_factory=ExitStack)
    """Closes them."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The clouds of a box, which listen."""

    clouds: Clouds
    guests: Mapping[str, Callable[[Instance, Environments], Guest]]
    """Makes a machine that is to run of an instance, by the name of its cloud."""


def opened(ground: Ground) -> Opened:
    """Start what the script names; raise Denied for what is not installed, OSError."""
    clouds: dict[str, Cloud] = {}
    stores: dict[str, Listening] = {}
    guests: dict[str, Callable[[Instance, Environments], Guest]] = {}
    for name in ground.script.clouds:
        OPENS[name](ground, clouds, stores, guests)
    return Opened(Clouds(clouds, stores), guests)


def _aws(
    ground: Ground,
    clouds: dict[str, Cloud],
    stores: dict[str, Listening],
    guests: dict[str, Callable[[Instance, Environments], Guest]],
) -> None:
    from cloudwhale_providers.sandbox.endpoint import Endpoint
    from cloudwhale_providers.sandbox.guests import guest

    clock, weather = ground.clock, ground.script.weather

    def make(port: int) -> Endpoint:
        folder = ground.folder / "s3"
        return Endpoint(clock, weather, port=port, folder=folder, real=clock.real)

    endpoint = begun(make, ground.ports.get(AWS, 0), ground.stack)
    clouds[AWS] = endpoint
    guests[AWS] = lambda one, told: guest(one, endpoint, clock.now)


def _gcp(
    ground: Ground,
    clouds: dict[str, Cloud],
    stores: dict[str, Listening],
    guests: dict[str, Callable[[Instance, Environments], Guest]],
) -> None:
    from cloudwhale_providers.sandbox.compute import Compute
    from cloudwhale_providers.sandbox.guests_gce import guest
    from cloudwhale_providers.sandbox.storage import Storage

    clock, weather = ground.clock, ground.script.weather

    def make(port: int) -> Compute:
        found = Compute(clock, weather, port=port, real=clock.real)
        found.outside = ground.outside.now
        return found

    def make_store(port: int) -> Storage:
        folder = ground.folder / "gcs"
        return Storage(clock, weather, port=port, folder=folder, real=clock.real)

    compute = begun(make, ground.ports.get(GCP, 0), ground.stack)
    storage = begun(make_store, ground.ports.get(GCP_STORE, 0), ground.stack)
    storage.knows = lambda token: _is_known(compute, token)
    compute.project_apis.buckets.on_made = storage.make
    _keep_key(ground.folder / CREDENTIALS, compute)
    clouds[GCP], stores[GCP_STORE] = compute, storage
    guests[GCP] = lambda one, told: guest(one, compute, told[GCP], clock.now)


def _is_known(compute: "Compute", token: str) -> bool:
    try:
        compute.who(f"Bearer {token}")
    except Refused:
        return False
    return True


def _keep_key(path: Path, compute: "Compute") -> None:
    """Write the key of whoever is inside where only its user may read it; raise OSError.

    It stays the same for all boxes of a folder: a controller that outlives one has read it.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        compute.take_key(json.loads(path.read_text()))
    draft = path.with_suffix(".new")
    file = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "w") as opened_file:
        json.dump(compute.key_file(), opened_file, indent=2)
    os.rename(draft, path)


OPENS = {AWS: _aws, GCP: _gcp}
"""By name; each takes its own libraries along, and no other's."""
