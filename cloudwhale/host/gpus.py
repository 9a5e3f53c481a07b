"""What NVIDIA's driver tells of this host's GPUs, in values; its library is loaded when needed."""

import importlib
import os
from _ctypes import dlopen  # a tenth of what importing ctypes takes
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from cloudwhale.model.gpus import MODELS, canonical
from cloudwhale.model.node import Device
from cloudwhale.model.units import GiB
from cloudwhale.spi.provider import Check

LIBRARY = "libnvidia-ml.so.1"
BYTES_PER_GIB = 2**30
LINKED_BY_NVLINK = 2  # NVML_P2P_CAPS_INDEX_NVLINK


class NoDriver(Exception):
    """There is no driver here, or none that is loaded: this host has no GPUs to give."""


class Blind(Exception):
    """The driver is there and gives no sensible answer now: nothing can be judged."""


class Gone(Exception):
    """This one GPU does not answer any more: it fell off the bus, or must be reset."""


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs that answer, and what is to be said of others."""

    devices: tuple[Device, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    """Pairs of devices, by id, that NVLink joins."""
    left_out: tuple[str, ...] = ()
    """Sentences on GPUs that cannot be used."""
    driver: str = ""


@dataclass(frozen=True, slots=True)
class GpuUse:
    """What one GPU is used for now."""

    used_gib: GiB
    sm: float | None
    """Share of the last moments in which a kernel ran; None where the driver does not say."""
    processes: Mapping[int, GiB]
    """Memory by process id of the host."""
    unmeasured: frozenset[int] = frozenset()
    """Processes that use it and of whose memory the driver cannot tell, as in a virtual machine."""


class Driver:
    """The driver's library; every verb raises NoDriver, Blind or Gone and nothing else of it."""

    def __init__(self) -> None:
        self._library: Any = None
        self._handles: dict[str, Any] = {}

    def open(self) -> None:
        """Begin to ask; done again, it is begun anew, as a reloaded driver needs it."""
        self.close()
        if not _is_installed():
            raise NoDriver("there is no NVIDIA driver here")
        library: Any = importlib.import_module("pynvml")
        try:
            library.nvmlInit()
        except library.NVMLError as error:
            missing = (library.NVML_ERROR_LIBRARY_NOT_FOUND, library.NVML_ERROR_DRIVER_NOT_LOADED)
            if error.value in missing:
                raise NoDriver(f"the NVIDIA driver is not loaded: {error}") from error
            raise Blind(str(error)) from error
        self._library = library

    def close(self) -> None:
        """Ask no more; one that was never opened is fine."""
        library, self._library = self._library, None
        self._handles.clear()
        if library is not None:
            try:
                library.nvmlShutdown()
            except library.NVMLError:
                pass  # a driver that was reloaded has forgotten us already

    def count(self) -> int:
        """Return how many GPUs the driver lists, whether they answer or not."""
        return int(self._ask("nvmlDeviceGetCount"))

    def gpus(self) -> Gpus:
        """Return the GPUs that answer; they are asked for by their ids from now on."""
        self._handles.clear()
        devices: list[Device] = []
        left_out: list[str] = []
        for index in range(self.count()):
            try:
                handle = self._ask("nvmlDeviceGetHandleByIndex", index)
                device, why = self._device(handle)
            except Gone as error:
                left_out.append(f"GPU {index} does not answer: {error}")
                continue
            if why:
                left_out.append(why)
                continue
            devices.append(device)
            self._handles[device.id] = handle
        driver = str(self._maybe("nvmlSystemGetDriverVersion") or "")
        return Gpus(tuple(devices), tuple(self._links()), tuple(left_out), driver)

    def use(self, device: str) -> GpuUse:
        """Return what one of the GPUs is used for; asked about each of them once a second."""
        if device not in self._handles:
            raise Gone(f"{device} is not among the GPUs that answer")
        handle = self._handles[device]
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        rates = self._maybe("nvmlDeviceGetUtilizationRates", handle)
        sm = None if rates is None else min(1.0, rates.gpu / 100)
        processes, unmeasured = self._processes(handle)
        return GpuUse(memory.used / BYTES_PER_GIB, sm, processes, unmeasured)

    # -- one GPU -----------------------------------------------------------------------------

    def _device(self, handle: Any) -> tuple[Device, str]:
        uuid = str(self._ask("nvmlDeviceGetUUID", handle))
        name = str(self._ask("nvmlDeviceGetName", handle))
        total_gib = self._ask("nvmlDeviceGetMemoryInfo", handle).total / BYTES_PER_GIB
        model = canonical(name, total_gib) or name
        nominal_gib = MODELS[model].memory_gib if model in MODELS else float(round(total_gib))
        device = Device(id=uuid, model=model, memory_gib=nominal_gib, usable_gib=total_gib)
        mig = self._maybe("nvmlDeviceGetMigMode", handle)
        if mig is not None and mig[0]:
            return device, f"{name} ({uuid}) is split by MIG, which is not supported: switch it off"
        return device, ""

    def _processes(self, handle: Any) -> tuple[Mapping[int, GiB], frozenset[int]]:
        """Return who holds memory: a process that computes and draws is listed twice, as one."""
        found: dict[int, GiB] = {}
        unmeasured: set[int] = set()
        for kind in ("Compute", "Graphics"):
            for version in ("_v3", "_v2"):
                listed = self._maybe(f"nvmlDeviceGet{kind}RunningProcesses{version}", handle)
                if listed is not None:
                    break
            for one in listed or ():
                if one.usedGpuMemory is None:
                    unmeasured.add(int(one.pid))
                else:
                    held = one.usedGpuMemory / BYTES_PER_GIB
                    found[int(one.pid)] = max(held, found.get(int(one.pid), 0.0))
        return found, frozenset(unmeasured - found.keys())

    def _links(self) -> Iterator[tuple[str, str]]:
        for (one, a), (other, b) in combinations(self._handles.items(), 2):
            try:
                status = self._maybe("nvmlDeviceGetP2PStatus", a, b, LINKED_BY_NVLINK)
            except Gone:
                continue  # the next look will not find it
            if status == 0:
                yield (one, other)

    # -- the library -------------------------------------------------------------------------

    def _ask(self, name: str, *words: Any) -> Any:
        library = self._library
        if library is None:
            raise Blind("the driver was not opened")
        try:
            return getattr(library, name)(*words)
        except library.NVMLError as error:
            if error.value in _of_one_gpu(library):
                raise Gone(str(error)) from error
            raise Blind(f"{name} answers: {error}") from error

    def _maybe(self, name: str, *words: Any) -> Any:
        """Ask what a driver, a GPU or a user may not have: None then."""
        library = self._library
        try:
            return getattr(library, name)(*words)
        except library.NVMLError as error:
            if error.value in _lacks(library):
                return None
            if error.value in _of_one_gpu(library):
                raise Gone(str(error)) from error
            raise Blind(f"{name} answers: {error}") from error


