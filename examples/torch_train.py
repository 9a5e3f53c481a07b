"""Trains a small network with PyTorch, and goes on to the last bit wherever it was stopped.

What a checkpoint must hold is in `Training.state`: weights, optimiser, learning rate, random state,
and how far it is. What makes it safe is in `save`: whole under its name, or not there at all.
"""

import argparse
import math
import os
import re
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

# With more threads a sum may be added up in another order, and differ in the last bit. On a GPU
# cuBLAS wants to be told the same.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch import nn

STOPPED = 128 + signal.SIGTERM  # what a shell reports for a program that SIGTERM ended
KEEP = 3  # newest checkpoints that stay, so that one being read elsewhere is not deleted
SAY_EVERY_S = 1.0
POINTS = 4096
BATCH = 256


def two_spirals(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points on two noisy, interleaved spirals, and for each 0.0 or 1.0."""
    rng = torch.Generator().manual_seed(seed)
    turn = torch.rand(count, generator=rng).sqrt() * 3 * math.pi
    arm = torch.randint(0, 2, (count,), generator=rng)
    angle = turn + arm * math.pi
    points = torch.stack([turn * angle.cos(), turn * angle.sin()], dim=1) / (3 * math.pi)
    return points + 0.02 * torch.randn(count, 2, generator=rng), arm.float()


class Training:
    """All that the next step depends on."""

    def __init__(self, seed: int, steps: int, device: str) -> None:
        torch.manual_seed(seed)
        self.device = device
        points, labels = two_spirals(POINTS, seed)
        self.points, self.labels = points.to(device), labels.to(device)
        self.network = nn.Sequential(
            nn.Linear(2, 64), nn.Tanh(), nn.Dropout(0.1), nn.Linear(64, 64), nn.Tanh(),
            nn.Linear(64, 1),
        ).to(device)  # fmt: skip
        self.optimiser = torch.optim.AdamW(self.network.parameters(), lr=3e-3)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimiser, steps)
        self.order = torch.Generator().manual_seed(seed)  # of the batches; a sampler has one too
        self.step = 0
        self.loss = math.nan

    def advance(self) -> None:
        """Do one step."""
        chosen = torch.randint(0, POINTS, (BATCH,), generator=self.order).to(self.device)
        self.optimiser.zero_grad()
        logits = self.network(self.points[chosen])[:, 0]
        loss = nn.functional.binary_cross_entropy_with_logits(logits, self.labels[chosen])
        loss.backward()
        self.optimiser.step()
        self.schedule.step()
        self.step += 1
        self.loss = loss.item()

    def state(self) -> dict[str, Any]:
        """Return all of it as a dictionary of what `torch.load(weights_only=True)` takes."""
        return {
            "step": self.step,
            "loss": self.loss,
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "order": self.order.get_state(),
            "torch": torch.get_rng_state(),  # dropout draws from it on a CPU …
            "cuda": torch.cuda.get_rng_state_all()
            if torch.cuda.is_available()
            else [],  # … and GPU
        }

    def take(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.order.set_state(state["order"])
        torch.set_rng_state(state["torch"])
        if state["cuda"]:
            torch.cuda.set_rng_state_all(state["cuda"])
        self.step, self.loss = state["step"], state["loss"]


def save(training: Training, folder: Path) -> None:
    """Write a checkpoint: under a name that is not one yet, to the disk, then renamed."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"step-{training.step:06d}.pt"
    draft = folder / f".{target.name}.tmp"
    with draft.open("wb") as file:
        torch.save(training.state(), file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(target)
    _sync(folder)
    for old in saved(folder)[KEEP:]:
        old.unlink(missing_ok=True)


def saved(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, newest first."""
    names = [file for file in folder.glob("step-*.pt") if re.fullmatch(r"step-\d+", file.stem)]
    return sorted(names, key=lambda file: int(file.stem.removeprefix("step-")), reverse=True)


def resume(training: Training, folder: Path) -> None:
    """Go on from the newest checkpoint that can be read; from nothing when there is none."""
    for file in saved(folder):
        try:
            training.take(torch.load(file, map_location="cpu", weights_only=True))
        except (RuntimeError, KeyError, ValueError, EOFError, OSError) as error:
            say(f"{file.name} cannot be read ({error}): trying the one before")
            continue
        return say(f"resumed from {file.name}: step {training.step} is done")
    if os.environ.get("CLOUDWHALE_RESUME") == "1":
        say(f"asked to resume, but {folder} holds no checkpoint that can be read: starting anew")


def train(training: Training, options: argparse.Namespace, stop: list[int]) -> bool:
    """Do the steps that are left; return False when asked to stop before the last one."""
    told = kept = time.monotonic()
    while training.step < options.steps and not stop:
        training.advance()
        now = time.monotonic()
        if now - told >= SAY_EVERY_S:
            told = now
            say(f"step {training.step:6d} of {options.steps}   loss {training.loss:.9f}")
        if now - kept >= options.save_every_s:
            kept = now
            save(training, options.checkpoints)
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


def main(words: list[str] | None = None) -> int:
    """Train; return 0 when done, 143 when stopped by SIGTERM."""
    stop: list[int] = []

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        stop.append(number)

    signal.signal(signal.SIGTERM, ask_to_stop)
    options = _options(words)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    training = Training(options.seed, options.steps, options.device)
    resume(training, options.checkpoints)
    finished = train(training, options, stop)
    save(training, options.checkpoints)
    if not finished:
        say(f"stopped by signal {stop[0]}: step {training.step} is saved")
        return STOPPED
    say(f"final loss {training.loss:.9f} after {training.step} steps")
    return 0


def _options(words: list[str] | None) -> argparse.Namespace:
    folder = os.environ.get("CLOUDWHALE_CHECKPOINT_DIR", "ckpt")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--steps", type=int, default=20000, help="steps in all (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of data, weights, batches, dropout")
    parser.add_argument("--device", default=device, help="where it computes (%(default)s)")
    parser.add_argument("--save-every-s", type=float, default=5.0, help="seconds (%(default)s)")
    parser.add_argument("--checkpoints", type=Path, default=Path(folder), help="(%(default)s)")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
