"""Small problems of renting for tests, and what is wrong with a plan, added up second by second."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cloudwhale.spi.renting import Choice, Demand, Kind, RentalPlan, RentalProblem, Seat, Terms

HOUR = 3600.0
NEAR = 1e-6
"""Money and times may be off by such a part: sums are added up in another order here."""
REASONS = ("budget", "quota", "late")


def a_kind(offer: str = "k", **fields: Any) -> Kind:
    """Make a kind: 2 GPUs of 40 GiB, 8 CPUs, 64 GiB, 100 GB, 2 USD an hour, booted in a minute."""
    base: dict[str, Any] = {
        "zone": "r-a", "model": "A100-40GB", "devices": 2, "device_gib": 40.0, "cpu": 8.0,
        "memory_gib": 64.0, "disk_gib": 100.0, "usd_h": 2.0, "cap_usd_h": 2.0, "boot_s": 60.0,
    }  # fmt: skip
    return Kind(**{"offer": offer, **base, **fields})


def a_demand(devices: int = 1, **fields: Any) -> Demand:
    """Make a demand: a GPU, a CPU, 4 GiB and 10 GB."""
    base: dict[str, Any] = {
        "share": 1.0, "device_gib": None, "cpu": 1.0, "memory_gib": 4.0, "disk_gib": 10.0,
    }  # fmt: skip
    return Demand(**{"devices": devices, **base, **fields})


def a_problem(
    demands: Sequence[Demand] = (),
    kinds: Sequence[Kind] = (),
    runs_s: float | Sequence[float] | Sequence[Sequence[float]] = HOUR,
    **fields: Any,
) -> RentalProblem:
    """Make a problem; run times are of all, of each job or of each job on each kind.

    A job cannot run on a machine that has too little of something; nothing else is demanded.
    """
    shape = (len(demands), len(kinds))
    given = np.asarray(runs_s, dtype=np.float64)
    runs = np.broadcast_to(given[:, None] if given.ndim == 1 else given, shape).copy()
    for row, demand in enumerate(demands):
        for column, kind in enumerate(kinds):
            if not holds(kind, demand):
                runs[row, column] = math.inf
    base: dict[str, Any] = {
        "jobs": tuple(f"job-{row}" for row in range(len(demands))),
        "done_by_s": (math.inf,) * len(demands), "start_by_s": (math.inf,) * len(demands),
        "late_s": runs, "extra_usd": np.zeros(shape), "terms": Terms(beyond_s=200.0),
    }  # fmt: skip
    return RentalProblem(
        demands=tuple(demands), kinds=tuple(kinds), runs_s=runs, **{**base, **fields}
    )


def holds(kind: Kind, demand: Demand) -> bool:
    """Say whether an empty machine has room for a job."""
    gib = 0.0 if not demand.devices or demand.device_gib is None else demand.device_gib
    return (
        demand.devices <= kind.devices
        and gib <= kind.device_gib
        and demand.cpu <= kind.cpu
        and demand.memory_gib <= kind.memory_gib
        and demand.disk_gib <= kind.disk_gib
    )


def a_random_problem(seed: int, jobs: int = 7, kinds: int = 5) -> RentalProblem:
    """Draw a problem with something of everything: shares, gangs, deadlines, quotas, a budget."""
    drawn = np.random.default_rng([seed, jobs, kinds])
    made = [_random_kind(drawn, place) for place in range(kinds)]
    demands = [_random_demand(drawn) for _ in range(jobs)]
    speeds = drawn.uniform(0.5, 2.0, kinds)
    runs = np.round(drawn.uniform(0.5, 12.0, jobs)[:, None] * HOUR / speeds, 3)
    plain = a_problem(demands, made, [list(map(float, row)) for row in runs])
    hurried = drawn.random(jobs) < 0.4
    least = np.where(np.isfinite(plain.runs_s), plain.runs_s, 1e5).min(axis=1, initial=1e5)
    done_by = np.where(hurried, least * drawn.uniform(0.9, 4.0, jobs) + 200.0, math.inf)
    start_by = np.where(drawn.random(jobs) < 0.3, drawn.uniform(0.0, 4 * HOUR, jobs), math.inf)
    return replace(
        plain,
        late_s=np.where(drawn.random((jobs, 1)) < 0.5, plain.runs_s * 1.3, plain.runs_s),
        extra_usd=np.round(drawn.uniform(0.0, 1.0, (jobs, kinds)), 4),
        done_by_s=tuple(map(float, done_by)),
        start_by_s=tuple(map(float, start_by)),
        horizon_s=float(drawn.choice([math.inf, 10 * HOUR, 40 * HOUR])),
        budget_usd=None if drawn.random() < 0.5 else float(np.round(drawn.uniform(0.0, 120.0), 2)),
        quotas={} if drawn.random() < 0.5 else {"q": float(drawn.integers(0, 40))},
        seed=seed,
    )


def _random_kind(drawn: np.random.Generator, place: int) -> Kind:
    devices = int(drawn.choice([0, 1, 2, 3, 4, 8]))
    price = round(0.2 + devices * float(drawn.uniform(0.5, 4.0)), 4)
    return a_kind(
        f"kind-{place}", zone=f"z-{place % 3}", model="A100-40GB" if devices else "",
        devices=devices, device_gib=float(drawn.choice([16.0, 40.0, 80.0])) if devices else 0.0,
        cpu=float(drawn.choice([4.0, 8.0, 32.0])), memory_gib=float(drawn.choice([16.0, 64.0])),
        disk_gib=float(drawn.choice([50.0, 200.0])), usd_h=price,
        cap_usd_h=price * float(drawn.choice([1.0, 2.5])),
        boot_s=float(drawn.choice([0.0, 60.0, 300.0])),
        billing_step_s=float(drawn.choice([0.0, 1.0, 60.0, 3600.0])),
        billing_least_s=float(drawn.choice([0.0, 60.0, 900.0])),
        at_most=None if drawn.random() < 0.6 else int(drawn.integers(0, 3)),
        quota="q" if drawn.random() < 0.5 else "", quota_units=float(drawn.choice([0.0, 4.0, 8.0])),
    )  # fmt: skip


def _random_demand(drawn: np.random.Generator) -> Demand:
    devices = int(drawn.choice([0, 1, 1, 1, 2, 4]))
    shared = devices == 1 and drawn.random() < 0.5
    return a_demand(
        devices, share=float(drawn.choice([0.25, 1 / 3, 0.5])) if shared else 1.0,
        device_gib=float(drawn.choice([4.0, 12.5])) if shared and drawn.random() < 0.7 else None,
        cpu=float(drawn.choice([0.5, 1.0, 3.0])), memory_gib=float(drawn.choice([1.0, 5.5, 12.0])),
        disk_gib=float(drawn.choice([5.0, 22.5])), nodes=2 if drawn.random() < 0.15 else 1,
    )  # fmt: skip


# -- what is wrong with a plan ---------------------------------------------------------------


def faults(problem: RentalProblem, plan: RentalPlan) -> list[str]:
    """Return all that is wrong with a plan; nothing of the house is asked."""
    kinds = {kind.offer: kind for kind in problem.kinds}
    unknown = [choice.offer for choice in plan.choices if choice.offer not in kinds]
    named = Asked(problem)
    names = [name for choice in plan.choices for name in choice.jobs]
    strangers = [name for name in (*names, *plan.left_out) if name not in named.row]
    if unknown or strangers:
        return [f"nobody knows {name}" for name in (*unknown, *strangers)]
    return [
        *_counted(problem, plan, named),
        *(fault for choice in plan.choices for fault in _of_choice(named, choice)),
        *_bounds(problem, plan, kinds),
        *_money(problem, plan, named),
    ]


class Asked:
    """A problem by name."""

    def __init__(self, problem: RentalProblem) -> None:
        self.problem = problem
        self.row = {name: row for row, name in enumerate(problem.jobs)}
        self.column = {kind.offer: column for column, kind in enumerate(problem.kinds)}

    def runs_s(self, job: str, offer: str) -> float:
        return float(self.problem.runs_s[self.row[job], self.column[offer]])

    def in_time(self, row: int) -> Iterator[Kind]:
        """Yield the kinds on which a job that is alone there is done in time."""
        one = self.problem
        for column, kind in enumerate(one.kinds):
            runs_s, late_s = float(one.runs_s[row, column]), float(one.late_s[row, column])
            if not math.isfinite(runs_s) or not holds(kind, one.demands[row]):
                continue
            if kind.boot_s + late_s <= one.done_by_s[row] + NEAR:
                if kind.boot_s + runs_s <= one.horizon_s + NEAR:
                    yield kind


def _counted(problem: RentalProblem, plan: RentalPlan, named: Asked) -> Iterator[str]:
    """Every job is seated once, or left out for a reason, or nothing fits it."""

    def free(kind: Kind) -> bool:
        return kind.at_most is None and kind.quota not in problem.quotas

    seated = [name for choice in plan.choices for name in choice.jobs]
    for row, job in enumerate(problem.jobs):
        fits = [
            math.isfinite(float(problem.runs_s[row, column])) and holds(kind, problem.demands[row])
            for column, kind in enumerate(problem.kinds)
        ]
        told = plan.left_out.get(job)
        if seated.count(job) > 1:
            yield f"{job} is seated {seated.count(job)} times"
        if job in seated and told is not None:
            yield f"{job} is seated, and left out: {told}"
        if job not in seated and any(fits) and told not in REASONS:
            yield f"{job} has no seat, and the reason is {told!r}"
        if not any(fits) and told is not None:
            yield f"nothing fits {job}, and it is left out for {told}"
        if told in ("budget", "quota") and not any(True for _ in named.in_time(row)):
            yield f"{job} would be late everywhere, and is left out for {told}"
        if told is not None and problem.budget_usd is None and any(map(free, named.in_time(row))):
            yield f"nothing keeps {job} out, and it is left out for {told}"
    if any(not choice.seats for choice in plan.choices):
        yield "a machine is rented for nobody"


def _of_choice(named: Asked, choice: Choice) -> Iterator[str]:
    """What a machine has is enough at every moment, and all that it is for is in time."""
    problem, column = named.problem, named.column[choice.offer]
    kind = problem.kinds[column]
    order = [(seat.start_s, seat.job) for seat in choice.seats]
    if order != sorted(order):
        yield f"the seats of {choice.offer} are not in their order: {order}"
    ends = [seat.start_s + named.runs_s(seat.job, choice.offer) for seat in choice.seats]
    if not math.isclose(choice.used_s, max(ends, default=0.0), rel_tol=NEAR, abs_tol=1e-3):
        yield f"{choice.offer} is used for {choice.used_s} s, its jobs end at {max(ends)}"
    if choice.used_s > problem.horizon_s * (1 + NEAR):
        yield f"{choice.offer} is planned for {choice.used_s} s"
    for seat in choice.seats:
        yield from _of_seat(named, choice, seat)
    for at_s in sorted({seat.start_s for seat in choice.seats}):
        here = [
            seat
            for seat, end_s in zip(choice.seats, ends, strict=True)
            if seat.start_s <= at_s + 1e-9 < end_s - 1e-6
        ]
        yield from (
            f"{choice.offer} at {at_s:.0f} s: {fault}" for fault in _taken(named, kind, here)
        )


def _of_seat(named: Asked, choice: Choice, seat: Seat) -> Iterator[str]:
    problem, row, column = named.problem, named.row[seat.job], named.column[choice.offer]
    kind, demand = problem.kinds[column], problem.demands[row]
    if not math.isfinite(problem.runs_s[row, column]) or not holds(kind, demand):
        yield f"{seat.job} cannot run on {choice.offer}"
    if seat.start_s < kind.boot_s - 1e-6:
        yield f"{seat.job} starts at {seat.start_s} s, {choice.offer} boots until {kind.boot_s}"
    late_s = seat.start_s + float(problem.late_s[row, column])
    if late_s > problem.done_by_s[row] * (1 + NEAR) + 1e-3:
        yield f"{seat.job} may end at {late_s} s, it must by {problem.done_by_s[row]}"
    if seat.start_s > max(problem.start_by_s[row], kind.boot_s) * (1 + NEAR) + 1e-3:
        yield f"{seat.job} starts at {seat.start_s} s, it must by {problem.start_by_s[row]}"
    if demand.nodes != choice.machines:
        yield f"{seat.job} takes {demand.nodes} machines, here are {choice.machines}"
    if len(set(seat.devices)) != demand.devices or len(seat.devices) != demand.devices:
        yield f"{seat.job} takes {demand.devices} devices, here are {seat.devices}"
    if any(not 0 <= device < kind.devices for device in seat.devices):
        yield f"{seat.job} sits on devices {seat.devices} of {kind.devices}"


def _taken(named: Asked, kind: Kind, here: Sequence[Seat]) -> Iterator[str]:
    """Yield what is taken more than once at a moment."""
    demands = [named.problem.demands[named.row[seat.job]] for seat in here]
    for what, has in (
        ("cpu", kind.cpu),
        ("memory_gib", kind.memory_gib),
        ("disk_gib", kind.disk_gib),
    ):
        if (sum_ := sum(float(getattr(one, what)) for one in demands)) > has * (1 + NEAR) + NEAR:
            yield f"{sum_} of {has} {what} are taken"
    for device in range(kind.devices):
        on = [one for one, seat in zip(demands, here, strict=True) if device in seat.devices]
        share = sum(one.share for one in on)
        gib = sum(
            one.share * kind.device_gib if one.device_gib is None else one.device_gib for one in on
        )
        if share > 1 + NEAR:
            yield f"device {device} is shared out {share} times"
        if gib > kind.device_gib * (1 + NEAR) + NEAR:
            yield f"{gib} GiB of {kind.device_gib} of device {device} are taken"


def _bounds(problem: RentalProblem, plan: RentalPlan, kinds: Mapping[str, Kind]) -> Iterator[str]:
    """No more machines of a kind, of a quota group, and no more money than there may be."""
    machines: dict[str, int] = {}
    quotas: dict[str, float] = {}
    for choice in plan.choices:
        kind = kinds[choice.offer]
        machines[kind.offer] = machines.get(kind.offer, 0) + choice.machines
        units = kind.quota_units * choice.machines
        quotas[kind.quota] = quotas.get(kind.quota, 0.0) + units
    for offer, count in machines.items():
        most = kinds[offer].at_most
        if most is not None and count > most:
            yield f"{count} machines of {offer}, there are {most}"
    for group, units in quotas.items():
        if group and units > problem.quotas.get(group, math.inf) + NEAR:
            yield f"{units} of quota {group}, {problem.quotas[group]} are left"
    if problem.budget_usd is not None and worst_usd(problem, plan) > problem.budget_usd + NEAR:
        yield f"may cost {worst_usd(problem, plan)} of {problem.budget_usd}"


def worst_usd(problem: RentalProblem, plan: RentalPlan) -> float:
    """Return the most that a plan's leases can cost."""
    kinds = {kind.offer: kind for kind in problem.kinds}
    return sum(worst_of(problem.terms, kinds[one.offer], one) for one in plan.choices)


