"""A pool of equal GPUs and nothing else: schedulers as their papers have them, for comparison.

It knows counts of GPUs alone and shares no line with the planner, so that what the planner makes of
the same jobs can be held against it. Lengths are exact; a job that was stopped goes on where it
was, after `restart_s` on its GPUs.
"""

import heapq
import math
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

CLOSE = 1e-6


@dataclass(slots=True)
class Task:
    """A job of the pool, and what has become of it."""

    number: int
    at: float
    """When it comes, in seconds; so are all times."""
    length_s: float
    gpus: int
    left_s: float = 0.0
    """What is left of it as of `since`, the cost of a restart included."""
    since: float | None = None
    """Until when its run is counted; None while it does not run."""
    began: float | None = None
    ended: float | None = None
    ran_s: float = 0.0
    stops: int = 0
    went_first: bool = False
    """It got its place because it had waited too long."""

    @property
    def work(self) -> float:
        """Return the GPU-seconds that are left."""
        return self.left_s * self.gpus

    @property
    def served(self) -> float:
        """Return the GPU-seconds that it has had."""
        return self.ran_s * self.gpus

    def waited_s(self, now: float) -> float:
        """Return how long it has not run by now."""
        return now - self.at - self.ran_s


@dataclass(slots=True)
class Pool:
    """The GPUs, who waits and who runs."""

    gpus: int
    restart_s: float = 0.0
    now: float = 0.0
    waiting: dict[int, Task] = field(default_factory=dict[int, Task])
    running: dict[int, Task] = field(default_factory=dict[int, Task])
    ends: list[tuple[float, int, int]] = field(default_factory=list[tuple[float, int, int]])
    """When each attempt will end: time, number of the task, how often it was stopped before."""
    moved: bool = False
    """Whether runs are counted up to now: only rules that look at them ask for it."""

    @property
    def free(self) -> int:
        """Return how many GPUs nobody has."""
        return self.gpus - sum(task.gpus for task in self.running.values())

    def start(self, task: Task) -> None:
        """Let a waiting task run."""
        del self.waiting[task.number]
        self.running[task.number] = task
        task.left_s += self.restart_s if task.began is not None else 0.0
        task.began = self.now if task.began is None else task.began
        task.since = self.now
        heapq.heappush(self.ends, (self.now + task.left_s, task.number, task.stops))

    def stop(self, task: Task) -> None:
        """Let a running task wait, what it has done kept."""
        self._count(task)
        del self.running[task.number]
        self.waiting[task.number] = task
        task.since, task.stops, task.went_first = None, task.stops + 1, False

    def count(self) -> None:
        """Count all runs up to now."""
        for task in self.running.values():
            self._count(task)

    def _count(self, task: Task) -> None:
        assert task.since is not None
        ran_s = self.now - task.since
        task.left_s, task.ran_s, task.since = task.left_s - ran_s, task.ran_s + ran_s, self.now

    def next_end(self) -> float:
        """Return when the next task ends; infinite when none runs."""
        while self.ends and not self._is_true(self.ends[0]):
            heapq.heappop(self.ends)
        return self.ends[0][0] if self.ends else math.inf

    def _is_true(self, end: tuple[float, int, int]) -> bool:
        task = self.running.get(end[1])
        return task is not None and task.stops == end[2]

    def end_those_due(self) -> None:
        """Let all that have nothing left go."""
        while self.next_end() <= self.now + CLOSE:
            _, number, _ = heapq.heappop(self.ends)
            task = self.running[number]
            self._count(task)
            task.ended = self.now
            del self.running[number]


class Rule(Protocol):
    """A scheduler."""

    def decide(self, pool: Pool) -> tuple[Sequence[Task], Sequence[Task]]:
        """Return who stops and who starts now."""
        ...

    def again_at(self, pool: Pool) -> float:
        """Return when it must be asked again though nobody comes or ends; infinite: never."""
        ...


Job = tuple[float, float, int]
"""When a job comes, how long it runs, in seconds, and on how many GPUs."""


