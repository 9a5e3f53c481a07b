"""One cloud in a box for many homes, each an installation of its own, whose controllers die in it.

Starting a cloud takes seconds of a core, and so does loading a controller: both are done once.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shell import Shell, end_all_of, until

from cloudwhale.clock import SystemClock
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale.model.job import Job
from cloudwhale.model.rental import Rental
from cloudwhale.model.world import Account
from cloudwhale.spi.sandbox import Metered
from cloudwhale.spi.store import JobQuery
from cloudwhale_providers.sandbox import Sandbox, record
from cloudwhale_providers.sandbox.box import reached
from cloudwhale_providers.sandbox.names import REGIONS
from cloudwhale_providers.sandbox.processes import killed, of_folder

ENDS_WITHIN_S = 240.0
"""How long anything may run here: several times of what it takes where many share a core."""
PROGRAM = Path(__file__).parent / "e2e" / "mortal_cloud.py"
CLOUD = PROGRAM.with_name("patient_box.py")
INSTALLATION, NODE = "cloudwhale:installation", "cloudwhale:node"
Thing = tuple[str, str, str]
"""What it is, its id, and the installation that it belongs to."""


@dataclass(frozen=True)
class Point:
    """A deed of a controller to die around, as `mortal_cloud` names them; empty: it lives."""

    deed: str = ""
    when: str = "after"

    def __str__(self) -> str:
        return f"{self.when} {self.deed}" if self.deed else "nowhere"


NOWHERE = Point()


@dataclass(frozen=True)
class Home:
    """A home whose cloud is the box that all share."""

    folder: Path
    door: Path
    boots_within_s: float = 0.0
    """How long controllers wait for agents beyond what offers say; 0: as long as ever.

    Where hours take a minute, an agent of this host takes long to start.
    """

    @property
    def environment(self) -> dict[str, str]:
        return Shell(self.folder, {"OPENBLAS_NUM_THREADS": "1"}).environment

    @property
    def inside(self) -> Path:
        """Where the database and the ledger of the box's money lie."""
        return self.folder / "home" / "sandbox"

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return name

    @contextmanager
    def started(self, *words: str, point: Point = NOWHERE) -> Iterator["Running"]:
        """Run cloudwhale there; it may die at a point."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(ENDS_WITHIN_S)
            line.connect(str(self.door))
            errand = {
                "words": [*words, "--sandbox"], "folder": str(self.folder),
                "environment": self.environment, "mailbox": self.folder.name,
                "deeds": str(self.folder / "deeds"), "point": point.deed, "when": point.when,
                "boots_within_s": self.boots_within_s,
            }  # fmt: skip
            file = line.makefile("rw")
            print(json.dumps(errand), file=file, flush=True)
            yield Running(int(file.readline()), file)

    def run(self, *words: str, point: Point = NOWHERE) -> int:
        """Run cloudwhale to its end; return its exit code, below 0 for a signal."""
        with self.started(*words, point=point) as running:
            return running.ends()

    @property
    def deeds(self) -> list[list[str]]:
        """What its controllers have done, in order, each deed with all its names."""
        try:
            return [json.loads(line) for line in (self.folder / "deeds").read_text().splitlines()]
        except FileNotFoundError:
            return []

    def has_done(self, deed: str) -> bool:
        return any(deed in names for names in self.deeds)

    @property
    def said(self) -> str:
        """The last that its commands have said."""
        return (self.folder / "home" / "said.log").read_text()[-3000:]

    @property
    def books(self) -> "Books":
        with closing(open_store(sqlite_url(self.inside), may_migrate=False)) as store:
            world = store.world(0.0)
            told = [one.event for one in store.events("installation")]
            names = [one.reason.says for one in told if isinstance(one, e.Noted)]
            changes = [one.event for one in store.since(0, store.version())]
            machines = {one.rental.machine for one in changes if isinstance(one, e.RentalChanged)}
            return Books(
                "".join(names[:1]), store.jobs(JobQuery()), tuple(world.rentals.values()),
                [one for one in store.accounts() if one.needs_limit], frozenset(machines),
            )  # fmt: skip


@dataclass(frozen=True)
class Running:
    """A cloudwhale that runs."""

    pid: int
    _file: Any

    @property
    def is_over(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def ends(self) -> int:
        """Wait for its end; return its exit code, below 0 for a signal."""
        return int(self._file.readline())


@dataclass(frozen=True)
class Books:
    """What a home's database says."""

    installation: str
    jobs: Sequence[Job]
    rentals: Sequence[Rental]
    """Those that are not paid for yet."""
    accounts: Sequence[Account]
    machines: frozenset[str]
    """All that it was ever told that it has."""

    @property
    def spent(self) -> int:
        return sum(one.spent for one in self.accounts)

    @property
    def reserved(self) -> int:
        return sum(one.reserved for one in self.accounts)


