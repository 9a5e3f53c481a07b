"""What a machine of the box has, by its type: declared, as this host has none of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from cloudwhale.model.gpus import MODELS
from cloudwhale.spi.prices import PriceList, Shape
from cloudwhale_providers.prices.aws import AwsPrices
from cloudwhale_providers.prices.gcp import GcpPrices

LISTS: Mapping[str, PriceList] = {"aws": AwsPrices(), "gcp": GcpPrices()}
"""What ships of prices, by the cloud's name."""


@dataclass(frozen=True, slots=True)
class Fittings:
    """What the agent of a machine is told that it has."""

    device: str = ""
    """Like `1x A10G 24GB`; empty: none."""
    cpu: float = 1.0
    memory_gib: float = 1.0

    @property
    def words(self) -> list[str]:
        """Return the words of the agent's command line."""
        found = [f"--cpu={self.cpu:g}", f"--memory-gib={self.memory_gib:g}"]
        return [*found, f"--device={self.device}"] if self.device else found


@cache
def shapes(cloud: str) -> Mapping[str, Shape]:
    """Return a cloud's machine types that ship, by name; takes a tenth of a second once."""
    return {one.shape.type: one.shape for one in LISTS[cloud].shipped()}


def shape_of(type_name: str) -> Shape | None:
    """Return a machine type of any cloud: no two call theirs alike; None: nobody knows it."""
    return next(
        (found for cloud in LISTS if (found := shapes(cloud).get(type_name)) is not None), None
    )


def fittings(shape: Shape, region: str) -> Fittings:
    """Return what jobs can have of a machine: as the offers of its type say."""
    memory_gib = shape.memory_gib * LISTS[shape.provider].terms(shape, region, "spot").memory_share
    device = ""
    if shape.gpus:
        device = f"{shape.gpus}x {shape.gpu} {MODELS[shape.gpu].memory_gib:g}GB"
    return Fittings(device, shape.cpu, round(memory_gib, 1))
