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
    example, program = examples / file, examples / "train" / "train.py"
    text, code = example.read_text(), program.read_text()
    assert AS_IT_IS in text and STEP in code
    example.write_text(text.replace(AS_IT_IS, " ".join(_words(steps))))
    program.write_text(code.replace(STEP, f"{STEP}            time.sleep({PAUSE_S})\n"))


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
        [sys.executable, str(EXAMPLES / "train" / "train.py"), *_words(steps)],
        cwd=folder, env={**shell.environment, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, check=True, timeout=LIMIT_S,
    )  # fmt: skip
    return final_loss(done.stdout)


def _words(steps: int) -> tuple[str, ...]:
    return ("--steps", str(steps), *SMALL)
