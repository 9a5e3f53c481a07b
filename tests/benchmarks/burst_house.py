"""The same streams through the whole house: planner, ledger and rentals on a simulated cloud."""

from collections.abc import Sequence

from burst_play import GPUS, NODES, USD_PER_GPU_H, Arrival, Estimate, Outcome, exact

from cloudwhale import plugins
from cloudwhale.control.controller import Chosen
from cloudwhale.model.node import Device, Facts, Node, NodeState
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.planner import Policies
from cloudwhale.planning.rules import Rules
from cloudwhale.simulation import playing, setting
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.executing import Physics

MODEL, MEMORY_GIB = "V100-16GB", 16.0
SIZES = (1, 2, 4, 8)


def machine(gpus: int, name: str) -> Facts:
    """Return a machine with some GPUs and enough of everything else."""
    devices = tuple(
        Device(id=f"{name}-{n}", model=MODEL, memory_gib=MEMORY_GIB) for n in range(gpus)
    )
    return Facts(cpu=96.0, memory_gib=768.0, disk_gib=1000.0, devices=devices)


def shelf(gpus: int) -> Shelf:
    """Return an offer that boots at once and is billed to the second, like the paper's cloud."""
    name, price = f"cloud-{gpus}", micro_usd(str(USD_PER_GPU_H * gpus))
    return Shelf(
        Offer(
            id=name, provider="cloud", region="r", zone="r-a", market="on-demand",
            facts=machine(gpus, name), price_usd_h=price, cap_usd_h=price, boot_s=0.0,
            billing_step_s=1.0, billing_least_s=0.0, hazard_per_h=0.0,
        )
    )  # fmt: skip


def through_the_house(
    jobs: Sequence[Arrival], usd_h: float, estimate: Estimate = exact, wait: str = "whale"
) -> Outcome:
    """Play a stream with the product's own planner; `usd_h`: what an hour of waiting is worth."""
    rules = Rules(hold=False, preempt=False, value_usd_h=usd_h)
    load = plugins.load
    chosen = Chosen(
        Policies(
            order=load(plugins.ORDERS, "fifo")(), score=load(plugins.SCORES, "best-fit")(),
            rules=rules, wait=load(plugins.WAITS, wait)(), rent=load(plugins.RENTS, "one-each")(),
        ),
        order="fifo", score="best-fit", wait=wait, rent="one-each",
    )  # fmt: skip
    nodes = [
        Node(id=f"node-{n}", state=NodeState.READY, facts=machine(GPUS, f"node-{n}"))
        for n in range(NODES)
    ]
    arrivals = [
        setting.Arrival(
            at=one.at_s,
            job=one.job.id,
            spec=one.job.spec.but(name=one.job.id, duration_s=estimate(one)),
            work_s=one.runs_s,
        )
        for one in jobs
    ]
    played = playing.play(
        setting.Setting(
            nodes, arrivals, Physics(neighbour=1.0, start_s=0.0),
            clouds=(setting.Offered("cloud", [shelf(gpus) for gpus in SIZES]),),
            budget=micro_usd(100_000),
        ),
        chosen,
    )  # fmt: skip
    return Outcome(
        usd=played.cost_usd,
        waited_s=sum(job.wait_s for job in played.jobs.values()),
        jobs=len(played.jobs),
        rented=len(played.rentals),
        rounds=played.rounds,
    )
