"""A whole life at the sandbox's AWS under the policies that ship, and every permission it needs.

The controller's calls are made as its user, those of a machine by the keys of its role: its boot,
and a real agent with its jobs, their checkpoints and outputs. What AWS itself asks for is in it
too: roles that are passed, the role of spot, the stop that fires.
"""

import hashlib
import io
import os
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from boxed_aws import Box, boxed
from live_agent import NODE, LiveAgent, a_start, until
from renting_aws import a_request, an_offer

from cloudwhale.mailbox.box import (
    NODE_FOLDERS,
    bundle_key,
    folder_of,
    forget_node,
    inbox_from,
    orders_to,
    outputs_prefix,
    workdir_key,
)
from cloudwhale.mailbox.objects import PART_BYTES, StoreObjects, open_objects
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.rental import Lease
from cloudwhale.spi.provider import LaunchRequest, Leftover, Machine, Provider
from cloudwhale_providers.aws.clients import Clients
from cloudwhale_providers.aws.things import KINDS
from cloudwhale_providers.first_words import program as joined
from cloudwhale_providers.sandbox.box import MAILBOX
from cloudwhale_providers.sandbox.endpoint import Credentials, Weather
from cloudwhale_providers.sandbox.endpoint.iam_policies import Need
from cloudwhale_providers.sandbox.guests import guest
from cloudwhale_providers.sandbox.metadata import MetadataService
from cloudwhale_providers.sandbox.names import ACCOUNT, REGIONS
from cloudwhale_providers.sandbox.told import documents

REGION, ZONE = REGIONS[0], f"{REGIONS[0]}a"
LAB = "lab"
"""The installation."""
TAGS = {"cloudwhale:installation": LAB}
LISTED = [
    an_offer(ZONE),
    an_offer(ZONE, "on-demand"),
    an_offer(ZONE, "on-demand", type="inf1.xlarge"),  # no quota of its is known to have been set
]
SAVES = 'save() { echo "$1" > $D/.new; mv $D/.new $D/step-$1; }; D=$CLOUDWHALE_CHECKPOINT_DIR; '
SAVES += "for i in 1 2 3 4 5; do save $i; sleep 0.3; done; cat code > made; echo over"


@dataclass
class Life:
    """What was needed in a whole life: by whom, what, and whether it was allowed."""

    needs: dict[str, list[Need]] = field(default_factory=dict)
    refused: list[tuple[str, Need]] = field(default_factory=list)

    def hear(self, role: str, need: Need, is_allowed: bool) -> None:
        """Note one permission."""
        self.needs.setdefault(role, []).append(need)
        if not is_allowed:
            self.refused.append((role, need))


@contextmanager
def strict_box(**weather: Any) -> Iterator[Box]:
    """Open a cloud whose user is held to the controller's policy."""
    with (
        boxed(weather=Weather(strict_policies=True, **weather)) as box,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("AWS_ALLOW_HTTP", "true")
        patch.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "false")
        yield box


def request(box: Box, name: str, for_s: float = 3600.0, **fields: Any) -> LaunchRequest:
    """Make a request whose cloud's stop is a while from now."""
    stop_at = box.clock.now() + for_s
    lease = Lease(number=1, watched_until=stop_at, away_until=stop_at, stop_at=stop_at)
    return a_request(
        name,
        fields.pop("offer", LISTED[1]),
        stop_at=stop_at,
        lease=lease,
        mailbox=MAILBOX,
        **fields,
    )


def as_machine(keys: Credentials) -> dict[str, str]:
    """Return the environment of a machine's own programs."""
    return {
        "AWS_ACCESS_KEY_ID": keys.access_key,
        "AWS_SECRET_ACCESS_KEY": keys.secret_key,
        "AWS_SESSION_TOKEN": keys.token,
    }


def machines_mailbox(keys: Credentials) -> StoreObjects:
    """Open the mailbox as a machine does."""
    with being_the_machine(keys):
        objects = open_objects(MAILBOX)
        # Its client for large bodies takes the keys that hold when it is first needed.
        objects.put_chunks("outputs/none/1/000000", [])
        return objects


