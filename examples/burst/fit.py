"""Fit a small network to two moons with Python alone, save often, resume exactly where it was.

Runs by itself (`python3 fit.py --epochs 20`) as well as under cloudwhale. A checkpoint holds
weights, random generator and losses: a run that was stopped and resumed ends with the same digit.
"""

import argparse
import json
import math
import os
import random
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

STOPPED = 128 + signal.SIGTERM  # what a shell reports for a program that SIGTERM ended
SAVE_EVERY_S = 1.0
KEEP = 3  # newest checkpoints that stay, so that one being read elsewhere is not deleted
RATE = 0.05
SAY_EVERY = 25


def moons(count: int, draw: random.Random) -> list[tuple[float, float, float]]:
    """Return points of two interleaved half circles: x, y, and 0.0 or 1.0."""
    points: list[tuple[float, float, float]] = []
    for number in range(count):
        turn, moon = math.pi * draw.random(), number % 2
        x = math.cos(turn) if moon == 0 else 1 - math.cos(turn)
        y = math.sin(turn) if moon == 0 else 0.5 - math.sin(turn)
        points.append((x + draw.gauss(0, 0.1), y + draw.gauss(0, 0.1), float(moon)))
    return points


class Network:
    """Two inputs, one hidden layer of tanh, one probability."""

    def __init__(self, width: int, draw: random.Random) -> None:
        self.inner = [[draw.gauss(0, 1) for _ in range(3)] for _ in range(width)]
        self.outer = [draw.gauss(0, 1) / math.sqrt(width) for _ in range(width + 1)]

    def learn(self, x: float, y: float, label: float, rate: float) -> float:
        """Take one step of gradient descent; return the loss before it."""
        hidden = [math.tanh(a * x + b * y + c) for a, b, c in self.inner]
        logit = sum(w * h for w, h in zip(self.outer, hidden, strict=False)) + self.outer[-1]
        guess = 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))
        slope = guess - label
        for unit, h in enumerate(hidden):
            back = slope * self.outer[unit] * (1 - h * h)
            self.outer[unit] -= rate * slope * h
            row = self.inner[unit]
            row[0] -= rate * back * x
            row[1] -= rate * back * y
            row[2] -= rate * back
        self.outer[-1] -= rate * slope
        return -math.log(max(1e-12, guess if label else 1 - guess))

    def is_right(self, x: float, y: float, label: float) -> bool:
        """Say whether it puts a point on its moon."""
        hidden = (math.tanh(a * x + b * y + c) for a, b, c in self.inner)
        logit = sum(w * h for w, h in zip(self.outer, hidden, strict=False)) + self.outer[-1]
        return (logit > 0) == (label > 0.5)


class Training:
    """A network, its data, and all that the next epoch depends on."""

    def __init__(self, width: int, points: int, seed: int) -> None:
        self.draw = random.Random(seed)
        self.points = moons(points, self.draw)
        self.network = Network(width, self.draw)
        self.epoch = 0
        self.losses: list[float] = []

    def go_on(self) -> None:
        """Learn from every point once, in a drawn order."""
        order = self.draw.sample(self.points, len(self.points))
        total = sum(self.network.learn(x, y, label, RATE) for x, y, label in order)
        self.losses.append(total / len(order))
        self.epoch += 1

    def accuracy(self) -> float:
        """Return the share of points that it gets right."""
        return sum(self.network.is_right(*point) for point in self.points) / len(self.points)

    def state(self) -> dict[str, Any]:
        """Return it as JSON can hold it; floats keep every digit."""
        kind, words, spare = self.draw.getstate()
        return {
            "epoch": self.epoch, "losses": self.losses, "draw": [kind, list(words), spare],
            "inner": self.network.inner, "outer": self.network.outer,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Become what it was."""
        kind, words, spare = state["draw"]
        self.draw.setstate((kind, tuple(words), spare))
        self.epoch, self.losses = state["epoch"], state["losses"]
        self.network.inner, self.network.outer = state["inner"], state["outer"]


def save(training: Training, folder: Path) -> None:
    """Write a checkpoint; it is there whole or not at all."""
    draft = folder / f".{os.getpid()}.draft"
    draft.write_text(json.dumps(training.state()))
    draft.rename(folder / f"epoch-{training.epoch:05d}.json")
    for old in sorted(folder.glob("epoch-*.json"))[:-KEEP]:
        old.unlink()


def main() -> int:
    """Train to the end, or until told to stop; return the exit code."""
    words = argparse.ArgumentParser(description="Fit a small network to two moons.")
    words.add_argument("--epochs", type=int, default=300)
    words.add_argument("--width", type=int, default=24)
    words.add_argument("--points", type=int, default=600)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--out", type=Path, default=Path("results"))
    asked = words.parse_args()
    folder = Path(os.environ.get("CLOUDWHALE_CHECKPOINT_DIR", "ckpt"))
    folder.mkdir(parents=True, exist_ok=True)
    told: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        told.append(number)

    signal.signal(signal.SIGTERM, stop)
    training = Training(asked.width, asked.points, asked.seed)
    saved = sorted(folder.glob("epoch-*.json"))
    if saved:
        training.restore(json.loads(saved[-1].read_text()))
        print(f"resumed at epoch {training.epoch}", flush=True)
    saved_at = time.monotonic()
    while training.epoch < asked.epochs:
        training.go_on()
        if training.epoch % SAY_EVERY == 0:
            print(f"epoch {training.epoch} loss {training.losses[-1]:.4f}", flush=True)
        if told or time.monotonic() - saved_at >= SAVE_EVERY_S:
            save(training, folder)
            saved_at = time.monotonic()
        if told:
            print(f"stopped at epoch {training.epoch}, saved", flush=True)
            return STOPPED
    save(training, folder)
    asked.out.mkdir(parents=True, exist_ok=True)
    result = {"epochs": training.epoch, "loss": training.losses[-1], "right": training.accuracy()}
    (asked.out / "fit.json").write_text(json.dumps(result, indent=2) + "\n")
    print(f"final loss {training.losses[-1]!r}, {result['right']:.1%} right", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
