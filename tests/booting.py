"""A cloud for tests whose machines boot, from its API to their agents; nothing of it stays."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from boxed import IMAGE, REGION, Box
from live_agent import CLOCK, until

from cloudwhale.control.bundle import Bundle, made
from cloudwhale.control.bundle_delivery import Delivery
from cloudwhale.mailbox.box import boot_of, folder_of, inbox_from, orders_to
from cloudwhale.mailbox.documents import REPORTS, AnyReport, BootTold, Joined, StartOrder
from cloudwhale.mailbox.objects import StoreObjects
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.spi.errors import Denied
from cloudwhale_providers.aws.user_data import user_data
from cloudwhale_providers.sandbox import boots, cgroups, namespaces
from cloudwhale_providers.sandbox.box import MAILBOX, reached
from cloudwhale_providers.sandbox.choosing import chosen
from cloudwhale_providers.sandbox.endpoint import Endpoint, Instance, Weather
from cloudwhale_providers.sandbox.endpoint.account import MACHINE_ROLE_ID
from cloudwhale_providers.sandbox.guests import guest
from cloudwhale_providers.sandbox.hypervisor import CONSOLE, House
from cloudwhale_providers.sandbox.metadata import MetadataService
from cloudwhale_providers.sandbox.names import INSTANCE_PROFILE
from cloudwhale_providers.sandbox.processes import of_folder

BOOTS_WITHIN_S = 150.0
"""Far more than a boot takes; four at once on a machine that others use too."""
IN_CI = "CI"

T = TypeVar("T")


def image_here(folder: Path) -> Path:
    """Return the image; skip with the reason where machines cannot boot. In CI that is a failure.

    Where there is none yet it is made, which takes minutes.
    """
    try:
        found = chosen("boots", folder, 1.0, _nobody).image
    except Denied as denied:
        if os.environ.get(IN_CI):
            pytest.fail(f"CI must boot machines: {denied.says}", pytrace=False)
        pytest.skip(str(denied.says))
    assert found is not None
    return found


def _nobody(says: str) -> None:
    """Tell nobody."""


@cache
def the_bundle() -> Bundle:
    """Return the agent's archive of what is installed here."""
    return made()


