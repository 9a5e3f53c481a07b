"""One job of a file: its keys with what the command line says of them, checked together."""

import shlex
from collections.abc import Mapping
from typing import cast

from cloudwhale.control.intake.array import Axes, members
from cloudwhale.control.intake.fields import Fields, Reading, read
from cloudwhale.control.intake.keys import JOB
from cloudwhale.control.intake.starting import check_start
from cloudwhale.control.intake.tree import Entry, Section
from cloudwhale.control.intake.unfit import Unfit
from cloudwhale.model.job import JobSpec, Market
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.model.value import Value

HOUR_S: Seconds = 3600.0
MAX_DURATION_FACTOR = 4  # how much longer than expected a job may run when it does not say


class Overrides(Value):
    """What the command line says of every job of a file."""

    budget: MicroUsd | None = None
    """The smaller of this and the file's holds."""
    env: dict[str, str] = {}
    args: tuple[str, ...] = ()
    """Appended to every command, quoted for the shell."""
    no_checkpoint_ok: bool = False
    """Take spot jobs of more than an hour that save nothing."""
    market: Market | None = None
    deadline: Instant | None = None
    keep_on_failure_s: Seconds | None = None
    """Goes before what a job says itself."""


def job(section: Section, reading: Reading, overrides: Overrides) -> tuple[JobSpec, ...]:
    """Return a job's members: one, or as many as its array has combinations."""
    fields = {**read(section, JOB, reading)}
    for key in ("name", "command"):
        if key not in fields:
            raise Unfit(f"the job has no `{key}`", f"Add `{key}: ...`.", section)
    axes = cast(Axes, fields.pop("axes", {}))
    spec = _with_limit(overridden(JobSpec.model_validate(fields), overrides))
    _check_names(spec, axes, section)
    _check_limit(spec, section)
    _check_spot(spec, section, overrides)
    _check_isolation(spec, section, reading)
    check_start(spec, axes, section)
    if not axes:
        return (spec,)
    return tuple(
        spec.but(array=dict(values), env={**spec.env, **values}) for values in members(axes)
    )


def merged(defaults: Section, own: Section) -> Section:
    """Return a job's section laid over the defaults; sections within are laid over too."""
    entries = dict(defaults.entries)
    for name, entry in own.entries.items():
        below = entries.get(name)
        entries[name] = entry if below is None else _laid_over(below, entry)
    return Section(own.line, own.column, entries)


def _laid_over(below: Entry, above: Entry) -> Entry:
    if isinstance(below.value, Section) and isinstance(above.value, Section):
        return Entry(above.key, merged(below.value, above.value))
    return above


def overridden(spec: JobSpec, overrides: Overrides) -> JobSpec:
    """Return a job with what the command line says of it."""
    changes: Fields = {}
    if overrides.env:
        changes["env"] = {**spec.env, **overrides.env}
    if overrides.args:
        changes["command"] = f"{spec.command.rstrip()} {shlex.join(overrides.args)}"
    if overrides.market is not None:
        changes["market"] = overrides.market
    if overrides.deadline is not None:
        changes["deadline"] = overrides.deadline
    if overrides.keep_on_failure_s is not None:
        changes["keep_on_failure_s"] = overrides.keep_on_failure_s
    return spec.but(**changes) if changes else spec


def _with_limit(spec: JobSpec) -> JobSpec:
    if spec.max_duration_s is not None or spec.duration_s is None:
        return spec
    return spec.but(max_duration_s=MAX_DURATION_FACTOR * spec.duration_s)


def _check_names(spec: JobSpec, axes: Mapping[str, object], section: Section) -> None:
    """A variable of the job's environment has one source."""
    for key, names in (("array", axes), ("secrets", spec.secrets)):
        for name in names:
            if name in spec.env:
                raise _at(section, key, f"{name} is in `env` too", "Name it in one place.")
    for name in spec.secrets:
        if name in axes:
            raise _at(section, "secrets", f"{name} is in `array` too", "Name it in one place.")


def _check_limit(spec: JobSpec, section: Section) -> None:
    expected, limit = spec.duration_s, spec.max_duration_s
    if expected is not None and limit is not None and limit < expected:
        raise _at(
            section,
            "max_duration",
            f"it is shorter than `duration` ({limit:g} s < {expected:g} s)",
            "Write a longer `max_duration`, or a shorter `duration`.",
        )


def _check_spot(spec: JobSpec, section: Section, overrides: Overrides) -> None:
    """A spot machine can go at any time: work of more than an hour must be saved."""
    expected = spec.duration_s if spec.duration_s is not None else spec.max_duration_s
    is_long = expected is not None and expected > HOUR_S
    if spec.market != "spot" or not is_long or spec.checkpoint or overrides.no_checkpoint_ok:
        return
    raise _at(
        section,
        "market",
        f"a spot job of more than an hour ({expected:g} s) without `checkpoint` may lose it all",
        "Add `checkpoint`, or pass --no-checkpoint-ok.",
    )


def _check_isolation(spec: JobSpec, section: Section, reading: Reading) -> None:
    """A plain process sees the host as it is; what only a container can be given is refused."""
    if spec.image is not None:
        return
    if spec.resources.shm_gib is not None:
        reading.notes.append(
            f"`resources.shm` of {spec.name} has no effect: without an `image`"
            " it is a plain process, which has the host's shared memory."
        )
    for host, inside in spec.mounts.items():
        path, _, mode = inside.partition(":")
        if path != host or mode == "ro":
            what = "read-only" if path == host else f"as {path}"
            raise _at(
                section,
                "mounts",
                f"a plain process cannot be given {host} {what}",
                f"Give the job an `image`: then it runs in a container; or write {host}: {host}.",
            )


def _at(section: Section, key: str, says: str, remedy: str) -> Unfit:
    entry = section.entries.get(key)
    return Unfit(says, remedy, entry.value if entry else section).under(key)