@contextmanager
def being_the_machine(keys: Credentials) -> Iterator[None]:
    """Have a machine's keys for a while."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in as_machine(keys).items():
            patch.setenv(name, value)
        yield


def keys_of(box: Box, machine: str) -> Credentials:
    """Return the keys of a machine that runs."""
    found = box.endpoint.credentials_of(machine)
    assert found is not None
    return found


class BoxedAgent(LiveAgent):
    """A real agent on a machine of the box: it has nothing but its role's keys."""

    def __init__(self, folder: Path, keys: Credentials, door: str) -> None:
        super().__init__(folder, door)
        self.url, self.objects = MAILBOX, open_objects(MAILBOX)
        self._orders = orders_to(self.objects, self.mailbox)
        self._inbox = inbox_from(self.objects, self.mailbox)
        self.env |= as_machine(keys)


# -- the life --------------------------------------------------------------------------------


def whole_life(folder: Path) -> Life:
    """Live it, from the doctor's first look to the last sweep; twenty seconds or so."""
    life = Life()
    with strict_box(spot_role=False) as box:
        box.endpoint.hear_permissions(life.hear)
        provider = box.provider_with(LAB, LISTED)
        provider.check()
        provider.offers(box.clock.now())
        _mailbox(folder)
        launched = provider.launch(request(box, NODE, offer=LISTED[0], gang=True))
        machine = launched.id
        pinned = box.provider_with(LAB, LISTED, pin_zone=True)
        pinned.launch(request(box, "pinned"))
        box.endpoint.step(box.clock.now())
        _boot(box, machine, folder)
        _work(box, launched, folder)
        _stop(box, provider)
        assert provider.extend(machine, box.clock.now() + 1800.0) != "fixed"
        _sweep(box, provider)
        until(lambda: _is_gone(box, provider, machine), "the machine is listed as gone")
        for one in provider.leftovers(()):
            provider.remove(one)
        assert not provider.leftovers(())
        forget_node(open_objects(MAILBOX), folder_of(NODE, launched.door))
    return life


def _is_gone(box: Box, provider: Provider, machine: str) -> bool:
    box.endpoint.step(box.clock.now())
    return {one.id: one.state for one in provider.machines()}[machine] == "gone"


def _mailbox(folder: Path) -> None:
    """Do what the controller does there before and beside its orders."""
    objects = open_objects(MAILBOX)
    assert objects.create("installation.json", b"{}")
    assert not objects.create("installation.json", b"[]")
    assert objects.get("installation.json") == b"{}"
    assert objects.get("installation.json.missing") is None
    for name in NODE_FOLDERS:
        objects.folders(name)
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


def _boot(box: Box, machine: str, folder: Path) -> None:
    """Ask what user data asks while a machine boots."""
    instance = box.endpoint.instance(machine)
    assert instance is not None
    who = guest(instance, box.endpoint, box.clock.now)
    metadata = MetadataService(box.clock.now)
    try:
        url = metadata.add(machine, lambda: documents(who.who, {}, keys=who.keys()))
        program = folder / "store"
        program.write_text(joined("cloudwhale_providers.aws"))
        environment = {
            "PATH": os.environ["PATH"], "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": url, "CLOUDWHALE_MAILBOX": MAILBOX,
            "CLOUDWHALE_REGION": REGION,
        }  # fmt: skip
        bundle = bundle_key(hashlib.sha256(b"an agent").hexdigest())
        told = _asked(program, ["about"], environment)
        assert f":{machine}" in told["CLOUDWHALE_DOOR"]
        environment |= told
        for words in (
            ["clock"], ["tell", "watchdog", "begun"], ["get", bundle, str(folder / "fetched")],
            ["tell", "watchdog", "done"],
        ):  # fmt: skip
            _asked(program, words, environment)
        assert (folder / "fetched").read_bytes() == b"an agent"
    finally:
        metadata.close()


