"""Hard facts: whether a job can be on a node, and if not, which fact forbids it and by how much.

This is the reference: what `columns` finds over arrays for many jobs is what is found here.
"""

import math
from collections.abc import Callable

from cloudwhale.model.job import JobSpec, Placement
from cloudwhale.model.node import Device, NodeState
from cloudwhale.model.reason import Code, Refusal
from cloudwhale.planning.devices import chosen_devices
from cloudwhale.planning.inventory import DUST, Alike, DeviceFree, Free, gpu_memory_taken

Suitable = Alike
"""The devices of a node that a job could run on if they were free."""

Filter = Callable[[JobSpec, Free, Suitable], Refusal | None]


def fit(spec: JobSpec, free: Free) -> Placement | Refusal:
    """Return the devices that the job would get on the node, or why it cannot be there."""
    refusal = refused(spec, free)
    if refusal is not None:
        return refusal
    if not spec.resources.gpu.count:
        return Placement.model_construct(node=free.node.id, devices=())
    devices = chosen_devices(spec.resources.gpu, _opened(spec, free), free.node.facts.links)
    return Placement.model_construct(node=free.node.id, devices=devices)


def refused(spec: JobSpec, free: Free) -> Refusal | None:
    """Return why the job cannot be on the node, or None: `fit` without choosing devices."""
    suitable = _suitable(spec, free)
    for forbids in FILTERS:
        refusal = forbids(spec, free, suitable)
        if refusal is not None:
            return refusal
    return None


def refusal_of(spec: JobSpec, free: Free, by: int) -> Refusal | None:
    """Return what one filter says, by its number in `FILTERS`."""
    return FILTERS[by](spec, free, _suitable(spec, free))


def could_ever_fit(spec: JobSpec, free: Free) -> Refusal | None:
    """Return why the job could not be on the node even if nothing else were, or None."""
    suitable = _suitable(spec, free)
    for forbids in NEVER_FILTERS:
        refusal = forbids(spec, free, suitable)
        if refusal is not None:
            return refusal
    return None


def fit_beside(spec: JobSpec, free: Free, left: Free, kept_for: str) -> Placement | Refusal:
    """Return the same for a job that must leave a reserved job its room.

    `left`: what the reserved job will not need.
    """
    alone = fit(spec, free)
    if isinstance(alone, Refusal):
        return alone
    beside = fit(spec, free.within(left))
    if isinstance(beside, Placement):
        return beside
    return Refusal(
        code=Code.KEPT_FREE,
        says=f"would run for longer than {free.node.id} is free: its room is kept for {kept_for}",
        can_wait=True,
        change=f"{kept_for} starts or is cancelled, or another node has room",
        shortfall=beside.shortfall,
    )


def matches_model(asked: str, model: str) -> bool:
    """Say whether a device's canonical name is what was asked: `A100` means any `A100-…`."""
    return model == asked or model.startswith(asked + "-")


# -- one filter per fact, the lasting ones first ---------------------------------------------


def _market(spec: JobSpec, free: Free, suitable: Suitable) -> Refusal | None:
    node = free.node
    if spec.market == "auto" or (spec.market == "local") == node.owned:
        return None
    kind, only = ("owned", "rented") if node.owned else ("rented", "owned")
    return _never(
        Code.MARKET,
        f"asks for {only} machines only (market: {spec.market}); {node.id} is {kind}",
        "market: auto lets it run here",
    )


def _excluded(spec: JobSpec, free: Free, suitable: Suitable) -> Refusal | None:
    if free.node.id not in spec.where.not_on:
        return None
    return _never(
        Code.EXCLUDED, f"where.not names {free.node.id}", f"take {free.node.id} out of it"
    )


def _labels(spec: JobSpec, free: Free, suitable: Suitable) -> Refusal | None:
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


def _mounts(spec: JobSpec, free: Free, suitable: Suitable) -> Refusal | None:
    offered = free.node.facts.mounts
    for host_path in spec.mounts:
        if any(_below(host_path, root) for root in offered):
            continue
        if not free.node.owned:
            return _never(
                Code.MOUNTS,
                f"mounts {host_path}, which a rented machine does not have",
                "name what it reads in `inputs`, or run it where the path is",
            )
        return _never(
            Code.MOUNTS,
            f"mounts {host_path}, which {free.node.id} does not have",
            f"make {host_path} on {free.node.id}, or leave the mount out",
        )
    return None


