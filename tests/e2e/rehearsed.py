"""A job in many ways of being wrong, and some of being right: `rehearsed.py KIND`."""

import json
import os
import select
import signal
import sys
from email.utils import formatdate
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["CLOUDWHALE_CHECKPOINT_DIR"])
STEP_S = 0.02
SAVE_EVERY = 40
PER_EPOCH = 60

SILENT = {"silent", "silent-deaf", "silent-clean", "opaque"}
CONSTANT = {"constant", "silent", "silent-deaf", "silent-clean", "constant-deaf", "opaque"}
NEVER_LOADS = {
    "deaf", "silent-deaf", "constant-deaf", "silent-clean", "copies", "clock", "elsewhere",
}  # fmt: skip

Stopped = list[int]


def rest(for_s: float) -> None:
    """Do nothing for so long."""
    select.select([], [], [], for_s)


def saved() -> list[Path]:
    """Return what lies there, oldest first."""
    found = [path for path in FOLDER.iterdir() if not path.name.startswith(".")]
    return sorted(found, key=lambda path: (path.stat().st_mtime, path.name))


def put(name: str, state: dict[str, Any]) -> None:
    """Save whole: under its name, or not at all."""
    draft = FOLDER / f".{name}"
    text = json.dumps({"padding": "x" * 5000, **state})
    draft.write_text(text[::-1] if sys.argv[1] == "opaque" else text)
    draft.replace(FOLDER / name)


def name_of(kind: str, step: int, saves: int) -> str:
    """Return what a save is called."""
    if kind in CONSTANT:
        return "last.ckpt"
    return f"save-{saves:03d}.ckpt" if kind == "old-names" else f"step-{step:06d}.ckpt"


def say(kind: str, step: int, here: int, weight: float) -> None:
    """Tell of a step, as programs do."""
    at = formatdate().split()[4]
    if kind in SILENT:
        return
    if kind == "epochs":
        print(f"{at} epoch {step // PER_EPOCH} batch {step % PER_EPOCH} loss {weight:.6f}")
    elif kind == "bar":
        print(f"\r{step // 50}%|{'█' * (step // 50)}  | {step}/5000 [00:0{here % 9}<00:10]", end="")
    elif kind == "session":
        print(f"elapsed {here * STEP_S:.1f} s, {here} since the start; step {step}")
    elif kind == "clock":
        print(f"tick {os.times().elapsed:.2f}")
    else:
        print(f"[{at}] step {step} of 5000, loss {weight:.9f}, {here * STEP_S:.1f} s")
    sys.stdout.flush()


def begin(kind: str) -> tuple[int, float]:
    """Return the step and the weight to begin with."""
    there = saved()
    if kind == "elsewhere":
        outside = Path(os.environ["OUTSIDE"])
        return int(outside.read_text()) if outside.exists() else 0, 1.0
    if not there:
        return 0, 1.0
    if kind in ("fails", "late-fails"):
        sys.exit(f"{there[-1].name} cannot be unpickled")
    if kind == "copies":
        state = json.loads(there[-1].read_text())
        put(f"step-{state['step'] + 1000:06d}.ckpt", state)
    if kind == "silent-clean":
        there[-1].unlink()
    if kind in NEVER_LOADS:
        return 0, 1.0
    text = there[-1].read_text()
    state = json.loads(text[::-1] if kind == "opaque" else text)
    return 0 if kind == "resets" else state["step"], state["weight"]


def save(kind: str, step: int, saves: int, weight: float) -> None:
    """Save as this kind does."""
    if kind == "saves-nothing":
        return
    if kind == "elsewhere":
        Path(os.environ["OUTSIDE"]).write_text(str(step))
    if kind == "too-late-alone":
        return
    put(name_of(kind, step, saves), {"step": step, "weight": weight})


def last(kind: str, step: int, saves: int, weight: float) -> None:
    """Do what this kind does on its signal."""
    if kind.startswith("too-late"):
        with (FOLDER / f".step-{step}.tmp").open("w") as draft:
            while True:
                draft.write("x" * 1000)
                draft.flush()
                rest(0.05)
    if kind != "only-sometimes":
        save(kind, step, saves, weight)
    sys.exit(143)


def main(kind: str) -> None:
    """Do steps until told to stop."""
    stopped: Stopped = []
    if kind != "only-sometimes":
        signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    step, weight = begin(kind)
    here = saves = 0
    while True:
        if stopped and not kind.startswith("ignores"):
            last(kind, step, saves + 1, weight)
        rest(STEP_S)
        step, here = step + 1, here + 1
        noise = os.times().elapsed if kind == "inexact" else 0.0
        weight = weight * 0.999 + 1e-12 * noise
        if here % 7 == 0:
            say(kind, step, here, weight)
        if kind == "ends-early" and here > 50:
            return
        if kind == "short" and step > 150:
            return
        if kind == "fails-early" and here > 50:
            sys.exit(7)
        if here % SAVE_EVERY == 0 and kind != "on-signal-alone":
            saves += 1
            save(kind, step, saves, weight)


if __name__ == "__main__":
    main(sys.argv[1])
