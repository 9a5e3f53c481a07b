"""Job files that are right: what each key means."""

import gc
import hashlib
import os
from pathlib import Path

import pytest

from cloudwhale.control.intake import JobFile, Overrides, read_jobs
from cloudwhale.model.job import CheckpointRule, GpuRequest, JobSpec, RetryCause, Span

NOW = 1_790_000_000.0  # 2026-09-21, before the deadlines that are written here
HEAD = "name: train\ncommand: python train.py\n"

DOCUMENTED = """\
name: lora-7b
project: nlp
image: pytorch/pytorch:2.9.0-cuda12.9-cudnn9-runtime
workdir: .
setup: pip install -r requirements.txt
command: python train.py --out $CLOUDWHALE_CHECKPOINT_DIR
env: {WANDB_MODE: offline}
secrets: [HF_TOKEN]
resources:
  gpu: {count: 1, memory: 24GB.., model: [L4, A10G, A100], share: 0.5}
  cpu: 4
  memory: 16GiB
  disk: 100GiB
  shm: 8GiB
  disk_io: 200MB/s
  network: 1Gbps
mounts: {/data: /data:ro}
nodes: 1
duration: 3h
reference: A100
max_duration: 8h
deadline: 2026-12-01T08:00+01:00
priority: 50
preemptible: true
wait: {max: 2h}
market: auto
checkpoint: {path: ckpt, every: 10m, signal: SIGTERM, grace: 90s}
retry: {max: 3, on: [preemption, node-loss, oom, error], backoff: 30s}
budget: 50
inputs: [s3://team-data/corpus/]
outputs: [results/]
after: [tokenise]
array: {lr: [1e-4, 3e-4], seed: 0..4}
where: {labels: {rack: a}, not: [node7]}
affinity: {labels: [llama-7b]}
notify: {on: [completed, failed, budget], webhook: https://example.org/hook}
speeds: {H100: 2.5, L4: 0.2}
value_of_time_usd_h: 1.5
"""


def read(folder: Path, text: str, overrides: Overrides | None = None) -> JobFile:
    file = folder / "job.yaml"
    file.write_text(text)
    return read_jobs(file, now=NOW, overrides=overrides)


def only(folder: Path, text: str, overrides: Overrides | None = None) -> JobSpec:
    (spec,) = read(folder, text, overrides).specs
    return spec


def test_every_documented_key_is_read(tmp_path: Path) -> None:
    file = read(tmp_path, DOCUMENTED)
    spec = file.specs[0]
    assert len(file.specs) == 10
    assert (spec.name, spec.project, spec.workdir) == ("lora-7b", "nlp", str(tmp_path))
    assert spec.resources.gpu == GpuRequest(
        count=1,
        memory_gib=Span(least=24),
        models=("L4", "A10G", "A100-40GB", "A100-80GB"),
        share=0.5,
    )
    assert (spec.resources.cpu, spec.resources.memory_gib, spec.resources.shm_gib) == (4, 16, 8)
    assert (spec.resources.disk_io_mb_s, spec.resources.network_mb_s) == (200, 125)
    assert spec.mounts == {"/data": "/data:ro"}
    assert (spec.duration_s, spec.max_duration_s, spec.wait_max_s) == (10800, 28800, 7200)
    assert spec.deadline == 1_796_108_400.0
    assert spec.checkpoint == CheckpointRule(path="ckpt", every_s=600, grace_s=90)
    assert spec.retry.on == tuple(RetryCause)
    assert (spec.budget, file.budget) == (50_000_000, 50_000_000)
    assert (spec.inputs, spec.outputs) == (("s3://team-data/corpus/",), ("results",))
    assert (spec.where.labels, spec.where.not_on) == ({"rack": "a"}, ("node7",))
    assert (spec.affinity, spec.after) == (("llama-7b",), ("tokenise",))
    assert spec.notify.webhook == "https://example.org/hook"
    assert spec.speeds == {"H100-80GB": 2.5, "H100-94GB": 2.5, "L4": 0.2}
    assert spec.value_of_time_usd_h == 1.5


def test_the_smallest_job_has_the_documented_defaults(tmp_path: Path) -> None:
    assert only(tmp_path, HEAD) == JobSpec(name="train", command="python train.py")


