"""What the columns of traces mean: formats that are known by their header, and a user's own."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cloudwhale.model.gpus import canonical, variants
from cloudwhale.model.job import CheckpointRule, GpuRequest, JobSpec, Resources, Span
from cloudwhale.simulation.playing import Arrival
from cloudwhale.simulation.traces.rows import SHOWN_MOST, Limits, Row, Spot, TraceError, brief

HOUR_S = 3600.0
MILLI = 1000.0
MIB_PER_GIB = 1024.0
SAVE_EVERY_S = 1e9
"""Of the saves of public traces nothing is known: their jobs save when they are told to stop."""

FAR_S = 1e9
"""About 30 years; times beyond it are a slip, and clocks of that size count no milliseconds."""
TIME = Limits(
    f"seconds since the beginning of the trace up to {FAR_S:,.0f}, like 86400", most=FAR_S
)
LENGTH = Limits(
    f"a number of seconds above 0 and up to {FAR_S:,.0f}, like 3600", is_open=True, most=FAR_S
)
SAVES = Limits(f"a number of seconds from 1 to {FAR_S:,.0f}, like 600", least=1.0, most=FAR_S)
SAVES_MOST = 100_000
"""Of one job: each is an event, so one that saves a billion times would never end."""
COUNT = Limits("a whole number of GPUs, like 1 or 8", whole=True, most=1e6)
SHARE = Limits("a share of each GPU above 0 and at most 1, like 0.5", is_open=True, most=1.0)
SHARE_MILLI = Limits(
    "thousandths of each GPU, above 0 and at most 1000, like 460", is_open=True, most=MILLI
)
AMOUNT = Limits("a number from 0 to 1e12, like 4", most=1e12)
PRIORITY = Limits("a whole number from 0 to 100, like 50", whole=True, most=100.0)

OWN_COLUMNS: Mapping[str, str] = {
    "job": "a name of its own",
    "submit_s": "when it comes, in seconds since the beginning of the trace",
    "duration_s": "how long it truly runs, in seconds, alone on the GPU `reference`",
    "gpus": "how many GPUs, 0 for none",
    "share": "of each GPU, 0 to 1; 1 when left out",
    "gpu_memory_gib": "memory of each GPU that it needs",
    "gpu_models": "the models that will do, like A100|L4; any when left out",
    "cpu": "CPUs; 1 when left out",
    "memory_gib": "memory",
    "priority": "0 to 100; 50 when left out",
    "project": "whose it is; `default` when left out",
    "name": "what jobs of its family are called: they share history",
    "estimate_s": "how long its owner says that it runs; `duration_s` when left out",
    "reference": "the GPU model that its times are true on; the same on all when left out",
    "checkpoint_s": "it saves every so many seconds; never when left out",
    "deadline_s": "by when it has to be done, on the clock of `submit_s`",
    "wait_max_s": "how long it may wait before money is spent",
    "value_of_time_usd_h": "what an hour of its time is worth",
}
"""The columns of a user's own trace; all but the first four may be left out, or empty."""

