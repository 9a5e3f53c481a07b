"""Hard facts: whether a job can be on a node, and if not, which fact forbids it and by how much."""

from collections.abc import Callable

from cloudwhale.model.job import JobSpec, Placement
from cloudwhale.model.node import Device, NodeState
from cloudwhale.model.reason import Code, Refusal
from cloudwhale.planning.inventory import DUST, DeviceFree, Free, device_memory_taken

Filter = Callable[[JobSpec, Free], Refusal | None]


def fit(spec: JobSpec, free: Free) -> Placement | Refusal:
    """Return the devices that the job would get on the node, or why it cannot be there."""
    for forbids in _FILTERS:
        refusal = forbids(spec, free)
        if refusal is not None:
            return refusal
    return Placement(node=free.node.id, devices=_devices(spec, free))


def could_ever_fit(spec: JobSpec, empty: Free) -> Refusal | None:
    """Return why the job could not be on the node even if nothing else were, or None."""
    answer = fit(spec, empty)
    return answer if isinstance(answer, Refusal) and not answer.can_wait else None


def matches_model(asked: str, model: str) -> bool:
    """Say whether a device's canonical name is what was asked: `A100` means any `A100-…`."""
    return model == asked or model.startswith(asked + "-")


# -- one filter per fact, the lasting ones first ---------------------------------------------


def _market(spec: JobSpec, free: Free) -> Refusal | None:
    node = free.node
    if spec.market == "auto" or (spec.market == "local") == node.owned:
        return None
    kind, only = ("owned", "rented") if node.owned else ("rented", "owned")
    return _never(
        Code.MARKET,
        f"asks for {only} machines only (market: {spec.market}); {node.id} is {kind}",
        "market: auto lets it run here",
    )


def _excluded(spec: JobSpec, free: Free) -> Refusal | None:
    if free.node.id not in spec.where.not_on:
        return None
    return _never(
        Code.EXCLUDED, f"where.not names {free.node.id}", f"take {free.node.id} out of it"
    )


def _labels(spec: JobSpec, free: Free) -> Refusal | None:
    has = free.node.facts.labels
    for key, value in spec.where.labels.items():
        if has.get(key) != value:
            found = f"has {key}={has[key]}" if key in has else f"has no label {key}"
            return _never(
                Code.LABELS,
                f"needs label {key}={value}, {free.node.id} {found}",
                f"give the node the label {key}={value}, or change where.labels",
            )
    return None


def _mounts(spec: JobSpec, free: Free) -> Refusal | None:
    offered = free.node.facts.mounts
    for host_path in spec.mounts:
        if not any(_below(host_path, root) for root in offered):
            return _never(
                Code.MOUNTS,
                f"mounts {host_path}, which {free.node.id} does not have",
                f"make {host_path} on {free.node.id}, or leave the mount out",
            )
    return None


def _below(path: str, root: str) -> bool:
    return root == "/" or path == root or path.startswith(root.rstrip("/") + "/")


def _runtime(spec: JobSpec, free: Free) -> Refusal | None:
    needed = "container" if spec.image else "process"
    if needed in free.node.facts.runtimes:
        return None
    has = ", ".join(free.node.facts.runtimes) or "no runtime"
    return _never(
        Code.RUNTIME,
        f"needs the {needed} runtime, {free.node.id} has {has}",
        "leave `image` out to run as a plain process" if spec.image else "",
    )


def _gang(spec: JobSpec, free: Free) -> Refusal | None:
    if spec.nodes == 1:
        return None
    return _never(
        Code.GANG, f"is a gang of {spec.nodes} nodes, which run on rented machines only", "nodes: 1"
    )


def _gpu_model(spec: JobSpec, free: Free) -> Refusal | None:
    gpu = spec.resources.gpu
    if not gpu.count or any(_suits(spec, device.device) for device in free.devices):
        return None
    here = ", ".join(sorted({d.device.model for d in free.devices})) or "no GPU"
    wanted = " or ".join(gpu.models) or "a GPU"
    span = gpu.memory_gib
    if span.least:
        wanted += f" with {span.least:g} GiB"
    if span.most is not None:
        wanted += f" and at most {span.most:g} GiB"
    code = Code.NO_SUCH_GPU
    if any(_model_suits(spec, d.device) for d in free.devices):
        code = Code.GPU_MEMORY
    return _never(code, f"needs {wanted}, {free.node.id} has {here}", "ask for what is there")


def _gpu_count(spec: JobSpec, free: Free) -> Refusal | None:
    count = spec.resources.gpu.count
    suitable = sum(_suits(spec, device.device) for device in free.devices)
    if suitable >= count:
        return None
    return _never(
        Code.GPU_COUNT,
        f"needs {count} GPUs on one node, {free.node.id} has {suitable} that suit",
        f"ask for {suitable} or fewer",
        shortfall=1 - suitable / count,
    )


