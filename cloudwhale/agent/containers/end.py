"""How an attempt in a container ended: from its own notes and Docker's state of it to a word."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from cloudwhale.agent import shim_causes as causes
from cloudwhale.agent.containers.script import SHELL, SOME_GPUS
from cloudwhale.agent.containers.settings import gpus_visible
from cloudwhale.agent.shim_files import is_full
from cloudwhale.agent.shim_oom import KILLED
from cloudwhale.agent.shim_oom import SAYS as STARVED
from cloudwhale.model.job import Ending

BYTES_PER_GIB = 2**30
NO_SHELL = (126, 127)  # what an init answers that cannot run what it was told to


@dataclass(frozen=True, slots=True)
class End:
    """How it ended; `code` is None when the job never ran, or nobody knows."""

    how: Ending
    says: str = ""
    code: int | None = None


@dataclass(frozen=True, slots=True)
class Traces:
    """All that is known of a container that is over."""

    notes: Mapping[str, str]
    """Its own."""
    state: Mapping[str, Any] | None
    """What Docker says; None when it does not answer."""
    newest: bytes
    """The last of its output."""
    ours: bool
    """Whether this shim stopped or killed it."""
    starved: bool = False
    """Whether the kernel killed a process of this machine for memory, just before its end."""


def unborn(image: str, state: Mapping[str, Any], said: str) -> End:
    """Return the end of a container in which our lines of shell did not even begin."""
    code = state.get("ExitCode")
    last = causes.last_line(said.encode()) or str(state.get("Error") or f"it ended with {code}")
    if code in NO_SHELL or f"exec {SHELL} failed" in last:  # as for another kind of processor
        return End("image-refused", f"the image {image} has no {SHELL} that runs here: {last}")
    return End("start-failed", f"its container cannot use the folder it shares with us: {last}")


def judged(traces: Traces, wanted: Mapping[str, Any]) -> End:
    """Return how it ended; a failure with a known cause is told by its cause."""
    notes, state = traces.notes, traces.state
    missing = gpus_missing(notes, wanted["gpus"])
    if missing:
        return End("no-gpus", missing)
    code = int(notes["over"]) if "over" in notes else None
    if code == 0:
        return End("exited", "", 0)
    if "oom" in notes or (state is not None and state.get("OOMKilled")):
        most = (wanted["memory_bytes"] or 0) / BYTES_PER_GIB
        says = f"it needed more than its {most:.2f} GiB of memory"
        return End("oom", says, KILLED if code is None else code)
    if code is None:
        return _cut_off(traces)
    if "signalled" in notes and state is None and not traces.ours:
        return End("runtime-lost", "Docker stopped its container and went away")
    return _failed(code, traces, wanted)


def gpus_missing(notes: Mapping[str, str], given: list[str]) -> str:
    """Say why the proof of the GPUs fails; empty when they are there, or none were given."""
    visible = int(notes.get("gpus") or 0)
    wanted = gpus_visible(given)
    if not given or (visible > 0 and wanted == SOME_GPUS) or str(visible) == wanted:
        return ""
    return (
        f"its container saw {visible} GPUs and was to see {wanted}: check that Docker gives GPUs"
        " by the NVIDIA runtime (`nvidia-ctk runtime configure`) on this machine"
    )


def _cut_off(traces: Traces) -> End:
    """Return the end of a container whose own notes stop in the middle."""
    if traces.ours:
        return End("exited", causes.plain(KILLED, traces.newest), KILLED)
    if traces.state is None:
        return End("runtime-lost", "Docker went away, the container ended, and nobody knows how")
    code = traces.state.get("ExitCode")
    if traces.starved and code == KILLED:
        return End("oom", STARVED, KILLED)
    return End("runtime-lost", f"its container was ended from outside, with {code}")


def _failed(code: int, traces: Traces, wanted: Mapping[str, Any]) -> End:
    if any(is_full(path, wanted["full_below"]) for path in wanted["full_paths"]):
        last = causes.last_line(traces.newest)
        return End("disk-full", f"the disk was full; it said last: {last}", code)
    known = causes.cause(code, traces.newest)
    if known is not None:
        return End(cast(Ending, known[0]), known[1], code)
    how: Ending = "setup-failed" if "setup-failed" in traces.notes else "exited"
    return End(how, causes.plain(code, traces.newest), code)