def _asked(program: Path, words: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Run what a machine asks with; return what it says for its environment."""
    said = subprocess.run(
        [sys.executable, "-IS", str(program), *words], env=environment, check=True, timeout=60,
        capture_output=True, text=True,
    ).stdout  # fmt: skip
    lines = [shlex.split(line) for line in said.splitlines() if line.startswith("export ")]
    return dict(word.split("=", 1) for _, word in lines)


def _work(box: Box, machine: Machine, folder: Path) -> None:
    """Let a job run, save, be restored and leave something; let its agent die and be doubted."""
    keys = keys_of(box, machine.id)
    agent = BoxedAgent(folder / "agent", keys, machine.door)
    key = workdir_key(_workdir(agent.objects, folder))
    rule = CheckpointRule(every_s=0.1, keep=1, grace_s=5.0)
    agent.start()
    try:
        agent.post(
            a_start(command=SAVES, workdir=key, outputs=("made", "nothing"), checkpoint=rule)
        )
        assert agent.ended().exit_code == 0, agent.story()
        saved = agent.published().checkpoint
        agent.post(a_start(command="sleep 3", attempt=2, restore=agent.published(2).checkpoint))
        agent.pids(attempt=2)
        agent.kill()
        agent.start()
        assert agent.ended(attempt=2).exit_code == 0, agent.story()
        assert saved.attempt == 1
        assert b"over" in agent.log()
        assert agent.objects.get(f"{outputs_prefix('job', 1)}/manifest.json") is not None
        _doubted(folder, keys, machine.door)
    finally:
        agent.end()
    with being_the_machine(keys):
        _given_up(open_objects(MAILBOX), "checkpoints/job/1-99/000000")


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


def _doubted(folder: Path, keys: Credentials, door: str) -> None:
    """Let another agent want the name: it asks the store's clock, and is refused."""
    other = BoxedAgent(folder / "other", keys, door)
    other.start()
    assert other.process.wait(timeout=60) != 0
    assert "is taken" in other.story()


def _stop(box: Box, provider: Provider) -> None:
    """Let a stop fire while nobody is there."""
    short = provider.launch(request(box, "short", for_s=2.0)).id
    until(lambda: _ended(box, short), "the cloud has ended it", 30.0)


def _ended(box: Box, machine: str) -> bool:
    box.endpoint.step(box.clock.now())
    one = box.endpoint.instance(machine)
    return one is not None and one.ended_at is not None


# -- what is left over -----------------------------------------------------------------------


def planted(own: dict[str, str], name: str = "left") -> dict[str, str]:
    """Put one of each kind of thing into the account, as if launches had left them.

    Return their ids by what they are; moto's models have no types. `name`: of the group.
    """
    backend: Any = import_module("moto.backends").get_backend("ec2")[ACCOUNT][REGION]
    subnet = next(iter(backend.subnets[ZONE].values()))
    volume = backend.create_volume(size=8, zone_name=ZONE)
    snapshot = backend.create_snapshot(volume.id, "left")
    interface = backend.create_network_interface(subnet, private_ip_address=None)
    held = backend.create_network_interface(subnet, private_ip_address=None)
    address = backend.allocate_address("vpc")
    backend.associate_address(eni=held, allocation_id=address.allocation_id)
    group = backend.create_security_group(name, "x", subnet.vpc_id)
    found = {
        "volume": volume.id, "snapshot": snapshot.id, "interface": interface.id,
        "address": address.allocation_id, "security group": group.id,
    }  # fmt: skip
    for thing in found.values():
        backend.create_tags([thing], own)
    return {what: str(thing) for what, thing in found.items()}


def a_fleet(calls: Clients, own: dict[str, str]) -> str:
    """Ask for a fleet that carries our tag itself; ours do not, as they end with their answer."""
    tags = [{"Key": key, "Value": value} for key, value in own.items()]
    spec = [{"ResourceType": kind, "Tags": tags}
            for kind in ("fleet", "instance", "volume", "network-interface")]  # fmt: skip
    template = calls.call(REGION, "ec2", "describe_launch_templates")["LaunchTemplates"][0]
    answer = calls.call(
        REGION, "ec2", "create_fleet", Type="instant", TagSpecifications=spec,
        LaunchTemplateConfigs=[{
            "LaunchTemplateSpecification": {
                "LaunchTemplateId": template["LaunchTemplateId"], "Version": "1",
            },
            "Overrides": [{"InstanceType": "g5.xlarge", "AvailabilityZone": ZONE}],
        }],
        TargetCapacitySpecification={
            "TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand",
        },
    )  # fmt: skip
    return str(answer["FleetId"])


def _sweep(box: Box, provider: Provider) -> None:
    """Find what is left over and remove it; what the next machine uses, by hand."""
    planted(TAGS)
    calls = Clients()
    fleet = next(kind for kind in KINDS if kind.what == "fleet")
    fleet.remove(calls, REGION, {"FleetId": a_fleet(calls, TAGS)})
    box.endpoint.step(box.clock.now())
    found = [one for one in provider.leftovers(()) if one.is_ours]
    assert {one.what for one in found} >= {
        "instance", "volume", "address", "interface", "snapshot", "security group",
    }  # fmt: skip
    for one in sorted(found, key=lambda one: one.what == "security group"):
        provider.remove(one)
    for template in calls.call(REGION, "ec2", "describe_launch_templates")["LaunchTemplates"]:
        left = Leftover(id=template["LaunchTemplateId"], what="template", region=REGION)
        provider.remove(left)