def _gpu_now(spec: JobSpec, free: Free) -> Refusal | None:
    gpu = spec.resources.gpu
    if not gpu.count or len(_open_devices(spec, free)) >= gpu.count:
        return None
    suitable = [d for d in free.devices if _suits(spec, d.device)]
    most_share = max(d.share for d in suitable)
    most_memory = max(d.memory_gib for d in suitable)
    needs = device_memory_taken(spec.resources, suitable[0].device)
    if most_share + DUST < gpu.share:
        code, says = Code.GPU_SHARE, f"a share of {gpu.share:g}, the freest GPU has {most_share:g}"
        shortfall = 1 - most_share / gpu.share
    elif most_memory + DUST < needs:
        code = Code.GPU_MEMORY
        says = f"{needs:g} GiB of GPU memory, the freest GPU has {most_memory:g}"
        shortfall = 1 - most_memory / needs
    else:
        have = len(_open_devices(spec, free))
        code, says = Code.GPU_COUNT, f"{gpu.count} GPUs at once, {have} are free enough"
        shortfall = 1 - have / gpu.count
    return _now(code, f"needs {says} on {free.node.id}", shortfall, free)


def _amount(name: str, unit: str, code: Code, of: Callable[[JobSpec], float | None]) -> Filter:
    """Make the filter of one plain amount; `name` is that of the field on both sides."""

    def forbids(spec: JobSpec, free: Free) -> Refusal | None:
        wanted = of(spec) or 0.0
        has: float = getattr(free, name)
        if wanted <= has + DUST:
            return None
        total: float = getattr(free.node.facts, name)
        says = f"needs {wanted:g} {unit}, {free.node.id} has {max(0.0, has):g} of {total:g} free"
        shortfall = 1 - max(0.0, has) / wanted
        if wanted > total + DUST:
            says = f"needs {wanted:g} {unit}, {free.node.id} has {total:g} in all"
            return _never(code, says, f"ask for {total:g} {unit} or less", shortfall=shortfall)
        return _now(code, says, shortfall, free)

    return forbids


def _ready(spec: JobSpec, free: Free) -> Refusal | None:
    state = free.node.state
    if state is NodeState.READY or (state is NodeState.EXPECTED and not spec.secrets):
        return None
    if state is NodeState.EXPECTED:
        return Refusal(
            code=Code.NODE_NOT_READY,
            says=f"{free.node.id} has not yet published the key that secrets are sealed to",
            can_wait=True,
            change=f"the agent of {free.node.id} reports",
        )
    if state is NodeState.DRAINING:
        return Refusal(
            code=Code.NODE_DRAINS, says=f"{free.node.id} takes no new jobs", can_wait=True
        )
    return Refusal(
        code=Code.NODE_NOT_READY,
        says=f"{free.node.id} is {state}: its agent is silent",
        can_wait=True,
        change=f"bring {free.node.id} back",
    )


_FILTERS: tuple[Filter, ...] = (
    _market,
    _excluded,
    _labels,
    _mounts,
    _runtime,
    _gang,
    _gpu_model,
    _gpu_count,
    _amount("cpu", "CPU", Code.CPU, lambda spec: spec.resources.cpu),
    _amount("memory_gib", "GiB of memory", Code.MEMORY, lambda spec: spec.resources.memory_gib),
    _amount("disk_gib", "GiB of disk", Code.DISK, lambda spec: spec.resources.disk_gib),
    _gpu_now,
    _ready,
)


def _never(code: Code, says: str, change: str, *, shortfall: float = 1.0) -> Refusal:
    return Refusal(code=code, says=says, can_wait=False, change=change, shortfall=shortfall)


def _now(code: Code, says: str, shortfall: float, free: Free) -> Refusal:
    change = f"a job on {free.node.id} ends, or another node has room"
    return Refusal(code=code, says=says, can_wait=True, change=change, shortfall=shortfall)


# -- devices ---------------------------------------------------------------------------------


def _model_suits(spec: JobSpec, device: Device) -> bool:
    asked = spec.resources.gpu.models
    return not asked or any(matches_model(name, device.model) for name in asked)


def _suits(spec: JobSpec, device: Device) -> bool:
    return _model_suits(spec, device) and spec.resources.gpu.memory_gib.holds(device.memory_gib)


def _open_devices(spec: JobSpec, free: Free) -> list[DeviceFree]:
    gpu = spec.resources.gpu
    return [
        d
        for d in free.devices
        if _suits(spec, d.device)
        and d.share + DUST >= gpu.share
        and d.memory_gib + DUST >= device_memory_taken(spec.resources, d.device)
    ]


def _devices(spec: JobSpec, free: Free) -> tuple[str, ...]:
    """Take the fullest devices that still hold the job, so that whole ones stay whole."""
    gpu = spec.resources.gpu
    if not gpu.count:
        return ()
    # One model per job: ranks of unequal speed wait for the slowest.
    by_model: dict[str, list[DeviceFree]] = {}
    for device in _open_devices(spec, free):
        by_model.setdefault(device.device.model, []).append(device)
    enough = {m: found for m, found in by_model.items() if len(found) >= gpu.count}
    found = enough[min(enough)] if enough else _open_devices(spec, free)
    found.sort(key=lambda d: (d.share, d.memory_gib, d.device.id))
    most = gpu.count_most or gpu.count
    return tuple(d.device.id for d in found[:most])
