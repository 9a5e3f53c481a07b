"""GPU models by canonical name: nominal memory, and how fast they are beside each other.

A `speed` is a first guess until a family has history of its own. It is the geometric mean of two
ratios from the makers' data sheets, dense FP16 tensor throughput and memory bandwidth, because a
training step is bound by the one or the other; cards from before tensor cores were measured.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from cloudwhale.model.units import GiB


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One model of GPU; a card with two chips counts as two devices."""

    name: str
    memory_gib: GiB
    """Nominal: the number in its name, which makers call GB."""
    tensor_tflops: float
    """Dense FP16 with FP32 sums; FP16 or FP32 of the plain cores where it has no tensor cores."""
    bandwidth_gb_s: float
    source: str
    measured: tuple[str, float] | None = None
    """Another model, and how fast this one was found to be beside it; goes before the ratios."""


_GAVEL = "Gavel (OSDI 2020), simulation_throughputs.json, median of 26 one-GPU training jobs"

_TABLE = (
    GpuModel("K80", 12, 4.4, 240, f"Tesla K80 data sheet; {_GAVEL}", ("V100-16GB", 0.25)),
    GpuModel("M60", 8, 4.8, 160, "Tesla M60 data sheet"),
    GpuModel("P4", 8, 5.5, 192, "Tesla P4 data sheet"),
    GpuModel("P40", 24, 11.8, 346, "Tesla P40 data sheet"),
    GpuModel("P100", 16, 21.2, 732, f"Tesla P100 data sheet; {_GAVEL}", ("V100-16GB", 0.81)),
    GpuModel("V100-16GB", 16, 125, 900, "V100 data sheet, SXM2"),
    GpuModel("V100-32GB", 32, 125, 900, "V100 data sheet, SXM2"),
    GpuModel("T4", 16, 65, 320, "T4 data sheet"),
    GpuModel("T4G", 16, 65, 320, "T4 data sheet; the pages of G5g machines call T4G its twin"),
    GpuModel("RTX6000", 24, 65.3, 672, "Turing white paper, Quadro RTX 6000"),
    GpuModel("RTX2080TI", 11, 53.8, 616, "Turing white paper"),
    GpuModel("A2", 16, 18, 200, "A2 data sheet"),
    GpuModel("A10", 24, 125, 600, "A10 data sheet"),
    GpuModel("A10G", 24, 70, 600, "A10G data sheet"),
    GpuModel("A16", 16, 17.9, 200, "A16 data sheet, a quarter of the card"),
    GpuModel("A30", 24, 165, 933, "A30 data sheet"),
    GpuModel("A40", 48, 149.7, 696, "A40 data sheet"),
    GpuModel("A4000", 16, 76.7, 448, "RTX A4000 data sheet"),
    GpuModel("A5000", 24, 111.1, 768, "RTX A5000 data sheet"),
    GpuModel("A6000", 48, 154.8, 768, "RTX A6000 data sheet"),
    GpuModel("A100-40GB", 40, 312, 1555, "A100 data sheet, SXM"),
    GpuModel("A100-80GB", 80, 312, 2039, "A100 data sheet, SXM"),
    GpuModel("RTX3060", 12, 25.5, 360, "Ampere GA102 white paper, scaled by cores and clock"),
    GpuModel("RTX3070", 8, 40.6, 448, "Ampere GA102 white paper"),
    GpuModel("RTX3080", 10, 59.5, 760, "Ampere GA102 white paper"),
    GpuModel("RTX3090", 24, 71, 936, "Ampere GA102 white paper"),
    GpuModel("RTX3090TI", 24, 80, 1008, "Ampere GA102 white paper"),
    GpuModel("RTX4060TI", 16, 44, 288, "Ada white paper, scaled by cores and clock"),
    GpuModel("RTX4070", 12, 58.3, 504, "Ada white paper, scaled by cores and clock"),
    GpuModel("RTX4070TI", 12, 80.2, 504, "Ada white paper"),
    GpuModel("RTX4080", 16, 97.5, 717, "Ada white paper"),
    GpuModel("RTX4090", 24, 165.2, 1008, "Ada white paper"),
    GpuModel("RTX6000ADA", 48, 364.2, 960, "RTX 6000 Ada data sheet"),
    GpuModel("L4", 24, 121, 300, "L4 data sheet"),
    GpuModel("L40", 48, 181, 864, "L40 data sheet"),
    GpuModel("L40S", 48, 362, 864, "L40S data sheet"),
    GpuModel("H20", 96, 148, 4000, "H20 data sheet"),
    GpuModel("H100-80GB", 80, 989, 3350, "H100 data sheet, SXM"),
    GpuModel("H100-94GB", 94, 835, 3900, "H100 data sheet, NVL"),
    GpuModel("H200", 141, 989, 4800, "H200 data sheet, SXM"),
    GpuModel("GH200", 96, 990, 4000, "GH200 data sheet, HBM3"),
    GpuModel("B200", 180, 2250, 7700, "HGX B200 data sheet"),
    GpuModel("B300", 288, 2250, 8000, "HGX B300 data sheet"),
    GpuModel("RTX5070", 12, 61.7, 672, "RTX Blackwell white paper"),
    GpuModel("RTX5070TI", 16, 87.9, 896, "RTX Blackwell white paper"),
    GpuModel("RTX5080", 16, 112.6, 960, "RTX Blackwell white paper"),
    GpuModel("RTX5090", 32, 209.5, 1792, "RTX Blackwell white paper"),
    GpuModel("RTXPRO4500", 32, 219.8, 896, "RTX PRO 4500 data sheet, four times its FP32"),
    GpuModel("RTXPRO6000", 96, 503.8, 1597, "RTX PRO Blackwell white paper, server edition"),
)