def _below(path: str, root: str) -> bool:
    return root == "/" or path == root or path.startswith(root.rstrip("/") + "/")


def _runtime(spec: JobSpec, free: Free, suitable: Suitable) -> Refusal | None:
    needed = "container" if spec.image else "process"
    if needed in free.node.facts.runtimes:
        return None
    has = ", ".join(free.node.facts.runtimes) or "no runtime"
    return _never(
        Code.RUNTIME,
        f"needs the {needed} runtime, {free.node.id} has {has}",
        f"start Docker on {free.node.id} (`doctor` says what is wrong), or leave `image` out"
        if spec.image
        else "",
    )


def _gang(spec: JobSpec, free: Free, suitable: Suitable) -> Refusal | None:
    if spec.nodes == 1 or not free.node.owned:
        return None
    return _never(
        Code.GANG, f"is a gang of {spec.nodes} nodes, which run on rented machines only", "nodes: 1"
    )


def _gpu_model(spec: JobSpec, free: Free, suitable: Suitable) -> Refusal | None:
    gpu = spec.resources.gpu
    if not gpu.count or suitable:
        return None
    here = ", ".join(sorted({d.device.model for d in free.devices})) or "no GPU"
    wanted = " or ".join(gpu.models) or "a GPU"
    span = gpu.memory_gib
    if span.least:
        wanted += f" with {span.least:g} GiB"
    if span.most is not None:
        wanted += f" and at most {span.most:g} GiB"
    code = Code.NO_SUCH_GPU
    if any(model_suits(spec, d.device) for d in free.devices):
        code = Code.GPU_MEMORY
    return _never(code, f"needs {wanted}, {free.node.id} has {here}", "ask for what is there")


def memory_lacks(spec: JobSpec, free: Free) -> float:
    """Return what part of the wanted GPU memory the suitable models of a node lack at least.

    All are too small; or else the smallest is too large. 1 where no model suits.
    """
    span = spec.resources.gpu.memory_gib
    sizes = [d.device.memory_gib for d in free.devices if model_suits(spec, d.device)]
    if not sizes:
        return 1.0
    if max(sizes) < span.least:
        return 1 - max(sizes) / span.least
    return max(0.0, 1 - (span.most or math.inf) / min(sizes))


def _gpu_count(spec: JobSpec, free: Free, suitable: Suitable) -> Refusal | None:
    count = spec.resources.gpu.count
    has = sum(many for _, many in suitable)
    if has >= count:
        return None
    return _never(
        Code.GPU_COUNT,
        f"needs {count} GPUs on one node, {free.node.id} has {has} that suit",
        f"ask for {has} or fewer",
        shortfall=1 - has / count,
    )


def _gpu_now(spec: JobSpec, free: Free, suitable: Suitable) -> Refusal | None:
    gpu = spec.resources.gpu
    if not gpu.count or (have := _count_open(spec, suitable)) >= gpu.count:
        return None
    most_share = max(d.share for d, _ in suitable)
    most_memory = max(d.memory_gib for d, _ in suitable)
    needs = min(gpu_memory_taken(gpu, d.device) for d, _ in suitable)
    code, shortfall = Code.GPU_COUNT, 1 - have / gpu.count
    if _without_foreign(spec, suitable) >= gpu.count:
        code = Code.GPU_IN_USE
        foreign = max(d.foreign_gib for d, _ in suitable)
        says = f"{gpu.count} GPUs at once, {have} are free enough: others use {foreign:g} GiB"
    elif most_share + DUST < gpu.share:
        code, says = Code.GPU_SHARE, f"a share of {gpu.share:g}, the freest GPU has {most_share:g}"
        shortfall = 1 - most_share / gpu.share
    elif most_memory + DUST < needs:
        code = Code.GPU_MEMORY
        says = f"{needs:g} GiB of GPU memory, the freest GPU has {max(0.0, most_memory):g}"
        shortfall = 1 - max(0.0, most_memory) / needs
    else:
        says = f"{gpu.count} GPUs at once, {have} are free enough"
    return _now(code, f"needs {says} on {free.node.id}", shortfall, free)


def _amount_ever(name: str, unit: str, code: Code, of: Callable[[JobSpec], float | None]) -> Filter:
    """Make the filter of one plain amount; `name` is that of the field on both sides."""

    def forbids(spec: JobSpec, free: Free, suitable: Suitable) -> Refusal | None:
        wanted = of(spec) or 0.0
        total: float = getattr(free.node.facts, name)
        if wanted <= total + DUST:
            return None
        says = f"needs {wanted:g} {unit}, {free.node.id} has {total:g} in all"
        shortfall = 1 - max(0.0, getattr(free, name)) / wanted
        return _never(code, says, f"ask for {total:g} {unit} or less", shortfall=shortfall)

    return forbids


