"""A whole life at the sandbox's GCP under the roles that ship, and every permission it needs.

The controller's calls are made with its own key, those of a machine with its token: its boot, and a
real agent with its jobs, their checkpoints and outputs.
"""

import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import small_gce
from boxed_gcp import Box, boxed
from live_agent import NODE, LiveAgent, a_start, until
from renting_gcp import a_request, an_offer, facts

from cloudwhale.mailbox.box import (
    bundle_key,
    forget_node,
    inbox_from,
    orders_to,
    outputs_prefix,
    workdir_key,
)
from cloudwhale.mailbox.objects import PART_BYTES, StoreObjects, open_objects
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.offer import Offer
from cloudwhale.spi.provider import LaunchRequest, Machine, Provider
from cloudwhale_providers.first_words import program
from cloudwhale_providers.gcp.clients import Clients
from cloudwhale_providers.gcp.policies import Binding, Name, Places, bindings, permissions
from cloudwhale_providers.sandbox.compute.calls import Caller
from cloudwhale_providers.sandbox.compute.places import MACHINE_ACCOUNT, PROJECT, USER_ACCOUNT
from cloudwhale_providers.sandbox.names import GCP_BUCKET
from cloudwhale_providers.sandbox.storage import Storage

LAB, UBUNTU = "lab", "ubuntu-os-cloud"
MAILBOX = f"gs://{GCP_BUCKET}/mailbox"
PLACES = Places(PROJECT, GCP_BUCKET, "mailbox", MACHINE_ACCOUNT, f"serviceAccount:{USER_ACCOUNT}")
ON_DEMAND, SPOT = an_offer(market="on-demand"), an_offer()
PLAIN = an_offer(market="on-demand", type="n1-standard-8", facts=facts("T4"))
SAVES = 'save() { echo "$1" > $D/.new; mv $D/.new $D/step-$1; }; D=$CLOUDWHALE_CHECKPOINT_DIR; '
SAVES += "for i in 1 2 3; do save $i; sleep 0.3; done; cat code > made; echo over"
STARTS = re.compile(r'resource\.name\.startsWith\("([^"]+)"\)')


class Need(NamedTuple):
    """One permission, needed by somebody on something."""

    member: str
    permission: str
    resource: str


@dataclass
class Life:
    """What was needed in a whole life, and what of it was refused."""

    needs: list[Need] = field(default_factory=list[Need])
    refused: list[Need] = field(default_factory=list[Need])

    def hear(self, need: Need) -> bool:
        """Note one; return whether it is allowed."""
        self.needs.append(need)
        allowed = allows(bindings(PLACES), need)
        if not allowed:
            self.refused.append(need)
        return allowed


def allows(given: Sequence[Binding], need: Need, without: str = "") -> bool:
    """Say whether bindings allow it, a permission left out."""
    return any(
        one.member == need.member
        and need.permission in _held(one.role) - {without}
        and _is_on(one, need)
        and holds(one.expression, need.resource)
        for one in given
    )


@cache
def _held(role: Name) -> frozenset[str]:
    return frozenset(permissions(role))


def _is_on(one: Binding, need: Need) -> bool:
    if need.permission.startswith("storage."):
        return one.on == "bucket" and need.resource.startswith(f"projects/_/buckets/{GCP_BUCKET}")
    if need.permission.startswith("iam.serviceAccounts."):
        return one.on == "account"
    return one.on == "project"


def holds(expression: str, resource: str) -> bool:
    """Evaluate a condition, as much of CEL as ours have: prefixes of names, one of which is due."""
    if not expression:
        return True
    parts = expression.split(" || ")
    found = [STARTS.fullmatch(part) for part in parts]
    assert all(found), f"a condition that this cannot read: {expression}"
    return any(one is not None and resource.startswith(one[1]) for one in found)


@dataclass
class Cloud:
    """The box, its store, and the metadata server of whatever machine is looked at."""

    box: Box
    storage: Storage
    metadata: small_gce.Metadata

    def becomes(self, machine: Machine) -> None:
        """Let the metadata server be that of a machine."""
        token = self.box.endpoint.credentials_of(machine.id)
        assert token is not None
        text = f'{{"access_token": "{token.text}", "expires_in": 3599, "token_type": "Bearer"}}'
        told = self.box.endpoint.services.machines.known(machine.id)
        assert told is not None
        account = "service-accounts/default"
        self.metadata.says(f"instance/{account}/token", text)
        self.metadata.says(f"instance/{account}/email", MACHINE_ACCOUNT)
        self.metadata.says("project/project-id", PROJECT)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a machine's programs find."""
        host = self.metadata.host
        return {
            "GCE_METADATA_HOST": host, "GCE_METADATA_IP": host, "GCE_METADATA_ROOT": host,
            "STORAGE_EMULATOR_HOST": self.storage.url, "GOOGLE_ALLOW_HTTP": "true",
        }  # fmt: skip