OWN_NEEDED = ("job", "submit_s", "duration_s", "gpus")


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file: what its rows need, and what they mean."""

    name: str
    needed: Sequence[str]
    arrival: Callable[[Row], Arrival]
    """Raise TraceError for a row that cannot be used."""
    columns: Sequence[str] | None = None
    """All that there are; None: others are passed over."""
    in_order: bool = True
    """Whether rows stand in the order of their times."""


def format_of(columns: Sequence[str], file: str) -> Format:
    """Return the format that a header names; raise TraceError for columns that are missing."""
    for known in PUBLIC:
        if set(known.needed) <= set(columns):
            return known
    if set(OPENB_SHAPE) <= set(columns):
        raise TraceError(
            "this list of pods has no times (creation_time, deletion_time, scheduled_time)",
            "It fills a cluster and cannot be played as jobs: use --trace openb:VARIANT.",
            at=Spot(file, 1),
        )  # fmt: skip
    missing = [name for name in OWN_NEEDED if name not in columns]
    if missing:
        raise TraceError(
            f"the header has no column {' and no '.join(missing)}; it has "
            f"{brief(', '.join(columns), 3 * SHOWN_MOST)}",
            f"The first line names the columns: {','.join(OWN_NEEDED)} and, if you like, "
            f"{', '.join(name for name in OWN_COLUMNS if name not in OWN_NEEDED)}.",
            at=Spot(file, 1),
        )  # fmt: skip
    unknown = [name for name in columns if name not in OWN_COLUMNS]
    if unknown:
        close = difflib.get_close_matches(unknown[0], OWN_COLUMNS, 1)
        hint = f"Did you mean {close[0]}?" if close else f"Known: {', '.join(OWN_COLUMNS)}."
        raise TraceError(f"unknown column {brief(unknown[0])!r}", hint, at=Spot(file, 1))
    return OWN


# -- a user's own ----------------------------------------------------------------------------


def _own(row: Row) -> Arrival:
    job, runs_s = row.word("job"), row.number("duration_s", LENGTH)
    at = row.number("submit_s", TIME)
    resources = Resources(
        gpu=GpuRequest(
            count=int(row.number("gpus", COUNT)),
            share=_maybe(row, "share", SHARE) or 1.0,
            memory_gib=Span(least=_maybe(row, "gpu_memory_gib", AMOUNT) or 0.0),
            models=_models(row, "gpu_models"),
        ),
        cpu=_or(_maybe(row, "cpu", AMOUNT), 1.0),
        memory_gib=_maybe(row, "memory_gib", AMOUNT),
    )
    saves_s = _maybe(row, "checkpoint_s", SAVES)
    if saves_s is not None and runs_s / saves_s > SAVES_MOST:
        raise row.fault(
            "out of range", "checkpoint_s",
            f"is {saves_s:g}, which is {runs_s / saves_s:,.0f} saves in {runs_s:g} s",
            f"let it save at most {SAVES_MOST:,} times",
        )  # fmt: skip
    spec = JobSpec(
        name=row.word("name") if row.has("name") else "job",
        project=row.word("project") if row.has("project") else "default",
        command="true",
        resources=resources,
        priority=int(_or(_maybe(row, "priority", PRIORITY), 50.0)),
        duration_s=_maybe(row, "estimate_s", LENGTH) or runs_s,
        reference=_reference(row),
        checkpoint=None if saves_s is None else CheckpointRule(every_s=saves_s),
        deadline=_maybe(row, "deadline_s", TIME),
        wait_max_s=_maybe(row, "wait_max_s", AMOUNT),
        value_of_time_usd_h=_maybe(row, "value_of_time_usd_h", AMOUNT),
    )
    return Arrival(at, job, spec, runs_s)


def _maybe(row: Row, column: str, limits: Limits) -> float | None:
    return row.number(column, limits) if row.has(column) else None


def _or(number: float | None, otherwise: float) -> float:
    return otherwise if number is None else number


def _models(row: Row, column: str) -> tuple[str, ...]:
    if not row.has(column):
        return ()
    text = row.word(column)
    asked = [word.strip() for word in text.split("|") if word.strip()]
    if not asked:
        raise row.fault("not a name", column, f"is {text!r}", "name GPU models, like A100|L4")
    return tuple(dict.fromkeys(name for word in asked for name in variants(word) or (word,)))


def _reference(row: Row) -> str | None:
    if not row.has("reference"):
        return None
    word = row.word("reference")
    found = canonical(word, 0.0)
    if found is None:
        raise row.fault(
            "not a name", "reference", f"is {brief(word)!r}", "name a GPU model, like A100"
        )
    return found


OWN = Format("your own", OWN_NEEDED, _own, tuple(OWN_COLUMNS))


# -- public traces ---------------------------------------------------------------------------


def whole_gpus(count: int, runs_s: float, project: str = "default") -> JobSpec:
    """Return a job of which only its GPUs and its length are known; its size is its family."""
    return _family(count, project).but(duration_s=runs_s)


@lru_cache(maxsize=1024)  # a trace has few sizes and projects, and making values takes its time
def _family(count: int, project: str) -> JobSpec:
    return JobSpec(
        name=f"{count}-gpu", project=project, command="true",
        resources=Resources(gpu=GpuRequest(count=count)),
        checkpoint=CheckpointRule(every_s=SAVE_EVERY_S),
    )  # fmt: skip


def _philly(row: Row) -> Arrival:
    runs_s, count = row.number("duration_s", LENGTH), int(row.number("num_gpus", COUNT))
    spec = whole_gpus(count, runs_s, row.word("vc"))
    return Arrival(row.number("submit_s", TIME), f"philly-{row.line - 1:06}", spec, runs_s)


def _burst(row: Row) -> Arrival:
    hours = Limits("a number of hours above 0, like 1.5", is_open=True, most=FAR_S / HOUR_S)
    since = Limits("hours since the beginning of the trace, like 0 or 2.5", most=FAR_S / HOUR_S)
    runs_s = row.number("runtime_h", hours) * HOUR_S
    spec = whole_gpus(int(row.number("num_gpus", COUNT)), runs_s)
    number = int(row.number("job_id", Limits("a whole number, like 17", whole=True)))
    return Arrival(row.number("arrival_h", since) * HOUR_S, f"burst-{number:06}", spec, runs_s)


OPENB_SHAPE = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


def _openb(row: Row) -> Arrival:
    if not row.has("scheduled_time"):
        raise row.fault("never ran", "scheduled_time", "is empty", "give it a time")
    began, ended = row.number("scheduled_time", TIME), row.number("deletion_time", TIME)
    if ended <= began:
        raise row.fault(
            "out of range", "deletion_time", f"is {ended:g}, not after scheduled_time {began:g}",
            f"write {TIME.wanted}",
        )  # fmt: skip
    count = int(row.number("num_gpu", COUNT))
    share = row.number("gpu_milli", SHARE_MILLI) / MILLI if count else 1.0
    resources = Resources(
        gpu=GpuRequest(count=count, share=share, models=openb_models(row.values.get("gpu_spec"))),
        cpu=row.number("cpu_milli", AMOUNT) / MILLI,
        memory_gib=row.number("memory_mib", AMOUNT) / MIB_PER_GIB,
    )
    project = row.word("qos") if row.has("qos") else "default"
    spec = JobSpec(
        name=f"{count}-gpu-{share:g}", project=project, command="true", duration_s=ended - began,
        resources=resources, checkpoint=CheckpointRule(every_s=SAVE_EVERY_S),
    )  # fmt: skip
    return Arrival(row.number("creation_time", TIME), row.word("name"), spec, ended - began)


def openb_models(spec: str | None) -> tuple[str, ...]:
    """Return the models of `A10|V100M16` by canonical name; those that hide behind a code stay."""
    words = [word for word in (spec or "").split("|") if word]
    return tuple(dict.fromkeys(openb_model(word) for word in words))


def openb_model(word: str) -> str:
    """Return one model by its canonical name; `G2` and `G3` are codes of the trace."""
    return canonical(word, 0.0) or word


PUBLIC = (
    Format("philly", ("submit_s", "duration_s", "num_gpus", "vc"), _philly),
    Format("burst", ("job_id", "arrival_h", "runtime_h", "num_gpus"), _burst),
    Format(
        "openb", (*OPENB_SHAPE, "creation_time", "deletion_time", "scheduled_time"), _openb,
        in_order=False,
    ),
)  # fmt: skip
"""Those whose headers are known."""
