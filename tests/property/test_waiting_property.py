"""Random rounds and streams through the wait policies: never over capacity, nobody for ever."""

import random
from collections.abc import Iterator

import pytest
from makers import a_job

from cloudwhale.spi.waiting import Quote, Running, Verdict, Wait, Waiting, Waits
from cloudwhale_policies.waiting.backfill import Conservative, Easy
from cloudwhale_policies.waiting.starburst import ComputeWait, ConstantWait, NoWait, StarWait
from cloudwhale_policies.waiting.timetable import Timetable
from cloudwhale_policies.waiting.whale import Whale

SEEDS = range(25)
POLICIES: dict[str, Wait] = {
    "whale": Whale(), "whale-sure": Whale(spread=1.0), "easy": Easy(),
    "conservative": Conservative(), "no-wait": NoWait(), "constant-wait": ConstantWait(),
    "star-wait": StarWait(), "compute-wait": ComputeWait(),
}  # fmt: skip
DEVICES = 8.0


def a_round(drawn: random.Random) -> Waits:
    """Draw nodes, jobs that run on them, and jobs that wait."""
    nodes = [f"n{n}" for n in range(drawn.randint(1, 4))]
    free = dict.fromkeys(nodes, DEVICES)
    running: list[Running] = []
    for number in range(drawn.randint(0, 12)):
        node, devices = drawn.choice(nodes), drawn.choice((0.5, 1.0, 2.0, 4.0))
        if free[node] >= devices:
            free[node] -= devices
            length_s = drawn.choice((None, drawn.expovariate(1 / 3600)))
            ran_s = drawn.uniform(0.0, 7200.0)
            running.append(Running(a_job(f"r{number}"), node, devices, ran_s, length_s))
    waiting = tuple(a_waiting(drawn, f"w{n}", free) for n in range(drawn.randint(0, 10)))
    return Waits(10_000.0, waiting, running, dict.fromkeys(nodes, DEVICES), free)


def a_waiting(drawn: random.Random, name: str, free: dict[str, float]) -> Waiting:
    devices = drawn.choice((0.5, 1.0, 2.0, 4.0, 8.0, 16.0))
    length_s = drawn.expovariate(1 / 3600)
    nodes = tuple(n for n in free if devices <= DEVICES and drawn.random() < 0.9)
    fits = tuple(n for n in nodes if free[n] >= devices and drawn.random() < 0.9)
    usd = drawn.expovariate(1 / 5)
    return Waiting(
        job=a_job(name, submitted_at=drawn.uniform(0.0, 10_000.0)),
        devices=devices,
        length_s=drawn.choice((None, length_s)),
        nodes=nodes,
        fits_now=fits,
        quote=drawn.choice((None, Quote(usd, usd, length_s + drawn.uniform(0.0, 300.0)))),
        start_by=drawn.choice((None, None, drawn.uniform(9_000.0, 20_000.0))),
        usd_h=drawn.choice((0.0, 1.0, 20.0)),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slot_never_overlaps_what_is_taken(seed: int) -> None:
    drawn = random.Random(f"slots-{seed}")
    table = Timetable({"a": drawn.uniform(0.0, 4.0), "b": 2.0})
    for _ in range(6):
        table.release(drawn.choice("ab"), drawn.uniform(0.0, 50.0), drawn.choice((0.5, 1.0, 4.0)))
    ends = [0.0]
    for _ in range(40):
        devices, length_s = drawn.choice((0.5, 1.0, 2.0)), drawn.uniform(0.1, 30.0)
        slot = table.earliest(devices, length_s, ["a", "b"])
        assert slot is not None and slot.spare >= -1e-9
        table.reserve(slot, devices, length_s)
        ends += [slot.start_s, slot.start_s + length_s]
        assert min(table.free_at(node, at_s) for node in "ab" for at_s in ends) >= -1e-9


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", POLICIES)
def test_what_starts_fits_together_and_who_is_rented_for_has_a_quote(name: str, seed: int) -> None:
    waits = a_round(random.Random(f"round-{seed}"))
    verdicts = POLICIES[name].verdicts(waits)
    jobs = {one.job.id: one for one in waits.waiting}
    left = dict(waits.free)
    assert verdicts.keys() <= jobs.keys()
    for job, verdict in verdicts.items():
        if verdict.kind == "start":
            assert verdict.node in jobs[job].fits_now
            left[verdict.node] -= jobs[job].devices
        if verdict.kind == "rent":
            assert jobs[job].quote is not None
    assert min(left.values()) >= -1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_whale_starts_one_that_nothing_can_be_rented_for_where_it_alone_fits(seed: int) -> None:
    drawn = random.Random(f"alone-{seed}")
    rounds = (a_round(drawn) for _ in range(100))
    waits, first = next(
        (some, one) for some in rounds for one in some.waiting if one.quote is None and one.fits_now
    )
    others = [one for one in waits.waiting if one.quote is not None]
    again = Waits(waits.now, (*others, first), waits.running, waits.devices, waits.free)
    said = Whale().verdicts(again).get(first.job.id, Verdict("start", ""))
    assert said.kind == "start"


def plays(policy: Wait, seed: int) -> Iterator[tuple[float, str, Verdict]]:
    """Play jobs of known length on one node; yield every verdict with its time."""
    drawn = random.Random(f"stream-{seed}")
    coming = sorted(
        (
            drawn.uniform(0.0, 40.0),
            f"j{n:02}",
            drawn.choice((1.0, 2.0, 4.0, 8.0)),
            drawn.uniform(1, 9),
        )
        for n in range(30)
    )
    waiting: list[tuple[float, str, float, float]] = []
    running: list[tuple[float, str, float, float]] = []
    while coming or waiting or running:
        now = min(row[0] for row in (*coming[:1], *running))
        waiting += [row for row in coming if row[0] <= now]
        coming = [row for row in coming if row[0] > now]
        running = [row for row in running if row[0] > now]
        free = {"a": DEVICES - sum(devices for _, _, devices, _ in running)}
        rows = tuple(
            Waiting(
                a_job(name, submitted_at=at), devices, length_s, ("a",),
                ("a",) if free["a"] >= devices else (), None, None, 1.0,
            )
            for at, name, devices, length_s in waiting
        )  # fmt: skip
        held = [
            Running(a_job(name), "a", devices, now - (end - length_s), length_s)
            for end, name, devices, length_s in running
        ]
        verdicts = policy.verdicts(Waits(now, rows, held, {"a": DEVICES}, free))
        for at, name, devices, length_s in list(waiting):
            yield now, name, verdicts[name]
            if verdicts[name].kind == "start":
                waiting.remove((at, name, devices, length_s))
                running.append((now + length_s, name, devices, length_s))


@pytest.mark.parametrize("seed", SEEDS)
def test_conservative_backfilling_never_starts_a_job_later_than_it_was_told(seed: int) -> None:
    told: dict[str, float] = {}
    started: dict[str, float] = {}
    for now, job, verdict in plays(Conservative(), seed):
        at = now if verdict.kind == "start" else verdict.at
        assert at is not None and at <= told.setdefault(job, at) + 1e-6
        if verdict.kind == "start":
            started[job] = now
    assert len(started) == 30


@pytest.mark.parametrize("seed", SEEDS)
def test_easy_backfilling_never_delays_the_first_that_waits(seed: int) -> None:
    told: dict[str, float] = {}
    for now, job, verdict in plays(Easy(), seed):
        if verdict.kind == "wait" and verdict.at is not None:
            told[job] = min(verdict.at, told.get(job, verdict.at))
        if verdict.kind == "start" and job in told:
            assert now <= told[job] + 1e-6