@contextmanager
def strict_cloud(folder: Path, life: Life) -> Iterator[Cloud]:
    """Open a cloud that holds everybody to the roles that ship."""
    with boxed(folder) as box, small_gce.metadata() as metadata, pytest.MonkeyPatch.context() as p:
        storage = Storage(box.clock)
        try:
            p.setenv("STORAGE_EMULATOR_HOST", storage.start())
            p.setenv("GOOGLE_BEARER_TOKEN", box.endpoint.user_token())
            _planted(box)
            _hold(box, storage, life)
            yield Cloud(box, storage, metadata)
        finally:
            storage.close()


def _planted(box: Box) -> None:
    """Leave a disk and an address, as if launches had."""
    calls, labels = Clients(box.endpoint.url), {"cloudwhale-installation": LAB}
    calls.call(
        "compute", "disks.insert", project=PROJECT, zone="us-central1-a",
        body={"name": "left", "sizeGb": "10", "labels": labels},
    )  # fmt: skip
    calls.call(
        "compute", "addresses.insert", project=PROJECT, region="us-central1",
        body={"name": "left", "labels": labels},
    )  # fmt: skip


def _hold(box: Box, storage: Storage, life: Life) -> None:
    def may(caller: Caller, permission: str, resource: str) -> bool:
        return allows(bindings(PLACES), Need(_member(caller), permission, resource))

    def needed(caller: Caller, permission: str, resource: str) -> None:
        life.hear(Need(_member(caller), permission, resource))

    def opens(token: str, permission: str, resource: str) -> bool:
        caller = box.endpoint.who(f"Bearer {token}")
        return life.hear(Need(_member(caller), permission, resource))

    box.endpoint.hold_to(may)
    box.endpoint.services.permits.on_needed = needed
    storage.may = opens


def _member(caller: Caller) -> str:
    return f"serviceAccount:{caller.email}"


class BoxedAgent(LiveAgent):
    """A real agent on a machine of the box: it has nothing but its token."""

    def __init__(self, folder: Path, cloud: Cloud) -> None:
        super().__init__(folder)
        self.url, self.objects = MAILBOX, open_objects(MAILBOX)
        self._orders = orders_to(self.objects, self.mailbox)
        self._inbox = inbox_from(self.objects, self.mailbox)
        self.env |= cloud.environment
        ours = ("GOOGLE_BEARER_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS")
        self.before = ["env", *(f"--unset={name}" for name in ours)]


# -- the life --------------------------------------------------------------------------------


def whole_life(folder: Path) -> Life:
    """Live it, from the doctor's first look to the last sweep."""
    life = Life()
    with strict_cloud(folder, life) as cloud:
        provider = cloud.box.provider(LAB, ON_DEMAND, SPOT, PLAIN, mailbox=MAILBOX)
        provider.check()
        image = Clients(cloud.box.endpoint.url).call(
            "compute", "images.getFromFamily", project=UBUNTU, family="ubuntu-2404-lts-amd64"
        )["name"]
        path = f"projects/{UBUNTU}/global/images/{image}"
        named = cloud.box.provider(LAB, mailbox=MAILBOX, external_address=False, image=path)
        named.check()
        provider.offers(cloud.box.clock.now())
        _mailbox(folder)
        machine = provider.launch(_request(cloud.box, NODE, ON_DEMAND))
        provider.launch(_request(cloud.box, "spot", SPOT))
        _until_it_runs(cloud.box, provider, machine)
        cloud.becomes(machine)
        _boot(cloud, folder)
        _work(cloud, folder)
        assert provider.extend(machine.id, cloud.box.clock.now() + 1800.0) == "fixed"
        _sweep(cloud.box, provider, machine)
        forget_node(open_objects(MAILBOX), NODE)
    return life


def _request(box: Box, name: str, offer: Offer) -> LaunchRequest:
    return a_request(name, offer, box.clock.now() + 3600.0, mailbox=MAILBOX)


def _until_it_runs(box: Box, provider: Provider, machine: Machine) -> None:
    def runs() -> bool:
        box.endpoint.step(box.clock.now())
        return {one.id: one.state for one in provider.machines()}.get(machine.id) == "running"

    until(runs, "the machine runs", 60.0)


