"""Weighs the named scores of one place: the reference for what `rooms` does for many."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cloudwhale.model.job import Placement
from cloudwhale.model.node import Node
from cloudwhale.model.plan import Scored
from cloudwhale.model.units import GiB, Seconds
from cloudwhale.planning.inventory import DeviceFree, Free, device_memory_taken
from cloudwhale.planning.needs import Need
from cloudwhale.planning.speeds import throughput
from cloudwhale.planning.usual import Kind, lost_gpus
from cloudwhale.spi.policy import Room, Score

RIVALS_KEPT = 3  # the chosen place and the best three others

# Nobody says how large an image or an input is before it was fetched once: guesses, by orders of
# magnitude (a CUDA image of PyTorch has 8 GiB), over the network that the node has or this one.
IMAGE_GIB: GiB = 8.0
INPUT_GIB: GiB = 10.0
NETWORK_MB_S = 100.0


@dataclass(frozen=True, slots=True)
class Taste:
    """How places are judged in a round."""

    policy: Score
    weights: Mapping[str, float]
    """Of each named score that counts."""
    kinds: tuple[Kind, ...] = ()
    """What waiting and usual jobs want."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the scores, in order."""
        return tuple(self.policy.weights)


@dataclass(frozen=True, slots=True)
class Song:
    """A node's summary: what is free, and until when those are expected to run that are there."""

    free: Free
    busy_s: Seconds = 0.0
    """Until the last of what runs here is expected to end; 0: idle."""
    left: Free | None = None
    """What is left beside a reservation, for those who would run into it."""
    kept_for: str = ""
    here: frozenset[str] = field(default_factory=frozenset[str])
    """Labels, images and inputs that lie here, as `Node.cached` names them."""

    @property
    def node(self) -> Node:
        """Return the node itself."""
        return self.free.node


def seen_by(need: Need, song: Song) -> Song:
    """Return a song as a need sees it: of one with a reservation perhaps only what is beside."""
    if song.left is None or song.node.id not in need.barred:
        return song
    return replace(song, free=song.free.within(song.left))


def cached_on(node: Node) -> frozenset[str]:
    """Return all that lies on a node, images that were there before any job included."""
    return frozenset((*node.cached, *(f"image:{name}" for name in node.facts.images)))


def scored(need: Need, song: Song, placement: Placement, taste: Taste) -> Scored:
    """Return a place with its named scores and their weighted sum."""
    row = taste.policy.score(room(need, seen_by(need, song), placement, taste))
    scores = dict(zip(taste.names, row, strict=True))
    return Scored.model_construct(
        placement=placement, scores=scores, total=weighed(scores, taste.weights)
    )


def weighed(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the sum of the scores, each times its weight; one without a weight does not count."""
    return sum(weights.get(name, 0.0) * value for name, value in scores.items())


def room(need: Need, song: Song, placement: Placement, taste: Taste) -> Room:
    """Return what a policy is told of a place."""
    free, wants = song.free, need.wants
    facts, count = free.node.facts, len(placement.devices)
    first = _first_given(free, placement)
    run_s, soonest_s = run_at(need, first)
    return Room(
        wants_cpu=wants.cpu,
        wants_memory_gib=wants.memory_gib or 0.0,
        wants_disk_gib=wants.disk_gib or 0.0,
        wants_gpus=count * wants.gpu.share,
        wants_gpu_gib=0.0 if first is None else count * device_memory_taken(wants, first.device),
        wants_disk_io_mb_s=wants.disk_io_mb_s or 0.0,
        wants_network_mb_s=wants.network_mb_s or 0.0,
        cpu=facts.cpu,
        memory_gib=facts.memory_gib,
        disk_gib=facts.disk_gib,
        gpus=float(len(free.devices)),
        free_cpu=free.cpu,
        free_memory_gib=free.memory_gib,
        free_disk_gib=free.disk_gib,
        free_gpus=free.shares,
        gpu_gib=sum([d.device.packs_gib for d in free.devices]),
        free_gpu_gib=free.gpu_gib,
        free_disk_io_mb_s=math.inf if free.disk_io_mb_s is None else free.disk_io_mb_s,
        free_network_mb_s=math.inf if free.network_mb_s is None else free.network_mb_s,
        done_s=fetch_s(need, song) + run_s,
        soonest_s=soonest_s,
        run_s=run_s,
        busy_s=song.busy_s,
        needs=float(len(need.likes)),
        found=float(sum(one in song.here for one in need.likes)),
        throughput=throughput(0 if first is None else first.jobs),
        sm=0.0 if first is None else first.sm,
        lost_gpus=lost_gpus(free, wants, placement.devices, taste.kinds),
    )


def _first_given(free: Free, placement: Placement) -> DeviceFree | None:
    """Return the first of the devices that a job gets, which is the fullest of them."""
    if not placement.devices:
        return None
    return free.devices[free.node.facts.positions[placement.devices[0]]]


def run_at(need: Need, device: DeviceFree | None) -> tuple[Seconds, Seconds]:
    """Return how long the job runs on a device beside its neighbours, and at its best place."""
    if device is None:
        return need.length_s, need.length_s
    alone_s = need.length_s / need.speeds[device.device.model]
    return alone_s / throughput(device.jobs), need.length_s / need.fastest


def fetch_s(need: Need, song: Song) -> Seconds:
    """Return how long it takes to fetch the image and the inputs that do not lie there."""
    missing = [one for one in need.likes if one not in song.here]
    gib = sum(IMAGE_GIB for one in missing if one.startswith("image:"))
    gib += sum(INPUT_GIB for one in missing if one.startswith("input:"))
    return gib * 1024 / (song.node.facts.network_mb_s or NETWORK_MB_S)
