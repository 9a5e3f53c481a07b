"""The lid: the controller sleeps or is dead for two hours while its machines work."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from mortal_box import Home, MortalBox
from shell import until

from cloudwhale.model.job import JobState

SPEED = 120.0  # the lid is closed for a minute
LID_S = 2 * 3600.0  # longer than any lease: after eight hours nothing else would have happened
ATTEMPT_LEASE_S = 1800.0  # fifteen seconds: what a busy host may keep an agent waiting
BUDGET_USD = 20
WORK = ("controller", "--until-empty")
JOBS = """
defaults: {{workdir: work, outputs: [out/], resources: {{gpu: "A10G:1", cpu: 1}}}}
jobs:
  - name: short
    command: echo $CLOUDWHALE_ATTEMPT >> {folder}/short; sleep 3; mkdir out; echo done > out/short
    duration: 90m
  - name: long
    command: python3 count.py {folder}/long
    duration: 45m
    max_duration: 7d
    checkpoint: {{every: 5m, grace: 30m}}
    retry: {{max: 20}}
"""
"""What is left of `long` after the lid is short: its grace gives the machine time to boot here."""
COUNT = """
import os, pathlib, signal, sys, time
saves = pathlib.Path(os.environ["CLOUDWHALE_CHECKPOINT_DIR"])
last = [0, *sorted(int(one.name[5:]) for one in saves.glob("step-*"))][-1]
print("from", last, file=open(sys.argv[1], "a"), flush=True)
is_told = []
signal.signal(signal.SIGTERM, lambda *_: is_told.append(1))
goal = last + 5 if last else 100_000
while last < goal and not is_told:
    time.sleep(0.1)
    last += 1
    (saves / ".new").write_text(str(last))
    (saves / ".new").rename(saves / f"step-{last:04}")
    (saves / f"step-{last - 1:04}").unlink(missing_ok=True)
print("to", last, file=open(sys.argv[1], "a"), flush=True)
if is_told:
    sys.exit(143)
pathlib.Path("out").mkdir(exist_ok=True)
pathlib.Path("out/long").write_text(str(last))
"""
"""Counts, saving each number; who goes on from such a one counts five more, and is done."""


def a_home(box: MortalBox, name: str) -> Home:
    home = box.home(name, boots_within_s=3 * 3600.0)
    (home.folder / "work").mkdir()
    home.write("work/count.py", COUNT)
    home.write("jobs.yaml", JOBS.format(folder=home.folder))
    assert home.run("submit", "jobs.yaml", "--budget", str(BUDGET_USD)) == 0, home.said
    return home


def lines(home: Home, name: str) -> list[str]:
    file = home.folder / name
    return file.read_text().splitlines() if file.exists() else []


def test_what_machines_do_while_the_lid_is_closed_is_known_when_it_opens(tmp_path: Path) -> None:
    with (
        MortalBox(tmp_path, f"speed: {SPEED}\nowned: none\n", ATTEMPT_LEASE_S) as box,
        ThreadPoolExecutor() as pool,
        ExitStack() as stack,
    ):
        asleep, dead = pool.map(lambda name: a_home(box, name), ("asleep", "dead"))
        first, second = (stack.enter_context(one.started(*WORK)) for one in (asleep, dead))
        for home, running, end in (
            (asleep, first, signal.SIGSTOP), (dead, second, signal.SIGKILL),
        ):  # fmt: skip
            until("both run", partial(both_run, home), limit_s=180.0)
            os.kill(running.pid, end)
        closed_at = box.now()
        until("two hours have passed", lambda: box.now() >= closed_at + LID_S, limit_s=120.0)
        for home in (asleep, dead):
            after_the_lid(box, home)
        os.kill(first.pid, signal.SIGCONT)
        ended = pool.submit(dead.run, *WORK)
        assert first.ends() == 0, asleep.said
        assert ended.result() == 0, dead.said
        for home in (asleep, dead):
            awake(box, home)
        known = asleep.books.machines | dead.books.machines
        assert {one.id for one in box.meter()} <= known, "there is none that nobody knows"


def both_run(home: Home) -> bool:
    """Say whether both jobs' processes have begun."""
    return all(lines(home, name) for name in ("short", "long"))


def after_the_lid(box: MortalBox, home: Home) -> None:
    """Check what the machines have done by themselves."""
    books = home.books
    bills = [one for one in box.meter() if one.id in books.machines]
    assert bills and all(one.until is not None for one in bills), "they have ended themselves"
    assert sum(one.cost for one in bills) <= books.reserved + books.spent
    assert len(lines(home, "short")) == 1
    assert len(lines(home, "long")) == 2, "it was landed when its lease was over"


def awake(box: MortalBox, home: Home) -> None:
    """Check that the controller has read all that there was before it judged."""
    books = home.books
    jobs = {job.spec.name: job for job in books.jobs}
    assert {job.state for job in jobs.values()} == {JobState.COMPLETED}, home.said
    assert lines(home, "short") == ["1"] and jobs["short"].attempt == 1, "it is not run again"
    told = [line.split() for line in lines(home, "long")]
    began = [int(number) for word, number in told if word == "from"]
    landed = next(int(number) for word, number in told if word == "to")
    assert began[:2] == [0, landed], "it goes on where it was landed while nobody was there"
    assert began == sorted(began) and told[-1] == ["to", str(began[-1] + 5)]
    for name in ("short", "long"):
        assert home.run("results", name) == 0, home.said
    found = {one.name: one.read_text().strip() for one in home.folder.glob("results/*/[!.]*")}
    assert found == {"short": "done", "long": str(began[-1] + 5)}
    bills = [one for one in box.meter() if one.id in books.machines]
    # EC2 lists what has ended for an hour. Who looks later pays to the stop that was set.
    assert sum(one.cost for one in bills) <= books.spent <= BUDGET_USD * 1_000_000
    assert books.reserved == 0
    mine = [one for one in box.things() if one[2] == books.installation]
    assert {one[0] for one in mine} == {"template", "group"}
