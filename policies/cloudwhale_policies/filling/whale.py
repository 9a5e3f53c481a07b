"""The whale's filling: what a seat strands, by sight, by experience and by price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloudwhale.spi.filling import GPU_MILLI, Demand, Left, Mix, Seat, Shape
from cloudwhale_policies.filling.board import Board, Rated, Seats
from cloudwhale_policies.filling.fits import CPU_MOST, GPU_MOST
from cloudwhale_policies.filling.fragmentation import Fragmentation
from cloudwhale_policies.filling.learned_waste import Seen, Waste, learned
from cloudwhale_policies.filling.menu import Floats, Ints, Menu, menu_of
from cloudwhale_policies.filling.prices import Free, Market


@dataclass(frozen=True, slots=True)
class Weights:
    fragmentation: float = 0.3
    waste: float = 3.0
    price: float = 3.0
    cpu: float = 15.0
    gpu: float = 15.0
    every: int = 500
    horizon: float = 1.0
    least: float = 0.05
    rounds: int = 5
    runs: int = 3
    gap: float = 0.7
    usable: bool = True
    large: bool = True
    finer: float = 0.1
    mode: str = "arrived"


class Rule:
    def __init__(self, menu: Menu, weights: Weights, waste: Waste | None) -> None:
        self.menu = menu
        self.weights = weights
        self.waste = waste
        self.fragmentation = Fragmentation(menu)
        self.rated = Rated(menu, self._badness)
        self.market = Market(menu) if weights.price else None

    def begin(self, shapes: Sequence[Shape]) -> "Chooser":
        return Chooser(shapes, self)

    def _badness(self, seats: Seats) -> Floats:
        w = self.weights
        cpu, gpus = np.array([seats.cpu]), seats.gpus[None, :]
        badness = w.fragmentation * (
            self.fragmentation(seats.kind, seats.cpu_after, seats.gpus_after)
            - self.fragmentation(seats.kind, cpu, gpus)
        )
        if self.waste is not None and w.waste:
            badness = badness + w.waste * (
                self.waste(seats.kind, seats.cpu_after, seats.gpus_after)
                - self.waste(seats.kind, cpu, gpus)
            )
        return badness + w.cpu * seats.cpu / CPU_MOST + w.gpu * float(seats.gpus.sum()) / GPU_MOST


class Chooser:
    def __init__(self, shapes: Sequence[Shape], rule: Rule) -> None:
        self.board = Board(shapes, rule.rated)
        self.rule = rule
        self.capacity = GPU_MILLI * sum(s.gpus for s in shapes)
        self.arrived = 0
        self.count = 0
        self.next = 0

    def choose(self, demand: Demand, left: Left) -> Seat | None:
        if self.rule.market and self.count >= self.next:
            todo = max(self.capacity - self.arrived, 0) if self.arrived < self.capacity else 1e18
            mean = (self.rule.menu.gpus*self.rule.menu.milli*self.rule.menu.counts).sum()/self.rule.menu.counts.sum()
            self.next = self.count + max(40, min(self.rule.weights.every, int(self.rule.weights.finer * todo / mean)))
            self._price(left)
        self.count += 1
        self.arrived += demand.gpu_total_milli
        return self.board.choose(demand, left)

    def _price(self, left: Left) -> None:
        w = self.rule.weights
        menu = self.rule.menu
        kinds = self.board.kinds
        K = len(menu.kinds)
        gpu = left.gpu_milli.sum(axis=1)
        usable = gpu * 1.0
        if w.usable and self.rule.waste is not None:
            for k in range(K):
                i = np.flatnonzero(kinds == k)
                usable[i] -= self.rule.waste(k, left.cpu_milli[i], left.gpu_milli[i])
        elif w.usable:
            usable = (left.gpu_milli * (left.gpu_milli >= 300)).sum(axis=1)
        large = (left.gpu_milli > 500).sum(axis=1) if w.large else (gpu > 0) * 1e6
        free = Free(
            *(
                np.bincount(kinds, weights=v, minlength=K)
                for v in (left.cpu_milli, left.memory_mib, usable, large)
            )
        )
        if w.mode == "arrived":
            more = max(w.horizon * self.capacity - self.arrived, w.least * self.capacity)
        else:
            more = w.horizon * gpu.sum()
        coming = menu.counts * (more / float((menu.counts * menu.gpus * menu.milli).sum()))
        prices = self.rule.market.prices(free, coming)
        table = w.price * prices.of(menu)
        self.board.extra = table[:, kinds]


def draw(mix: Mix, capacity: float, dice: np.random.Generator) -> list[Demand]:
    p = np.array(mix.counts, dtype=float)
    mean = sum(c * d.gpu_total_milli for c, d in zip(mix.counts, mix.demands)) / p.sum()
    n = int(capacity / mean)
    return [mix.demands[i] for i in dice.choice(len(p), size=n, p=p / p.sum())]


def rehearse(shapes, demands, rule):
    n = len(shapes)
    width = max(s.gpus for s in shapes)
    g = np.zeros((n, width), dtype=np.int64)
    for i, s in enumerate(shapes):
        g[i, : s.gpus] = 1000
    left = Left(
        np.array([s.cpu_milli for s in shapes]), np.array([s.memory_mib for s in shapes]), g
    )
    chooser = rule.begin(shapes)
    cap = float(g.sum())
    arrived = got = 0
    cpus, rows, nodes = [], [], []
    at100 = []
    for d in demands:
        s = chooser.choose(d, left)
        if s:
            left.cpu_milli[s.node] -= d.cpu_milli
            left.memory_mib[s.node] -= d.memory_mib
            for x in s.devices:
                g[s.node, x] -= d.gpu_milli
            left.changed.append(s.node)
            got += d.gpu_total_milli
            nodes.append(s.node)
            cpus.append(int(left.cpu_milli[s.node]))
            rows.append(g[s.node].copy())
        arrived += d.gpu_total_milli
        if 0.995 <= arrived / cap < 1.005:
            at100.append(got / cap)
    nodes = np.array(nodes)
    seen = Seen(chooser.board.kinds[nodes], np.array(cpus), np.array(rows), g[nodes])
    return float(np.mean(at100)), got / cap, seen


def joined(parts):
    return Seen(
        *(np.concatenate([getattr(p, f) for p in parts]) for f in ("kind", "cpu", "gpus", "final"))
    )


class Whale:
    def __init__(self, weights: Weights = Weights(), seed: int = 0, verbose: bool = False) -> None:
        self.weights, self.seed, self.verbose = weights, seed, verbose

    def study(self, shapes: Sequence[Shape], mix: Mix) -> Rule:
        menu = menu_of(shapes, mix)
        dice = np.random.default_rng(self.seed)
        cap = 1300.0 * sum(s.gpus for s in shapes)
        base = sorted(shapes, key=lambda s: (s.model, s.gpus, s.cpu_milli, s.memory_mib))
        scenes = []
        for _ in range(self.weights.runs):
            scenes.append(([base[i] for i in dice.permutation(len(base))], draw(mix, cap, dice)))
        best = None
        waste = None
        for round_ in range(self.weights.rounds + 1):
            rule = Rule(menu, self.weights, waste)
            runs = [rehearse(*scene, rule) for scene in scenes]
            score = float(np.mean([r[0] for r in runs]))
            if self.verbose:
                print(
                    "   round",
                    round_,
                    round(100 * score, 3),
                    round(100 * np.mean([r[1] for r in runs]), 3),
                    len(rule.rated._known),
                    flush=True,
                )
            if best is None or score > best[0]:
                best = (score, rule)
            if not self.weights.waste:
                break
            new = learned(joined([r[2] for r in runs]), len(menu.kinds))
            waste = new if waste is None else waste.blended(new, 1 - self.weights.gap)
        return best[1]
