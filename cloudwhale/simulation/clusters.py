"""The machines of a simulation: from a settings file with nodes, a pool of GPUs, a node list."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field

from cloudwhale.model.gpus import MODELS
from cloudwhale.model.node import Device, Facts, Node, NodeState
from cloudwhale.settings import Amount
from cloudwhale.simulation.offers import clouds_from
from cloudwhale.simulation.playing import Offered
from cloudwhale.simulation.tables import NAME, Machine, Tables
from cloudwhale.simulation.traces.columns import AMOUNT, MIB_PER_GIB, MILLI, openb_model
from cloudwhale.simulation.traces.rows import Limits, Row, listed
from cloudwhale.spi.errors import SettingsError

GPUS_MOST = 100_000
NODES_MOST = 20_000
CPU_PER_GPU, GIB_PER_GPU = 64.0, 512.0
"""What a pool has beside its GPUs: so much that GPUs alone run short."""
POOL_MODEL = "V100-32GB"
"""All GPUs of a pool are alike, so which model it is changes nothing."""
DISK_GIB = 1e6
GPUS_OF_A_NODE = Limits("a whole number of GPUs up to 1000, like 8", whole=True, most=1000.0)


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of equal GPUs, with CPUs and memory in plenty."""

    nodes: int
    gpus: int
    """On each."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a file says."""

    nodes: tuple[Node, ...]
    clouds: tuple[Offered, ...] = ()
    """What can be rented beside them."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings that all contestants share, such as `shares`."""


_POOL = re.compile(r"(?:([1-9][0-9]*)x)?([1-9][0-9]*)")


def parsed_pool(text: str) -> Pool:
    """Return what `480` or `4x8` means; raise SettingsError for anything else."""
    found = _POOL.fullmatch(text.strip())
    one = None if found is None else Pool(int(found[1] or 1), int(found[2]))
    if one is None or one.nodes * one.gpus > GPUS_MOST or one.nodes > NODES_MOST:
        raise SettingsError(
            f"{text!r} is no number of GPUs",
            f"Write 480 for one pool of them, or 4x8 for 4 nodes of 8; {GPUS_MOST:,} at most.",
        )
    return one


def pool(of: Pool) -> list[Node]:
    """Return the nodes of a pool; a job's GPUs lie on one node."""
    model = MODELS[POOL_MODEL]
    return [
        _ready(
            f"pool-{number}" if of.nodes > 1 else "pool",
            Facts(
                cpu=CPU_PER_GPU * of.gpus, memory_gib=GIB_PER_GPU * of.gpus, disk_gib=DISK_GIB,
                devices=tuple(
                    Device(id=f"{number}-{n}", model=model.name, memory_gib=model.memory_gib)
                    for n in range(of.gpus)
                ),
            ),
        )
        for number in range(of.nodes)
    ]  # fmt: skip


def _ready(name: str, facts: Facts) -> Node:
    return Node(id=name, state=NodeState.READY, facts=facts)


# -- a settings file with nodes --------------------------------------------------------------


class NodeTable(Machine):
    """One `[[node]]` of the file."""

    name: Annotated[str, Field(pattern=NAME)]
    count: Annotated[int, Field(ge=1, le=NODES_MOST)] = 1
    cpu: Amount = CPU_PER_GPU
    memory_gib: Amount = GIB_PER_GPU
    disk_gib: Amount = DISK_GIB
    labels: dict[str, str] = {}


_WANTED = {
    "name": 'up to 63 letters, digits, `-`, `_` and `.`, like "desk"',
    "count": f"a whole number from 1 to {NODES_MOST:,}",
    "devices": 'a list of texts like "2x RTX4090 24GB"',
    "cpu": "a number above 0, like 16",
    "memory_gib": "a number of GiB above 0, like 64",
    "disk_gib": "a number of GiB above 0, like 2000",
    "labels": 'names with texts, like {rack = "a"}',
}

EXAMPLE = 'Write [[node]], name = "desk", devices = ["2x RTX4090 24GB"], cpu = 16, memory_gib = 64.'
NODES = Tables("node", NodeTable, _WANTED, EXAMPLE)


def cluster_from(file: Path) -> Cluster:
    """Return the nodes and the settings in a file; raise SettingsError for a wrong one."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}", EXAMPLE) from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} is not UTF-8, which TOML is written in", EXAMPLE) from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: {error}", "Mend the file; it is TOML.") from error
    nodes_said, offers_said = _tables(file, found, "node"), _tables(file, found, "offer")
    if not nodes_said:
        raise SettingsError(f"{file} describes no nodes", EXAMPLE)
    nodes = _all_nodes(file, nodes_said)
    return Cluster(tuple(nodes), clouds_from(file, offers_said), found)


def _all_nodes(file: Path, said: Sequence[object]) -> list[Node]:
    nodes: dict[str, Node] = {}
    gpus = 0
    for node in (node for number, one in enumerate(said, 1) for node in _nodes(file, number, one)):
        if node.id in nodes:
            raise SettingsError(f"{file}: two nodes are called {node.id}", "Rename one of them.")
        nodes[node.id] = node
        gpus += len(node.facts.devices)
        if gpus > GPUS_MOST or len(nodes) > NODES_MOST:
            raise SettingsError(
                f"{file} describes more than {NODES_MOST:,} nodes or {GPUS_MOST:,} GPUs",
                "Describe fewer: lower `count`, or the number before a GPU's model.",
            )
    return list(nodes.values())


def _tables(file: Path, found: dict[str, Any], kind: str) -> list[object]:
    tables = found.pop(kind, [])
    if not isinstance(tables, list):
        raise SettingsError(f"{file}: {kind} is no list of tables", f"Write [[{kind}]] above each.")
    return cast(list[object], tables)


def _nodes(file: Path, number: int, table: object) -> Iterator[Node]:
    one, devices = NODES.read(file, number, table)
    for copy in range(one.count):
        name = one.name if one.count == 1 else f"{one.name}-{copy}"
        own = tuple(device.but(id=f"{name}-{n}") for n, device in enumerate(devices))
        facts = Facts(
            cpu=one.cpu, memory_gib=one.memory_gib, disk_gib=one.disk_gib, devices=own,
            labels=one.labels,
        )  # fmt: skip
        yield _ready(name, facts)


# -- the list of nodes of the openb trace ----------------------------------------------------

OPENB_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
UNKNOWN_GIB = 32.0
"""Memory of models that hide behind a code; no pod of the trace asks for GPU memory."""


def openb_nodes(file: Path) -> list[Node]:
    """Return the nodes of a list in openb's format; raise TraceError for a wrong line."""
    return list(_openb_nodes(listed(file, OPENB_COLUMNS, "nodes")))


def _openb_nodes(rows: Sequence[Row]) -> Iterator[Node]:
    for one in rows:
        node, model = one.word("sn"), openb_model(one.values["model"])
        memory_gib = MODELS[model].memory_gib if model in MODELS else UNKNOWN_GIB
        devices = tuple(
            Device(id=f"{node}-{n}", model=model, memory_gib=memory_gib)
            for n in range(int(one.number("gpu", GPUS_OF_A_NODE)))
        )
        facts = Facts(
            cpu=one.number("cpu_milli", AMOUNT) / MILLI,
            memory_gib=one.number("memory_mib", AMOUNT) / MIB_PER_GIB,
            disk_gib=DISK_GIB, devices=devices,
        )  # fmt: skip
        yield _ready(node, facts)
