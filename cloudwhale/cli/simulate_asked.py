"""What `simulate` was asked for, as values: who plays what, on which machines, over which seeds."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from cloudwhale.cli.exits import WrongUsage
from cloudwhale.control.intake import budget_flag
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MicroUsd
from cloudwhale.settings import checked
from cloudwhale.simulation import lineup
from cloudwhale.simulation.clusters import Cluster, cluster_from, openb_nodes, parsed_pool, pool
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.faults import Fault, parse_faults
from cloudwhale.simulation.traces import Reading, Trace, estimates, read
from cloudwhale.simulation.traces.named import (
    KNOWN,
    OPENB_NODES,
    SYNTHETIC,
    clouds_of,
    file_of,
    is_named,
    is_there,
    nodes_of,
)
from cloudwhale.simulation.traces.synthetic import Mix, small_nodes
from cloudwhale.simulation.trials import Bench
from cloudwhale.spi.errors import SpecError

DEFAULT_POLICIES = "whale,fifo,priority"
SEEDS_DRAWN, SEEDS_MOST = 3, 1000
NO_START = Physics(neighbour=1.0, start_s=0.0, stop_s=0.0)
"""Public traces say how long a job held its machines, its start included."""


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """What was asked for, as it was written."""

    trace: str = SYNTHETIC
    policies: str = ""
    cluster: Path | None = None
    gpus: str = ""
    jobs: int | None = None
    estimates: str = ""
    seeds: str = ""
    faults: str = ""
    budget: str | None = None
    plots: Path | None = None
    skip_bad: bool = False
    as_json: bool = False


def policies_of(text: str) -> list[str]:
    """Return the names, each once; raise SettingsError for one that nobody has."""
    names = [word.strip() for word in (text or DEFAULT_POLICIES).split(",") if word.strip()]
    for name in names:
        lineup.chosen(name, {}, 0)
    if not names:
        raise WrongUsage(f"--policy {text!r} names nobody.", f"Write --policy {DEFAULT_POLICIES}.")
    return list(dict.fromkeys(names))


_SEEDS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def seeds_of(text: str, *, is_drawn: bool) -> tuple[int, ...]:
    """Return which seeds are played: one is enough where nothing is drawn."""
    if not text:
        return tuple(range(1, 1 + (SEEDS_DRAWN if is_drawn else 1)))
    found = _SEEDS.fullmatch(text.strip())
    low, high = (1, 0) if found is None else (int(found[1]), int(found[2] or -1))
    seeds = range(1, low + 1) if high < 0 else range(low, high + 1)
    if not 0 < len(seeds) <= SEEDS_MOST:
        raise WrongUsage(
            f"--seeds {text!r} names no seeds.",
            f"Write 3 for the seeds 1 to 3, or 4-9; {SEEDS_MOST:,} at most.",
        )
    return tuple(seeds)


def bench_of(options: SimulateOptions) -> tuple[Bench, Trace]:
    """Return what is played; raise a sentence for a trace or a cluster that is wrong."""
    said = estimates(options.estimates) if options.estimates else None
    there = _machines(options)
    bench = Bench(
        there.nodes, estimates=said, settings=there.settings, clouds=there.clouds,
        faults=_faults(options.faults, there), budget=_budget(options.budget, there),
    )  # fmt: skip
    if options.trace == SYNTHETIC:
        mix = Mix() if options.jobs is None else _of_size(options.jobs)
        return replace(bench, mix=mix), Trace(())
    file = file_of(options.trace) if is_named(options.trace) else Path(options.trace)
    offered = [shelf.offer for cloud in there.clouds for shelf in cloud.shelves]
    rentable = [_as_node(offer) for offer in offered] if bench.budget is not None else []
    how = Reading((*there.nodes, *rentable), skip_bad=options.skip_bad, most=options.jobs)
    trace = read(file, how)
    physics = Physics() if trace.format not in KNOWN else NO_START
    return replace(bench, arrivals=trace.arrivals, physics=physics), trace


def _as_node(offer: Offer) -> Node:
    """Return the machine that an offer would become, to see who fits on it."""
    return Node(id=offer.id, state=NodeState.READY, facts=offer.facts, owned=False)


def _faults(text: str, there: Cluster) -> tuple[Fault, ...]:
    try:
        found = parse_faults(text)
    except SpecError as error:
        raise WrongUsage(error.says, error.remedy) from error
    nodes = [node.id for node in there.nodes]
    for fault in found:
        node = getattr(fault, "node", nodes[0])
        if node not in nodes:
            raise WrongUsage(
                f"--faults names the node {node}, which is not there.",
                f"Nodes: {', '.join(nodes[:10])}{' ...' * (len(nodes) > 10)}.",
            )
    return found


def _budget(text: str | None, there: Cluster) -> MicroUsd | None:
    if text is None:
        return None
    try:
        amount = budget_flag(text)
    except SpecError as error:
        raise WrongUsage(error.says, error.remedy) from error
    if not there.clouds:
        raise WrongUsage(
            "--budget has nothing to be spent on: no machine can be rented.",
            "Describe [[offer]] tables in --cluster FILE, or play --trace burst.",
        )
    return amount


def _of_size(jobs: int) -> Mix:
    """Return a mix of so many jobs that come as fast as usual."""
    usual = Mix()
    return Mix(jobs, usual.hours * jobs / usual.jobs, usual.noise)


def _machines(options: SimulateOptions) -> Cluster:
    if options.cluster is not None and options.gpus:
        raise WrongUsage("--cluster and --gpus both say what the machines are.", "Leave one out.")
    if options.cluster is not None:
        found = cluster_from(options.cluster)
        checked({"home": "/nowhere", **found.settings}, str(options.cluster))
        return found
    is_public = options.trace != SYNTHETIC and is_named(options.trace)
    clouds = clouds_of(options.trace) if is_public else ()
    if options.gpus:
        return Cluster(tuple(pool(parsed_pool(options.gpus))), clouds)
    if is_public:
        return Cluster(tuple(nodes_of(options.trace)), clouds)
    if options.trace == SYNTHETIC:
        return Cluster(tuple(small_nodes()))
    return Cluster(_usual_nodes(Path(options.trace)))


def _usual_nodes(file: Path) -> tuple[Node, ...]:
    """Return openb's nodes when their list lies beside a list of its pods, else small ones."""
    beside = [file.parent / OPENB_NODES, file.parent / f"{OPENB_NODES}.gz"]
    there = next((one for one in beside if is_there(one)), None)
    if file.name.startswith("openb_pod_list") and there is not None:
        return tuple(openb_nodes(there))
    return tuple(small_nodes())