def _mailbox(folder: Path) -> None:
    """Do what the controller does there before and beside its orders."""
    objects = open_objects(MAILBOX)
    assert objects.create("installation.json", b"{}")
    assert not objects.create("installation.json", b"another")
    assert objects.get("installation.json.missing") is None
    objects.folders("orders")
    _given_up(objects, "workdirs/unfinished.tar.gz")
    archive = folder / "bundle.tar.gz"
    archive.write_bytes(b"an agent")
    objects.put_file(bundle_key(hashlib.sha256(b"an agent").hexdigest()), archive)


def _given_up(objects: StoreObjects, key: str) -> None:
    """Upload something whose source breaks off, when parts of it are there already."""

    def chunks() -> Iterator[bytes]:
        for _ in range(3):
            yield bytes(PART_BYTES)
        raise KeyError("the source broke off")

    with pytest.raises(KeyError):
        objects.put_chunks(key, chunks())


def _boot(cloud: Cloud, folder: Path) -> None:
    """Ask what user data asks while a machine boots."""
    attributes = {"node": NODE, "lease": "1:3600", "installation": LAB, "gpus": "0"}
    for name, value in attributes.items():
        cloud.metadata.says(f"instance/attributes/cloudwhale-{name}", value)
    store = folder / "store"
    store.write_text(program("cloudwhale_providers.gcp"))
    environment = {
        "PATH": os.environ["PATH"], "CLOUDWHALE_MAILBOX": MAILBOX,
        "CLOUDWHALE_REGION": "us-central1", "CLOUDWHALE_NODE": NODE, **cloud.environment,
    }  # fmt: skip
    bundle = bundle_key(hashlib.sha256(b"an agent").hexdigest())
    for words in (
        ["about"], ["clock"], ["tell", "watchdog", "begun"],
        ["get", bundle, str(folder / "fetched")], ["tell", "watchdog", "done"],
    ):  # fmt: skip
        subprocess.run(
            [sys.executable, "-IS", str(store), *words], env=environment, check=True, timeout=60
        )
    assert (folder / "fetched").read_bytes() == b"an agent"


def _work(cloud: Cloud, folder: Path) -> None:
    """Let a job run, save, be restored and leave something; let its agent die and come again."""
    agent = BoxedAgent(folder / "agent", cloud)
    key = workdir_key(_workdir(agent.objects, folder))
    rule = CheckpointRule(every_s=0.1, keep=1, grace_s=5.0)
    agent.start()
    try:
        agent.post(
            a_start(command=SAVES, workdir=key, outputs=("made", "nothing"), checkpoint=rule)
        )
        assert agent.ended().exit_code == 0, agent.story()
        saved = agent.published().checkpoint
        agent.post(a_start(command="sleep 3", attempt=2, restore=saved))
        agent.pids(attempt=2)
        agent.kill()
        agent.start()
        assert agent.ended(attempt=2).exit_code == 0, agent.story()
        assert agent.objects.get(f"{outputs_prefix('job', 1)}/manifest.json") is not None
    finally:
        agent.end()
    _as_machine(cloud, lambda objects: _given_up(objects, "checkpoints/job/1-99/000000"))


def _as_machine(cloud: Cloud, do: Callable[[StoreObjects], None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in cloud.environment.items():
            patch.setenv(name, value)
        patch.delenv("GOOGLE_BEARER_TOKEN")
        patch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
        do(open_objects(MAILBOX))


def _workdir(objects: StoreObjects, folder: Path) -> str:
    body, code = io.BytesIO(), b"some code\n"
    with tarfile.open(fileobj=body, mode="w:gz") as tar:
        entry = tarfile.TarInfo("code")
        entry.size = len(code)
        tar.addfile(entry, io.BytesIO(code))
    archive = folder / "workdir.tar.gz"
    archive.write_bytes(body.getvalue())
    sha256 = hashlib.sha256(body.getvalue()).hexdigest()
    objects.put_file(workdir_key(sha256), archive)
    return sha256


def _sweep(box: Box, provider: Provider, machine: Machine) -> None:
    """Find what is left over, remove it, and look how a machine has ended."""
    for one in [one for one in provider.leftovers(()) if one.is_ours]:
        provider.remove(one)
    provider.terminate(machine.id)

    def is_over() -> bool:
        box.endpoint.step(box.clock.now())
        found = {one.id: one.state for one in provider.machines()}
        return found.get(machine.id, "gone") == "gone" and not provider.leftovers(())

    until(is_over, "nothing is left", 120.0)
