"""Which job of a file is rehearsed, what is left out of it, and what this host must have for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.cli.exits import WrongUsage
from cloudwhale.cli.spots import spot_of_job
from cloudwhale.control import desk as desks
from cloudwhale.model.job import (
    CheckpointRule,
    JobSpec,
    NotifyRule,
    Resources,
    RetryRule,
    WhereRule,
)
from cloudwhale.model.node import Facts, Node, NodeState
from cloudwhale.model.units import Seconds
from cloudwhale.planning.fit import could_ever_fit
from cloudwhale.planning.inventory import Free, free_capacity
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import NothingCanRunIt, Unreachable

STAND_IN = "RTX4090"
"""The model of a declared GPU where a job would take any."""
STAND_IN_GIB = 24.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What `rehearse` was asked for."""

    file: Path
    job: str | None
    for_s: Seconds
    declare: bool
    as_json: bool
    env: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


def chosen(specs: Sequence[JobSpec], asked: Asked) -> JobSpec:
    """Return the job that is meant, of an array its first member; raise WrongUsage."""
    names = list(dict.fromkeys(spec.name for spec in specs))
    if not names:
        raise WrongUsage(f"{asked.file}: nothing to do, every task in it is done.")
    if asked.job is None and len(names) > 1:
        raise WrongUsage(
            f"{asked.file} has {len(names)} jobs, and one is rehearsed at a time.",
            f"Say which: --job {names[0]}. It has {', '.join(names[:20])}.",
        )
    name = asked.job or names[0]
    found = next((spec for spec in specs if spec.name == name), None)
    if found is None:
        raise WrongUsage(
            f"{asked.file} has no job called {name}.", f"It has {', '.join(names[:20])}."
        )
    return found


def alone(spec: JobSpec) -> JobSpec:
    """Return a job as it is rehearsed: at once, here, without what it would wait for or leave.

    What it runs, reads and saves, and with what, is what its file says. Python's output is let out
    line by line, as it would be lost in a pipe that is cut.
    """
    return spec.but(
        after=(),
        deadline=None,
        duration_s=None,
        max_duration_s=None,
        wait_max_s=None,
        market="auto",
        budget=None,
        preemptible=True,
        retry=RetryRule(max=0, on=()),
        where=WhereRule(),
        affinity=(),
        notify=NotifyRule(),
        outputs=(),
        keep_on_failure_s=None,
        checkpoint=spec.checkpoint or CheckpointRule(),
        env={"PYTHONUNBUFFERED": "1", **spec.env},
    )


def declared(spec: JobSpec, settings: Settings) -> tuple[JobSpec, Settings]:
    """Return the job as a gang of one, and settings with stand-ins for what this host lacks."""
    facts = _facts(settings)
    wants = spec.resources
    devices = settings.devices
    if could_ever_fit(spec.but(nodes=1), _free(facts)) is not None and wants.gpu.count:
        devices = (*devices, _stand_ins(wants))
    return spec.but(nodes=1), settings.but(
        devices=devices,
        cpu=max(facts.cpu, wants.cpu),
        memory_gib=max(facts.memory_gib, wants.memory_gib or 0.0),
    )


def _stand_ins(wants: Resources) -> str:
    gpu = wants.gpu
    least = gpu.memory_gib.least or min(STAND_IN_GIB, gpu.memory_gib.most or STAND_IN_GIB)
    model = gpu.models[0] if gpu.models else STAND_IN
    return f"{gpu.count}x {model.rpartition('-')[0] or model} {_size_of(model) or least:g}GB"


def _size_of(model: str) -> float | None:
    size = model.rpartition("-")[2].removesuffix("GB")
    return float(size) if size.isdecimal() and model.endswith("GB") else None


def refuse_impossible(spec: JobSpec, settings: Settings, file: Path) -> None:
    """Raise NothingCanRunIt, with the job's line, for what cannot be rehearsed on this host."""
    declare = "On a machine that has it, or with --declare, which rehearses with stand-ins."
    says, remedy = "", declare
    if spec.nodes > 1:
        says = f"{spec.name} is a gang of {spec.nodes} machines, and a rehearsal has this host"
        remedy = "--declare rehearses one member, as a gang of one; or rehearse it as a burst."
    else:
        refusal = could_ever_fit(spec, _free(_facts(settings)))
        if refusal is not None:
            says = f"{spec.name} cannot be rehearsed on this host: {refusal.says}"
            if spec.image is not None and str(refusal.code) == "runtime":
                remedy = "Start Docker here (`cloudwhale doctor` has a row for it), or elsewhere."
    if not says:
        return
    spot = spot_of_job(file, spec.name)
    raise NothingCanRunIt(
        says, remedy, file=str(file),
        line=spot.line if spot else None, column=spot.column if spot else None,
    )  # fmt: skip


def _facts(settings: Settings) -> Facts:
    for provider in desks.this_host(settings).values():
        for machine in provider.machines():
            if machine.facts is not None:
                return machine.facts
    raise Unreachable(
        "jobs do not run on this host", "Rehearse on a Linux machine, where agents run."
    )


def _free(facts: Facts) -> Free:
    node = Node(id="this-host", facts=facts, provider="local", state=NodeState.READY)
    return free_capacity([node], ())[node.id]
