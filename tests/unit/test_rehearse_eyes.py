"""What a rehearsal sees of a job from outside: numbers in its files, its lines, saves and reads."""

import json
import os
import pickle
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.cli.completing import names_in_file
from cloudwhale.cli.rehearse_eyes import Log, Reads, Saves
from cloudwhale.cli.rehearse_numbers import numbers_in
from cloudwhale.clock import SystemClock, wait

LARGE = b"x" * 5000


def test_numbers_that_count_are_found_in_json_however_deep(tmp_path: Path) -> None:
    file = tmp_path / "trainer_state.json"
    file.write_text(
        json.dumps({"global_step": 500, "lr": 0.1, "log": {"epoch": 1.5, "done": True}})
    )
    assert numbers_in(file) == {"global_step": 500.0, "log.epoch": 1.5}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_numbers_are_found_in_a_pickle(tmp_path: Path, protocol: int) -> None:
    file = tmp_path / "state.pkl"
    file.write_bytes(pickle.dumps({"step": 70_000, "epoch": 3, "weights": [1.0, 2.0]}, protocol))
    assert numbers_in(file) == {"step": 70_000.0, "epoch": 3.0}


def test_numbers_are_found_in_what_torch_saves(tmp_path: Path) -> None:
    file = tmp_path / "last.ckpt"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("last/data.pkl", pickle.dumps({"global_step": 1234}, 2))
        archive.writestr("last/data/0", LARGE)
    assert numbers_in(file) == {"global_step": 1234.0}