@dataclass
class BootingCloud:
    """A cloud and its machines, all of one folder."""

    folder: Path
    endpoint: Endpoint
    machines: boots.Boots
    box: Box
    objects: StoreObjects
    left: list[int] = field(default_factory=list[int])
    """Processes that could not be ended."""
    folders: dict[str, str] = field(default_factory=dict[str, str])
    """What each node's folders in the mailbox are called."""

    def launch(self, node: str, script: str = "", kind: str = "g5.xlarge", gpus: int = 1) -> str:
        """Launch a machine as the provider does; return its id. `script`: its user data."""
        tags = {
            "cloudwhale:node": node, "cloudwhale:lease": "1:900",
            "cloudwhale:installation": "lab", "cloudwhale:gpus": str(gpus),
            "cloudwhale:role": MACHINE_ROLE_ID,
        }  # fmt: skip
        told = script or user_data(MAILBOX, REGION, the_bundle().key)
        machine = self.box.run(
            ImageId=IMAGE,
            InstanceType=kind,
            UserData=told,  # botocore encodes it
            IamInstanceProfile={"Name": INSTANCE_PROFILE},
            InstanceInitiatedShutdownBehavior="terminate",
            MetadataOptions={"HttpTokens": "required", "InstanceMetadataTags": "enabled"},
            TagSpecifications=[
                {"ResourceType": "instance",
                 "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]},
            ],
        )  # fmt: skip
        self.folders[node] = folder_of(node, f"{MACHINE_ROLE_ID}:{machine}")
        return machine

    def turn(self) -> None:
        """Let happen what is due, as a box's own loop does."""
        self.endpoint.step(CLOCK.now())
        for machine in self.machines.exited():
            self.endpoint.end(machine)

    def until(self, found: Any, what: str, limit_s: float = BOOTS_WITHIN_S) -> Any:
        """Wait for something, and let happen meanwhile what is due."""

        def looked() -> Any:
            self.turn()
            return found()

        return until(looked, what, limit_s)

    def ends(self, machine: str) -> None:
        """Take a machine back, as its cloud does, and wait until it is gone."""
        self.endpoint.end(machine, "Server.SpotInstanceTermination")
        self.until(lambda: machine not in self.running, f"{machine} is gone", 30.0)

    @property
    def running(self) -> Sequence[str]:
        """The machines that run, by id."""
        return [
            one.id for one in self.endpoint.instances() if one.ended_at is None or self._is_in(one)
        ]

    def _is_in(self, one: Instance) -> bool:
        return one.id in self.machines.names

    # -- what machines say -------------------------------------------------------------------

    def console(self, machine: str) -> str:
        """Return what a machine's console has shown."""
        path = self.machines.home(machine) / CONSOLE
        return path.read_text(errors="replace") if path.exists() else ""

    def boot(self, node: str) -> list[BootTold]:
        """Return what a machine has told of its boot."""
        told = boot_of(self.objects, self.folders[node])
        bodies = [told.read(number) for number in range(1, told.newest() + 1)]
        return [BootTold.model_validate_json(body) for body in bodies if body is not None]

    def reports(self, node: str) -> list[AnyReport]:
        """Return what a machine's agent has reported."""
        inbox = inbox_from(self.objects, self.folders[node])
        bodies = [inbox.read(number) for number in range(1, inbox.newest() + 1)]
        return [REPORTS.validate_json(body) for body in bodies if body is not None]

    def joined(self, node: str) -> Joined | None:
        """Return the word of an agent that it is ready; None: it is not."""
        return next((one for one in self.reports(node) if isinstance(one, Joined)), None)

    def order(self, node: str, order: StartOrder, after: int = 0) -> None:
        """Tell an agent to start a job."""
        box = orders_to(self.objects, self.folders[node])
        box.post(order.model_dump_json().encode(), after=after)

    def inside(self, machine: str, words: Sequence[str], body: bytes = b"") -> bytes:
        """Run a program in a machine, as somebody with a key would; return what it says."""
        pid = self.machines.first_process(machine)
        enter = ["nsenter", f"--target={pid}", "--all", f"--root=/proc/{pid}/root", *words]
        done = subprocess.run(enter, input=body, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    # -- what is left ------------------------------------------------------------------------

    def leaks(self) -> list[str]:
        """Return what is there though no machine runs: none of it may be."""
        return [*leaks_of(self.folder), *self._wires(), *map(str, self.left)]

    def _wires(self) -> list[str]:
        said = namespaces.run(self.machines.network.router, ["ip", "-o", "link"])
        return [line for line in said.splitlines() if line.split(": ")[1].startswith("m")]


def leaks_of(folder: Path) -> list[str]:
    """Return what the machines of a box's folder have left on this host."""
    instances = folder / "instances"
    found = [f"process {pid}" for pid in of_folder(instances)]
    found += [str(group) for group in cgroups.left(f"cloudwhale-{boots.mark(folder)}-")]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found += [line for line in mounts if str(instances) in line]
    found += [str(path) for path in instances.glob("*/*") if path.name != CONSOLE]
    return found


def rules_of(folder: Path) -> list[str]:
    """Return what a box has in this host's own network."""
    mark = boots.mark(folder)
    said = subprocess.run(["iptables-save"], capture_output=True, text=True, check=False).stdout
    found = [line for line in said.splitlines() if mark in line]
    return found + [path.name for path in Path("/sys/class/net").glob(f"cw{mark}*")]


@contextmanager
def a_booting_cloud(folder: Path, weather: Weather | None = None) -> Iterator[BootingCloud]:
    """Give a cloud whose machines boot; everything of it is gone afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    image = image_here(folder)
    with ExitStack() as stack:
        endpoint = Endpoint(CLOCK, weather)
        url = endpoint.start()
        stack.callback(endpoint.close)
        assert endpoint.warmed.wait(120)
        metadata = MetadataService(CLOCK.now)
        stack.callback(metadata.close)
        port = int(url.rpartition(":")[2])
        told = boots.environment(reached(boots.from_inside(url), ""))
        house = House(folder, told, True, CLOCK.now, weather=weather or Weather())
        machines = boots.Boots(house, metadata, image)
        stack.callback(machines.close)
        endpoint.listen_also(machines.network.listening(port))
        box = Box(endpoint, SteppedClock(0.0))
        stack.callback(box.close)
        cloud = BootingCloud(
            folder, endpoint, machines, box, StoreObjects(box.store(prefix="mailbox"))
        )
        endpoint.on_started = lambda one: machines.start(guest(one, endpoint, CLOCK.now))
        endpoint.on_ended = lambda one: cloud.left.extend(machines.end([one.id]))
        Delivery(cloud.objects, the_bundle).delivered()
        yield cloud
    assert leaks_of(folder) == []
    assert rules_of(folder) == []
