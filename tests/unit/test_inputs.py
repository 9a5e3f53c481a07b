"""What jobs read is fetched once into a cache of the node, and given to each under its name."""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from live_agent import CLOCK, a_start

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.inputs import Inputs, NoRoom, Unwanted, Wanted, folders_of
from cloudwhale.agent.place import Place
from cloudwhale.mailbox.sources import NothingThere, Source
from cloudwhale.spi.errors import Denied


class Lab:
    """A node, and data somewhere else."""

    def __init__(self, folder: Path) -> None:
        self.place = Place(folder / "home", "n")
        self.place.attempts.mkdir(parents=True)
        self.inputs = Inputs(self.place)
        self.data = folder / "team"
        self.data.mkdir()
        self.said: list[str] = []
        self.is_wanted = True

    def put(self, path: str, body: bytes = b"words") -> None:
        where = self.data / path
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(body)

    def url(self, path: str) -> str:
        return f"{self.data.as_uri()}/{path}"

    def give(self, job: str, *paths: str) -> AttemptFolder:
        folder = AttemptFolder(self.place.attempts, (job, 1))
        folder.path.mkdir(parents=True, exist_ok=True)
        order = a_start(job, inputs=tuple(map(self.url, paths)))
        wanted = Wanted(folder, order, CLOCK, self.said.append, lambda: self.is_wanted)
        self.said.append(self.inputs.give(wanted))
        return folder

    @property
    def entries(self) -> list[Path]:
        found = (self.place.path / "inputs").iterdir()
        return sorted(one for one in found if not one.name.startswith("."))


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_a_folder_of_objects_stands_under_its_name(lab: Lab) -> None:
    lab.put("corpus/a.txt", b"one")
    lab.put("corpus/deep/b.txt", b"two")
    folder = lab.give("job", "corpus/")
    assert (folder.path / "inputs/corpus/a.txt").read_bytes() == b"one"
    assert (folder.path / "inputs/corpus/deep/b.txt").read_bytes() == b"two"
    assert lab.said[-1].startswith(f"{lab.url('corpus/')}: 6 bytes in ")


def test_a_single_object_stands_in_a_folder_of_its_name(lab: Lab) -> None:
    lab.put("model.bin", b"weights")
    folder = lab.give("job", "model.bin")
    assert (folder.path / "inputs/model.bin/model.bin").read_bytes() == b"weights"


def test_what_one_job_has_fetched_the_next_one_shares(lab: Lab) -> None:
    lab.put("corpus/a.txt")
    one, two = lab.give("one", "corpus/"), lab.give("two", "corpus/")
    assert lab.said[-1] == f"{lab.url('corpus/')}: was here already"
    assert os.readlink(one.path / "inputs/corpus") == os.readlink(two.path / "inputs/corpus")


def test_what_has_changed_since_is_fetched_anew(lab: Lab) -> None:
    lab.put("corpus/a.txt", b"old")
    lab.give("one", "corpus/")
    lab.put("corpus/a.txt", b"newer")
    two = lab.give("two", "corpus/")
    assert (two.path / "inputs/corpus/a.txt").read_bytes() == b"newer"
    assert len(lab.entries) == 2


def test_an_entry_that_was_not_whole_is_fetched_again(lab: Lab) -> None:
    lab.put("corpus/a.txt", b"one")
    lab.give("one", "corpus/")
    (entry,) = lab.entries
    (entry / "whole").unlink()
    (entry / "data" / "a.txt").unlink()
    two = lab.give("two", "corpus/")
    assert (two.path / "inputs/corpus/a.txt").read_bytes() == b"one"


def test_several_inputs_stand_side_by_side_and_a_container_sees_all(lab: Lab) -> None:
    lab.put("corpus/a.txt")
    lab.put("labels/b.txt")
    folder = lab.give("job", "corpus/", "labels/")
    assert sorted(os.listdir(folder.path / "inputs")) == ["corpus", "labels"]
    assert folders_of(folder) == [str(folder.path / "inputs"), *(
        os.readlink(folder.path / "inputs" / name) for name in ("corpus", "labels")
    )]  # fmt: skip


def test_two_inputs_of_one_name_are_refused(lab: Lab) -> None:
    lab.put("a/corpus/x")
    lab.put("b/corpus/x")
    with pytest.raises(ValueError, match="two inputs would both be called corpus"):
        lab.give("job", "a/corpus/", "b/corpus/")


def test_nothing_there_is_said_with_the_url(lab: Lab) -> None:
    for path in ("corpus/", "no/such.bin"):
        with pytest.raises(NothingThere, match=lab.url(path)):
            lab.give("job", path)


def test_a_job_that_was_stopped_meanwhile_is_fetched_nothing_more(lab: Lab) -> None:
    lab.put("corpus/a.txt")
    lab.is_wanted = False
    with pytest.raises(Unwanted):
        lab.give("job", "corpus/")
    assert not (lab.entries[0] / "whole").exists()


class Disk(NamedTuple):
    total: int
    used: int
    free: int


def test_what_no_job_needs_gives_way_and_what_one_needs_never(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.put("old/a", b"x")
    lab.put("needed/a", b"y")
    lab.put("new/a", b"z" * 10)
    ended = lab.give("one", "old/")
    lab.give("two", "needed/")
    (ended.path / "ended").touch()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Disk(100, 95, 5))
    with pytest.raises(NoRoom, match="its inputs need 10 bytes, and 5 bytes are free here"):
        lab.give("three", "new/")
    assert len(lab.entries) == 1
    assert (lab.place.attempts / "two/1/inputs/needed/a").read_bytes() == b"y"


def test_a_source_is_called_by_the_last_part_of_its_url() -> None:
    names = [Source(url).name for url in ("s3://b/a/c/", "s3://b/x.tar", "s3://bucket")]
    assert names == ["c", "x.tar", "bucket"]


@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "[fd00:ec2::254]"])
def test_what_only_the_machine_itself_can_reach_is_refused_before_it_is_asked(host: str) -> None:
    with pytest.raises(Denied, match="address of the machine itself"):
        Source(f"http://{host}/latest/meta-data/").listed()
