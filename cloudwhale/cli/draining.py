"""The commands that ask something of nodes: drain, undrain, remove."""

import sys
from collections.abc import Sequence

from cloudwhale.cli.exits import Exit, NotFound, WrongUsage
from cloudwhale.cli.holders import nobody_works, say_who_works
from cloudwhale.cli.looking import desk_here
from cloudwhale.cli.output import emit, say
from cloudwhale.clock import pause
from cloudwhale.control.desk import Desk, node_name, patience
from cloudwhale.model import event as e
from cloudwhale.model.job import HOLDS_A_PLACE, Job, JobState
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import CloudwhaleError

LOOK_EVERY_S: Seconds = 0.5


class InUse(CloudwhaleError):
    """Jobs are on the node."""


def drain(name: str, as_json: bool) -> int:
    """Ask that a node gets no new jobs."""
    with desk_here() as desk:
        _known(desk, name)
        desk.store.append([e.NodeDrained(at=desk.clock.now(), node=name)])
        return _said(desk, name, "drain", "takes no new jobs", as_json)


def undrain(name: str, as_json: bool) -> int:
    """Ask that a node gets jobs again."""
    with desk_here() as desk:
        node = _known(desk, name)
        if not (node.drained or node.state is NodeState.DRAINING):
            raise NotFound(f"{name} does not drain: it is {node.state}.")
        desk.store.append([e.NodeResumed(at=desk.clock.now(), node=name)])
        return _said(desk, name, "undrain", "takes jobs again", as_json)


def remove(name: str, force: bool, as_json: bool) -> int:
    """Ask that nobody counts on a node any more; raise InUse while jobs are there."""
    with desk_here() as desk:
        node = _known(desk, name)
        if node.provider and name == node_name(desk.settings):
            raise WrongUsage(
                f"{name} is this host: its agent is started whenever there is a job for it.",
                f"`cloudwhale nodes drain {name}` gives it none.",
            )
        _refuse_in_use(desk, name, force)
        # First, so that no job comes while we look.
        desk.store.append([e.NodeDrained(at=desk.clock.now(), node=name)])
        try:
            _refuse_in_use(desk, name, force)
        except InUse:
            if not node.drained:
                desk.store.append([e.NodeResumed(at=desk.clock.now(), node=name)])
            raise
        _empty(desk, node)
        desk.store.append([e.NodeRemoved(at=desk.clock.now(), node=name)])
        says = "is removed; its agent leaves when a controller hears it"
        return _said(desk, name, "remove", says, as_json)


def _known(desk: Desk, name: str) -> Node:
    world = desk.store.world(desk.clock.now())
    if name in world.nodes:
        return world.nodes[name]
    known = ", ".join(sorted(world.nodes)) or "none"
    raise NotFound(f"There is no node {name!r}.", f"Known nodes: {known}.")


def _here(desk: Desk, name: str) -> Sequence[Job]:
    jobs = desk.store.world(desk.clock.now()).jobs.values()
    return [
        job
        for job in jobs
        if job.state in HOLDS_A_PLACE and job.placement is not None and name in job.placement.nodes
    ]


def _refuse_in_use(desk: Desk, name: str, force: bool) -> None:
    here = _here(desk, name)
    if here and not force:
        raise InUse(
            f"{', '.join(job.id for job in here)} {'is' if len(here) == 1 else 'are'} on {name}",
            f"Wait for the end (`cloudwhale nodes drain {name}` gives it no more jobs), or add "
            "--force: they are stopped, saved, and start elsewhere.",
        )


def _empty(desk: Desk, node: Node) -> None:
    """Stop what runs on a node and wait until it is out for certain."""
    name = node.id
    told: set[str] = set()
    while here := _here(desk, name):
        if nobody_works(desk.settings):
            _stop(desk, name, here)
            raise InUse(
                f"{', '.join(job.id for job in here)} cannot be stopped: no controller runs",
                "Start `cloudwhale controller`, then give this command again.",
            )
        _stop(desk, name, here)
        for job in here:
            if job.id not in told:
                told.add(job.id)
                say(_waits_for(job, node, desk), sys.stderr)
        pause(LOOK_EVERY_S)


def _stop(desk: Desk, name: str, jobs: Sequence[Job]) -> None:
    now = desk.clock.now()
    reason = Reason(
        code=Code.USER_ASKED,
        says=f"{name} is being removed: it saves, and starts elsewhere",
    )
    stops = [
        e.StopWished(at=now, job=job.id, attempt=job.attempt, wish="give-way", reason=reason)
        for job in jobs
        if job.wish is None and job.state is not JobState.RECOVERING
    ]
    if stops:
        desk.store.append(stops)


def _waits_for(job: Job, node: Node, desk: Desk) -> str:
    if job.state is not JobState.RECOVERING:
        return f"{job.id} is being stopped"
    out_after_s = patience(desk.settings).out_after_s(node)
    return (
        f"{job.id} may still run on {node.id}, which is not heard: it is out for certain "
        f"{out_after_s:g} s after {node.id} was heard last"
    )


def _said(desk: Desk, name: str, asked: str, says: str, as_json: bool) -> int:
    here = _here(desk, name)
    if as_json:
        emit({"asked": asked, "node": name, "jobs": [job.id for job in here]})
        return Exit.DONE
    say(f"{name} {says}" + (f"; {len(here)} still there" if here else ""))
    say_who_works(desk.settings)
    return Exit.DONE