def test_a_job_may_run_four_times_as_long_as_expected(tmp_path: Path) -> None:
    assert only(tmp_path, HEAD + "duration: 30m").max_duration_s == 7200


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("1", GpuRequest(count=1)),
        ("0", GpuRequest(count=0)),
        ("0.5", GpuRequest(count=1, share=0.5)),
        ("1..2", GpuRequest(count=1, count_most=2)),
        ("A100-80GB:2", GpuRequest(count=2, models=("A100-80GB",))),
        ("rtx 4090", GpuRequest(count=1, models=("RTX4090",))),
        ("'L4,T4:2'", GpuRequest(count=2, models=("L4", "T4"))),
        ("80GB", GpuRequest(count=1, memory_gib=Span(least=80))),
        ("..80GB", GpuRequest(count=1, memory_gib=Span(most=80))),
        (
            "24GB..80GB:1..2",
            GpuRequest(count=1, count_most=2, memory_gib=Span(least=24, most=80)),
        ),
        ("{memory: 512MB..}", GpuRequest(count=1, memory_gib=Span(least=0.5))),
        ("{count: 2, model: L4}", GpuRequest(count=2, models=("L4",))),
    ],
)
def test_gpus_have_short_forms(tmp_path: Path, written: str, wanted: GpuRequest) -> None:
    assert only(tmp_path, HEAD + f"resources: {{gpu: {written}}}").resources.gpu == wanted


def test_an_array_is_every_combination_the_last_variable_fastest(tmp_path: Path) -> None:
    specs = read(tmp_path, HEAD + "array: {lr: [1e-4, 3e-4], seed: -1..1}").specs
    assert [tuple(spec.array.values()) for spec in specs] == [
        (lr, seed) for lr in ("1e-4", "3e-4") for seed in ("-1", "0", "1")
    ]
    assert specs[4].env == {"lr": "3e-4", "seed": "0"}


def test_defaults_lie_under_every_job_section_by_section(tmp_path: Path) -> None:
    text = """\
defaults: {env: {A: d, B: d}, resources: {cpu: 4, memory: 8GiB}, image: python:3, priority: 10}
jobs:
- {name: one, command: a}
- {name: two, command: b, env: {B: own}, resources: {cpu: 2}, image: ~, priority: 90}
"""
    one, two = read(tmp_path, text).specs
    assert (one.env, one.resources.cpu, one.image) == ({"A": "d", "B": "d"}, 4, "python:3")
    assert (two.env, two.resources.cpu, two.image) == ({"A": "d", "B": "own"}, 2, None)
    assert (two.resources.memory_gib, two.priority) == (8, 90)


def test_a_file_of_several_jobs_speaks_for_all_of_them(tmp_path: Path) -> None:
    text = """\
window: 22:00..08:00
unfinished: park
budget: 20
deadline: 2026-12-01T08:00Z
jobs:
- {name: one, command: a, budget: 5}
- {name: two, command: b, deadline: 2026-11-30T08:00Z}
"""
    file = read(tmp_path, text)
    assert (file.budget, file.deadline) == (20_000_000, 1_796_112_000.0)
    assert [spec.deadline for spec in file.specs] == [file.deadline, 1_796_025_600.0]
    assert file.window is not None
    assert (file.window.opens_min, file.window.closes_min) == (22 * 60, 8 * 60)
    assert (file.window.unfinished, file.window.line, file.window.column) == ("park", 1, 9)


def test_budgets_of_all_jobs_add_up_and_one_that_is_missing_leaves_none(tmp_path: Path) -> None:
    one, two = "{name: a, command: x, budget: 5}", "{name: b, command: x, budget: 2.50}"
    assert read(tmp_path, f"jobs: [{one}, {two}]").budget == 7_500_000
    assert read(tmp_path, f"jobs: [{one}, {{name: b, command: x}}]").budget is None


@pytest.mark.parametrize(("asked", "bound"), [(30, 30), (80, 50), (None, 50)])
def test_the_smaller_budget_wins(tmp_path: Path, asked: int | None, bound: int) -> None:
    overrides = Overrides(budget=None if asked is None else asked * 1_000_000)
    assert read(tmp_path, HEAD + "budget: 50", overrides).budget == bound * 1_000_000


def test_the_command_line_has_the_last_word(tmp_path: Path) -> None:
    overrides = Overrides(
        env={"A": "flag"}, args=("--note", "it's 5"), market="local", deadline=NOW + 60
    )
    spec = only(
        tmp_path, HEAD + "env: {A: f, B: f}\nmarket: spot\ndeadline: 2026-12-01T08:00Z", overrides
    )
    assert spec.env == {"A": "flag", "B": "f"}
    assert spec.command == """python train.py --note 'it'"'"'s 5'"""
    assert (spec.market, spec.deadline) == ("local", NOW + 60)