def _amount_now(name: str, unit: str, code: Code, of: Callable[[JobSpec], float | None]) -> Filter:
    def forbids(spec: JobSpec, free: Free, suitable: Suitable) -> Refusal | None:
        wanted = of(spec) or 0.0
        has = max(0.0, getattr(free, name))
        if wanted <= has + DUST:
            return None
        total: float = getattr(free.node.facts, name)
        says = f"needs {wanted:g} {unit}, {free.node.id} has {has:g} of {total:g} free"
        return _now(code, says, 1 - has / wanted, free)

    return forbids


def _ready(spec: JobSpec, free: Free, suitable: Suitable) -> Refusal | None:
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


_AMOUNTS: tuple[tuple[str, str, Code, Callable[[JobSpec], float | None]], ...] = (
    ("cpu", "CPU", Code.CPU, lambda spec: spec.resources.cpu),
    ("memory_gib", "GiB of memory", Code.MEMORY, lambda spec: spec.resources.memory_gib),
    ("disk_gib", "GiB of disk", Code.DISK, lambda spec: spec.resources.disk_gib),
)

RULE_FILTERS: tuple[Filter, ...] = (_market, _excluded, _labels, _mounts, _runtime, _gang)
"""What is said of nodes rather than of what they have."""

NEVER_FILTERS: tuple[Filter, ...] = (
    *RULE_FILTERS,
    _gpu_model,
    _gpu_count,
    *(_amount_ever(*amount) for amount in _AMOUNTS),
)
"""What no end of another job could change; the first that forbids speaks."""

FILTERS = (*NEVER_FILTERS, *(_amount_now(*amount) for amount in _AMOUNTS), _gpu_now, _ready)
"""All of them; the first that forbids speaks."""


def _never(code: Code, says: str, change: str, *, shortfall: float = 1.0) -> Refusal:
    return Refusal(code=code, says=says, can_wait=False, change=change, shortfall=shortfall)


def _now(code: Code, says: str, shortfall: float, free: Free) -> Refusal:
    change = f"a job on {free.node.id} ends, or another node has room"
    return Refusal(code=code, says=says, can_wait=True, change=change, shortfall=shortfall)


# -- devices ---------------------------------------------------------------------------------


def model_suits(spec: JobSpec, device: Device) -> bool:
    """Say whether a device is of a model that the job asks for."""
    asked = spec.resources.gpu.models
    return not asked or any(matches_model(name, device.model) for name in asked)


def suits(spec: JobSpec, device: Device) -> bool:
    """Say whether a device is one that the job could run on if it were free."""
    return model_suits(spec, device) and spec.resources.gpu.memory_gib.holds(device.memory_gib)


def _suitable(spec: JobSpec, free: Free) -> Suitable:
    if not spec.resources.gpu.count:
        return ()
    return tuple(each for each in free.alike if suits(spec, each[0].device))


def _opened(spec: JobSpec, free: Free) -> list[DeviceFree]:
    """Return the devices with room, one by one and in their order."""
    known: dict[tuple[str, float], bool] = {}  # the devices of a node are mostly alike
    found: list[DeviceFree] = []
    least_share = spec.resources.gpu.share
    for d in free.devices:
        if d[2] + DUST < least_share:
            continue  # its share: most devices are taken
        kind = (d.device.model, d.device.memory_gib)
        if kind not in known:
            known[kind] = suits(spec, d.device)
        if known[kind] and _has_room(spec, d):
            found.append(d)
    return found


def _has_room(spec: JobSpec, device: DeviceFree, more_gib: float = 0.0) -> bool:
    gpu = spec.resources.gpu
    if device.share + DUST < gpu.share:
        return False
    return device.memory_gib + more_gib + DUST >= gpu_memory_taken(gpu, device.device)


def _count_open(spec: JobSpec, suitable: Suitable) -> int:
    return sum(many for d, many in suitable if _has_room(spec, d))


def _without_foreign(spec: JobSpec, suitable: Suitable) -> int:
    """Count the devices that would be open if others than our jobs left them."""
    return sum(many for d, many in suitable if _has_room(spec, d, d.foreign_gib))
