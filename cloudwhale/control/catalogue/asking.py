"""What `offers` was asked for, in the words of the job file, becomes a question."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cloudwhale.control.intake.gpu import short_form
from cloudwhale.control.intake.unfit import Unfit, shown
from cloudwhale.control.intake.units import at_least, number, size
from cloudwhale.model.job import GpuRequest, Resources
from cloudwhale.planning.searching import Asked
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.prices import Market

T = TypeVar("T")

REFERENCE = "A100-40GB"
"""What an hour of work is counted on where no model is asked for."""


@dataclass(frozen=True, slots=True)
class Words:
    """The options as they were typed."""

    gpu: str | None = None
    cpu: str | None = None
    memory: str | None = None
    disk: str | None = None
    regions: Sequence[str] = ()
    market: Market | None = None
    providers: Sequence[str] = ()

    @property
    def asks_for_no_machine(self) -> bool:
        """Say whether nothing is said of what the machine must have."""
        return self.gpu is None and self.cpu is None and self.memory is None and self.disk is None


def asked(words: Words) -> Asked:
    """Return the question; raise SettingsError, naming the option, for a word that is wrong.

    Where nothing is asked of the machine, it is one GPU of any model.
    """
    gpu = GpuRequest(count=1 if words.asks_for_no_machine else 0)
    if words.gpu is not None:
        gpu = _option("--gpu", _gpu, words.gpu)
    wants = Resources(
        gpu=gpu,
        cpu=0.0 if words.cpu is None else _option("--cpu", at_least(number), words.cpu),
        memory_gib=None if words.memory is None else _option("--memory", _size, words.memory),
        disk_gib=None if words.disk is None else _option("--disk", _size, words.disk),
    )
    reference = (*gpu.models, REFERENCE)[0] if gpu.count else None
    return Asked(wants, reference, tuple(words.regions), tuple(words.providers), words.market)


_size = at_least(size)


def _gpu(text: str) -> GpuRequest:
    if not text.strip():
        raise Unfit("it is empty", "Write it like A100:2, 24GB.. or 1.")
    return GpuRequest.model_validate(short_form(text))


def _option(name: str, parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except Unfit as wrong:
        raise SettingsError(f"{name} {shown(text)}: {wrong.says}", wrong.remedy) from wrong