def play(jobs: Iterable[Job], gpus: int, rule: Rule, restart_s: float = 0.0) -> list[Task]:
    """Return what becomes of the jobs, all at one instant told before anybody is started."""
    tasks = [Task(n, at, s, g, left_s=s) for n, (at, s, g) in enumerate(jobs)]
    assert all(task.gpus <= gpus for task in tasks), "a job that fits never would wait for ever"
    coming = sorted(tasks, key=lambda task: (task.at, task.number))[::-1]
    pool, again_at = Pool(gpus, restart_s), math.inf
    while coming or pool.running or pool.waiting:
        arrives = coming[-1].at if coming else math.inf
        pool.now = min(arrives, pool.next_end(), again_at)
        pool.end_those_due()
        while coming and coming[-1].at <= pool.now:
            task = coming.pop()
            pool.waiting[task.number] = task
        stopping, starting = rule.decide(pool) if pool.waiting else ((), ())
        for task in stopping:
            pool.stop(task)
        for task in starting:
            pool.start(task)
        assert pool.free >= 0, "more was given than there is"
        again_at = rule.again_at(pool)
    return tasks


Key = Callable[[Task], float]


@dataclass(slots=True)
class InOrder:
    """Nobody is stopped: the line is walked, and whoever fits starts.

    `strict`: nobody passes one who does not fit. `reserve`: the first who does not fit is kept the
    earliest start that it can have; who would outlast it must fit beside (EASY). `limit`: those
    who have waited for longer go before all others, the longest due first.
    """

    key: Key
    strict: bool = False
    reserve: bool = False
    limit: "Limit | None" = None
    _line: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    _seen: set[int] = field(default_factory=set[int])

    def decide(self, pool: Pool) -> tuple[Sequence[Task], Sequence[Task]]:
        """Walk the line once."""
        for number in reversed(pool.waiting):
            if number in self._seen:
                break
            self._seen.add(number)
            insort(self._line, (self.key(pool.waiting[number]), number))
        starting = self._starting(pool, pool.free)
        gone = {task.number for task in starting}
        if gone:
            self._line = [row for row in self._line if row[1] not in gone]
        return (), starting

    def _starting(self, pool: Pool, free: int) -> list[Task]:
        starting: list[Task] = []
        kept = (math.inf, 0)
        for task in self._walk(pool) if free else ():
            if task.gpus <= free:
                if pool.now + task.left_s > kept[0] + CLOSE:
                    if task.gpus > kept[1]:
                        continue
                    kept = (kept[0], kept[1] - task.gpus)
                starting.append(task)
                free -= task.gpus
            elif self.strict:
                break
            elif self.reserve and kept[0] == math.inf:
                kept = earliest(task, pool, starting, free)
            if not free:
                break
        return starting

    def _walk(self, pool: Pool) -> Iterator[Task]:
        first = () if self.limit is None else self.limit.due(pool)
        yield from first
        ahead = {task.number for task in first}
        for _, number in tuple(self._line):
            if number not in ahead:
                yield pool.waiting[number]

    def again_at(self, pool: Pool) -> float:
        """Return never: room comes with ends alone."""
        return math.inf


def earliest(task: Task, pool: Pool, starting: Sequence[Task], free: int) -> tuple[float, int]:
    """Return when a task could start as others end, and how many GPUs it would leave then."""
    ends = [(_ends_at(other), other.gpus) for other in pool.running.values()]
    ends += [(pool.now + other.left_s, other.gpus) for other in starting]
    ends.sort()
    for position, (at, gpus) in enumerate(ends):
        free += gpus
        is_last_then = position + 1 == len(ends) or ends[position + 1][0] > at
        if free >= task.gpus and is_last_then:
            return at, free - task.gpus
    raise AssertionError("it fits when all have ended")


def _ends_at(task: Task) -> float:
    assert task.since is not None
    return task.since + task.left_s


class Limit(Protocol):
    """Says who has waited too long."""

    def due(self, pool: Pool) -> Sequence[Task]:
        """Return those that have, the longest due first."""
        ...


