"""Why a job failed, read from the last of its output: causes that have a name and a remedy."""

from __future__ import annotations

NOT_FOUND = 127  # what a shell answers when there is no such command
SAID_MOST = 300  # characters of a line that are worth repeating
GPU_OUT_OF_MEMORY = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "torch.cuda.OutOfMemoryError",
    "torch.OutOfMemoryError",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "HIP out of memory",
    "RESOURCE_EXHAUSTED: Out of memory",
    "XlaRuntimeError: RESOURCE_EXHAUSTED",
)
"""What PyTorch, CUDA, ROCm, TensorFlow and JAX write when a device has no memory left."""


def last_line(newest: bytes) -> str:
    """Return the last line that says something; empty when none does."""
    lines = _lines(newest)
    return lines[-1][-SAID_MOST:] if lines else ""


def gpu_out_of_memory(newest: bytes) -> str | None:
    """Return the line that tells of GPU memory that was refused, the last one; None: no line.

    Only for a job that failed: one that says so and goes on has helped itself.
    """
    for line in reversed(_lines(newest)):
        if any(words in line for words in GPU_OUT_OF_MEMORY):
            return line[:SAID_MOST]
    return None


def cause(code: int, newest: bytes) -> tuple[str, str] | None:
    """Return how an attempt with such an end is called and what is said of it; None: as usual."""
    if code == 0:
        return None
    line = gpu_out_of_memory(newest)
    if line is not None:
        return "gpu-oom", f"its GPU had no memory left for it: {line}"
    last = last_line(newest)
    if code == NOT_FOUND and ("not found" in last or "No such file" in last):
        return "not-found", last
    return None


def plain(code: int, newest: bytes) -> str:
    """Return the sentence about an end without a known cause."""
    last = last_line(newest)
    return f"its process ended with {code}" + (f"; it said last: {last}" if last else "")


def _lines(newest: bytes) -> list[str]:
    text = newest.decode(errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]
