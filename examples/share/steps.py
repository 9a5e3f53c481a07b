"""Count steps at a steady pace, save often, and resume exactly where it was.

Stands in for a training, a fine-tuning or an inference job on a host without GPUs. Every step
hashes what was there before, so the result tells whether a step was lost or done twice: it is the
same for a run that was stopped and resumed as for one that was not.

    python3 steps.py --steps 100 --pace 0.1 --seed tune-a
"""

import argparse
import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

STOPPED = 128 + signal.SIGTERM  # what a shell reports for a program that SIGTERM ended
SAVE_EVERY = 10  # steps
SAY_EVERY_S = 2.0


def newest(folder: Path) -> dict[str, object] | None:
    """Return the newest checkpoint, None when there is none."""
    saved = sorted(folder.glob("step-*.json"))
    return json.loads(saved[-1].read_text()) if saved else None


def save(folder: Path, step: int, state: str) -> None:
    """Write a checkpoint beside the others and rename it into place: it is whole or not there."""
    part = folder / ".part"
    part.write_text(json.dumps({"step": step, "state": state}))
    part.rename(folder / f"step-{step:06}.json")
    for old in sorted(folder.glob("step-*.json"))[:-3]:
        old.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description="count steps, save, resume")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--pace", type=float, default=0.1, help="seconds a step")
    parser.add_argument("--seed", required=True, help="any word; another one, another result")
    options = parser.parse_args()
    folder = Path(os.environ.get("CLOUDWHALE_CHECKPOINT_DIR", "ckpt"))
    folder.mkdir(parents=True, exist_ok=True)

    step, state = 0, options.seed
    found = newest(folder)
    if found is not None:
        step, state = int(str(found["step"])), str(found["state"])
        print(f"resumed after step {step}", flush=True)

    asked: list[int] = []

    def heard(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    signal.signal(signal.SIGTERM, heard)
    said_at = begun_at = time.monotonic()
    begun = step
    while step < options.steps and not asked:
        state = hashlib.sha256(state.encode()).hexdigest()
        step += 1
        if step % SAVE_EVERY == 0:
            save(folder, step, state)
        if time.monotonic() - said_at >= SAY_EVERY_S:
            said_at = time.monotonic()
            print(f"step {step} of {options.steps}", flush=True)
        # Towards a fixed time, so that a busy machine does not slow the pace down.
        time.sleep(max(0.0, begun_at + (step - begun) * options.pace - time.monotonic()))
    if asked and step < options.steps:
        save(folder, step, state)
        print(f"stopped after step {step}, saved", flush=True)
        return STOPPED
    print(f"result {state[:16]} after {step} steps", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