@dataclass(frozen=True, slots=True)
class FollowsLoad:
    """A wait is too long beside the work that is here, what is done of what runs included.

    Of the time that all GPUs need for that: `large` of it for jobs that are at least the part
    `large_from` of that work, `small` of it for the others; or so much of what they need for what
    waits as the second numbers say, where that is longer.
    """

    large: tuple[float, float]
    small: tuple[float, float]
    large_from: float
    least_s: float = 900.0
    most_s: float = 14 * 86400.0

    def due(self, pool: Pool) -> Sequence[Task]:
        """Return those that have waited too long, the longest due first."""
        everybody = [*pool.waiting.values(), *pool.running.values()]
        here_s = sum(task.length_s * task.gpus for task in everybody) / pool.gpus
        waits_s = sum(task.work for task in pool.waiting.values()) / pool.gpus
        rows: list[tuple[float, int]] = []
        for task in pool.waiting.values():
            is_large = task.length_s * task.gpus >= self.large_from * here_s * pool.gpus
            of_all, of_waiting = self.large if is_large else self.small
            asked_s = max(of_all * here_s, of_waiting * waits_s)
            limit_s = min(self.most_s, max(self.least_s, asked_s))
            if task.waited_s(pool.now) >= limit_s:
                rows.append((task.at + task.ran_s + limit_s, task.number))
        return [pool.waiting[number] for _, number in sorted(rows)]


def weighed(task: Task, now: float, age: float) -> float:
    """Return the work that is left, the less the longer a task has waited beside its length."""
    return task.work * task.left_s / (task.left_s + age * task.waited_s(now))


@dataclass(slots=True)
class LeastWork(InOrder):
    """Least work first, the sooner the longer it has waited.

    `age`: what a second of waiting counts of a second of length.
    """

    age: float = 0.0

    def _walk(self, pool: Pool) -> Iterator[Task]:
        first = () if self.limit is None else self.limit.due(pool)
        ahead = {task.number for task in first}
        rest = [task for task in pool.waiting.values() if task.number not in ahead]
        rest.sort(key=lambda task: (weighed(task, pool.now, self.age), task.number))
        yield from first
        yield from rest


@dataclass(slots=True)
class Displacing:
    """Who runs is ranked with who waits; who stands behind what fits is stopped for it.

    `keep`: what a running task has left counts as so much less, so that a stop pays. `limit`:
    those who have waited for longer go first and are not stopped again.
    """

    key: Key
    keep: float = 1.0
    limit: "Limit | None" = None
    levels: Sequence[float] = ()
    """GPU-seconds of service at which the key of a task changes by itself."""

    def decide(self, pool: Pool) -> tuple[Sequence[Task], Sequence[Task]]:
        """Fill the pool anew, by rank."""
        pool.count()
        due = () if self.limit is None else self.limit.due(pool)
        place = {task.number: rank for rank, task in enumerate(due)}

        def rank(task: Task) -> tuple[int, float, int]:
            if task.went_first:
                return (0, task.at, task.number)
            if task.number in place:
                return (1, place[task.number], task.number)
            return (2, self._key(task), task.number)

        free, wanted = pool.gpus, set[int]()
        everybody = [*pool.running.values(), *pool.waiting.values()]
        for task in sorted(everybody, key=rank):
            if task.gpus <= free:
                free -= task.gpus
                wanted.add(task.number)
                task.went_first = task.went_first or task.number in place
        stopping = [task for task in pool.running.values() if task.number not in wanted]
        return stopping, [task for task in pool.waiting.values() if task.number in wanted]

    def _key(self, task: Task) -> float:
        return self.key(task) / (self.keep if task.since is not None else 1.0)

    def again_at(self, pool: Pool) -> float:
        """Return when a running task reaches the next level."""
        times = [
            pool.now + (level - task.served) / task.gpus
            for task in pool.running.values()
            for level in self.levels
            if task.served < level - CLOSE
        ]
        return min(times, default=math.inf)


def level(served: float, levels: Sequence[float]) -> int:
    """Return how many levels of service have been passed."""
    return sum(served >= one - CLOSE for one in levels)


LAS = (8 * 3600.0,)
"""Service after which a job goes behind those that had less: 8 GPU-hours (Tiresias, NSDI'19)."""

RULES: dict[str, Callable[[], Rule]] = {
    "fifo": lambda: InOrder(lambda task: task.at, strict=True),
    "fit-first": lambda: InOrder(lambda task: task.at),
    "easy-backfill": lambda: InOrder(lambda task: task.at, reserve=True),
    "sjf": lambda: InOrder(lambda task: task.length_s, strict=True),
    "sgf": lambda: InOrder(lambda task: task.length_s * task.gpus, strict=True),
    "srtf": lambda: Displacing(lambda task: task.left_s),
    "srsf": lambda: Displacing(lambda task: task.work),
    "las": lambda: Displacing(lambda task: level(task.served, LAS), levels=LAS),
}
"""The schedulers to compare with, by the names that the product has for them."""