@dataclass
class MortalBox:
    """The cloud, what starts controllers, and the homes; use it in a `with`."""

    folder: Path
    weather: str
    attempt_lease_s: float = 600.0
    """After how long without their store its machines stop their jobs."""
    _homes: list[Home] = field(default_factory=list[Home])
    _seen: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Installation and node of each machine that was ever seen, by id."""

    def __enter__(self) -> "MortalBox":
        self.folder.mkdir(parents=True, exist_ok=True)
        self._shell = Shell(self.folder)
        script = self._shell.write("weather.yaml", self.weather)
        with ExitStack() as undo:
            undo.callback(self._kill)
            words = ("sandbox", "serve", "--folder", str(self.box), "--script", script)
            command = [sys.executable, str(CLOUD), str(self.attempt_lease_s)]
            self._shell.start(*words, command=command)
            starts = [sys.executable, str(PROGRAM), str(self._door)]
            self._starter = subprocess.Popen(starts, stdout=subprocess.PIPE, text=True)
            assert self._starter.stdout is not None
            with self._starter.stdout as said:  # which its forks hold too: nobody waits for its end
                assert said.readline() == "ready\n"
            until("the cloud answers", lambda: Sandbox().standing(self.box))
            self._clients = clients(self.box)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        with self._undo:
            if error[0] is not None:
                return
            standing = Sandbox().standing(self.box)
            if standing is not None:
                os.kill(standing.pid, signal.SIGTERM)
                until("the cloud ends", lambda: Sandbox().standing(self.box) is None)
            until("its machines have ended with it", lambda: not of_folder(self.box))

    def _kill(self) -> None:
        """Kill all that was started here: controllers first, as they would start others."""
        end_all_of(self._door)
        for home in self._homes:
            Shell(home.folder).close()
        self._shell.close()
        killed([self.box])
        self._starter.wait()

    @property
    def box(self) -> Path:
        """Folder of the cloud."""
        return self.folder / "box"

    @property
    def _door(self) -> Path:
        return self.folder / "door"

    def home(self, name: str, boots_within_s: float = 0.0) -> Home:
        """Make a home in it."""
        home = Home(self.folder / name, self._door, boots_within_s)
        home.inside.mkdir(parents=True)
        (home.inside / "cloud").symlink_to(self.box)
        self._homes.append(home)
        return home

    # -- what there is -----------------------------------------------------------------------

    def now(self) -> float:
        """Return what time it is in the box."""
        told = record.found(self.box)
        assert told is not None
        begin, speed, start = map(float, told.clock.split(":"))
        return start + (SystemClock().now() - begin) * speed

    def things(self) -> list[Thing]:
        """Return all that the cloud has and that was made for somebody, by its own API."""
        return [one for region in REGIONS for one in self._things(region)]

    def _things(self, region: str) -> Iterator[Thing]:
        ec2, scheduler = self._clients["ec2", region], self._clients["scheduler", region]
        lists = {
            "volume": ("Volumes", "VolumeId", ec2.describe_volumes),
            "interface": (
                "NetworkInterfaces",
                "NetworkInterfaceId",
                ec2.describe_network_interfaces,
            ),
            "address": ("Addresses", "AllocationId", ec2.describe_addresses),
            "template": ("LaunchTemplates", "LaunchTemplateId", ec2.describe_launch_templates),
            "group": ("SecurityGroups", "GroupId", ec2.describe_security_groups),
        }
        for one in self._instances(region):
            if one["State"]["Name"] != "terminated":
                yield "instance", one["InstanceId"], tagged(one, INSTALLATION)
        for what, (key, name, ask) in lists.items():
            for one in ask()[key]:
                if tagged(one, INSTALLATION):
                    yield what, one[name], tagged(one, INSTALLATION)
        for one in (
            scheduler.get_paginator("list_schedules").paginate().build_full_result()["Schedules"]
        ):
            yield "schedule", one["Name"], one["GroupName"].removeprefix("cloudwhale-")

    def _instances(self, region: str) -> list[Mapping[str, Any]]:
        """Return the machines of a region, those that have ended within the hour too."""
        pages = self._clients["ec2", region].get_paginator("describe_instances").paginate()
        return [
            one
            for reservation in pages.build_full_result()["Reservations"]
            for one in reservation["Instances"]
        ]

    def look(self) -> None:
        """Remember whose the machines are: an hour after its end none is listed any more."""
        for region in REGIONS:
            self._seen |= {
                one["InstanceId"]: (tagged(one, INSTALLATION), tagged(one, NODE))
                for one in self._instances(region)
            }

    def launched(self) -> Counter[tuple[str, str]]:
        """Return how many machines there were for each installation and node."""
        return Counter(self._seen.values())

    def meter(self) -> Sequence[Metered]:
        """Return the bill of all homes."""
        return Sandbox().meter(self.box)

    def bills(self) -> Mapping[str, list[Metered]]:
        """Return the bill of the meter by installation."""
        found: dict[str, list[Metered]] = {}
        for line in self.meter():
            found.setdefault(self._seen[line.id][0], []).append(line)
        return found


def clients(box: Path) -> Mapping[tuple[str, str], Any]:
    """Return clients of a box's cloud by service and region."""
    import boto3

    standing = Sandbox().standing(box)
    assert standing is not None
    told = reached(standing.url, "")
    session = boto3.session.Session(told["AWS_ACCESS_KEY_ID"], told["AWS_SECRET_ACCESS_KEY"])
    return {
        (service, region): session.client(service, region, endpoint_url=standing.url)
        for service in ("ec2", "scheduler")
        for region in REGIONS
    }


def tagged(thing: Mapping[str, Any], key: str) -> str:
    """Return a tag of something; empty where it has none such."""
    tags = thing.get("Tags") or thing.get("TagSet") or ()
    return next((str(one["Value"]) for one in tags if one["Key"] == key), "")
