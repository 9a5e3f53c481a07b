"""Trains a small network with Lightning, which saves when it is told to stop.

Lightning brings back weights, optimiser, schedules and the step. Random state and the place in the
data are the module's own matter: `on_save_checkpoint` and `on_load_checkpoint` below.
"""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint, OnExceptionCheckpoint
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import nn

STOPPED = 128 + signal.SIGTERM
POINTS = 4096
BATCH = 64
SAY_EVERY = 100


class Fit(lightning.LightningModule):
    """A network and all that its next step depends on."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, 64), nn.Tanh(), nn.Dropout(0.1), nn.Linear(64, 64), nn.Tanh(),
            nn.Linear(64, 1),
        )  # fmt: skip
        self.rng = torch.Generator().manual_seed(seed)
        points = 2 * torch.rand(POINTS, 2, generator=self.rng) - 1
        self.register_buffer("points", points)
        self.register_buffer("labels", (torch.floor(points * 2).sum(dim=1) % 2).abs())
        self.loss = 0.0

    def training_step(self, _: Any, number: int) -> torch.Tensor:
        """Return the loss of a batch that it draws itself; the loader only counts."""
        chosen = torch.randint(0, POINTS, (BATCH,), generator=self.rng)
        logits = self.layers(self.points[chosen])[:, 0]
        loss = nn.functional.binary_cross_entropy_with_logits(logits, self.labels[chosen])
        self.loss = loss.item()
        if self.global_step % SAY_EVERY == 0:
            print(f"step {self.global_step}   loss {self.loss:.9f}", flush=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimiser; Lightning saves its state."""
        return torch.optim.AdamW(self.parameters(), lr=3e-3)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add what Lightning does not know of."""
        checkpoint["order"] = self.rng.get_state()
        checkpoint["torch"] = torch.get_rng_state()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on with it."""
        self.rng.set_state(checkpoint["order"])
        torch.set_rng_state(checkpoint["torch"])


def newest(folder: Path) -> Path | None:
    """Return the newest checkpoint; only whole ones are put back before a job starts again.

    `ckpt_path="last"` would look for a file called so, which need not be the one that was kept.
    """
    return max(folder.glob("*.ckpt"), key=lambda path: path.stat().st_mtime, default=None)


def main(words: list[str] | None = None) -> int:
    """Train; return 0 when done, 143 when stopped by SIGTERM."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--save-steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    folder = Path(os.environ.get("CLOUDWHALE_CHECKPOINT_DIR", "ckpt"))
    torch.set_num_threads(1)
    lightning.seed_everything(options.seed, verbose=False)
    trainer = lightning.Trainer(
        accelerator="auto",
        devices=1,
        max_steps=options.steps,
        max_epochs=-1,
        deterministic=True,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[
            ModelCheckpoint(folder, every_n_train_steps=options.save_steps, save_top_k=1),
            OnExceptionCheckpoint(folder),  # SIGTERM is one, raised after the batch
        ],
    )
    fit, last = Fit(options.seed), newest(folder)
    print(f"resuming from {last}" if last else "starting from zero", flush=True)
    # A loader draws a seed when it begins: from a generator of its own, else dropout gets others.
    counted = torch.utils.data.TensorDataset(torch.arange(options.steps))
    loader = torch.utils.data.DataLoader(counted, generator=torch.Generator())
    try:
        trainer.fit(fit, loader, ckpt_path=last)
    except SIGTERMException:
        print(f"stopped: step {trainer.global_step} is saved", flush=True)
        return STOPPED
    print(f"final loss {fit.loss:.9f} after {trainer.global_step} steps", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
