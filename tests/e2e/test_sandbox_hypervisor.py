"""Machines of the box are processes: they join, they run jobs, and nothing of them is left."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_agent import CLOCK, a_start, until

from cloudwhale.mailbox.box import inbox_from, orders_to
from cloudwhale.mailbox.documents import REPORTS, AnyReport, Joined
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale_providers.sandbox.fittings import Fittings
from cloudwhale_providers.sandbox.hypervisor import CONSOLE, Guest, House, Hypervisor, lease_left
from cloudwhale_providers.sandbox.metadata import MetadataService
from cloudwhale_providers.sandbox.processes import of_folder
from cloudwhale_providers.sandbox.told import Identity

STUBBORN = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, '-S', '-c', 'import time; time.sleep(600)'], {})
    os._exit(0)
time.sleep(600)
"""
"""A job that leaves a grandchild in a session of its own, with nothing in its environment."""


def a_guest(mailbox: Path, name: str = "i-1", **fields: object) -> Guest:
    tags = {"cloudwhale:node": f"rent-{name}", "cloudwhale:lease": "1:600"}
    who = Identity(name, "g5.xlarge", "us-east-1a", "us-east-1", "spot", tags)
    given = {"launched_at": CLOCK.now(), "mailbox": mailbox.as_uri(), **fields}
    return Guest(who=who, fittings=Fittings("1x A10G 24GB", 4, 14.8), **given)  # type: ignore[arg-type]


@pytest.fixture
def metadata() -> Iterator[MetadataService]:
    service = MetadataService(CLOCK.now)
    yield service
    service.close()


@pytest.fixture
def hypervisor(tmp_path: Path, metadata: MetadataService) -> Iterator[Hypervisor]:
    house = House(tmp_path / "box", {}, has_containers=False, now=CLOCK.now)
    found = Hypervisor(house, metadata)
    yield found
    assert found.close() == []


def reports(objects: StoreObjects, node: str) -> list[AnyReport]:
    inbox = inbox_from(objects, node)
    bodies = [inbox.read(number) for number in range(1, inbox.newest() + 1)]
    return [REPORTS.validate_json(body) for body in bodies if body is not None]


def joined(objects: StoreObjects, node: str) -> Joined | None:
    return next((one for one in reports(objects, node) if isinstance(one, Joined)), None)


def test_a_machine_joins_with_what_its_type_has_and_knows_of_no_containers(
    tmp_path: Path, hypervisor: Hypervisor
) -> None:
    mailbox = tmp_path / "mailbox"
    objects = open_objects(mailbox.as_uri())
    hypervisor.start(a_guest(mailbox))
    here = until(lambda: joined(objects, "rent-i-1"), "its agent joins").facts
    assert [device.model for device in here.devices] == ["A10G"]
    assert here.cpu == 4 and here.memory_gib == 14.8
    assert here.runtimes == ("process",)


def test_a_machine_that_is_ended_leaves_no_process_and_no_disk(
    tmp_path: Path, hypervisor: Hypervisor
) -> None:
    mailbox = tmp_path / "mailbox"
    objects = open_objects(mailbox.as_uri())
    hypervisor.start(a_guest(mailbox))
    until(lambda: joined(objects, "rent-i-1"), "its agent joins")
    script = tmp_path / "stubborn.py"
    script.write_text(STUBBORN)
    order = a_start(command=f"{sys.executable} {script}")
    orders_to(objects, "rent-i-1").post(order.model_dump_json().encode(), after=0)
    home = hypervisor.home("i-1")
    until(lambda: len(of_folder(home)) >= 5, "agent, shim, job and what it leaves run")
    others = of_folder(home)
    assert hypervisor.end(["i-1"]) == []
    assert of_folder(home) == frozenset()
    assert not [pid for pid in others if is_alive(pid)]
    assert [path.name for path in home.iterdir()] == [CONSOLE]


def test_a_machine_whose_power_button_is_pressed_leaves_by_itself(
    tmp_path: Path, hypervisor: Hypervisor
) -> None:
    mailbox = tmp_path / "mailbox"
    objects = open_objects(mailbox.as_uri())
    hypervisor.start(a_guest(mailbox))
    until(lambda: joined(objects, "rent-i-1"), "its agent joins")
    hypervisor.soft_off("i-1")
    until(lambda: list(hypervisor.exited()) == ["i-1"], "it shuts down")
    hypervisor.soft_off("i-1")
    hypervisor.soft_off("i-unknown")


def is_alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text[text.rfind(")") + 2 :][0] not in "ZX"


def test_a_machine_whose_agent_ends_has_shut_down(tmp_path: Path, hypervisor: Hypervisor) -> None:
    hypervisor.start(a_guest(tmp_path / "mailbox"))
    [agent] = hypervisor.agents
    os.kill(agent, 9)
    until(lambda: list(hypervisor.exited()) == ["i-1"], "its end is noticed")
    assert list(hypervisor.exited()) == []
    assert hypervisor.end(["i-1"]) == []
    assert len(hypervisor) == 0


def test_a_machine_has_nothing_of_its_users_environment(
    tmp_path: Path, hypervisor: Hypervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "dummy")
    monkeypatch.setenv("CLOUDWHALE_HOME", "/nowhere")
    hypervisor.start(a_guest(tmp_path / "mailbox"))
    [agent] = hypervisor.agents
    words = Path(f"/proc/{agent}/environ").read_bytes().split(b"\0")
    names = {word.partition(b"=")[0].decode() for word in words if word}
    ours = {"HOME", "DOCKER_HOST", "AWS_EC2_METADATA_SERVICE_ENDPOINT"}
    assert names <= {"PATH", "LANG", "LD_LIBRARY_PATH", *ours}


def test_what_an_earlier_box_has_left_is_ended_before_another_begins(
    tmp_path: Path, metadata: MetadataService
) -> None:
    house = House(tmp_path / "box", {}, has_containers=False, now=CLOCK.now)
    left = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        env={"HOME": str(tmp_path / "box" / "instances" / "i-9")},
    )
    try:
        until(lambda: of_folder(tmp_path / "box" / "instances"), "it runs")
        Hypervisor(house, metadata).tidy()
        assert left.wait(5) == -9
    finally:
        left.kill()
        left.wait()


def test_who_only_looks_into_a_machines_folder_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "instances" / "i-1"
    home.mkdir(parents=True)
    (home / CONSOLE).write_text("")
    reader = subprocess.Popen(["tail", "-f", str(home / CONSOLE)], stdout=subprocess.DEVNULL)
    try:
        assert of_folder(home) == frozenset()
    finally:
        reader.kill()
        reader.wait()


def test_a_lease_is_counted_from_the_launch(tmp_path: Path) -> None:
    guest = a_guest(tmp_path, launched_at=1000.0)
    assert lease_left(guest, 1100.0) == "1:500.000"
    assert lease_left(guest, 2000.0) == "1:0.000"


def test_a_machine_without_a_lease_does_not_boot(tmp_path: Path, hypervisor: Hypervisor) -> None:
    tags = {"cloudwhale:node": "rent-1"}
    who = Identity("i-1", "g5.xlarge", "us-east-1a", "us-east-1", "spot", tags)
    guest = Guest(who, CLOCK.now(), tmp_path.as_uri(), Fittings())
    with pytest.raises(ValueError, match="cloudwhale:lease"):
        hypervisor.start(guest)
