"""Small makers of values for tests: every argument has a default."""

from typing import Any

from cloudwhale.model.job import GpuRequest, Job, JobSpec, JobState, Placement, Resources
from cloudwhale.model.node import Device, Facts, Node, NodeState
from cloudwhale.model.run import Run
from cloudwhale.model.world import World


def a_spec(name: str = "train", **fields: Any) -> JobSpec:
    """Make a job spec that runs `true`."""
    return JobSpec(name=name, **{"command": "true", **fields})


def wants(cpu: float = 1.0, gpus: int = 0, **fields: Any) -> Resources:
    """Make a demand; `gpu=` replaces the whole GPU part."""
    gpu = fields.pop("gpu", GpuRequest(count=gpus))
    return Resources(cpu=cpu, gpu=gpu, **fields)


def a_job(job_id: str = "train-1", **fields: Any) -> Job:
    """Make a pending job; keys of JobSpec go to its spec, but for `after`: ids, not names."""
    of_spec = [key for key in fields if key in JobSpec.model_fields and key != "after"]
    spec_fields = {key: fields.pop(key) for key in of_spec}
    spec = a_spec(**spec_fields)
    return Job(**{"id": job_id, "run": "run-1", "spec": spec, "submitted_at": 0.0, **fields})


def a_run(run_id: str = "run-1", **fields: Any) -> Run:
    """Make a run without a budget."""
    return Run(**{"id": run_id, "opened_at": 0.0, "user": "ann", "folder": "/lab", **fields})


def a_device(
    device_id: str = "gpu-0", model: str = "A100-40GB", memory_gib: float = 40.0
) -> Device:
    """Make a device."""
    return Device(id=device_id, model=model, memory_gib=memory_gib)


def a_node(node_id: str = "host", **fields: Any) -> Node:
    """Make a ready, owned node with two CPUs; keys of Facts go to its facts."""
    facts = {"cpu": 2.0, "memory_gib": 16.0, "disk_gib": 100.0}
    facts |= {key: fields.pop(key) for key in list(fields) if key in Facts.model_fields}
    return Node(**{"id": node_id, "state": NodeState.READY, "facts": Facts(**facts), **fields})


def a_world(jobs: list[Job] | None = None, nodes: list[Node] | None = None, **fields: Any) -> World:
    """Make a world of some jobs and nodes (one `a_node()` when none is given) at time 0."""
    return World(
        **{
            "version": 1,
            "now": 0.0,
            "jobs": {job.id: job for job in jobs or []},
            "nodes": {node.id: node for node in ([a_node()] if nodes is None else nodes)},
            **fields,
        }
    )


def placed(job: Job, node: str = "host", *devices: str) -> Job:
    """Return the job as the plan leaves it: attempt 1, starting, on a node."""
    return job.but(
        attempt=1, state=JobState.STARTING, placement=Placement(node=node, devices=devices)
    )
