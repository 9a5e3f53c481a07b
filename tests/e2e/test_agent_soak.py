"""An agent is killed again and again, at any moment: every job runs once, and all of it is told."""

import random
from pathlib import Path

import pytest
from live_agent import LiveAgent, a_start, a_stop, until

from cloudwhale.clock import wait
from cloudwhale.mailbox.documents import AttemptEnded, CheckpointPublished

KILLS = 8


def the_command(number: int, runs: Path) -> str:
    """Return what job `number` does: leave a mark, say a word, save whole, end with its code."""
    folder = "$CLOUDWHALE_CHECKPOINT_DIR"
    return (
        f"echo x >> {runs}/{number}; echo word {number}; mkdir {folder}/.draft;"
        f" head -c 9000 /dev/zero > {folder}/.draft/weights; mv {folder}/.draft {folder}/step;"
        f" sleep 0.{number % 4}; exit {number % 3}"
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_the_moment_of_its_death_an_agent_loses_and_doubles_nothing(
    agent: LiveAgent, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    runs = tmp_path / "runs"
    runs.mkdir()
    posted = 0
    stopped: set[int] = set()
    agent.start()
    for _ in range(KILLS):
        for _ in range(dice.randint(1, 3)):
            posted += 1
            agent.post(a_start(f"job-{posted}", command=the_command(posted, runs)))
            if dice.random() < 0.2:
                stopped.add(posted)
                agent.post(a_stop(f"job-{posted}"))
        wait(dice.random() * 0.8)
        agent.kill()
        agent.start()
    jobs = {f"job-{number}" for number in range(1, posted + 1)}
    until(lambda: {end.job for end in agent.all_of(AttemptEnded)} == jobs, "all have ended")
    for number in range(1, posted + 1):
        _check(agent, number, runs, was_stopped=number in stopped)


def _check(agent: LiveAgent, number: int, runs: Path, *, was_stopped: bool) -> None:
    job = f"job-{number}"
    ends = {(end.how, end.exit_code) for end in agent.all_of(AttemptEnded) if end.job == job}
    seqs = {one.checkpoint.seq for one in agent.all_of(CheckpointPublished) if one.job == job}
    mark = runs / str(number)
    times = mark.read_text().count("x") if mark.exists() else 0
    assert len(ends) == 1, f"{job} ended in more than one way: {ends}"
    if was_stopped:
        assert times <= 1
        return
    assert (ends, times) == ({("exited", number % 3)}, 1)
    assert agent.log(job) == f"word {number}\n".encode()
    # A number that was used when the agent died is not used again: one checkpoint, any number.
    assert len(seqs) == 1