MODELS: Mapping[str, GpuModel] = {model.name: model for model in _TABLE}
"""Every model that is known, by canonical name."""


def _families() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name in MODELS:
        family, _, size = name.rpartition("-")
        if size.endswith("GB"):
            found[family] = (*found.get(family, ()), name)
    return found


FAMILIES: Mapping[str, tuple[str, ...]] = _families()
"""Names that stand for several models, least memory first: A100 is A100-40GB or A100-80GB."""

# Words that drivers and clouds put into names and that do not tell models apart.
_NOISE = re.compile(
    r"\b(NVIDIA|TESLA|GEFORCE|QUADRO|GENERATION|BLACKWELL|WORKSTATION|SERVER|EDITION|MAX-?Q"
    r"|SXM[0-9]*|PCI-?E|NVL|HBM[0-9]E?|MEGA|HIGH)\b"
)
_MEMORY = re.compile(r"\b([0-9]{1,4}) ?GB\b")
_ALIASES = {
    "RTXA4000": "A4000",
    "RTXA5000": "A5000",
    "RTXA6000": "A6000",
    "V100S": "V100-32GB",
    "V100M16": "V100-16GB",
    "V100M32": "V100-32GB",
}


def variants(name: str) -> tuple[str, ...]:
    """Return the canonical names that a name means, or nothing when no model has it.

    Case, blanks and makers' words do not matter: `rtx 4090`, `NVIDIA A100-SXM4-80GB`.
    """
    upper = name.upper().replace("_", "-")
    memory = _MEMORY.search(upper.replace("-", " "))
    short = _NOISE.sub(" ", upper)
    plain = re.sub(r"[ -]+", "", _MEMORY.sub("", short.replace("-", " ")))
    base = _ALIASES.get(plain, plain)
    family = FAMILIES.get(base, (base,) if base in MODELS else ())
    if memory is None:
        return family
    size = float(memory[1])
    return tuple(one for one in family if MODELS[one].memory_gib == size)


def canonical(name: str, memory_gib: GiB) -> str | None:
    """Return the one model that a device with this much memory is, or None when unknown.

    A driver shows less than the nominal size, so the nearest of the name's models is taken.
    """
    found = variants(name) or variants(_MEMORY.sub("", name.upper().replace("-", " ")))
    return min(found, key=lambda one: abs(MODELS[one].memory_gib - memory_gib), default=None)


def speed(name: str, reference: str) -> float | None:
    """Return how many times as fast as the reference a model is; None when one is unknown."""
    one, other = MODELS.get(name), MODELS.get(reference)
    if one is None or other is None:
        return None
    return _rating(one) / _rating(other)


def _rating(model: GpuModel) -> float:
    if model.measured is not None:
        beside, factor = model.measured
        return factor * _rating(MODELS[beside])
    return math.sqrt(model.tensor_tflops * model.bandwidth_gb_s)
