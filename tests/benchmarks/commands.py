"""Runs cloudwhale as a person does, and tells what it took."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROGRAM = shutil.which("cloudwhale", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@dataclass(frozen=True, slots=True)
class Took:
    """What a command took."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    code: int


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a command whose state lies in `home`."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # What is measured of the sandbox is the house around its machines; boots.py measures those.
    machines = os.environ.get("CLOUDWHALE_SANDBOX_MACHINES", "processes")
    return {
        **os.environ, "CLOUDWHALE_HOME": str(home), "PATH": path,
        "CLOUDWHALE_SANDBOX_MACHINES": machines,
    }  # fmt: skip


def argv(*words: str) -> list[str]:
    """Return the command line of cloudwhale with some words."""
    assert PROGRAM, "cloudwhale is not installed here: make venv"
    return [PROGRAM, *words]


def timed(home: Path, *words: str, cwd: Path | None = None) -> Took:
    """Run cloudwhale to its end; its children are not counted."""
    return timed_words(argv(*words), cwd or home, environment(home))


def timed_words(words: list[str], cwd: Path, env: dict[str, str] | None = None) -> Took:
    """Run any command to its end; its children are not counted."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        words,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Took(
        wall_s=time.perf_counter() - begun,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mb=usage.ru_maxrss / 1024,
        code=process.returncode,
    )


def run(home: Path, *words: str) -> None:
    """Run a command that must succeed."""
    took = timed(home, *words)
    if took.code != 0:
        raise SystemExit(f"cloudwhale {' '.join(words)} ended with {took.code}")


def start(home: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start a command in the background."""
    return subprocess.Popen(
        argv(*words),
        env=environment(home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def until(what: str, holds: Callable[[], bool], limit_s: float = 60.0) -> None:
    """Wait for a condition; end the benchmark when it does not come."""
    end = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"waited {limit_s:g} s in vain: {what}")
        time.sleep(0.01)


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(pid: int) -> float:
    """Return the largest resident size that a process has had, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"process {pid} has no VmHWM")
