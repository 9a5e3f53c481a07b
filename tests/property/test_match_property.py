"""Random grounds: arrays find what one at a time finds, and nobody at the head is passed over."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from makers import a_job, a_node

from cloudwhale.model.job import GpuRequest, Job, JobState, Placement, Resources, Span, WhereRule
from cloudwhale.model.node import Device, DeviceUse, Measured, Node, NodeState
from cloudwhale.model.world import Sighting
from cloudwhale.planning import packing
from cloudwhale.planning.board import SmallBoard
from cloudwhale.planning.fit import fit
from cloudwhale.planning.inventory import Free, Reservation, free_capacity
from cloudwhale.planning.large_board import LargeBoard
from cloudwhale.planning.needs import Needs, spec_of
from cloudwhale.planning.packing import Packed, Packing, pack
from cloudwhale.spi.policy import Score
from cloudwhale_policies.fits import BestFit, DotProduct, Fgd, WorstFit
from cloudwhale_policies.whale import Whale

CARDS = {"L4": 24.0, "A100-40GB": 40.0, "A100-80GB": 80.0, "RTX4090": 24.0}
SCORES: tuple[Score, ...] = (Whale(), BestFit(), WorstFit(), DotProduct(), Fgd())
NEAR = 1e-5  # arrays hold what others could use in single precision


def a_random_node(draw: random.Random, number: int, *, mixed: bool) -> Node:
    count, card = draw.randint(0, 8), draw.choice(sorted(CARDS))
    cards = [draw.choice(sorted(CARDS)) if mixed else card for _ in range(count)]
    name = f"n{number}"
    devices = tuple(
        Device(
            id=f"{name}-g{n}", model=card, memory_gib=CARDS[card],
            usable_gib=draw.choice([None, 0.97 * CARDS[card]]),
        )
        for n, card in enumerate(cards)
    )  # fmt: skip
    pairs = [(f"{name}-g0", f"{name}-g1")] if mixed and count > 1 and draw.random() < 0.5 else []
    return a_node(
        name,
        cpu=draw.choice([2.0, 8.0, 32.0, 96.0]),
        memory_gib=draw.choice([16.0, 64.0, 512.0]),
        disk_gib=draw.choice([50.0, 1000.0]),
        devices=devices,
        links=tuple(pairs),
        disk_io_mb_s=draw.choice([None, 500.0]),
        network_mb_s=draw.choice([None, 1000.0]),
        labels=draw.choice([{}, {"rack": "a"}]),
        runtimes=draw.choice([("process",), ("process", "container")]),
        mounts=draw.choice([(), ("/data",), ("/",)]),
        images=draw.choice([(), ("img",)]),
        cached=draw.choice([(), ("label:x", "input:y")]),
        state=draw.choice([NodeState.READY] * 6 + list(NodeState)),
        owned=draw.random() < 0.9,
    )


def a_random_job(draw: random.Random, number: int) -> Job:
    count = draw.choice([0, 0, 1, 1, 1, 2, 4, 8])
    gpu = GpuRequest(
        count=count,
        count_most=draw.choice([None, None, count + 2]) if count else None,
        memory_gib=Span(
            least=draw.choice([0.0, 0.0, 10.0, 24.0, 60.0]), most=draw.choice([None, None, 40.0])
        ),
        models=draw.choice([(), (), ("A100",), ("L4", "RTX4090")]),
        share=draw.choice([0.1, 0.25, 0.5, 1.0, 1.0]),
    )
    wants = Resources(
        gpu=gpu,
        cpu=draw.choice([0.0, 0.5, 1.0, 4.0, 16.0]),
        memory_gib=draw.choice([None, 1.0, 8.0, 100.0]),
        disk_gib=draw.choice([None, 10.0, 200.0]),
        disk_io_mb_s=draw.choice([None, 100.0]),
        network_mb_s=draw.choice([None, 50.0]),
    )
    where = [WhereRule()] * 3 + [WhereRule(labels={"rack": "a"}), WhereRule(not_on=("n0",))]
    return a_job(
        f"j{number:03}",
        resources=wants,
        duration_s=draw.choice([None, 60.0, 3600.0, 9999.0]),
        reference=draw.choice([None, "L4", "A100-40GB"]),
        speeds=draw.choice([{}, {}, {"L4": 3.0}]),
        affinity=draw.choice([(), ("x",)]),
        image=draw.choice([None, None, "img"]),
        inputs=draw.choice([(), ("y",)]),
        where=draw.choice(where),
        market=draw.choice(["auto"] * 5 + ["local", "spot"]),
        mounts=draw.choice([{}, {}, {}, {"/data/x": "/x"}]),
        secrets=draw.choice([(), (), (), ("TOKEN",)]),
    )


def seen(draw: random.Random, node: Node) -> Sighting:
    devices = {
        d.id: DeviceUse(
            used_gib=6.0,
            foreign_gib=draw.choice([0.0, 0.4, 6.0]),
            sm=draw.choice([None, 0.3, 1.0]),
        )
        for d in node.facts.devices
    }
    measured = Measured(devices=devices, disk_io_mb_s=draw.choice([None, 300.0]))
    return Sighting(node=node.id, heard_at=0.0, measured=measured)


def a_reservation(draw: random.Random, free: Free) -> Reservation:
    devices = tuple(
        d._replace(share=0.0, memory_gib=0.0) if n == 0 else d for n, d in enumerate(free.devices)
    )
    left = replace(free, cpu=free.cpu / 2, devices=devices)
    return Reservation(free.node.id, draw.choice([100.0, 1000.0]), "older", left)


def a_round(seed: int, *, mixed: bool) -> tuple[list[Job], Packing]:
    """Draw some nodes, some jobs that run there, and some that wait."""
    draw = random.Random(seed)
    nodes = [a_random_node(draw, n, mixed=mixed) for n in range(draw.randint(1, 6))]
    jobs = [a_random_job(draw, n) for n in range(draw.randint(1, 25))]
    some, waiting = jobs[: len(jobs) // 2], jobs[len(jobs) // 2 :]
    sightings = {node.id: seen(draw, node) for node in nodes if draw.random() < 0.5}
    first = pack([some], Packing(0.0, free_capacity(nodes, [], sightings), BestFit()))
    running = [
        job.but(state=JobState.RUNNING, attempt=1, started_at=0.0, placement=d.chosen.placement)
        for job, d in first.places
        if d.chosen is not None
    ]
    free = free_capacity(nodes, running, sightings)
    kept = draw.choice(nodes).id if draw.random() < 0.4 else None
    reserved = {} if kept is None else {kept: a_reservation(draw, free[kept])}
    score = draw.choice(SCORES)
    return waiting, Packing(10.0, free, score, running=running, reserved=reserved)


def boards(waiting: Sequence[Job], given: Packing) -> tuple[SmallBoard, LargeBoard]:
    nodes = {name: free.node for name, free in given.free.items()}
    needs = Needs(given.now, given.durations, given.reserved, nodes)
    jobs = packing.numbered(waiting, needs)
    grounds = [packing.ground_of(jobs, needs, given) for _ in range(2)]
    return SmallBoard(grounds[0]), LargeBoard(grounds[1], needs.devices)


def compare(small: SmallBoard, large: LargeBoard, *, exactly: bool) -> None:
    ground = small.ground
    needs = list(range(len(ground.needs)))
    fits, same_fits = small.fitting(needs), large.fitting(needs)
    assert [list(fits(n)) for n in needs] == [list(same_fits(n)) for n in needs]
    asked = [(need, None) for need in needs]
    for one, other in zip(small.verdicts(asked), large.verdicts(asked), strict=True):
        assert (dict(one.refused), one.closest) == (dict(other.refused), other.closest)
        assert (one.code, one.reason, one.nearest) == (other.code, other.reason, other.nearest)
    for top, same in zip(small.tops(needs), large.tops(needs), strict=True):
        assert (top is None) == (same is None)
        if top is not None and same is not None and exactly:
            assert same.total == pytest.approx(top.total, abs=NEAR)
            assert (same.second or 0) == pytest.approx(top.second or 0, abs=NEAR)


@given(seed=st.integers(0, 10**6), mixed=st.booleans())
@settings(max_examples=60)
def test_arrays_find_the_places_refusals_and_scores_that_one_at_a_time_finds(
    seed: int, mixed: bool
) -> None:
    waiting, given_ = a_round(seed, mixed=mixed)
    small, large = boards(waiting, given_)
    for rank in range(4):
        compare(small, large, exactly=not mixed)
        tops = small.tops(range(len(small.ground.needs)))
        chosen = next(((need, top.node) for need, top in enumerate(tops) if top is not None), None)
        if chosen is None:
            break
        for board in (small, large):
            seat = board.ground.try_seat(rank, *chosen)
            assert seat is not None
            board.ground.sit(seat)
    same_seats(small, large)


def same_seats(small: SmallBoard, large: LargeBoard) -> None:
    seats = [seat for here in small.ground.seats for seat in here]
    for one, other in zip(small.scored(seats), large.scored(seats), strict=True):
        assert other.placement == one.placement
        assert other.total == pytest.approx(one.total, abs=NEAR)
        assert other.scores == pytest.approx(one.scores, abs=NEAR)
    for ours, theirs in zip(small.rivals(seats), large.rivals(seats), strict=True):
        assert len(ours) == len(theirs)


def passed_over(packed: Packed, waiting: Sequence[Job], given: Packing) -> list[str]:
    """Return who fits somewhere beside those of lower rank alone, and has no place."""
    places = {job.id: d.chosen.placement for job, d in packed.places if d.chosen is not None}
    free = dict(given.free)
    found: list[str] = []
    for job in waiting:
        place = places.get(job.id)
        if place is not None:
            free[place.node] = free[place.node].less(job.wants, place)
        elif any(isinstance(fit(spec_of(job), one), Placement) for one in free.values()):
            found.append(job.id)
    return found


@given(seed=st.integers(0, 10**6), large=st.booleans())
@settings(max_examples=60)
def test_nobody_at_the_head_stays_out_whom_only_jobs_behind_it_keep_out(
    seed: int, large: bool
) -> None:
    waiting, given_ = a_round(seed, mixed=False)
    given_ = replace(given_, reserved={})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "SMALL", -1 if large else packing.SMALL)
        packed = pack([waiting], given_)
    assert passed_over(packed, waiting, given_) == []


@given(seed=st.integers(0, 10**6), large=st.booleans())
@settings(max_examples=40)
def test_a_match_is_the_same_twice_and_gives_nothing_twice(seed: int, large: bool) -> None:
    waiting, given_ = a_round(seed, mixed=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "SMALL", -1 if large else packing.SMALL)
        packed, again = pack([waiting], given_), pack([waiting], given_)
    assert [d.model_dump_json() for _, d in packed.places] == [
        d.model_dump_json() for _, d in again.places
    ]
    free = dict(given_.free)
    for job, decision in packed.places:
        assert decision.chosen is not None
        place = decision.chosen.placement
        free[place.node] = free[place.node].less(job.wants, place)
    for one in free.values():
        assert min(one.cpu, one.memory_gib, one.disk_gib) > -1e-6
        assert all(d.share > -1e-6 for d in one.devices)
