"""Schedulers that play the same jobs, as a person asks for it."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import COMMAND, Shell, until

SMALL = ("simulate", "--jobs", "12", "--seeds", "2")
TRACE = "job,submit_s,duration_s,gpus,share\na,0,600,1,1\nb,60,600,1,0.5\nc,60,300,1,0.5\n"
LAB = '[[node]]\nname = "desk"\ndevices = ["1x RTX4090 24GB"]\ncpu = 16\nmemory_gib = 64\n'


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """Return a folder of its own to type in, without named traces."""
    here = Shell(tmp_path, {"CLOUDWHALE_TRACES": str(tmp_path / "traces")})
    yield here
    here.close()


def test_a_bare_simulate_shows_whale_against_fifo_and_priority(shell: Shell) -> None:
    done = shell(*SMALL)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "synthetic: 12 jobs on 4 nodes with 6 GPUs, seeds 1 to 2"
    assert [line.split()[0] for line in lines[1:6]] == [
        "POLICY", "whale", "fifo", "priority", "bound"
    ]  # fmt: skip
    assert "█" in done.out and done.err == "", "bars to look at; no progress in a pipe"


def test_json_is_one_document_with_every_policys_metrics(shell: Shell) -> None:
    found = shell(*SMALL, "--policy", "whale,fit-first", "--json").document
    assert list(found["policies"]) == ["whale", "fit-first"]
    for name in ("whale", "fit-first"):
        each = found["policies"][name]
        assert each["completed"] == 12 and each["failed"] == 0
        assert each["mean_completion_s"] >= found["bounds"]["mean_completion_s"] > 0
        assert 0 < each["utilisation"] <= 1
        assert set(found["seeds"][name]) == {"1", "2"}
        assert found["spread"][name]["mean_completion_s"] >= 0
    again = shell(*SMALL, "--policy", "whale,fit-first", "--json").document
    assert again == found, "the same seeds give the same document"


def test_a_users_trace_is_played_on_a_users_cluster_and_drawn(shell: Shell) -> None:
    trace, lab = shell.write("jobs.csv", TRACE), shell.write("lab.toml", LAB)
    done = shell(
        "simulate", "--trace", trace, "--cluster", lab, "--policy", "fifo", "--plots", "drawn",
        "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    # a runs alone from 0 to 600 or so; b and c beside each other after it
    fifo = done.document["policies"]["fifo"]
    assert 540 <= fifo["longest_wait_s"] <= 560 and fifo["jobs"] == 3
    assert "wrote" in done.err
    assert (shell.folder / "drawn" / "simulate.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (shell.folder / "drawn" / "simulate-gantt.svg").read_text()


def test_a_bad_row_ends_with_its_place_and_may_be_skipped(shell: Shell) -> None:
    trace = shell.write("jobs.csv", TRACE + "d,70,nan,1,1\ne,80,60,1,7\n")
    done = shell("simulate", "--trace", trace, "--policy", "fifo")
    assert done.code == 110 and done.out == ""
    assert done.err.startswith("cloudwhale: jobs.csv:5:6: duration_s is 'nan'\n  Write a number")
    skipped = shell("simulate", "--trace", trace, "--policy", "fifo", "--skip-bad", "--json")
    assert skipped.code == 0
    assert skipped.document["skipped"] == {"not a number": 1, "out of range": 1}
    assert skipped.document["policies"]["fifo"]["jobs"] == 3


def test_an_empty_trace_gives_an_empty_table(shell: Shell) -> None:
    trace = shell.write("jobs.csv", "job,submit_s,duration_s,gpus\n")
    done = shell("simulate", "--trace", trace)
    assert done.code == 0
    assert done.out.splitlines()[0] == "jobs.csv: 0 jobs on 4 nodes with 6 GPUs, seed 1"
    assert shell("simulate", "--trace", trace, "--json").document["policies"]["whale"]["jobs"] == 0


OFFER = '[[offer]]\nname = "l4"\ndevices = ["1x L4 24GB"]\nusd_h = 3.6\nboot_s = 60\n'


def test_money_is_spent_where_there_are_offers_and_a_budget(shell: Shell) -> None:
    trace, lab = shell.write("jobs.csv", TRACE), shell.write("lab.toml", LAB + OFFER)
    words = ("simulate", "--trace", trace, "--cluster", lab, "--policy", "no-wait", "--json")
    rented = shell(*words, "--budget", "5").document["policies"]["no-wait"]
    kept = shell(*words).document["policies"]["no-wait"]
    # b and c do not fit beside a, so they go to the cloud at once, onto one machine: 15 minutes
    assert 0.5 <= rented["cloud_usd"] <= 5.0
    assert kept["cloud_usd"] == 0.0, "without a budget nothing is rented"
    assert rented["longest_wait_s"] < 120 < kept["longest_wait_s"]


def test_what_goes_wrong_is_told_and_every_job_ends(shell: Shell) -> None:
    trace, lab = shell.write("jobs.csv", TRACE), shell.write("lab.toml", LAB)
    done = shell(
        "simulate", "--trace", trace, "--cluster", lab, "--policy", "fifo", "--json",
        "--faults", "lost:node=desk,at=5m,for=1h",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "1 faults" not in done.document["trace"] and "1 fault" in done.document["trace"]
    fifo = done.document["policies"]["fifo"]
    assert fifo["completed"] == 3 and fifo["mean_completion_s"] > 3600


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--trace", "none.csv"), 110, "none.csv: no such file or directory"),
        (("--trace", "."), 110, ".: is a directory"),
        (("--trace", ""), 110, ".: is a directory"),
        (("--trace", "synthetic:large"), 110, "the trace synthetic has no variants"),
        (("--trace", "philly"), 110, "philly_jobs_first60d.csv is not there"),
        (("--jobs", "100000000000000000000"), 2, "--jobs"),
        (("--faults", "lost:node=desk,at=1e400h"), 2, "'at=1e400h'"),
        (("--policy", "wale"), 2, "there is no policy called 'wale'"),
        (("--seeds", "0"), 2, "--seeds '0' names no seeds"),
        (("--estimates", "about"), 2, "'about' is no kind of estimates"),
        (("--gpus", "many"), 2, "'many' is no number of GPUs"),
        (("--gpus", "8", "--cluster", "lab.toml"), 2, "both say what the machines are"),
        (("--cluster", "none.toml"), 2, "none.toml cannot be read"),
        (("--trace", "openb", "--gpus", "8"), 2, "--gpus means nothing here"),
        (("--budget", "5"), 2, "--budget has nothing to be spent on"),
        (("--faults", "flood:at=1h"), 2, "'flood' is no kind of fault"),
        (("--faults", "lost:node=attic,at=1h"), 2, "--faults names the node attic"),
        (("--plots", "lab.toml"), 2, "--plots lab.toml: File exists"),
        (("--plots", "/proc/drawn"), 2, "--plots /proc/drawn: "),
        (("--trace", "openb", "--plots", "lab.toml"), 2, "--plots lab.toml: File exists"),
    ],
)
def test_what_cannot_be_played_is_refused_in_a_sentence(
    shell: Shell, words: tuple[str, ...], code: int, says: str
) -> None:
    shell.write("lab.toml", LAB)
    done = shell("simulate", *words)
    assert done.code == code and says in done.err
    assert done.out == "", "nothing is played that is lost then"
    assert "Traceback" not in done.err


def test_ctrl_c_shows_what_has_been_played_and_leaves_nothing_behind(shell: Shell) -> None:
    running = shell.start("simulate", "--policy", "fifo", "--jobs", "400", "--seeds", "50")
    until("its processes to play", lambda: len(shell.processes()) >= 2)
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "broken off: " in out and " of 50 not played" in out
    until("all of them to end", lambda: not shell.processes())


def test_openb_is_filled_by_every_policy_that_can(shell: Shell) -> None:
    traces = shell.folder / "traces"
    traces.mkdir()
    (traces / "openb_node_list_gpu_node.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\n"
        + "".join(f"n-{n},64000,262144,4,T4\n" for n in range(5))
    )
    (traces / "openb_pod_list_default.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
        + "".join(f"p-{n},4000,8192,1,{(250, 500, 1000)[n % 3]}\n" for n in range(30))
    )
    found = shell("simulate", "--trace", "openb", "--policy", "fgd,best-fit", "--json").document
    for name in ("fgd", "best-fit"):
        curve = {int(at): full for at, full in found["policies"][name]["allocated_percent"].items()}
        assert 100 < max(curve) <= 130, "up to 1.3 times all GPUs are asked for"
        most = found["policies"]["bound"]["allocated_percent"]["130"]
        assert 80 < curve[max(curve)] <= most <= 100
    assert set(found["seeds"]["fgd"]) == {"1", "2", "3"}


@pytest.mark.parametrize(
    ("where", "code", "says"),
    [(">&-", 0, ""), (">/dev/full", 1, "nothing more can be written: No space left on device")],
)
def test_an_output_that_takes_nothing_is_no_bug(
    shell: Shell, where: str, code: int, says: str
) -> None:
    words = [*COMMAND, "simulate", "--jobs", "1", "--seeds", "1", "--policy", "fifo"]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {where}', "sh", *words], cwd=shell.folder, env=shell.environment,
        stderr=subprocess.PIPE, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, says in done.stderr) == (code, True)
    assert "bug" not in done.stderr and "Traceback" not in done.stderr
