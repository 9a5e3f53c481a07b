"""Which attempt a process belongs to, on a made-up /proc."""

from pathlib import Path

import pytest

from cloudwhale.agent import belonging
from cloudwhale.agent.belonging import Belonging, Root

ONE, TWO = ("one", 1), ("two", 1)
ID = "4f1d" * 16


class Processes:
    """A /proc of our own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reads: list[int] = []

    def add(self, pid: int, parent: int, env: str = "", cgroup: str = "/") -> None:
        """Begin a process; its name is chosen to be hard to read."""
        path = self.folder / str(pid)
        path.mkdir()
        (path / "stat").write_text(f"{pid} (a ) 7 b) S {parent} {parent} 1 0 -1")
        (path / "environ").write_text(f"A=b\0{env}\0")
        (path / "cgroup").write_text(f"4:memory:{cgroup}\n0::{cgroup}\n")

    def end(self, pid: int) -> None:
        """End one."""
        for file in (self.folder / str(pid)).iterdir():
            file.unlink()
        (self.folder / str(pid)).rmdir()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Processes:
    monkeypatch.setattr(belonging, "PROC", tmp_path)
    made = Processes(tmp_path)
    for pid, parent in ((1, 0), (50, 1), (60, 50), (61, 60), (9, 61), (70, 1), (71, 70), (80, 1)):
        made.add(pid, parent)
    return made


def root(key: tuple[str, int] = ONE, shim: int = 50, job: int = 60, container: str = "") -> Root:
    return Root(key, Path("/home/attempts") / key[0] / "1", shim, job, container)


def test_what_descends_from_a_shim_belongs_to_its_attempt_whatever_the_numbers(
    here: Processes,
) -> None:
    found = Belonging().look([root(), root(TWO, 70, 71)])
    assert {key: sorted(pids) for key, pids in found.items()} == {ONE: [9, 60, 61], TWO: [71]}


def test_who_once_belonged_to_an_attempt_still_does_when_its_parent_has_ended(
    here: Processes,
) -> None:
    families = Belonging()
    families.look([root()])
    here.end(61)
    here.add(100, 9)
    assert sorted(families.look([root()])[ONE]) == [9, 60, 100]


def test_a_new_attempt_finds_the_processes_that_were_there_before_it_was_known(
    here: Processes,
) -> None:
    families = Belonging()
    families.look([root()])
    assert families.owner(71) is None
    families.look([root(), root(TWO, 70, 71)])
    assert families.owner(71) == TWO


def test_a_process_in_a_container_is_told_by_its_control_group(here: Processes) -> None:
    here.add(200, 80, cgroup=f"/docker/{ID}")
    here.add(201, 80, cgroup=f"/docker/{ID[::-1]}")
    families = Belonging()
    assert families.look([root(container=ID)])[ONE].count(200) == 1
    assert families.owner(200) == ONE
    assert families.owner(201) is None


def test_a_process_that_has_left_its_family_is_told_by_its_environment(here: Processes) -> None:
    here.add(300, 1, env="CLOUDWHALE_CHECKPOINT_DIR=/home/attempts/one/1/checkpoints")
    here.add(301, 1, env="CLOUDWHALE_CHECKPOINT_DIR=/other/attempts/one/1/checkpoints")
    families = Belonging()
    families.look([root()])
    assert families.owner(300) == ONE
    assert families.owner(301) is None
    assert families.owner(999) is None, "one that is gone already"


def test_without_attempts_nothing_is_read(here: Processes) -> None:
    families = Belonging()
    here.folder.rename(here.folder.with_name("away"))
    assert families.look([]) == {}
    assert families.owner(60) is None