def worst_of(terms: Terms, kind: Kind, choice: Choice) -> float:
    held_s = max(terms.least_s, choice.used_s * terms.longer) + terms.beyond_s + kind.boot_s
    held_s += kind.billing_step_s + max(0.0, kind.billing_least_s - 60.0)
    return choice.machines * kind.cap_usd_h * held_s / HOUR


def _money(problem: RentalProblem, plan: RentalPlan, named: Asked) -> Iterator[str]:
    cost = sum(cost_of(named, choice) for choice in plan.choices)
    if not math.isclose(cost, plan.cost_usd, rel_tol=NEAR, abs_tol=1e-4):
        yield f"costs {cost}, it says {plan.cost_usd}"
    bound, seated = plan.bound_usd, sum(len(choice.seats) for choice in plan.choices)
    if bound is not None and seated == len(problem.jobs) and bound > cost * (1 + NEAR) + 1e-4:
        yield f"no plan costs less than {bound}, it says; this one costs {cost}"


def cost_of(named: Asked, choice: Choice) -> float:
    """Return what a machine (of a gang: all of them) and its jobs are expected to cost."""
    column = named.column[choice.offer]
    kind = named.problem.kinds[column]
    steps_s = kind.billing_step_s
    billed_s = choice.used_s
    if steps_s > 0:
        billed_s = math.ceil(round(choice.used_s / steps_s, 9)) * steps_s
    machine = kind.usd_h * max(billed_s, kind.billing_least_s) / HOUR
    extra = sum(float(named.problem.extra_usd[named.row[job], column]) for job in choice.jobs)
    return choice.machines * machine + extra


def seats_of(plan: RentalPlan) -> dict[str, tuple[str, Seat]]:
    """Return each job's seat, with the offer of its machine."""
    return {seat.job: (one.offer, seat) for one in plan.choices for seat in one.seats}


def offers_of(plan: RentalPlan) -> list[str]:
    """Return the offer of every machine, sorted."""
    return sorted(_repeated((one.offer, one.machines) for one in plan.choices))


def _repeated(counted: Iterable[tuple[str, int]]) -> Iterator[str]:
    for name, count in counted:
        yield from [name] * count
