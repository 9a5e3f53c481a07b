"""The training example, interrupted at random seconds: the same final loss, and little work lost.

    python tests/benchmarks/interruptions.py [--interruptions 30] [--each 6] [--seed 1] [--json]

Each run is `cloudwhale run examples/train.yaml` on machines of the sandbox, in real time, of which
so many are taken, each some random seconds after it runs; a third of them without a word. Its final
loss is compared with that of the program by itself, digit for digit. Lost work is held against the
promise: how often the job saves, plus how often that is published, plus saving and uploading (the
longest that any notice's last checkpoint took). What was lost without a word is counted to the end
of the machine, as its agent was not heard then. Exit code 1 when a loss differs, a bound does not
hold, or fewer interruptions came than asked for.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import commands

from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale.model.job import Job
from cloudwhale.spi.store import JobQuery, Store

EXAMPLES = Path(__file__).parents[2] / "examples"
INTERRUPTIONS, EACH = 30, 6
SAVES_EVERY_S, PUBLISHED_EVERY_S = 3.0, 5.0  # as train.py and train.yaml have it
EARLIEST_S, LATEST_S = 3.0, 12.0  # of a machine's running; the first second has no job yet
WITHOUT_A_WORD = 1 / 3
FINAL = re.compile(r"final loss (\S+) after (\d+) steps")
STORED = re.compile(r"stored (\S+) s later")


@dataclass(frozen=True, slots=True)
class Life:
    """What came of one run."""

    seed: int
    loss: str
    lost_s: tuple[float, ...]
    """Work that each interruption cost, at most."""
    told_lost_s: float
    """As the receipt has it."""
    longest_store_s: float
    """Of a notice, until its last checkpoint was stored."""
    ran_s: float

    @property
    def bound_s(self) -> float:
        """Return the most that an interruption may cost."""
        return SAVES_EVERY_S + PUBLISHED_EVERY_S + self.longest_store_s


def undisturbed(home: Path) -> str:
    """Return the final loss of the program by itself."""
    words = [sys.executable, str(EXAMPLES / "train" / "train.py"), "--steps", "5000"]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=home, env=env, capture_output=True, text=True, check=True)
    return final_loss(done.stdout)


def final_loss(said: str) -> str:
    """Return the loss that a training ended with."""
    found = FINAL.findall(said)
    if not found:
        raise SystemExit(f"the training has not ended:\n{said[-2000:]}")
    return str(found[-1][0])


def weather(seed: int, interruptions: int) -> str:
    """Return a script in which so many machines are taken, one after the other."""
    dice = random.Random(seed)
    lines = "".join(
        f"  - {{after: {dice.uniform(EARLIEST_S, LATEST_S):.1f}s, which: running, "
        f"notice: {0 if dice.random() < WITHOUT_A_WORD else 120}s}}\n"
        for _ in range(interruptions)
    )
    return f"owned: none\nboot: 1s\ninterrupt:\n{lines}"


def lived(home: Path, seed: int, interruptions: int) -> Life:
    """Let the example run once in bad weather."""
    shutil.copytree(EXAMPLES, home / "examples")
    (home / "weather.yaml").write_text(weather(seed, interruptions))
    words = commands.argv(
        "run", "examples/train.yaml", "--budget", "5", "--sandbox", "--sandbox-script",
        "weather.yaml", "-y",
    )  # fmt: skip
    env = {**commands.environment(home), "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(words, cwd=home, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"seed {seed}: {done.stdout[-3000:]}{done.stderr[-2000:]}")
        with closing(open_store(sqlite_url(home / "sandbox"), may_migrate=False)) as store:
            return told(store, seed, final_loss(done.stdout))
    finally:
        commands.run(home, "sandbox", "stop")


def told(store: Store, seed: int, loss: str) -> Life:
    """Return what the store knows of a run."""
    (job,) = store.jobs(JobQuery())
    events = [one.event for one in store.events(job.id)]
    stored = [
        float(seconds)
        for event in events
        if isinstance(event, e.Noted)
        for seconds in STORED.findall(event.reason.says)
    ]
    return Life(
        seed=seed,
        loss=loss,
        lost_s=tuple(lost(events, store, job)),
        told_lost_s=job.lost_s,
        longest_store_s=max(stored, default=0.0),
        ran_s=job.run_s,
    )


def lost(events: Sequence[e.Event], store: Store, job: Job) -> Iterator[float]:
    """Yield what each interruption cost at most, in their order."""
    machines = {one.node: one for one in store.rentals(job.run)}
    node, began_at, saved_at = "", 0.0, 0.0
    for event in events:
        if isinstance(event, e.Placed):
            node = event.placement.node
        elif isinstance(event, e.Started):
            began_at = event.at
        elif isinstance(event, e.CheckpointSaved):
            saved_at = event.checkpoint.saved_at
        elif isinstance(event, e.GaveWay | e.Retried):
            yield event.lost_s
        elif isinstance(event, e.Cleared):
            ended_at = machines[node].ended_at if node in machines else None
            until = event.at if ended_at is None else ended_at + 1.0  # EC2 tells whole seconds
            yield max(event.lost_s, until - max(began_at, saved_at) if began_at else 0.0)


def main() -> int:
    """Measure and print; return the exit code."""
    words = argparse.ArgumentParser(description="The training example under interruptions.")
    words.add_argument("--interruptions", type=int, default=INTERRUPTIONS)
    words.add_argument("--each", type=int, default=EACH, help="interruptions in a run")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--json", action="store_true")
    asked = words.parse_args()
    home = Path(tempfile.mkdtemp(prefix="cloudwhale-bench-"))
    lives: list[Life] = []
    try:
        right = undisturbed(home)
        while sum(len(one.lost_s) for one in lives) < asked.interruptions:
            seed = asked.seed + len(lives)
            place = home / f"run-{seed}"
            place.mkdir()
            lives.append(lived(place, seed, asked.each))
            if not asked.json:
                print(line(lives[-1], right), flush=True)
            if not lives[-1].lost_s:
                raise SystemExit(f"seed {seed}: nobody was interrupted")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    is_good = all(one.loss == right and max(one.lost_s) <= one.bound_s for one in lives)
    report(lives, right, is_good, as_json=asked.json)
    return 0 if is_good else 1


def line(one: Life, right: str) -> str:
    """Return a run in a line."""
    same = "the same loss" if one.loss == right else f"another loss, {one.loss} for {right}"
    return (
        f"seed {one.seed}: {len(one.lost_s)} interruptions, {same}, largest lost work "
        f"{max(one.lost_s, default=0.0):.1f} s, bound {one.bound_s:.1f} s; {one.told_lost_s:.1f} s "
        f"lost in all of {one.ran_s:.0f} s, as told"
    )


def report(lives: Sequence[Life], right: str, is_good: bool, *, as_json: bool) -> None:
    """Print what all runs came to."""
    count = sum(len(one.lost_s) for one in lives)
    worst = max(lives, key=lambda one: max(one.lost_s) / one.bound_s)
    if as_json:
        figures = {
            "interruptions": count, "loss": right, "losses": [one.loss for one in lives],
            "largest_lost_s": max(worst.lost_s), "bound_s": worst.bound_s,
            "seeds": [one.seed for one in lives],
        }  # fmt: skip
        print(json.dumps(figures))
        return
    print(
        f"{'ok' if is_good else 'MISSED'}: {count} interruptions in {len(lives)} runs, final loss "
        f"{right} in {sum(one.loss == right for one in lives)} of them; largest lost work "
        f"{max(worst.lost_s):.1f} s, bound {worst.bound_s:.1f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
