"""Train a small network on two spirals, save often, and resume exactly where it was.

Runs by itself (`python3 train.py`) as well as under cloudwhale. Everything that the next step
depends on is in a checkpoint: weights, optimiser, random generator, the losses so far. So a run
that was stopped and resumed, however often, has the losses of one that was not, bit for bit.
"""

import argparse
import json
import math
import os
import re
import signal
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

# A matrix product that is spread over a changing number of threads adds up in another order and
# differs in the last bit. numpy reads this when it is imported.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402  (the lines above must come first)
from numpy.typing import NDArray  # noqa: E402

Array = NDArray[np.float64]

STOPPED = 128 + signal.SIGTERM  # what a shell reports for a program that SIGTERM ended
SHARDS = 2  # a batch is halved, one half per core; the halves are added in a fixed order
KEEP = 3  # newest checkpoints that stay, so that one being read elsewhere is not deleted
SAY_EVERY_S = 1.0
TURNS = 4  # half turns of each spiral: hard enough to take thousands of steps
NOISE = 0.02  # of a radius of 1; the arms are 0.25 apart


def two_spirals(count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return points on two noisy, interleaved spirals, and for each 0.0 or 1.0."""
    turn = np.sqrt(rng.random(count)) * TURNS * math.pi
    arm = rng.integers(0, 2, count)
    angle = turn + arm * math.pi
    points = np.stack([turn * np.cos(angle), turn * np.sin(angle)], axis=1) / (TURNS * math.pi)
    return points + rng.normal(0, NOISE, points.shape), arm.astype(np.float64)


class Network:
    """A multilayer network with tanh inside and one logit at the end."""

    def __init__(self, widths: list[int], rng: np.random.Generator) -> None:
        self.weights: list[Array] = []
        for wide, narrow in zip(widths, widths[1:], strict=False):
            self.weights.append(rng.normal(0, math.sqrt(1.5 / wide), (wide, narrow)))
            self.weights.append(np.zeros(narrow))

    def layers(self, points: Array) -> list[Array]:
        """Return the output of every layer, the points first and the logits last."""
        outputs = [points]
        last = len(self.weights) - 2
        for at in range(0, len(self.weights), 2):
            sums = outputs[-1] @ self.weights[at] + self.weights[at + 1]
            outputs.append(sums if at == last else np.tanh(sums))
        return outputs

    def gradient(self, points: Array, labels: Array) -> tuple[float, list[Array]]:
        """Return the sum of the losses of some points, and its gradient."""
        outputs = self.layers(points)
        logits = outputs[-1][:, 0]
        loss = float(np.sum(np.logaddexp(0, logits) - labels * logits))
        back = (1 / (1 + np.exp(-logits)) - labels)[:, None]
        found: list[Array] = []
        for at in range(len(self.weights) - 2, -1, -2):
            before = outputs[at // 2]
            found[:0] = [before.T @ back, back.sum(axis=0)]
            if at:
                back = (back @ self.weights[at].T) * (1 - before**2)
        return loss, found

    def accuracy(self, points: Array, labels: Array) -> float:
        """Return the share of points that it gets right."""
        return float(np.mean((self.layers(points)[-1][:, 0] > 0) == (labels > 0.5)))


class Adam:
    """The optimiser, with its two running means."""

    def __init__(self, weights: list[Array], rate: float) -> None:
        self.rate = rate
        self.mean = [np.zeros_like(weight) for weight in weights]
        self.square = [np.zeros_like(weight) for weight in weights]

    def update(self, weights: list[Array], gradient: list[Array], step: int) -> None:
        """Change the weights; steps count from 1."""
        for weight, slope, mean, square in zip(
            weights, gradient, self.mean, self.square, strict=True
        ):
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            unbiased = mean / (1 - 0.9**step)
            weight -= self.rate * unbiased / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)


class OtherTraining(Exception):
    """A checkpoint was made with other arguments."""


class Training:
    """All that the next step depends on."""

    def __init__(self, seed: int, rate: float, hidden: int, batch: int) -> None:
        self.wish = {"seed": seed, "lr": rate, "hidden": hidden, "batch": batch}
        self.rng = np.random.default_rng(seed)
        self.points, self.labels = two_spirals(4000, self.rng)
        self.network = Network([2, hidden, hidden, 1], self.rng)
        self.adam = Adam(self.network.weights, rate)
        self.batch = batch
        self.losses: list[float] = []

    @property
    def step(self) -> int:
        """Return how many steps are done."""
        return len(self.losses)

    def advance(self, cores: ThreadPoolExecutor) -> None:
        """Do one step, each half of the batch on a core of its own."""
        chosen = self.rng.integers(0, len(self.points), self.batch)
        halves = [
            cores.submit(self.network.gradient, self.points[part], self.labels[part])
            for part in np.array_split(chosen, SHARDS)
        ]
        (loss, total), *others = [half.result() for half in halves]
        for more, slopes in others:
            loss += more
            total = [one + two for one, two in zip(total, slopes, strict=True)]
        mean = [slope / self.batch for slope in total]
        self.losses.append(loss / self.batch)
        self.adam.update(self.network.weights, mean, self.step)

    def save(self, folder: Path) -> None:
        """Write a checkpoint: whole under its name, or not there at all."""
        state: dict[str, Array | NDArray[np.str_]] = {
            "losses": np.array(self.losses),
            "rng": np.array(json.dumps(self.rng.bit_generator.state)),
            "wish": np.array(json.dumps(self.wish, sort_keys=True)),
        }
        for name, arrays in self._arrays().items():
            state |= {f"{name}{at}": array for at, array in enumerate(arrays)}
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"step-{self.step:06d}.npz"
        draft = folder / f".{target.name}.tmp"
        with draft.open("wb") as file:
            np.savez(file, allow_pickle=False, **state)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
        _sync(folder)
        for old in saved(folder)[KEEP:]:
            old.unlink(missing_ok=True)

    def load(self, file: Path) -> None:
        """Take everything from a checkpoint; raise OtherTraining when it is not one of this."""
        with np.load(file, allow_pickle=False) as parts:
            state = dict(parts)  # read whole before anything is taken from it
        wish = json.loads(str(state["wish"]))
        if wish != self.wish:
            raise OtherTraining(
                f"{file} was made with {wish}, this run has {self.wish}: use the same "
                "arguments, or another checkpoint folder"
            )
        self.losses = [float(loss) for loss in state["losses"]]
        self.rng.bit_generator.state = json.loads(str(state["rng"]))
        for name, arrays in self._arrays().items():
            for at, array in enumerate(arrays):
                array[...] = state[f"{name}{at}"]

    def _arrays(self) -> dict[str, list[Array]]:
        adam = self.adam
        return {"weight": self.network.weights, "mean": adam.mean, "square": adam.square}


def saved(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, newest first; none when there is no folder."""
    if not folder.is_dir():
        return []
    steps = {
        int(match[1]): file
        for file in folder.iterdir()
        if (match := re.fullmatch(r"step-(\d+)\.npz", file.name))
    }
    return [steps[step] for step in sorted(steps, reverse=True)]


def resume(training: Training, folder: Path) -> None:
    """Go on from the newest checkpoint that can be read; from nothing when there is none."""
    for file in saved(folder):
        try:
            training.load(file)
        except (zipfile.BadZipFile, ValueError, KeyError, EOFError, OSError) as error:
            say(f"{file.name} cannot be read ({error}): trying the one before")
            continue
        return say(f"resumed from {file.name}: step {training.step} is done")
    if os.environ.get("CLOUDWHALE_RESUME") == "1":
        say(f"asked to resume, but {folder} holds no checkpoint that can be read: starting anew")


def train(training: Training, options: argparse.Namespace, stop: list[int]) -> bool:
    """Do the steps that are left; return False when asked to stop before the last one."""
    started, first = time.monotonic(), training.step
    told = kept = started
    with ThreadPoolExecutor(SHARDS) as cores:
        while training.step < options.steps:
            training.advance(cores)
            now = time.monotonic()
            if now - told >= SAY_EVERY_S:
                told = now
                left_s = (now - started) / (training.step - first) * (options.steps - training.step)
                say(
                    f"step {training.step:6d} of {options.steps}   "
                    f"loss {training.losses[-1]:.6f}   {left_s:4.0f} s left"
                )
            if now - kept >= options.save_every_s:
                kept = now
                training.save(options.checkpoints)
            if stop:
                break
    return training.step >= int(options.steps)


def say(line: str) -> None:
    """Print a line at once, also into a pipe."""
    print(line, flush=True)


def _sync(folder: Path) -> None:
    """Make a rename in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _options(words: list[str] | None) -> argparse.Namespace:
    folder = os.environ.get("CLOUDWHALE_CHECKPOINT_DIR", "ckpt")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--steps", type=int, default=5000, help="steps in all (%(default)s)")
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of data, weights, batches")
    parser.add_argument("--hidden", type=int, default=128, help="width of the two hidden layers")
    parser.add_argument("--batch", type=int, default=1024, help="points per step (%(default)s)")
    parser.add_argument("--save-every-s", type=float, default=3.0, help="seconds (%(default)s)")
    parser.add_argument("--checkpoints", type=Path, default=Path(folder), help="(%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("loss.json"), help="every step's loss")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Train; return 0 when done, 143 when stopped by SIGTERM, 2 for a checkpoint of another run."""
    stop: list[int] = []

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        stop.append(number)

    signal.signal(signal.SIGTERM, ask_to_stop)
    options = _options(words)
    training = Training(options.seed, options.lr, options.hidden, options.batch)
    say(f"learning rate {options.lr:g}, seed {options.seed}, {options.steps} steps")
    try:
        resume(training, options.checkpoints)
    except OtherTraining as error:
        say(str(error))
        return 2
    finished = train(training, options, stop)
    training.save(options.checkpoints)
    if not finished:
        say(f"stopped by signal {stop[0]}: step {training.step} is saved")
        return STOPPED
    points, labels = two_spirals(2000, np.random.default_rng(options.seed + 1))
    right = training.network.accuracy(points, labels)
    options.out.write_text(json.dumps({"steps": training.step, "losses": training.losses}) + "\n")
    say(f"{right:.1%} of 2000 points that it has not seen are on the right spiral")
    say(f"final loss {training.losses[-1]:.9f} after {training.step} steps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