def test_numbers_are_found_in_what_numpy_saves(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    file = tmp_path / "state.npz"
    numpy.savez(file, step=numpy.array(77), weights=numpy.zeros(3), epoch=numpy.float32(2))
    assert numbers_in(file) == {"step": 77.0, "epoch": 2.0}


class Bad:
    """What would write a file if anybody unpickled it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self._path),))


def test_nothing_in_a_checkpoint_is_ever_run(tmp_path: Path) -> None:
    file = tmp_path / "bad.pkl"
    file.write_bytes(pickle.dumps({"step": 5, "bad": Bad(tmp_path / "made")}))
    assert numbers_in(file) == {"step": 5.0}
    assert not (tmp_path / "made").exists()


def _nested() -> bytes:
    return b"{" + b'"a":{' * 100_000


@pytest.mark.parametrize(
    "body",
    [b"", b"\x80", b"\x80\x04\x95", b"PK\x03\x04rest", b"{", b"[1, 2]", os.urandom(100), _nested()],
    ids=["empty", "begun", "torn", "no-zip", "no-json", "list", "noise", "nested"],
)
def test_garbage_has_no_numbers(tmp_path: Path, body: bytes) -> None:
    file = tmp_path / "garbage"
    file.write_bytes(body)
    assert numbers_in(file) == {}


def test_a_file_that_is_gone_has_no_numbers(tmp_path: Path) -> None:
    assert numbers_in(tmp_path / "gone") == {}


def test_a_log_is_read_on_over_its_segments_and_bars_are_lines(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.look(1.0)
    (tmp_path / "000001").write_bytes(b"one\ntw")
    log.look(2.0)
    assert [line.text for line in log.lines] == ["one"]
    with (tmp_path / "000001").open("ab") as file:
        file.write(b"o\n 10%\r 20%\r\n")
    (tmp_path / "000002").write_bytes(b"three\n")
    log.look(3.0)
    assert [(line.at, line.text) for line in log.lines[1:]] == [
        (3.0, "two"), (3.0, " 10%"), (3.0, " 20%"), (3.0, "three"),
    ]  # fmt: skip


def test_what_the_agent_has_cleared_away_is_read_where_it_is_stored(tmp_path: Path) -> None:
    log = Log(tmp_path)
    (tmp_path / "000001").write_bytes(b"one\ntw")
    log.look(1.0)
    (tmp_path / "000001").unlink()
    log.end(b"one\ntwo\nValueError", 2.0)
    assert [line.text for line in log.lines] == ["one", "two", "ValueError"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SimpleNamespace]:
    folder = AttemptFolder(tmp_path, ("job", 2))
    checkpoints = folder.path / "checkpoints"
    reads = Reads(folder, checkpoints)
    if not reads.can_hear:
        pytest.skip("this host has no inotify")
    reads.start()
    checkpoints.mkdir(parents=True)
    yield SimpleNamespace(folder=folder, checkpoints=checkpoints, reads=reads)
    reads.close()


def put_back(place: SimpleNamespace, name: str) -> Path:
    """Lay an entry into the folder as an agent does: from beside it, by rename."""
    staged = place.folder.path / "staged"
    staged.mkdir()
    (staged / "weights").write_bytes(LARGE)
    path: Path = place.checkpoints / name
    staged.rename(path)
    return path


def heard(place: SimpleNamespace, name: str, within_s: float = 5.0) -> bool:
    clock = SystemClock()
    end = clock.steady() + within_s
    while not place.reads.was_read(name) and clock.steady() < end:
        wait(0.01)
    return bool(place.reads.was_read(name))


def until_watched(place: SimpleNamespace, path: Path) -> None:
    clock = SystemClock()
    end = clock.steady() + 5.0
    while path not in place.reads.watched and clock.steady() < end:
        wait(0.01)
    assert path in place.reads.watched


def test_a_job_that_reads_what_was_put_back_is_heard(place: SimpleNamespace) -> None:
    path = put_back(place, "step-1")
    until_watched(place, path)
    assert not place.reads.was_read("step-1")
    (path / "weights").read_bytes()
    assert heard(place, "step-1")


def test_looking_at_names_and_writing_anew_is_no_reading(place: SimpleNamespace) -> None:
    path = put_back(place, "step-1")
    until_watched(place, path)
    assert [one.stat().st_size for one in path.iterdir()] == [5000]
    (path / "weights").write_bytes(LARGE)
    assert not heard(place, "step-1", within_s=0.3)


def test_what_we_read_ourselves_is_not_counted(place: SimpleNamespace) -> None:
    path = put_back(place, "step-1")
    until_watched(place, path)
    place.reads.is_changed("step-1")
    (path / "weights").read_bytes()
    assert not heard(place, "step-1", within_s=0.3)


def a_file(path: Path, body: bytes, at: float) -> None:
    path.write_bytes(body)
    os.utime(path, (at, at))


def test_only_what_an_attempt_wrote_itself_is_its_save(place: SimpleNamespace) -> None:
    a_file(place.checkpoints / "step-1.pt", LARGE, 100.0)
    a_file(place.folder.path / "begun", b"", 200.0)
    saves = Saves(place.folder, place.checkpoints, {"step-1.pt"}, place.reads)
    a_file(place.checkpoints / "step-2.pt", LARGE, 150.0)  # copied with its old time
    a_file(place.checkpoints / ".step-3.pt", LARGE, 300.0)
    saves.look()
    assert saves.saves == [], "it may still be written"
    saves.look()
    assert [save.name for save in saves.saves] == ["step-2.pt"]
    a_file(place.checkpoints / "step-1.pt", LARGE + b"new", 301.0)
    for _ in range(3):
        saves.look()
    assert [save.name for save in saves.saves] == ["step-2.pt", "step-1.pt"]
    assert saves.being_written(299.0) == (".step-3.pt",)


def test_what_grows_after_the_signal_with_pauses_between_is_still_being_written(
    place: SimpleNamespace,
) -> None:
    a_file(place.folder.path / "begun", b"", 1.0)
    saves = Saves(place.folder, place.checkpoints, None, place.reads)
    for at, pieces in ((10.0, 1), (11.0, 2)):
        a_file(place.checkpoints / "slow.pt", LARGE * pieces, at)
        a_file(place.checkpoints / "last.pt", LARGE, at)
        saves.look()
        saves.look()
    assert saves.being_written(9.0) == ("slow.pt",)


def test_saves_carry_a_digest_of_their_bytes_and_the_numbers_in_them(
    place: SimpleNamespace,
) -> None:
    a_file(place.folder.path / "begun", b"", 1.0)
    saves = Saves(place.folder, place.checkpoints, None, place.reads)
    for name in ("a", "b"):
        (place.checkpoints / name).mkdir()
        (place.checkpoints / name / "weights").write_bytes(LARGE)
        (place.checkpoints / name / "state.json").write_text('{"step": 7}')
    saves.look()
    saves.look()
    one, two = saves.saves
    assert one.digest == two.digest != ""
    assert one.numbers == {"state.json:step": 7.0}


def test_names_of_jobs_in_the_file_that_was_typed_are_offered(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text("jobs:\n- {name: fit-a, command: a}\n- {name: other, command: b}\n")

    def offered(typed: object, begun: str) -> list[str]:
        context: Any = SimpleNamespace(params={"file": typed})
        return names_in_file(context, begun)

    assert offered(file, "fit") == ["fit-a"]
    assert offered(file, "") == ["fit-a", "other"]
    assert offered(None, "") == offered(tmp_path / "gone.yaml", "") == []
