"""GPUs that a text file describes: the fake NVML library, built once, and its state to change."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "fake_nvml" / "fake_nvml.c"
LIBRARY = "libnvidia-ml.so.1"
MIB_PER_GIB = 1024


def build(folder: Path) -> Path:
    """Build the library into a folder; return the folder, for LD_LIBRARY_PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", f"-Wl,-soname,{LIBRARY}"]
    subprocess.run([*words, "-o", str(folder / LIBRARY), str(SOURCE)], check=True)
    return folder


@dataclass
class FakeGpu:
    """One GPU, as the driver is to tell of it."""

    uuid: str
    name: str
    total_gib: float
    used_gib: float = 0.0
    sm_percent: int = 0
    flags: str = "-"


@dataclass
class FakeGpus:
    """The driver's GPUs; every change is seen at its next call."""

    library: Path
    state: Path
    gpus: dict[int, FakeGpu] = field(default_factory=dict[int, FakeGpu])
    held: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    """GiB by number of the GPU and process id."""
    unmeasured: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    """Processes of whose memory the driver cannot tell."""
    links: tuple[tuple[int, int], ...] = ()
    error: int = 0

    @property
    def env(self) -> dict[str, str]:
        """What a process needs in its environment to see them."""
        return {"LD_LIBRARY_PATH": str(self.library), "FAKE_NVML_STATE": str(self.state)}

    def write(self) -> None:
        """Let the driver tell what stands here now."""
        lines = [f"error {self.error}"]
        for number, gpu in self.gpus.items():
            held = sum(gib for (on, _), gib in self.held.items() if on == number)
            sizes = f"{gpu.total_gib * MIB_PER_GIB:.0f} {(gpu.used_gib + held) * MIB_PER_GIB:.0f}"
            lines.append(f"gpu {number} {gpu.uuid} {sizes} {gpu.sm_percent} {gpu.flags} {gpu.name}")
        for (number, pid), gib in self.held.items():
            lines.append(f"process {number} {pid} {gib * MIB_PER_GIB:.0f}")
        lines += [f"process {number} {pid} -" for number, pid in self.unmeasured]
        lines += [f"link {one} {other}" for one, other in self.links]
        draft = self.state.with_suffix(".new")
        draft.write_text("\n".join(lines) + "\n")
        draft.replace(self.state)

    def hold(self, number: int, pid: int, gib: float) -> None:
        """Let a process hold memory of a GPU; what else is used of it stays."""
        self.held[number, pid] = gib
        self.write()


def three_mixed() -> dict[int, FakeGpu]:
    """Make three GPUs of three models."""
    return {
        0: FakeGpu("GPU-aaaa", "NVIDIA A100-SXM4-80GB", 80.0),
        1: FakeGpu("GPU-bbbb", "NVIDIA GeForce RTX 4090", 23.99),
        2: FakeGpu("GPU-cccc", "NVIDIA L4", 22.5),
    }


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the library; skip where there is no compiler."""
    if shutil.which("gcc") is None or not Path("/usr/include/stdlib.h").exists():
        pytest.skip("the fake NVML library needs gcc and libc6-dev")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def fake_gpus(nvml_library: Path, tmp_path: Path) -> FakeGpus:
    """Give three mixed GPUs for a process that is started with their environment."""
    gpus = FakeGpus(nvml_library, tmp_path / "nvml state", three_mixed())
    gpus.write()
    return gpus


@pytest.fixture
def driver_here(fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpus]:
    """Let this very process see them: a library that is loaded is found by its name."""
    ctypes.CDLL(str(fake_gpus.library / LIBRARY))
    monkeypatch.setenv("FAKE_NVML_STATE", str(fake_gpus.state))
    assert os.environ["FAKE_NVML_STATE"]
    yield fake_gpus
