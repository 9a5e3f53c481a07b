"""What real jobs may not do: fill the log, tell a secret, use more memory or CPU than asked for."""

import base64
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_agent import LiveAgent, a_start, until

from cloudwhale.host import Hierarchies
from cloudwhale.mailbox.box import log_of, whole_log_key
from cloudwhale.mailbox.documents import AttemptStarted, Joined, Remark
from cloudwhale.mailbox.sealing import new_key_pair, seal
from cloudwhale.model.reason import Code

SECRET = "hf_9d8c7b6a5f4e3d2c1b0a"
SPIN = """
import os, time
end = time.monotonic() + 1.5
while time.monotonic() < end:
    pass
print(sum(os.times()[:2]))
"""
LINES = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7bq\n-----END KEY-----"
EATER = (
    "import sys; held = bytearray(int(sys.argv[1]) << 20); held[::4096] = b'x' * len(held[::4096])"
)


def test_of_a_long_log_the_first_and_the_last_part_are_kept(agent: LiveAgent) -> None:
    agent.program = "small_agent"
    agent.start()
    agent.post(a_start(command="seq -f '%09.0f' 20000"))
    agent.ended()
    whole = agent.log()
    first, gap, last = re.split(
        rb"\n\[cloudwhale: (\d+) bytes of output were left out here\]\n", whole
    )
    everything = b"".join(b"%09d\n" % number for number in range(1, 20001))
    assert first == everything[:10_000]
    assert everything.endswith(last)
    assert 10_000 <= len(last) <= 11_000
    assert len(first) + int(gap) + len(last) == len(everything) == 200_000
    remark = agent.wait_for(Remark)
    assert (remark.code, remark.says.split()[0]) == (Code.LOG_SHORTENED, gap.decode())


def test_past_its_head_only_the_newest_of_a_log_is_posted(agent: LiveAgent) -> None:
    agent.program = "small_agent"
    agent.start()
    agent.post(a_start(command="seq -f '%09.0f' 20000; sleep 1; echo end; sleep 1"))
    box = log_of(agent.objects, "job", 1)

    def chunks() -> bytes:
        bodies = (box.read(number) for number in range(1, 99))
        return b"".join(body for body in bodies if body is not None)

    until(lambda: b"\nend\n" in chunks(), "the newest output is posted")
    posted = chunks()
    assert b"bytes of output were left out here" in posted
    assert len(posted) < 50_000
    agent.ended()
    assert box.read(1) is None, "chunks are gone once the whole log is there"


def test_a_log_can_be_followed_while_the_job_runs(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="echo first; while [ ! -e go ]; do sleep 0.02; done; echo second"))
    box = log_of(agent.objects, "job", 1)
    until(lambda: box.read(1) == b"first\n", "the first line is posted")
    (agent.folder().work / "go").touch()
    agent.ended()
    assert agent.log() == b"first\nsecond\n"


def test_secrets_reach_the_job_and_no_file_anywhere(agent: LiveAgent, tmp_path: Path) -> None:
    agent.start()
    key = agent.wait_for(Joined).public_key
    sealed = {"HF_TOKEN": seal(SECRET, key), "PEM": seal(LINES, key)}
    tell = (
        'printf %s "$HF_TOKEN" | head -c 9; sleep 0.1; printf %s "$HF_TOKEN" | tail -c +10; echo; '
    )
    agent.post(
        a_start(command=f'{tell} echo "token=$HF_TOKEN."; echo "$PEM"; '
                        'test ${#HF_TOKEN} = 23 || exit 3', secrets=sealed)
    )  # fmt: skip
    assert agent.ended().exit_code == 0
    assert agent.log() == b"***\ntoken=***.\n***\n"
    assert _files_that_hold(tmp_path, SECRET.encode()) == []
    assert _files_that_hold(tmp_path, b"MIIEpAIBAAKCAQEA7bq") == []


def test_a_secret_in_the_last_words_is_masked(agent: LiveAgent) -> None:
    agent.start()
    key = agent.wait_for(Joined).public_key
    order = a_start(command='echo "bad token $T"; exit 1', secrets={"T": seal(SECRET, key)})
    agent.post(order)
    assert agent.ended().says.endswith("bad token ***")


def test_a_secret_that_was_sealed_to_another_agent_starts_nothing(agent: LiveAgent) -> None:
    agent.start()
    _, other = new_key_pair()
    agent.post(a_start(secrets={"T": seal(SECRET, other)}))
    end = agent.ended()
    assert (end.how, end.exit_code) == ("start-failed", None)
    assert "the secret T cannot be opened here" in end.says


