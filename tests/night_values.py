"""A night as data, drawn from a seed: jobs, what can be rented, and all that goes wrong."""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

BEGAN_AT = 1_800_000_000.0  # in the middle of a month, so that projects have one account each
ARRIVE_FOR_S = 5400.0
TROUBLED_FOR_S = 2 * 3600.0
JOBS = (40, 46)
TROUBLES = (32, 46)


@dataclass(frozen=True, slots=True)
class NightJob:
    """A job, and what only the night knows of it; times are seconds, from the beginning on."""

    id: str
    run: str
    at: float
    work_s: float
    project: str = "default"
    said_s: float | None = None
    saves_every_s: float | None = None
    publish_every_s: float = 60.0
    grace_s: float = 20.0
    heeds: bool = True
    exit_code: int = 0
    share: float = 1.0
    gpus: int = 1
    priority: int = 50
    market: str = "auto"
    deadline_s: float | None = None
    budget_usd: float | None = None
    wait_max_s: float | None = None
    max_duration_s: float | None = None
    retries: int = 3
    after: str = ""


@dataclass(frozen=True, slots=True)
class NightShelf:
    """An offer and what its machines are like."""

    id: str
    zone: str
    market: str
    gpus: int
    usd_h: float
    cap_usd_h: float
    boot_s: float
    notice_s: float = 0.0
    said_hazard_per_h: float = 0.0
    hazard_per_h: float = 0.0
    capacity: int | None = None
    failed_boots: float = 0.0
    slow_boots: float = 0.0


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that goes wrong: what, when, for how long, to whom, how."""

    kind: str
    at: float
    for_s: float = 0.0
    who: int = 0
    """Picks among those that there are then."""
    by: float = 0.0
    word: str = ""

    @property
    def ends_at(self) -> float:
        """Return when it is over."""
        return self.at + self.for_s


@dataclass(frozen=True, slots=True)
class Night:
    """Everything that a night begins with."""

    seed: int
    order: str = "priority"
    score: str = "best-fit"
    wait: str = "no-wait"
    rent: str = "greedy"
    owned: tuple[int, ...] = (1,)
    """GPUs of each machine of our own."""
    budgets_usd: Mapping[str, float] = field(default_factory=dict[str, float])
    """By run."""
    projects_usd: Mapping[str, float] = field(default_factory=dict[str, float])
    jobs: tuple[NightJob, ...] = ()
    shelves: tuple[NightShelf, ...] = ()
    troubles: tuple[Trouble, ...] = ()

    @property
    def calm_at(self) -> float:
        """Return from when on nothing goes wrong any more, and nobody comes."""
        times = [0.0, *(one.ends_at for one in self.troubles), *(job.at for job in self.jobs)]
        return max(times)


Draw = Callable[[random.Random, float], Trouble]


def _log(dice: random.Random, least: float, most: float) -> float:
    return math.exp(dice.uniform(math.log(least), math.log(most)))


def _spell(kind: str, least_s: float, most_s: float) -> Draw:
    """Return a trouble of some length; one in eight is a long one."""

    def drawn(dice: random.Random, at: float) -> Trouble:
        least, most = (most_s / 4, most_s) if dice.random() < 0.12 else (least_s, most_s / 4)
        return Trouble(kind, at, round(_log(dice, least, most), 1), dice.randrange(1000))

    return drawn


VERBS = ("create", "schedule", "list", "move", "terminate", "delete", "sweep")


def _calls(kind: str) -> Draw:
    """The next calls of a kind fail, before or after they have done their work."""

    def drawn(dice: random.Random, at: float) -> Trouble:
        word = dice.choice((*VERBS, "create", "move", "terminate"))
        return Trouble(kind, at, 600.0, by=float(dice.choice((1, 1, 2, 3, 6))), word=word)

    return drawn


def _jump(kind: str, most_s: float) -> Draw:
    def drawn(dice: random.Random, at: float) -> Trouble:
        by = _log(dice, 5.0, most_s) * dice.choice((-1.0, 1.0))
        return Trouble(
            kind, at, round(_log(dice, 30.0, 1800.0), 1), dice.randrange(1000), round(by, 1)
        )

    return drawn


def _killed(dice: random.Random, at: float) -> Trouble:
    """The controller dies before or after one of its next deeds, or of its writes."""
    word = dice.choice(("before", "after", "write-before", "write-after", "now"))
    down_s = round(_log(dice, 1.0, 1800.0), 1)
    return Trouble("controller-killed", at, down_s, by=float(dice.randrange(1, 12)), word=word)


def _taken(dice: random.Random, at: float) -> Trouble:
    word = dice.choice(("both", "both", "unheard", "late", "agent-only"))
    return Trouble("taken", at, 150.0, dice.randrange(1000), word=word)


def _person(dice: random.Random, at: float) -> Trouble:
    word = dice.choice(("cancel", "pause", "pause"))
    for_s = round(dice.uniform(20.0, 900.0), 1)
    return Trouble("person", at, for_s, dice.randrange(1000), word=word)


def _price(dice: random.Random, at: float) -> Trouble:
    by = round(_log(dice, 0.5, 2.5), 3)
    return Trouble("price", at, round(_log(dice, 120.0, 3600.0), 1), dice.randrange(1000), by)


def _boot(dice: random.Random, at: float) -> Trouble:
    return Trouble("boot", at, 900.0, word=dice.choice(("fails", "hangs", "slow")))


def _late(kind: str) -> Draw:
    def drawn(dice: random.Random, at: float) -> Trouble:
        for_s, by = _log(dice, 60.0, 900.0), _log(dice, 1.0, 40.0)
        return Trouble(kind, at, round(for_s, 1), by=round(by, 1))

    return drawn


KINDS: Mapping[str, tuple[float, Draw]] = {
    "call-fails-before": (3.0, _calls("call-fails-before")),
    "call-fails-after": (3.0, _calls("call-fails-after")),
    "denied": (0.5, _spell("denied", 10.0, 300.0)),
    "provider-cut-off": (1.0, _spell("provider-cut-off", 10.0, 3600.0)),
    "agent-cut-off": (2.5, _spell("agent-cut-off", 5.0, 3600.0)),
    "mailbox-cut-off": (1.5, _spell("mailbox-cut-off", 5.0, 3600.0)),
    "mailbox-fails-after": (1.0, _spell("mailbox-fails-after", 5.0, 120.0)),
    "database-fails": (1.5, _spell("database-fails", 2.0, 900.0)),
    "answers-late": (1.0, _late("answers-late")),
    "calls-slow": (1.0, _late("calls-slow")),
    "controller-clock": (1.0, _jump("controller-clock", 300.0)),
    "agent-clock": (1.0, _jump("agent-clock", 3600.0)),
    "controller-killed": (3.0, _killed),
    "lid": (0.7, _spell("lid", 60.0, 3 * 3600.0)),
    "agent-killed": (2.0, _spell("agent-killed", 2.0, 120.0)),
    "shim-killed": (1.0, _spell("shim-killed", 1.0, 2.0)),
    "taken": (4.0, _taken),
    "machine-hangs": (0.7, _spell("machine-hangs", 30.0, 1800.0)),
    "disk-full": (1.0, _spell("disk-full", 30.0, 900.0)),
    "price": (1.0, _price),
    "drought": (1.0, _spell("drought", 60.0, 3600.0)),
    "boot": (1.5, _boot),
    "person": (1.0, _person),
}
"""How often each kind is drawn beside the others, and how."""


def drawn(seed: int) -> Night:
    """Return the night of a seed."""
    dice = random.Random(f"night-{seed}")
    shelves = tuple(_shelves(dice))
    owned: tuple[int, ...] = dice.choice(((1,), (2,), (1, 1), (1, 2)))
    tight = dice.random() < 0.3
    least, most = (3.0, 15.0) if tight else (25.0, 80.0)
    runs = {name: round(_log(dice, least, most), 2) for name in ("run-1", "run-2")}
    projects = {"nlp": round(_log(dice, least, most), 2)} if dice.random() < 0.7 else {}
    return Night(
        seed=seed,
        order=dice.choice(("priority", "whale")),
        score=dice.choice(("best-fit", "whale")),
        wait=dice.choice(("no-wait", "no-wait", "whale", "constant-wait")),
        rent=dice.choice(("greedy", "one-each")),
        owned=owned,
        budgets_usd=runs,
        projects_usd=projects,
        jobs=tuple(_possible(one, shelves, owned) for one in _jobs(dice)),
        shelves=shelves,
        troubles=tuple(_troubles(dice)),
    )


def _troubles(dice: random.Random) -> list[Trouble]:
    names, weights = list(KINDS), [weight for weight, _ in KINDS.values()]
    many = dice.randint(*TROUBLES)
    chosen = dice.sample(names, 12) + dice.choices(names, weights, k=many - 12)
    found = [KINDS[name][1](dice, round(dice.uniform(60.0, TROUBLED_FOR_S), 1)) for name in chosen]
    return sorted(found, key=lambda one: (one.at, one.kind, one.who))


def _shelves(dice: random.Random) -> list[NightShelf]:
    """Return spot in three zones with other notices, on-demand, and sometimes larger ones."""
    is_said, boot_s = dice.random() < 0.15, round(dice.uniform(40.0, 150.0), 1)
    found = [_spot(dice, 1, zone, is_said=is_said) for zone in ZONES]
    found.append(_full(dice, 1, "a"))
    if dice.random() < 0.5:
        found += [_spot(dice, 4, dice.choice(tuple(ZONES)), is_said=is_said), _full(dice, 4, "b")]
    # Of one kind they boot alike: what a round works out for one holds for all.
    return [replace(one, boot_s=boot_s) for one in found]


ZONES = {"a": 120.0, "b": 30.0, "c": 0.0}
"""Each with the notice that is given there."""
USD_H = {1: 1.2, 4: 4.4}


def _spot(dice: random.Random, gpus: int, zone: str, *, is_said: bool) -> NightShelf:
    cap = round(USD_H[gpus] * dice.uniform(0.95, 1.1), 4)
    return NightShelf(
        id=f"spot-{gpus}-{zone}", zone=zone, market="spot", gpus=gpus,
        usd_h=round(cap * dice.uniform(0.25, 0.6), 4), cap_usd_h=cap,
        boot_s=round(dice.uniform(40.0, 150.0), 1), notice_s=ZONES[zone],
        said_hazard_per_h=round(dice.uniform(0.02, 0.3), 3) if is_said else 0.0,
        hazard_per_h=round(_log(dice, 0.05, 1.5), 3), capacity=dice.choice((None, 2, 4)),
        failed_boots=dice.choice((0.0, 0.0, 0.1)), slow_boots=dice.choice((0.0, 0.0, 0.1)),
    )  # fmt: skip


def _full(dice: random.Random, gpus: int, zone: str) -> NightShelf:
    usd_h = round(USD_H[gpus] * dice.uniform(0.95, 1.1), 4)
    return NightShelf(
        id=f"full-{gpus}-{zone}", zone=zone, market="on-demand", gpus=gpus, usd_h=usd_h,
        cap_usd_h=usd_h, boot_s=round(dice.uniform(40.0, 150.0), 1),
        capacity=dice.choice((None, 3)),
    )  # fmt: skip


def _jobs(dice: random.Random) -> list[NightJob]:
    found: list[NightJob] = []
    publishes_s, has_deadlines = dice.choice((20.0, 60.0, 240.0)), dice.random() < 0.35
    for number in range(dice.randint(*JOBS)):
        one = replace(_job(dice, number), publish_every_s=publishes_s)
        if not has_deadlines:
            one = replace(one, deadline_s=None)
        if found and dice.random() < 0.06:
            before = dice.choice(found)
            if before.run == one.run and before.exit_code == 0:
                one = replace(one, after=before.id, at=max(one.at, before.at))
        found.append(one)
    return found


def _possible(job: NightJob, shelves: tuple[NightShelf, ...], owned: tuple[int, ...]) -> NightJob:
    """Return a job that something can run: others are refused when they are submitted."""
    markets = {"spot", "on-demand"} if job.market == "auto" else {job.market}
    gpus = [one.gpus for one in shelves if one.market in markets]
    gpus += owned if job.market in ("auto", "local") else ()
    return replace(job, gpus=min(job.gpus, max(gpus)))


def _job(dice: random.Random, number: int) -> NightJob:
    spans = ((40.0, 300.0), (300.0, 1200.0), (1200.0, 3600.0))
    work_s = round(_log(dice, *dice.choices(spans, (6, 5, 1))[0]), 1)
    saves = dice.random() < 0.75
    said = dice.choice((None, 0.6, 0.8, 1.0, 1.0, 1.3, 2.0))
    market = dice.choices(("auto", "spot", "on-demand", "local"), (8, 1.5, 1, 0.2))[0]
    many = dice.choices((1, 2), (9, 1))[0]
    return NightJob(
        id=f"job-{number:02d}",
        run=dice.choice(("run-1", "run-1", "run-2")),
        at=round(dice.choice((0.0, *(dice.uniform(0.0, ARRIVE_FOR_S) for _ in range(4)))), 1),
        work_s=work_s,
        project=dice.choice(("default", "nlp", "vision")),
        said_s=None if said is None else round(work_s * said, 1),
        saves_every_s=round(_log(dice, 15.0, 240.0), 1) if saves else None,
        publish_every_s=dice.choice((20.0, 60.0, 240.0)),
        grace_s=dice.choice((5.0, 20.0, 60.0)),
        heeds=dice.random() < 0.93,
        exit_code=0 if dice.random() < 0.93 else 3,
        share=dice.choice((1.0, 1.0, 0.5)) if many == 1 else 1.0,
        gpus=many,
        priority=dice.choice((20, 50, 50, 50, 80)),
        market=market,
        deadline_s=round(work_s * dice.uniform(1.3, 8.0) + 300, 1)
        if dice.random() < 0.12
        else None,
        budget_usd=round(_log(dice, 0.2, 4.0), 2) if dice.random() < 0.1 else None,
        wait_max_s=round(dice.uniform(0.0, 1200.0), 1) if dice.random() < 0.2 else None,
        max_duration_s=round(work_s * dice.uniform(0.7, 3.0)) if dice.random() < 0.05 else None,
        retries=dice.choice((1, 3, 3, 5)),
    )


# -- as a file -----------------------------------------------------------------------------


def as_data(night: Night) -> dict[str, Any]:
    """Return a night as plain data; what is as usual is left out."""
    made = asdict(night)
    for name, usual in (("jobs", NightJob("", "", 0, 0)), ("troubles", Trouble("", 0))):
        rows: list[dict[str, Any]] = list(made[name])
        made[name] = [
            {key: value for key, value in row.items() if value != getattr(usual, key)}
            for row in rows
        ]
    made["shelves"], made["owned"] = list(made["shelves"]), list(made["owned"])
    return made


def from_data(row: Mapping[str, Any]) -> Night:
    """Return a night from plain data."""
    known = {each.name for each in fields(Night)}
    parts = {key: value for key, value in row.items() if key in known}
    parts["jobs"] = tuple(NightJob(**{"at": 0.0, **one}) for one in parts["jobs"])
    parts["shelves"] = tuple(NightShelf(**one) for one in parts["shelves"])
    parts["troubles"] = tuple(Trouble(**one) for one in parts["troubles"])
    parts["owned"] = tuple(parts["owned"])
    return Night(**parts)
