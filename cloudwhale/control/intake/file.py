"""A job file, from its bytes to the jobs it describes."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.control.intake.dependencies import check_dependencies
from cloudwhale.control.intake.fields import Reading, read
from cloudwhale.control.intake.job import Overrides, job, merged
from cloudwhale.control.intake.keys import NIGHT
from cloudwhale.control.intake.legacy import tasks
from cloudwhale.control.intake.source import body_of, from_json, text_of
from cloudwhale.control.intake.tree import Items, Node, Section, parse
from cloudwhale.control.intake.unfit import Unfit
from cloudwhale.model.job import JobSpec
from cloudwhale.model.night import Unfinished, Window
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.model.value import Value

JOBS_MOST = 10_000  # what a store and a planning round are measured with

_NOTHING = Section(1, 1, {})
_LISTS = ("defaults", "jobs")


class JobFile(Value):
    """What a job file says."""

    specs: tuple[JobSpec, ...]
    """Defaults merged, arrays expanded, overrides applied. Empty for a task list that is done."""
    notes: tuple[str, ...] = ()
    """Sentences on what was assumed."""
    budget: MicroUsd | None = None
    """Bound on the run: the smaller of the file's and the override."""
    deadline: Instant | None = None
    """Of the file as a whole; its jobs carry it too."""
    window: Window | None = None
    """The hours of a night; None: its jobs run at any time."""
    digest: str
    """SHA-256 of the file's bytes and the overrides."""


class _Together(Value):
    """What a file of several jobs may say of all of them together."""

    window: dict[str, int] | None = None
    zone: str | None = None
    days: tuple[str, ...] | None = None
    budget: MicroUsd | None = None
    deadline: Instant | None = None
    unfinished: Unfinished | None = None

    def as_window(self, root: Section) -> Window | None:
        """Return the hours of a night; raise Unfit for what has no meaning without."""
        rest = {key: getattr(self, key) for key in _OF_NIGHTS}
        said = {key: value for key, value in rest.items() if value is not None}
        if self.window is not None:
            return Window.model_validate({**self.window, **said})
        for key in said:
            raise Unfit(
                "it says how a night is, and the file has no `window`",
                "Add `window: 22:00..08:00`, or remove it.",
                root.entries[key].key,
            ).under(key)
        return None


_OF_NIGHTS = ("zone", "days", "unfinished")


@dataclass(frozen=True, slots=True)
class _Whole:
    """What the tree of a file means, before the command line has its say of it."""

    specs: tuple[JobSpec, ...]
    budget: MicroUsd | None = None
    deadline: Instant | None = None
    window: Window | None = None


def read_jobs(
    path: Path,
    *,
    now: Instant,
    overrides: Overrides | None = None,
    counts_from: Instant | None = None,
) -> JobFile:
    """Return what a job file says; raise SpecError for the first thing that is wrong in it.

    `counts_from`: from when a length of time counts that is a deadline; None: from now.
    """
    overrides = overrides or Overrides()
    reading = Reading(path.absolute().parent, now, counts_from)
    try:
        body = body_of(path)
        text = text_of(body)
        root = parse(from_json(text) if path.suffix == ".json" else text)
        whole = _whole(root, reading, overrides)
    except Unfit as wrong:
        raise wrong.error(str(path)) from wrong.__cause__
    bounds = [amount for amount in (whole.budget, overrides.budget) if amount is not None]
    return JobFile(
        specs=whole.specs,
        notes=tuple(reading.notes),
        budget=min(bounds, default=None),
        deadline=overrides.deadline if overrides.deadline is not None else whole.deadline,
        window=whole.window,
        digest=_digest(body, overrides),
    )


def _digest(body: bytes, overrides: Overrides) -> str:
    # A flag that is newer than a run must not tell the same command from it when it is not given.
    newer = {"keep_on_failure_s"} if overrides.keep_on_failure_s is None else set[str]()
    said = json.dumps(overrides.model_dump(mode="json", exclude=newer), sort_keys=True)
    return hashlib.sha256(b"%d\n%s%s" % (len(body), body, said.encode())).hexdigest()


# -- the three shapes of a file --------------------------------------------------------------


def _whole(root: Node, reading: Reading, overrides: Overrides) -> _Whole:
    if isinstance(root, Items):
        return _Whole(tasks(root, reading, overrides))
    if not isinstance(root, Section):
        raise Unfit("this is not a job file", "Write keys with values: `name: train`.", root)
    if "jobs" in root.entries:
        return _several(root, reading, overrides)
    specs = job(root, reading, overrides)
    check_dependencies([(root, specs[0])])
    return _Whole(specs, budget=specs[0].budget, deadline=specs[0].deadline)


def _several(root: Section, reading: Reading, overrides: Overrides) -> _Whole:
    defaults, listed = _defaults(root), root.entries["jobs"].value
    if not isinstance(listed, Items) or not listed.items:
        raise Unfit("a list of jobs is wanted here", "Write `jobs: [{name: ...}, ...]`.", listed)
    night = _together(root, reading)
    window = night.as_window(root)
    jobs: list[tuple[Section, tuple[JobSpec, ...]]] = []
    count = 0
    for item in listed.items:
        jobs.append(_one(item, defaults, reading, overrides))
        count += len(jobs[-1][1])
        if count > JOBS_MOST:
            raise Unfit(
                f"the file has more than {JOBS_MOST:,} jobs", "Split it over several files.", item
            )
    check_dependencies((section, specs[0]) for section, specs in jobs)
    specs = tuple(spec for _, members in jobs for spec in members)
    if night.deadline is not None and overrides.deadline is None:
        specs = tuple(_until(night.deadline, spec) for spec in specs)
    budget = night.budget or _sum([members[0].budget for _, members in jobs])
    return _Whole(specs, budget, night.deadline, window)


def _together(root: Section, reading: Reading) -> _Together:
    """Return what the file says of all its jobs together."""
    said = {name: entry for name, entry in root.entries.items() if name not in _LISTS}
    return _Together.model_validate(read(Section(root.line, root.column, said), NIGHT, reading))


def _defaults(root: Section) -> Section:
    entry = root.entries.get("defaults")
    if entry is None:
        return _NOTHING
    if not isinstance(entry.value, Section):
        raise Unfit(
            "keys with values are wanted here", "Write what all jobs share.", entry.value
        ).under("defaults")
    return entry.value


def _one(
    item: Node, defaults: Section, reading: Reading, overrides: Overrides
) -> tuple[Section, tuple[JobSpec, ...]]:
    if not isinstance(item, Section):
        raise Unfit("a job is keys with values", "Write {name: ..., command: ...}.", item)
    section = merged(defaults, item)
    return section, job(section, reading, overrides)


def _until(deadline: Instant, spec: JobSpec) -> JobSpec:
    """Return a job that is due no later than its file."""
    if spec.deadline is not None and spec.deadline <= deadline:
        return spec
    return spec.but(deadline=deadline)


def _sum(budgets: Sequence[MicroUsd | None]) -> MicroUsd | None:
    """Return what all jobs may spend together, or None when one of them says nothing."""
    known = [amount for amount in budgets if amount is not None]
    return MicroUsd(sum(known)) if len(known) == len(budgets) else None
