"""What a job should ask for, by what ended attempts of its family have used; pure.

A size is 1.2 times the most that was used, up to the next size that there is: of GPU memory those
of `growth.STEPS_GIB`, of a machine's memory `HOST_STEPS_GIB`. It takes three attempts that were
completed and measured. A job asks for no more than its file says, unless a job of its family has
run out of memory: then it begins at what that one had grown to.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from cloudwhale.model import event as e
from cloudwhale.model.job import Job, JobState, Resources, Span
from cloudwhale.model.node import Node
from cloudwhale.model.peak import End, Peak
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import GiB
from cloudwhale.model.world import World
from cloudwhale.planning.growth import STEPS_GIB, sizes

HEAD_ROOM = 1.2
EVIDENCE = 3
"""Completed attempts, at least, before anything is asked for that is less."""
PEAKS_KEPT = 20
HOST_STEPS_GIB: tuple[GiB, ...] = (
    0.25, 0.5, *(size * 2.0**power for power in range(12) for size in (1.0, 1.5))
)  # fmt: skip
"""Of a machine's memory: doubled, and half way between."""
BACK = "asks for what its file says again"
OF_MEMORY = frozenset({Code.OUT_OF_MEMORY, Code.GPU_OUTGROWN, Code.GPU_OUT_OF_MEMORY})


# -- what attempts have used -----------------------------------------------------------------


def peak_of(job: Job, event: e.Leaves, node: Node | None) -> Peak | None:
    """Return what the attempt of a job that leaves its place has used; None: nobody knows.

    `job`: as it was before; `node`: where it was, the first of a gang.
    """
    grown = event.grown if isinstance(event, e.Retried) else None
    used, wants = event.peaks, job.wants
    short = _short_of(event)
    if used.gpu_gib is None and used.memory_gib is None and short is None:
        return None
    there = () if job.placement is None else job.placement.devices
    devices = () if node is None else node.facts.devices
    mine = [device for device in devices if device.id in there]
    part = [device.memory_gib * wants.gpu.share for device in mine]
    asked = wants.gpu.memory_gib.least
    had = _had(asked, part, wants)
    return Peak(
        job=job.id, at=event.at, end=_end(event), gpu=mine[0].model if mine else "",
        asked_gib=asked or None, had_gib=had,
        used_gib=_at_least(used.gpu_gib, had if short == "gpu" else None) if mine else None,
        grown_gib=None if grown is None else _more(grown.gpu.memory_gib.least, asked),
        host_asked_gib=wants.memory_gib,
        host_used_gib=_at_least(used.memory_gib, wants.memory_gib if short == "host" else None),
        host_grown_gib=None if grown is None else _more(grown.memory_gib, wants.memory_gib),
    )  # fmt: skip


def _end(event: e.Leaves) -> End:
    if isinstance(event, e.Finished):
        return "completed"
    reason = getattr(event, "reason", None)
    return "outgrew" if reason is not None and reason.code in OF_MEMORY else "other"


def _short_of(event: e.Leaves) -> Literal["gpu", "host"] | None:
    """Return of which memory an attempt had too little, whether it is tried again or not."""
    if _end(event) != "outgrew":
        return None
    reason = getattr(event, "reason", None)
    return "host" if reason is not None and reason.code is Code.OUT_OF_MEMORY else "gpu"


def _at_least(used: GiB | None, had: GiB | None) -> GiB | None:
    """Return what was used, had it been there: samples miss what an allocation has asked for."""
    return max(used or 0.0, had) if had is not None else used


def _had(asked: GiB, parts: Sequence[GiB], wants: Resources) -> GiB | None:
    """Return what it could use: all of a device of its own, else what it had asked for."""
    if not parts:
        return None
    return asked if asked and wants.gpu.share < 1.0 else min(parts)


def _more(grown: GiB | None, before: GiB | None) -> GiB | None:
    return grown if grown is not None and grown > (before or 0.0) else None


def with_newest(peaks: Sequence[Peak], newest: Peak) -> tuple[Peak, ...]:
    """Return the peaks of a family with one more; the oldest are forgotten."""
    return (*peaks, newest)[-PEAKS_KEPT:]


# -- what that comes to ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """What attempts of a family have used of one kind of memory."""

    attempts: int = 0
    """How many were measured."""
    completed: int = 0
    most_gib: GiB = 0.0
    median_gib: GiB = 0.0
    grown_gib: GiB | None = None
    """The most that one of them has grown to when it had run out."""

    @property
    def is_enough(self) -> bool:
        """Say whether less may be asked for because of it."""
        return self.completed >= EVIDENCE

    def size_gib(self, steps: Sequence[GiB]) -> GiB:
        """Return the next size with head-room above all that was used; what was grown to at least.

        Never less than what was used, and with more used or more grown never less.
        """
        return max(next_size(HEAD_ROOM * self.most_gib, steps), self.grown_gib or 0.0)