def gpus_here() -> Gpus:
    """Return the GPUs that answer now: none where there is no driver, or one that is ill."""
    driver = Driver()
    try:
        driver.open()
        return driver.gpus()
    except (NoDriver, Blind):
        return Gpus()
    finally:
        driver.close()


def check_gpus(declared: Sequence[str]) -> Check:
    """Return `doctor`'s row: no GPUs are nothing wrong, a driver that does not answer is."""
    stand_ins = f"; declared stand-ins: {', '.join(declared)}" if declared else ""
    driver = Driver()
    try:
        driver.open()
        found = driver.gpus()
    except NoDriver as none:
        return Check(name="gpus", state="ok", says=f"none: {none}{stand_ins}")
    except Blind as trouble:
        return Check(
            name="gpus",
            state="failed",
            says=f"the NVIDIA driver does not answer: {trouble}{stand_ins}",
            remedy="See `dmesg | grep -i nvrm`; reload the driver, or restart this host.",
        )
    finally:
        driver.close()
    return _row(found, stand_ins)


def _row(found: Gpus, stand_ins: str) -> Check:
    counts = Counter(one.model for one in found.devices)
    models = ", ".join(f"{count} x {model}" for model, count in counts.items()) or "none that work"
    says = f"{models}, driver {found.driver}{stand_ins}"
    if not found.left_out:
        return Check(name="gpus", state="ok", says=says)
    left_out = "; ".join(found.left_out)
    remedy = "`nvidia-smi -mig 0` switches MIG off; a GPU that does not answer needs a restart."
    return Check(name="gpus", state="warning", says=f"{says}; left out: {left_out}", remedy=remedy)


def _is_installed() -> bool:
    """Ask the loader, which is quicker than the Python binding where there is nothing."""
    try:
        dlopen(LIBRARY, os.RTLD_NOW)
    except OSError:
        return False
    return True


def _of_one_gpu(library: Any) -> tuple[int, ...]:
    return (
        library.NVML_ERROR_GPU_IS_LOST,
        library.NVML_ERROR_RESET_REQUIRED,
        library.NVML_ERROR_NOT_FOUND,
        library.NVML_ERROR_GPU_NOT_FOUND,
    )


def _lacks(library: Any) -> tuple[int, ...]:
    return (
        library.NVML_ERROR_NOT_SUPPORTED,
        library.NVML_ERROR_FUNCTION_NOT_FOUND,
        library.NVML_ERROR_NO_PERMISSION,
    )
