"""Random problems of renting, and what is wrong with a plan, worked out from the problem alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cloudwhale.spi.renting import Choice, Demand, Kind, RentalPlan, RentalProblem, Seat, Terms

NEAR = 1e-5
MODELS = {"": 0.0, "T4": 16.0, "L4": 24.0, "A100-80GB": 80.0}


def a_kind(offer: str = "small", **fields: Any) -> Kind:
    """Make a kind with one L4 at 1 USD per hour that boots for 100 s."""
    plain: dict[str, Any] = {
        "zone": "z", "model": "L4", "devices": 1, "device_gib": 24.0, "cpu": 8.0,
        "memory_gib": 32.0, "disk_gib": 100.0, "usd_h": 1.0, "cap_usd_h": 1.0, "boot_s": 100.0,
    }  # fmt: skip
    return Kind(offer=offer, **{**plain, **fields})


def a_demand(devices: int = 1, **fields: Any) -> Demand:
    """Make a demand for whole devices, a CPU and a GiB."""
    plain: dict[str, Any] = {
        "share": 1.0, "device_gib": None, "cpu": 1.0, "memory_gib": 1.0, "disk_gib": 1.0
    }  # fmt: skip
    return Demand(devices=devices, **{**plain, **fields})


def a_problem(
    demands: Sequence[Demand], kinds: Sequence[Kind], runs_s: float | Sequence[float], **fields: Any
) -> RentalProblem:
    """Make a problem where a job runs as long on every kind, and nothing is late."""
    count = len(demands)
    each = np.broadcast_to(np.array(runs_s, dtype=np.float64), (count,))
    runs = np.repeat(each[:, None], len(kinds), axis=1)
    plain: dict[str, Any] = {
        "late_s": runs, "extra_usd": np.zeros_like(runs), "done_by_s": [math.inf] * count,
        "start_by_s": [math.inf] * count,
    }  # fmt: skip
    names = [f"job-{number}" for number in range(count)]
    return RentalProblem(
        jobs=names, demands=demands, kinds=kinds, runs_s=runs, **{**plain, **fields}
    )


def a_random_problem(seed: int, most_jobs: int = 14, **fields: Any) -> RentalProblem:
    """Make a problem with every sort of job and kind, some of them in a hurry, some impossible."""
    rng = np.random.default_rng(seed)
    kinds = [_a_random_kind(rng, f"kind-{number}") for number in range(int(rng.integers(1, 9)))]
    count = int(rng.integers(1, most_jobs + 1))
    demands = [_a_random_demand(rng) for _ in range(count)]
    hours = np.exp(rng.uniform(math.log(0.3), math.log(12.0), count))
    runs = 3600.0 * hours[:, None] * rng.choice([0.5, 1.0, 1.5], (count, len(kinds)))
    runs[rng.random((count, len(kinds))) < 0.15] = math.inf
    late = runs * rng.choice([1.0, 1.2], (count, len(kinds)))
    extra = np.where(rng.random((count, len(kinds))) < 0.2, rng.uniform(0, 2, runs.shape), 0.0)
    hurry = 3600.0 * hours * rng.uniform(0.6, 4.0, count) + 300.0
    done = np.where(rng.random(count) < 0.4, hurry, math.inf)
    start = np.where(rng.random(count) < 0.2, rng.uniform(0.0, 7200.0, count), math.inf)
    if rng.random() < 0.3:  # alike jobs
        twins = rng.integers(0, count, count)
        chosen: list[int] = twins.tolist()
        demands = [demands[one] for one in chosen]
        runs, late, extra = runs[twins], late[twins], extra[twins]
        done, start = done[twins], start[twins]
    plain: dict[str, Any] = {
        "done_by_s": done.tolist(), "start_by_s": start.tolist(), "seed": seed,
        "horizon_s": float(rng.choice([math.inf, 40 * 3600.0])),
        "terms": Terms(longer=1.25, least_s=300.0, beyond_s=float(rng.choice([0.0, 240.0]))),
    }  # fmt: skip
    return RentalProblem(
        jobs=[f"job-{number:02d}" for number in range(count)], demands=demands, kinds=kinds,
        runs_s=runs, late_s=late, extra_usd=extra, **{**plain, **fields},
    )  # fmt: skip


def _a_random_kind(rng: np.random.Generator, offer: str) -> Kind:
    model = str(rng.choice(sorted(MODELS)))
    devices = int(rng.choice([1, 1, 2, 4, 8])) if model else 0
    size = max(1, devices)
    usd_h = float(rng.uniform(0.1, 0.5) + devices * rng.uniform(0.3, 2.0))
    return a_kind(
        offer, model=model, devices=devices, device_gib=MODELS[model],
        cpu=float(rng.choice([4, 8, 16])) * size, memory_gib=float(rng.choice([16, 64])) * size,
        disk_gib=float(rng.choice([100, 500])), usd_h=usd_h,
        cap_usd_h=usd_h * float(rng.choice([1.0, 3.0])), boot_s=float(rng.choice([30, 120, 300])),
        billing_step_s=float(rng.choice([1.0, 60.0, 3600.0], p=[0.7, 0.2, 0.1])),
        at_most=None if rng.random() < 0.85 else int(rng.integers(0, 3)),
        quota="" if rng.random() < 0.7 else "group", quota_units=float(size),
    )  # fmt: skip


def _a_random_demand(rng: np.random.Generator) -> Demand:
    devices = int(rng.choice([0, 1, 1, 1, 2, 4]))
    share = float(rng.choice([1.0, 0.5, 1 / 3, 0.25])) if devices == 1 else 1.0
    gib = float(rng.choice([3.0, 8.0, 20.0])) if share < 1 and rng.random() < 0.5 else None
    return a_demand(
        devices, share=share, device_gib=gib, cpu=float(rng.choice([0.5, 1, 3, 4])),
        memory_gib=float(rng.choice([1, 7.5, 30])), disk_gib=float(rng.choice([0, 10, 60])),
        nodes=int(rng.choice([1, 1, 1, 1, 1, 2])),
    )  # fmt: skip


def faults(problem: RentalProblem, plan: RentalPlan) -> list[str]:
    """Return what is wrong with a plan, in words; an empty list is a plan that holds."""
    counted = Counter(job for choice in plan.choices for job in choice.jobs)
    found = [f"{job} is there {count} times" for job, count in counted.items() if count > 1]
    found += [f"{job} is unknown" for job in counted if job not in problem.jobs]
    found += [f"{job} is left out and has a machine" for job in plan.left_out if job in counted]
    if found:
        return found
    for choice in plan.choices:
        found += _of_choice(problem, choice)
    cost = sum(cost_usd(problem, choice) for choice in plan.choices)
    if abs(cost - plan.cost_usd) > NEAR * max(1.0, cost):
        found.append(f"it costs {cost}, not {plan.cost_usd}")
    return found + list(_over_bounds(problem, plan)) + list(_forgotten(problem, plan, counted))


def cost_usd(problem: RentalProblem, choice: Choice) -> float:
    """Return what a choice is expected to cost, its jobs' extras included."""
    column, kind = _kind(problem, choice)
    extra = sum(float(problem.extra_usd[problem.jobs.index(job), column]) for job in choice.jobs)
    step = kind.billing_step_s
    billed = math.ceil(choice.used_s / step - 1e-12) * step if step > 0 else choice.used_s
    return choice.machines * kind.usd_h * max(billed, kind.billing_least_s) / 3600.0 + extra


