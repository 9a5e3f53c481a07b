"""Which entries of a checkpoint folder are whole, new, and the newest."""

import os
from pathlib import Path

import pytest

from cloudwhale.agent.entries import STILL_S, End, Watch, entries

LARGE = b"x" * 5000
FINISHED = End(2e9, finished=True)


def save(folder: Path, name: str, body: bytes = LARGE) -> Path:
    """Write a file of a checkpoint, with the folders above it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return path


def at(path: Path, seconds: float) -> None:
    """Make a file look as if it was written then."""
    os.utime(path, (seconds, seconds))


def newest(watch: Watch, now: float, end: End | None = None) -> str | None:
    """Return the name of what is whole and new."""
    entry = watch.newest(now, end)
    return entry.name if entry else None


def test_what_has_not_changed_for_five_seconds_is_whole(tmp_path: Path) -> None:
    watch = Watch(tmp_path, {})
    save(tmp_path, "step-1")
    assert newest(watch, 100.0) is None
    assert newest(watch, 100.0 + STILL_S - 0.1) is None
    assert newest(watch, 100.0 + STILL_S) == "step-1"


def test_what_changes_meanwhile_waits_again(tmp_path: Path) -> None:
    watch = Watch(tmp_path, {})
    save(tmp_path, "step-1/a")
    newest(watch, 100.0)
    save(tmp_path, "step-1/b")
    assert newest(watch, 100.0 + STILL_S) is None
    assert newest(watch, 100.0 + 2 * STILL_S) == "step-1"


def test_what_was_renamed_into_place_is_whole_at_once(tmp_path: Path) -> None:
    watch = Watch(tmp_path, {})
    save(tmp_path, "step-1")
    watch.renamed("step-1")
    assert newest(watch, 100.0) == "step-1"


def test_what_is_written_to_after_its_rename_is_whole_no_more(tmp_path: Path) -> None:
    watch = Watch(tmp_path, {})
    path = save(tmp_path, "step-1")
    watch.renamed("step-1")
    assert newest(watch, 100.0) == "step-1"
    path.write_bytes(LARGE + b"more")
    assert newest(watch, 101.0) is None


def test_a_job_killed_while_it_writes_leaves_the_checkpoint_that_was_renamed(
    tmp_path: Path,
) -> None:
    at(save(tmp_path, "step-1/weights"), 990.0)
    at(save(tmp_path, "step-2/weights"), 999.0)
    at(tmp_path, 995.0)
    assert newest(Watch(tmp_path, {}), 100.0, End(1000.0)) == "step-1"
    assert newest(Watch(tmp_path, {}), 100.0, End(1000.0, finished=True)) == "step-2"
    heard = Watch(tmp_path, {})
    heard.renamed("step-2")
    assert newest(heard, 100.0, End(1000.0)) == "step-2", "whoever heard it knows more"


def after_a_tick(folder: Path) -> None:
    """Wait until the file system's clock has moved on."""
    probe = folder.with_name("clock")
    probe.touch()
    first = probe.stat().st_mtime_ns
    while probe.stat().st_mtime_ns == first:
        os.utime(probe)


