"""Trains a small network with Hugging Face's Trainer, which saves when it is told to stop.

Two things are needed: `enable_jit_checkpoint=True`, and `resume_from_checkpoint` with what lies in
the folder. Trainer brings back optimiser, schedule, random state and the place in the data itself.
It saves on a signal between a gradient and its step, and does that batch again: the loss is the
same to the last digit where the model draws no random numbers, as here.
"""

import argparse
import os
import sys

import torch
from torch import nn
from transformers import Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

POINTS = 4096


class Fit(nn.Module):
    """A network that gives its loss, as Trainer wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
        )

    def forward(self, points: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the loss of a batch."""
        logits = self.layers(points)[:, 0]
        return {"loss": nn.functional.binary_cross_entropy_with_logits(logits, labels)}


def data(seed: int) -> list[dict[str, torch.Tensor]]:
    """Return points in a square, and for each whether it lies on a dark field of a chess board."""
    rng = torch.Generator().manual_seed(seed)
    points = 2 * torch.rand(POINTS, 2, generator=rng) - 1
    labels = (torch.floor(points * 2).sum(dim=1) % 2).abs()
    return [{"points": p, "labels": y} for p, y in zip(points, labels, strict=True)]


def main(words: list[str] | None = None) -> int:
    """Train; return 0 when done, and when stopped: what was written by then is whole."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--save-steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    folder = os.environ.get("CLOUDWHALE_CHECKPOINT_DIR", "ckpt")
    os.makedirs(folder, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    arguments = TrainingArguments(
        output_dir=folder,
        max_steps=options.steps,
        per_device_train_batch_size=64,
        learning_rate=3e-3,
        seed=options.seed,
        save_steps=options.save_steps,
        save_total_limit=3,
        enable_jit_checkpoint=True,  # SIGTERM: 3 s later it saves at the next step, and stops
        logging_steps=50,
        full_determinism=True,
        disable_tqdm=True,
        report_to=[],
    )
    trainer = Trainer(model=Fit(), args=arguments, train_dataset=data(options.seed))
    last = get_last_checkpoint(folder)  # None the first time: then it starts from zero
    print(f"resuming from {last}" if last else "starting from zero", flush=True)
    trainer.train(resume_from_checkpoint=last)
    state = trainer.state
    if state.global_step < options.steps:
        # Trainer writes in place. That the program ends well says that nothing of it is torn.
        print(f"stopped: step {state.global_step} is saved", flush=True)
        return 0
    told = next(row["loss"] for row in reversed(state.log_history) if "loss" in row)
    print(f"final loss {told:.9f} after {state.global_step} steps", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
