"""The training of the examples as tests interrupt it: small, and at a pace of its own.

It waits where the one of the examples computes: a busy host makes it no slower, nor it the host
busier. A wait changes no loss, so the program as it is says how it ends that nobody interrupts.
"""

import re
import subprocess
import sys
from pathlib import Path

from shell import Shell

EXAMPLES = Path(__file__).parents[1] / "examples"
FINAL = re.compile(r"final loss (\S+) after (\d+) steps")
SMALL = ("--hidden", "64", "--batch", "128")
PAUSE_S = 0.01
AS_IT_IS = "--steps 5000"
STEP = "            training.advance(cores)\n"
LIMIT_S = 540.0


def pace(examples: Path, file: str, steps: int) -> None:
    """Let the training of a copy of the examples do so many steps, a hundred a second."""
    example = examples / file
    text = example.read_text()
    assert AS_IT_IS in text
    example.write_text(text.replace(AS_IT_IS, " ".join(words_for(steps))))
    slow_down(examples)


def slow_down(examples: Path) -> None:
    """Let the training of a copy of the examples wait after each step."""
    program = EXAMPLES / "train" / "train.py"
    code = program.read_text()
    assert STEP in code
    slow = code.replace(STEP, f"{STEP}            time.sleep({PAUSE_S})\n")
    (examples / "train" / "train.py").write_text(slow)


def final_loss(said: str) -> tuple[str, str]:
    """Return the loss that a training ended with, and after how many steps."""
    found = FINAL.findall(said)
    assert found, said[-3000:]
    return str(found[-1][0]), str(found[-1][1])


def undisturbed_loss(shell: Shell, steps: int) -> tuple[str, str]:
    """Return how the training ends that nobody interrupts: the program as it is."""
    folder = shell.folder / "undisturbed"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "train" / "train.py"), *words_for(steps)],
        cwd=folder, env={**shell.environment, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, check=True, timeout=LIMIT_S,
    )  # fmt: skip
    return final_loss(done.stdout)


def words_for(steps: int) -> tuple[str, ...]:
    """Return the training's options."""
    return ("--steps", str(steps), *SMALL)