def test_files_alone_tell_what_was_renamed_from_what_was_torn(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    save(folder, ".draft/inner/weights")
    (folder / ".draft").rename(folder / "step-1")
    save(folder, ".step-2")
    (folder / ".step-2").rename(folder / "step-2")
    torn = save(folder, "step-3/weights", LARGE)
    after_a_tick(folder)
    with torn.open("ab") as file:
        file.write(LARGE)
    [one, two, three] = entries(folder)
    assert [one.moved_in, two.moved_in, three.moved_in] == [True, True, False]
    save(folder, "step-4")  # somebody else's name beside it makes a folder no less torn
    [*_, three, _] = entries(folder)
    assert not three.moved_in


def test_one_that_was_replaced_and_one_that_was_linked_away_are_still_told_to_be_renamed(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "checkpoints"
    for _ in range(2):
        after_a_tick(save(folder, ".draft").parent)
        (folder / ".draft").replace(folder / "last")
    os.link(folder / "last", tmp_path / "held still")
    [entry] = entries(folder)
    assert entry.moved_in


def test_what_was_renamed_just_before_a_job_was_stopped_is_whole(tmp_path: Path) -> None:
    watch = Watch(tmp_path, {})
    at(save(tmp_path, "step-2/weights"), 1000.0)
    watch.renamed("step-2")
    assert newest(watch, 100.0) == "step-2"
    save(tmp_path, "latest", b"step-2")
    assert newest(watch, 101.0, End(1000.0)) == "step-2", "what points to it may come later"


def test_what_was_still_for_five_seconds_before_a_kill_is_whole(tmp_path: Path) -> None:
    at(save(tmp_path, "step-1"), 1000.0)
    at(tmp_path, 900.0)
    assert newest(Watch(tmp_path, {}), 100.0, End(1000.0 + STILL_S)) == "step-1"
    assert newest(Watch(tmp_path, {}), 100.0, End(999.0 + STILL_S)) is None


def test_what_was_seen_whole_stays_whole_whatever_its_times_say(tmp_path: Path) -> None:
    watch = Watch(tmp_path, {})
    at(save(tmp_path, "step-1"), 4e9)
    newest(watch, 100.0)
    assert newest(watch, 100.0 + STILL_S) == "step-1"
    assert newest(watch, 101.0 + STILL_S, End(1000.0)) == "step-1"


def test_of_a_job_that_ended_nobody_knows_when_the_last_to_be_written_may_be_half(
    tmp_path: Path,
) -> None:
    at(save(tmp_path, "step-1"), 1000.0)
    at(save(tmp_path, "step-2"), 1000.0 + STILL_S)
    at(tmp_path, 900.0)
    assert newest(Watch(tmp_path, {}), 100.0, End(None)) == "step-1"


@pytest.mark.parametrize("mark", [".complete", ".metadata", "commit_success.txt"])
def test_what_a_framework_marks_as_complete_is_whole(tmp_path: Path, mark: str) -> None:
    save(tmp_path, "step-1/weights")
    save(tmp_path, f"step-1/{mark}", b"1")
    assert newest(Watch(tmp_path, {}), 100.0) == "step-1"


def test_what_a_framework_marks_as_incomplete_is_not(tmp_path: Path) -> None:
    watch = Watch(tmp_path, {})
    save(tmp_path, "checkpoint-40/weights")
    mark = save(tmp_path, "checkpoint-40/checkpoint-is-incomplete.txt", b"")
    watch.renamed("checkpoint-40")
    assert newest(watch, 100.0, end=FINISHED) is None
    assert newest(watch, 200.0, end=FINISHED) is None
    mark.unlink()
    assert newest(watch, 300.0, end=FINISHED) == "checkpoint-40"


def test_torch_shards_without_their_metadata_are_not_whole(tmp_path: Path) -> None:
    watch = Watch(tmp_path, {})
    save(tmp_path, "step-1/__0_0.distcp")
    assert newest(watch, 100.0, end=FINISHED) is None
    save(tmp_path, "step-1/.metadata", b"1")
    assert newest(watch, 101.0) == "step-1"


def test_torch_shards_of_ranks_that_save_alone_are_whole_with_the_metadata_of_each(
    tmp_path: Path,
) -> None:
    watch = Watch(tmp_path, {})
    for name in ("__0_0.distcp", "__1_0.distcp", "__1_1.distcp", "__1.metadata"):
        save(tmp_path, f"step-1/{name}")
    assert newest(watch, 100.0, end=FINISHED) is None
    save(tmp_path, "step-1/__0.metadata.tmp")
    assert newest(watch, 101.0, end=FINISHED) is None
    save(tmp_path, "step-1/__0.metadata")
    assert newest(watch, 102.0, end=FINISHED) == "step-1"


@pytest.mark.parametrize(
    "name",
    [".hidden", "step-1.tmp", "step-1.partial", "tmp-checkpoint-1", "4.orbax-checkpoint-tmp-17"],
)
def test_drafts_are_no_checkpoints(tmp_path: Path, name: str) -> None:
    save(tmp_path, f"{name}/weights")
    assert newest(Watch(tmp_path, {}), 100.0, end=FINISHED) is None


def test_a_folder_without_a_byte_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "step-1" / "inner").mkdir(parents=True)
    save(tmp_path, "step-2/started", b"")
    assert newest(Watch(tmp_path, {}), 100.0, end=FINISHED) is None


def test_drafts_inside_a_checkpoint_are_left_out(tmp_path: Path) -> None:
    save(tmp_path, "step-1/weights")
    save(tmp_path, "step-1/weights.tmp")
    [entry] = entries(tmp_path)
    assert [file.path for file in entry.files] == ["step-1/weights"]


def test_the_newest_is_the_one_that_was_written_last(tmp_path: Path) -> None:
    for name, when in (("b", 30.0), ("c", 10.0), ("a", 20.0)):
        at(save(tmp_path, name), when)
    assert [entry.name for entry in entries(tmp_path)] == ["c", "a", "b"]
    assert newest(Watch(tmp_path, {}), 100.0, end=FINISHED) == "b"


def test_a_newest_that_is_not_whole_leaves_the_one_before(tmp_path: Path) -> None:
    at(save(tmp_path, "step-1"), 10.0)
    watch = Watch(tmp_path, {})
    newest(watch, 0.0)
    save(tmp_path, "step-2")
    assert newest(watch, STILL_S) == "step-1"


def test_what_is_known_is_not_new(tmp_path: Path) -> None:
    save(tmp_path, "step-1")
    [entry] = entries(tmp_path)
    watch = Watch(tmp_path, {"step-1": entry.digest})
    assert newest(watch, 100.0, end=FINISHED) is None
    save(tmp_path, "step-1", LARGE + b"trained on")
    assert newest(watch, 100.0, end=FINISHED) == "step-1"


def test_small_files_and_links_travel_with_the_checkpoint_they_point_to(tmp_path: Path) -> None:
    save(tmp_path, "global_step40/weights")
    save(tmp_path, "latest", b"global_step40")
    (tmp_path / "last").symlink_to("global_step40")
    [entry] = entries(tmp_path)
    assert (entry.name, [file.path for file in entry.files]) == (
        "global_step40", ["global_step40/weights", "last", "latest"]
    )  # fmt: skip


def test_where_all_files_are_small_each_is_a_checkpoint(tmp_path: Path) -> None:
    at(save(tmp_path, "1.json", b"{}"), 10.0)
    at(save(tmp_path, "2.json", b"{}"), 20.0)
    assert [entry.name for entry in entries(tmp_path)] == ["1.json", "2.json"]


def test_a_folder_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    assert newest(Watch(tmp_path / "gone", {}), 100.0) is None
