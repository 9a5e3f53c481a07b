"""Small settings for whole lives on the simulator, and what must hold of every play."""

from collections.abc import Mapping, Sequence
from typing import Any

from makers import a_device, a_node, a_spec, wants

from cloudwhale import plugins
from cloudwhale.control.controller import Chosen
from cloudwhale.model.job import CheckpointRule, GpuRequest
from cloudwhale.model.node import Node
from cloudwhale.planning.planner import Policies
from cloudwhale.planning.rules import Rules
from cloudwhale.simulation.engine import Engine
from cloudwhale.simulation.playing import Arrival, Played, Stay


def a_chosen(order: str = "whale", score: str = "whale", **rules: Any) -> Chosen:
    """Choose policies by name, with rules."""
    policies = Policies(
        plugins.load(plugins.ORDERS, order)(), plugins.load(plugins.SCORES, score)(), Rules(**rules)
    )
    return Chosen(policies, order=order, score=score)


def a_machine(name: str, gpus: int = 1) -> Node:
    """Make a node of 8 CPUs with some GPUs of 40 GiB."""
    devices = tuple(a_device(f"{name}-gpu-{n}") for n in range(gpus))
    return a_node(name, cpu=8.0, memory_gib=64.0, devices=devices)


def an_arrival(
    at: float, job: str, work_s: float, *, share: float = 1.0, gpus: int = 1, **fields: Any
) -> Arrival:
    """Make a job for GPUs that saves every 20 s and says how long it runs."""
    gpu = GpuRequest(count=gpus, share=share)
    rest: dict[str, Any] = {
        "duration_s": work_s,
        "checkpoint": CheckpointRule(every_s=20.0, grace_s=30.0),
    } | fields
    return Arrival(at, job, a_spec(resources=wants(cpu=1, gpu=gpu), **rest), work_s)


def never_over_capacity(played: Played, nodes: Sequence[Node]) -> None:
    """Check every dimension of every node at every time that somebody came."""
    for node in nodes:
        stays = [stay for stay in played.stays if stay.placement.node == node.id]
        for moment in sorted({stay.since for stay in stays}):
            here = [one for one in stays if one.since <= moment < one.until]
            asked = [played.jobs[one.job].job.wants for one in here]
            assert sum(one.cpu for one in asked) <= node.facts.cpu + 1e-6
            assert sum(one.memory_gib or 0.0 for one in asked) <= node.facts.memory_gib + 1e-6
            for device, share in _shares(here).items():
                assert share <= 1 + 1e-6, (node.id, device, moment)


def _shares(here: Sequence[Stay]) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for one in here:
        for device in one.placement.devices:
            found[device] = found.get(device, 0.0) + one.share
    return found


def nothing_runs_twice(engine: Engine) -> None:
    """Check the machines' own books: of no job did two processes ever run at once."""
    lives: dict[str, list[tuple[float, float]]] = {}
    clouds = [each for cloud in engine.clouds.values() for each in cloud.machines_ever]
    for machine in (*engine.machines.values(), *clouds):
        keys = [beginning.key for beginning in machine.begun]
        assert len(keys) == len(set(keys))
        for (job, _), folder in machine.disk.folders.items():
            if folder.process is not None:
                lives.setdefault(job, []).append((folder.process.began_at, folder.process.ends_at))
    for job, spans in lives.items():
        spans.sort()
        for one, two in zip(spans, spans[1:], strict=False):
            assert one[1] <= two[0] + 1e-6, (job, spans)