def worst_usd(problem: RentalProblem, plan: RentalPlan) -> float:
    """Return the most that all of a plan can cost."""
    terms = problem.terms
    total = 0.0
    for choice in plan.choices:
        kind = _kind(problem, choice)[1]
        held = max(terms.least_s, choice.used_s * terms.longer) + terms.beyond_s + kind.boot_s
        total += choice.machines * kind.cap_usd_h * held / 3600.0
    return total


def _kind(problem: RentalProblem, choice: Choice) -> tuple[int, Kind]:
    return next(
        (column, kind) for column, kind in enumerate(problem.kinds) if kind.offer == choice.offer
    )


def _of_choice(problem: RentalProblem, choice: Choice) -> list[str]:
    column = _kind(problem, choice)[0]
    found: list[str] = []
    ends: list[float] = []
    for seat in choice.seats:
        row = problem.jobs.index(seat.job)
        run_s, late_s = float(problem.runs_s[row, column]), float(problem.late_s[row, column])
        ends.append(seat.start_s + run_s)
        found += _of_seat(problem, choice, seat, (run_s, late_s))
    if [(one.start_s, one.job) for one in choice.seats] != sorted(
        (one.start_s, one.job) for one in choice.seats
    ):
        found.append("the seats are in no order")
    if abs(choice.used_s - max(ends)) > NEAR:
        found.append(f"{choice.offer} is used until {max(ends)}, not {choice.used_s}")
    if choice.used_s > problem.horizon_s + NEAR:
        found.append(f"{choice.offer} is used past the horizon")
    for seat in choice.seats:
        found += _at(problem, choice, seat.start_s, ends)
    return found