def next_size(gib: GiB, steps: Sequence[GiB]) -> GiB:
    """Return the least of some ascending sizes that holds so much; itself where none does."""
    return next((step for step in steps if step >= gib), gib)


def gpu_measured(peaks: Iterable[Peak]) -> Measured:
    """Return what attempts have used of GPU memory, per device."""
    return _measured((p.end, p.used_gib, p.had_gib, p.grown_gib) for p in peaks)


def host_measured(peaks: Iterable[Peak]) -> Measured:
    """Return what attempts have used of a machine's memory."""
    return _measured((p.end, p.host_used_gib, p.host_asked_gib, p.host_grown_gib) for p in peaks)


def _measured(
    found: Iterable[tuple[End, GiB | None, GiB | None, GiB | None]],
) -> Measured:
    used: list[GiB] = []
    completed, grown = 0, list[GiB]()
    for end, gib, had, larger in found:
        if larger is not None:
            grown.append(larger)
            gib = max(gib or 0.0, had or 0.0)  # it would have used more
        if gib is not None:
            used.append(gib)
            completed += end == "completed"
    if not used and not grown:
        return Measured()
    return Measured(
        len(used),
        completed,
        max(used, default=0.0),
        median(used or [0.0]),
        max(grown, default=None),
    )


# -- what a job asks for ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Size:
    """What a job asks for by what its family has used, and a sentence that says why."""

    wants: Resources
    says: str


def size(wants: Resources, peaks: Sequence[Peak]) -> Size | None:
    """Return what a job of a family should ask for; None: what it asks for is right, or unknown."""
    says: list[str] = []
    sized = wants
    if wants.gpu.count:
        had, seen = wants.gpu.memory_gib.least, gpu_measured(peaks)
        target = _target(had or None, seen, STEPS_GIB, _most_gib(wants))
        if target is not None:
            span = Span(least=target, most=wants.gpu.memory_gib.most)
            sized = sized.but(gpu=wants.gpu.but(memory_gib=span))
            says.append(_says("GPU memory", had or None, target, seen))
    seen = host_measured(peaks)
    target = _target(wants.memory_gib, seen, HOST_STEPS_GIB, None)
    if target is not None:
        sized = sized.but(memory_gib=target)
        says.append(_says("memory", wants.memory_gib, target, seen))
    return Size(sized, "; ".join(says)) if says else None


def news(world: World, is_usual: bool) -> Iterator[e.Sized]:
    """Yield what jobs that wait are to ask for from now on.

    `is_usual`: whether jobs are sized whose file does not say. One that has outgrown what it had
    keeps what it has grown to.
    """
    if not world.peaks:
        return
    known: dict[tuple[tuple[str, str], str], Size | None] = {}
    for job in world.jobs.values():
        if not _may_be(job, is_usual) or job.family not in world.peaks:
            continue
        key = (job.family, job.spec.demand)
        if key not in known:
            known[key] = size(job.spec.resources, world.peaks[job.family])
        found = known[key]
        wants = job.spec.resources if found is None else found.wants
        if wants != job.wants:
            says = BACK if found is None else found.says
            yield e.Sized(
                at=world.now, job=job.id, wants=wants, reason=Reason(code=Code.SIZED, says=says)
            )


def _may_be(job: Job, is_usual: bool) -> bool:
    if job.state is not JobState.PENDING or job.grown is not None or job.wish is not None:
        return False
    return is_usual if job.spec.auto_size is None else job.spec.auto_size


def sized(world: World, is_usual: bool) -> World:
    """Return the world after what jobs are told that wait, for a dry run."""
    jobs = {one.job: world.jobs[one.job].but(sized=one.wants) for one in news(world, is_usual)}
    return replace(world, jobs={**world.jobs, **jobs}) if jobs else world


def _target(
    asked: GiB | None, seen: Measured, steps: Sequence[GiB], most: GiB | None
) -> GiB | None:
    """Return what is asked for instead; None: nothing else."""
    if seen.grown_gib is not None and seen.grown_gib > (asked or 0.0):
        found = seen.size_gib(steps) if seen.is_enough else seen.grown_gib
        return found if most is None or found <= most else None
    if asked is None or not seen.is_enough:
        return None
    found = seen.size_gib(steps)
    return found if found < asked else None


def _most_gib(wants: Resources) -> GiB:
    """Return the most that its file allows, by its models and its range."""
    most = wants.gpu.memory_gib.most
    largest = max(sizes(wants))
    return largest if most is None else min(most, largest)


def _says(what: str, asked: GiB | None, target: GiB, seen: Measured) -> str:
    before = "nothing said" if asked is None else f"{asked:g} GiB"
    used = f"{seen.attempts} attempts have used {seen.most_gib:.3g} GiB at most"
    if asked is None or target > asked:
        return f"asks for {target:g} GiB of {what} ({before}): one before it ran out of memory"
    return f"asks for {target:g} GiB of {what} instead of {before}: {used}"
