"""The clouds of a box start as its script names them, and go on where the last ones were."""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from stat import S_IMODE

import obstore
import pytest
from obstore.exceptions import UnauthenticatedError
from obstore.store import GCSStore

from cloudwhale.clock import SystemClock
from cloudwhale_providers.sandbox.compute import Compute
from cloudwhale_providers.sandbox.names import CREDENTIALS, GCP, GCP_BUCKET, GCP_STORE
from cloudwhale_providers.sandbox.opening import Ground, Opened, opened
from cloudwhale_providers.sandbox.pace import PacedClock, pace_from
from cloudwhale_providers.sandbox.weather import Script

CLOCK = SystemClock()
INSIDE = PacedClock(CLOCK, pace_from(CLOCK.now(), 60.0, CLOCK.now() + 9e6))
"""Far from the time that clients sign by."""


def ports_of(found: Opened) -> dict[str, int]:
    return {name: int(one.url.rpartition(":")[2]) for name, one in found.clouds.listening.items()}


def a_box(folder: Path, stack: ExitStack, ports: dict[str, int] | None = None) -> Opened:
    script = Script(clouds=(GCP,))
    return opened(Ground(folder, script, INSIDE, CLOCK, ports or {}, stack))


def bucket_of(found: Opened, **config: str) -> GCSStore:
    return GCSStore(
        GCP_BUCKET,
        config={"base_url": found.clouds.listening[GCP_STORE].url, **config},  # type: ignore[arg-type]
        client_options={"allow_http": True},
    )


def test_a_cloud_that_is_not_named_does_not_listen(tmp_path: Path) -> None:
    with ExitStack() as stack:
        found = a_box(tmp_path, stack)
        assert set(found.clouds.listening) == {GCP, GCP_STORE} and set(found.guests) == {GCP}


def test_a_box_of_one_cloud_loads_nothing_of_the_other() -> None:
    words = "import sys, cloudwhale_providers.sandbox.serving; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "cloudwhale_providers.sandbox.hypervisor" in loaded
    strange = {"cloudwhale_providers.sandbox.compute", "cloudwhale_providers.sandbox.storage"}
    assert not loaded & {*strange, "googleapiclient", "google.auth", "moto", "boto3"}


def test_whoever_has_the_key_is_let_into_the_store_and_nobody_else(tmp_path: Path) -> None:
    with ExitStack() as stack:
        found = a_box(tmp_path, stack)
        key = tmp_path / CREDENTIALS
        assert S_IMODE(key.stat().st_mode) == 0o600
        obstore.put(bucket_of(found, application_credentials=str(key)), "a", b"1")
        with pytest.raises(UnauthenticatedError):
            obstore.get(bucket_of(found, bearer_token="made-up"), "a")
        compute = found.clouds.listening[GCP]
        assert isinstance(compute, Compute)
        token = compute.user_token()
        assert obstore.get(bucket_of(found, bearer_token=token), "a").bytes() == b"1"


def test_the_next_box_has_the_same_ports_key_and_objects(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = a_box(tmp_path, stack)
        ports, key = ports_of(first), json.loads((tmp_path / CREDENTIALS).read_text())
        obstore.put(bucket_of(first, application_credentials=str(tmp_path / CREDENTIALS)), "a", b"")
    with ExitStack() as stack:
        second = a_box(tmp_path, stack, ports)
        assert ports_of(second) == ports
        assert json.loads((tmp_path / CREDENTIALS).read_text()) == key
        old = bucket_of(second, application_credentials=str(tmp_path / CREDENTIALS))
        assert obstore.head(old, "a")["size"] == 0


def test_a_port_that_somebody_else_has_is_left_to_them(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = a_box(tmp_path / "one", stack)
        second = a_box(tmp_path / "two", stack, ports_of(first))
        assert not set(ports_of(first).values()) & set(ports_of(second).values())


def test_a_key_that_cannot_be_read_is_drawn_anew(tmp_path: Path) -> None:
    (tmp_path / CREDENTIALS).write_text("{}")
    with ExitStack() as stack:
        a_box(tmp_path, stack)
        assert json.loads((tmp_path / CREDENTIALS).read_text())["private_key"]


def test_stirs_of_any_cloud_and_their_machines_come_together(tmp_path: Path) -> None:
    with ExitStack() as stack:
        found = a_box(tmp_path, stack)
        compute = found.clouds.listening[GCP]
        assert isinstance(compute, Compute)
        assert compute.stirred is found.clouds.stirred
        assert list(found.clouds.instances()) == [] and found.clouds.next_at() is None
        found.clouds.end("of-nobody")
        assert found.clouds.asked_lately() is False