def _of_seat(
    problem: RentalProblem, choice: Choice, seat: Seat, lasts: tuple[float, float]
) -> Iterator[str]:
    kind, row = _kind(problem, choice)[1], problem.jobs.index(seat.job)
    demand = problem.demands[row]
    if not math.isfinite(lasts[0]):
        yield f"{seat.job} cannot run on {choice.offer}"
    if seat.start_s < kind.boot_s:
        yield f"{seat.job} starts before the machine has booted"
    if seat.start_s + lasts[1] > problem.done_by_s[row] + NEAR:
        yield f"{seat.job} ends too late"
    if seat.start_s > max(kind.boot_s, problem.start_by_s[row]) + NEAR:
        yield f"{seat.job} starts too late"
    if choice.machines != demand.nodes:
        yield f"{seat.job} has {choice.machines} machines of {demand.nodes}"
    if len(set(seat.devices)) != demand.devices:
        yield f"{seat.job} has {seat.devices} of {demand.devices} devices"
    if any(not 0 <= device < kind.devices for device in seat.devices):
        yield f"{seat.job} has a device that is not there"


def _at(problem: RentalProblem, choice: Choice, now: float, ends: Sequence[float]) -> Iterator[str]:
    """Yield what is over when a job has just started; between starts nothing grows."""
    kind = _kind(problem, choice)[1]
    running = [
        (problem.demands[problem.jobs.index(seat.job)], seat.devices)
        for seat, end in zip(choice.seats, ends, strict=True)
        if seat.start_s <= now < end - NEAR
    ]
    for field in ("cpu", "memory_gib", "disk_gib"):
        asked = sum(float(getattr(demand, field)) for demand, _ in running)
        if asked > getattr(kind, field) + NEAR:
            yield f"{choice.offer} has less {field} than {asked} at {now}"
    for device in range(kind.devices):
        here = [demand for demand, devices in running if device in devices]
        if sum(demand.share for demand in here) > 1.0 + NEAR:
            yield f"device {device} of {choice.offer} is shared too often at {now}"
        memory = sum(
            demand.share * kind.device_gib if demand.device_gib is None else demand.device_gib
            for demand in here
        )
        if memory > kind.device_gib + NEAR:
            yield f"device {device} of {choice.offer} has less memory than {memory} at {now}"


def _over_bounds(problem: RentalProblem, plan: RentalPlan) -> Iterator[str]:
    worst = worst_usd(problem, plan)
    if problem.budget_usd is not None and worst > problem.budget_usd + NEAR:
        yield f"the worst case {worst} is over the budget {problem.budget_usd}"
    counts: Counter[str] = Counter()
    for choice in plan.choices:
        counts[choice.offer] += choice.machines
    for kind in problem.kinds:
        if kind.at_most is not None and counts[kind.offer] > kind.at_most:
            yield f"{counts[kind.offer]} of {kind.offer}, of which there are {kind.at_most}"
    for group, left in problem.quotas.items():
        used = sum(
            counts[kind.offer] * kind.quota_units for kind in problem.kinds if kind.quota == group
        )
        if used > left + NEAR:
            yield f"{used} of the quota {group}, of which {left} is left"


def in_time(problem: RentalProblem, row: int) -> bool:
    """Return whether some kind fits a job and can do it in time, alone on a machine."""
    return any(_able(problem, row, column) for column in range(len(problem.kinds)))


def _able(problem: RentalProblem, row: int, column: int) -> bool:
    kind, run_s = problem.kinds[column], float(problem.runs_s[row, column])
    ends = kind.boot_s + float(problem.late_s[row, column])
    in_time = ends <= problem.done_by_s[row] and kind.boot_s + run_s <= problem.horizon_s
    return in_time and math.isfinite(run_s) and _holds(kind, problem.demands[row])


def _holds(kind: Kind, demand: Demand) -> bool:
    enough = demand.cpu <= kind.cpu and demand.memory_gib <= kind.memory_gib
    enough = enough and demand.disk_gib <= kind.disk_gib and demand.devices <= kind.devices
    return enough and (not demand.devices or (demand.device_gib or 0.0) <= kind.device_gib)


def _forgotten(problem: RentalProblem, plan: RentalPlan, seated: Counter[str]) -> Iterator[str]:
    for row, job in enumerate(problem.jobs):
        fits = any(
            math.isfinite(problem.runs_s[row, column]) and _holds(kind, problem.demands[row])
            for column, kind in enumerate(problem.kinds)
        )
        why, able = plan.left_out.get(job), in_time(problem, row)
        if fits and job not in seated and why is None:
            yield f"{job} is forgotten"
        if why is not None and (why == "late") == able:
            yield f"{job} is left out as {why}, and {'could' if able else 'could not'} be in time"
        if why == "budget" and problem.budget_usd is None:
            yield f"{job} is left out for a budget that is not there"