def test_the_key_that_opens_secrets_is_ours_alone(agent: LiveAgent) -> None:
    agent.start()
    agent.wait_for(Joined)
    assert (agent.home / "nodes" / "host" / "key.json").stat().st_mode & 0o777 == 0o600


def needs_groups(controller: str) -> None:
    """Skip where no control group can be made, with the reason."""
    hierarchies = Hierarchies.of_this_process()
    if os.geteuid() != 0 or not (hierarchies.lineage(controller) or hierarchies.lineage("")):
        pytest.skip(
            f"no control group for {controller} can be made here: not root, or none mounted"
        )


def test_a_job_that_needs_more_memory_than_it_asked_for_is_out_of_memory(agent: LiveAgent) -> None:
    needs_groups("memory")
    agent.start()
    agent.post(a_start(command=f'python3 -c "{EATER}" 500; exit $?', memory_gib=0.1))
    end = agent.ended()
    assert end.how == "oom"
    assert end.says == "it needed more than its 0.10 GiB of memory"


def test_a_job_inside_its_memory_runs(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command=f'python3 -c "{EATER}" 60', memory_gib=0.2))
    assert agent.ended().exit_code == 0


def test_where_no_group_can_be_made_memory_is_watched(agent: LiveAgent) -> None:
    agent.program = "groupless_agent"
    agent.start()
    command = f'python3 -c "{EATER}; import time; time.sleep(30)" 150; exit $?'
    agent.post(a_start(command=command, memory_gib=0.1))
    assert agent.ended().how == "oom"


@pytest.mark.root
def test_a_job_gets_the_cpu_that_it_asked_for_and_no_more(agent: LiveAgent) -> None:
    needs_groups("cpu")
    agent.start()
    spin = base64.b64encode(SPIN.encode()).decode()
    agent.post(a_start(command=f"echo {spin} | base64 -d > s.py; python3 s.py", cpu=0.2))
    agent.wait_for(AttemptStarted)
    agent.ended()
    assert float(agent.log()) < 0.75, "a fifth of 1.5 s, and the start of the interpreter"


def _files_that_hold(folder: Path, text: bytes) -> list[Path]:
    return [
        path for path in folder.rglob("*")
        if path.is_file() and not path.is_fifo() and text in path.read_bytes()
    ]  # fmt: skip


def test_logs_that_cannot_be_stored_hold_up_nobody(agent: LiveAgent, tmp_path: Path) -> None:
    jobs = [f"job-{number}" for number in range(5)]
    for job in jobs:  # where its whole log belongs, something else is in the way
        (tmp_path / "mailbox" / whole_log_key(job, 1) / "in the way").mkdir(parents=True)
    agent.start()
    for job in jobs:
        agent.post(a_start(job, command="head -c 3000000 /dev/zero"))
    agent.post(a_start("next"))
    assert agent.ended("next").exit_code == 0
    for job in jobs:
        assert agent.ended(job).exit_code == 0
        [remark] = [one for one in agent.all_of(Remark) if one.job == job]
        assert remark.code is Code.LOG_SHORTENED
        assert str(agent.folder(job).log) in remark.says
        assert agent.folder(job).log.is_dir()


@pytest.fixture
def small_room(agent: LiveAgent) -> Iterator[Path]:
    """Give a control group in which agent and jobs have 300 MB together."""
    needs_groups("memory")
    hierarchies = Hierarchies.of_this_process()
    below, most = next(
        (folders[-1], name)
        for folders, name in (
            (hierarchies.lineage("memory"), "memory.limit_in_bytes"),
            (hierarchies.lineage(""), "memory.max"),
        )
        if folders
    )
    room = below / f"whale-room-{os.getpid()}"
    room.mkdir()
    try:
        if not (room / most).exists():
            pytest.skip("the memory of a control group cannot be limited here")
        (room / most).write_text(str(300_000_000))
        yield room
        if agent.process.poll() is None:
            agent.end()
    finally:
        until(lambda: _removed(room), "nothing is left in it")


@pytest.mark.root
def test_a_job_without_a_limit_that_the_kernel_kills_for_memory_is_out_of_memory(
    agent: LiveAgent, small_room: Path
) -> None:
    agent.program = "groupless_agent"
    agent.start()
    (small_room / "cgroup.procs").write_text(str(agent.process.pid))
    agent.post(a_start("killed", command="kill -KILL $$"))
    assert (agent.ended("killed").how, agent.ended("killed").exit_code) == ("exited", 137)
    agent.post(a_start(command=f'python3 -c "{EATER}" 500'))
    end = agent.ended()
    assert (end.how, end.exit_code) == ("oom", 137)
    assert "the kernel killed it" in end.says


def _removed(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:
        return not group.exists()
    return True