def test_arguments_join_the_last_line_of_a_command(tmp_path: Path) -> None:
    spec = only(tmp_path, "name: a\ncommand: |\n  cd src\n  python x.py\n", Overrides(args=("-v",)))
    assert spec.command == "cd src\npython x.py -v"


def test_a_workdir_starts_at_the_job_file(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    assert only(tmp_path, HEAD + "workdir: ./src").workdir == str(tmp_path / "src")


def test_a_deadline_without_an_offset_is_local_and_that_is_said(tmp_path: Path) -> None:
    file = read(tmp_path, HEAD + "deadline: 2026-12-01 08:00")
    assert abs((file.deadline or 0) - 1_796_112_000.0) <= 14 * 3600
    (note,) = file.notes
    assert "no offset" in note and "2026-12-01T08:00" in note


def test_anchors_may_be_used_within_reason(tmp_path: Path) -> None:
    text = "jobs:\n- {name: a, command: x, env: &e {A: b}}\n- {name: b, command: x, env: *e}\n"
    assert [spec.env for spec in read(tmp_path, text).specs] == [{"A": "b"}] * 2


def test_words_that_yaml_takes_for_numbers_and_truth_stay_words(tmp_path: Path) -> None:
    text = "name: 007\ncommand: yes\nenv: {A: 1_000, B: no, C: 0x10, D: '', E: 1e-4}\n"
    spec = only(tmp_path, text)
    assert (spec.name, spec.command) == ("007", "yes")
    assert spec.env == {"A": "1_000", "B": "no", "C": "0x10", "D": "", "E": "1e-4"}


def test_a_long_spot_job_without_checkpoint_is_taken_when_asked_for(tmp_path: Path) -> None:
    text = HEAD + "market: spot\nduration: 2h"
    assert only(tmp_path, text, Overrides(no_checkpoint_ok=True)).market == "spot"
    assert only(tmp_path, text + "\ncheckpoint: {path: ckpt}").market == "spot"
    assert only(tmp_path, HEAD + "market: spot\nduration: 1h").market == "spot"


@pytest.mark.parametrize(
    ("said", "ahead_s"), [("5h", 18000.0), ("1h30m", 5400.0), ("2d", 172800.0)]
)
def test_a_deadline_may_be_a_time_from_now(tmp_path: Path, said: str, ahead_s: float) -> None:
    assert only(tmp_path, HEAD + f"deadline: {said}").deadline == NOW + ahead_s


def test_shared_memory_of_a_plain_process_is_said_to_have_no_effect(tmp_path: Path) -> None:
    shm = HEAD + "resources: {shm: 8GiB}\n"
    assert any("no effect" in note for note in read(tmp_path, shm).notes)
    assert read(tmp_path, shm + "image: python:3.12").notes == ()


def test_the_digest_is_of_bytes_and_overrides(tmp_path: Path) -> None:
    plain = read(tmp_path, HEAD).digest
    assert plain == read(tmp_path, HEAD).digest
    assert len(bytes.fromhex(plain)) == hashlib.sha256().digest_size
    assert plain != read(tmp_path, HEAD + "# a remark\n").digest
    assert plain != read(tmp_path, HEAD, Overrides(env={"A": "b"})).digest


def cpu_s() -> float:
    used = os.times()
    return used.user + used.system


def test_a_thousand_jobs_are_read_within_a_second_of_cpu(tmp_path: Path) -> None:
    rows = [
        f"- {{name: j{n}, command: python a.py --x {n}, resources: {{gpu: A100}}, env: {{A: b}}, "
        f"duration: 3h, checkpoint: {{path: c}}, workdir: ., after: [j{n + 1}]}}"
        for n in range(1000)
    ]
    text = "defaults: {resources: {cpu: 1, memory: 1GB}, retry: {max: 2}}\njobs:\n"
    read(tmp_path, HEAD)  # what is built once does not count
    gc.freeze()  # nor does looking again and again through what thousands of tests have left
    before = cpu_s()
    assert len(read(tmp_path, text + "\n".join(rows)).specs) == 1000
    took_s = cpu_s() - before
    gc.unfreeze()
    assert took_s <= 1.0
    before = cpu_s()
    assert len(read(tmp_path, HEAD + "array: {i: 0..999}").specs) == 1000
    assert cpu_s() - before <= 1.0
