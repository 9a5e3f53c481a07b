"""Task lists of older tools."""

import json
from pathlib import Path
from typing import Any

import pytest

from cloudwhale.control.intake import JobFile, Overrides, read_jobs
from cloudwhale.model.job import GpuRequest, JobSpec, Resources, Span
from cloudwhale.spi.errors import SpecError

TASK = {"id": "t1", "image": "", "gpu_mem_needed": 12, "cmd": "python a.py", "status": "pending"}


def read(folder: Path, *tasks: dict[str, Any], overrides: Overrides | None = None) -> JobFile:
    file = folder / "tasks.json"
    file.write_text(json.dumps(tasks, indent="\t"))
    return read_jobs(file, now=0.0, overrides=overrides)


def test_a_task_becomes_a_job(tmp_path: Path) -> None:
    (spec,) = read(tmp_path, TASK).specs
    gpu = GpuRequest(count=1, memory_gib=Span(least=12))
    assert spec == JobSpec(name="t1", command="python a.py", resources=Resources(gpu=gpu))


def test_memory_is_gigabytes_below_a_thousand_and_megabytes_from_there(tmp_path: Path) -> None:
    needs = [0, 0.5, 999, 1000, 24576]
    specs = read(tmp_path, *({**TASK, "gpu_mem_needed": need} for need in needs)).specs
    found = [spec.resources.gpu.memory_gib.least for spec in specs]
    assert found == [0, 0.5, 999, 1000 / 1024, 24]
    assert [spec.resources.gpu.count for spec in specs] == [0, 1, 1, 1, 1]


def test_an_image_is_kept_and_an_empty_one_is_none(tmp_path: Path) -> None:
    specs = read(tmp_path, {**TASK, "image": "python:3.11"}, {**TASK, "image": None}, TASK).specs
    assert [spec.image for spec in specs] == ["python:3.11", None, None]


def test_done_tasks_are_skipped_and_the_list_is_not_written(tmp_path: Path) -> None:
    file = read(tmp_path, {**TASK, "status": "done"}, TASK, {**TASK, "status": "failed"})
    assert len(file.specs) == 2
    before = (tmp_path / "tasks.json").read_bytes()
    (tmp_path / "tasks.json").chmod(0o400)
    read_jobs(tmp_path / "tasks.json", now=0.0)
    assert (tmp_path / "tasks.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tasks.json"]


def test_a_list_that_is_done_gives_no_jobs_and_says_so(tmp_path: Path) -> None:
    file = read(tmp_path, {**TASK, "status": "done"})
    assert (file.specs, file.notes) == ((), ("Every task of the list is done.",))


def test_an_id_is_made_a_name_and_a_number_will_do(tmp_path: Path) -> None:
    specs = read(tmp_path, {**TASK, "id": 17}, {**TASK, "id": "../evil/ täsk #1"}).specs
    assert [spec.name for spec in specs] == ["17", "evil-t-sk-1"]


def test_keys_of_the_other_tool_are_told_of(tmp_path: Path) -> None:
    file = read(tmp_path, {**TASK, "owner": "x"})
    assert file.notes == ("These keys of the task list mean nothing here: owner.",)


def test_the_command_line_has_its_say(tmp_path: Path) -> None:
    (spec,) = read(tmp_path, TASK, overrides=Overrides(args=("-v",), market="local")).specs
    assert (spec.command, spec.market) == ("python a.py -v", "local")


@pytest.mark.parametrize(
    ("change", "says", "remedy"),
    [
        ({"gpu_mem_needed": -1}, "gpu_mem_needed: '-1' is not above 0", "above 0"),
        ({"gpu_mem_needed": "12GB"}, "'12GB' is not a number", "digits"),
        ({"cmd": ""}, "cmd: it is empty", "Write something"),
        ({"id": "///"}, "has no letter or digit", "another id"),
        ({"image": "a b"}, "cannot be a container image", "registry/name:tag"),
    ],
)
def test_a_wrong_task_is_named(
    tmp_path: Path, change: dict[str, Any], says: str, remedy: str
) -> None:
    with pytest.raises(SpecError) as caught:
        read(tmp_path, TASK, {**TASK, **change})
    assert says in caught.value.says and remedy in caught.value.remedy
    assert (caught.value.line or 0) > 8


@pytest.mark.parametrize("key", ["id", "cmd", "gpu_mem_needed"])
def test_a_task_without_what_it_needs_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(SpecError, match=f"2:2: the task has no `{key}`"):
        read(tmp_path, {name: value for name, value in TASK.items() if name != key})


def test_a_list_of_words_is_no_task_list(tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text('["a"]')
    with pytest.raises(SpecError, match="1:2: a task is keys with values"):
        read_jobs(tmp_path / "tasks.json", now=0.0)


@pytest.mark.parametrize("cmd", ["echo 🐳🐋", "echo é\t'x'", r"echo \\ud83d\udc33", "a/b", '"'])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_json_of_any_writer_is_read(tmp_path: Path, cmd: str, separators: tuple[str, str]) -> None:
    text = json.dumps([{**TASK, "cmd": cmd}], separators=separators)
    for written in (text, text.replace("/", r"\/"), json.dumps([{**TASK, "cmd": cmd}])):
        (tmp_path / "tasks.json").write_text(written)
        (spec,) = read_jobs(tmp_path / "tasks.json", now=0.0).specs
        assert spec.command == cmd
