"""What goes wrong in a play, and when: frozen values, drawn from a seed or read from a text."""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TypeAlias, cast

from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import SpecError


@dataclass(frozen=True, slots=True)
class MachineLost:
    """An owned machine loses power or network, and comes back with its disk."""

    node: str
    at: Seconds
    """From the beginning of the play, as in all faults."""
    for_s: Seconds = math.inf


@dataclass(frozen=True, slots=True)
class AgentKilled:
    """A machine's agent is killed; its jobs run on."""

    node: str
    at: Seconds


@dataclass(frozen=True, slots=True)
class ControllerRestarted:
    """The controller is killed, and the next one begins a while later."""

    at: Seconds
    for_s: Seconds = 0.0


@dataclass(frozen=True, slots=True)
class StoreFails:
    """The database takes no writes of the controller."""

    at: Seconds
    for_s: Seconds


@dataclass(frozen=True, slots=True)
class StoreSlow:
    """Every turn of the controller takes so much longer."""

    at: Seconds
    for_s: Seconds
    by_s: Seconds


@dataclass(frozen=True, slots=True)
class NoCapacity:
    """An offer cannot be had for a while; `offer` empty: none can."""

    at: Seconds
    for_s: Seconds
    offer: str = ""


@dataclass(frozen=True, slots=True)
class SlowBoot:
    """A share of all machines of an offer boots ten times as slowly; `offer` empty: of all."""

    share: float
    offer: str = ""


@dataclass(frozen=True, slots=True)
class PriceMoved:
    """An offer costs so many times as much from a time on; `offer` empty: all do."""

    at: Seconds
    times: float
    offer: str = ""


@dataclass(frozen=True, slots=True)
class Preempted:
    """Machines of an offer are taken back at a rate, with so much notice; 0: without any."""

    per_h: float
    notice_s: Seconds = 0.0
    offer: str = ""


@dataclass(frozen=True, slots=True)
class WrongEstimates:
    """What files say of their jobs' lengths is off by up to a factor, either way."""

    by: float
    seed: int = 0


Fault: TypeAlias = (
    MachineLost
    | AgentKilled
    | ControllerRestarted
    | StoreFails
    | StoreSlow
    | NoCapacity
    | SlowBoot
    | PriceMoved
    | Preempted
    | WrongEstimates
)

KINDS: Mapping[str, type[Fault]] = {
    "lost": MachineLost,
    "agent": AgentKilled,
    "controller": ControllerRestarted,
    "store-fails": StoreFails,
    "store-slow": StoreSlow,
    "no-capacity": NoCapacity,
    "slow-boot": SlowBoot,
    "price": PriceMoved,
    "preempted": Preempted,
    "estimates": WrongEstimates,
}
"""The words of the text form."""

# -- from a seed ---------------------------------------------------------------------------------


Timed: TypeAlias = MachineLost | AgentKilled | ControllerRestarted | StoreFails | StoreSlow


@dataclass(frozen=True, slots=True)
class Often:
    """How many faults of each kind there are over a play."""

    lost: int = 1
    agents: int = 1
    controllers: int = 1
    stores: int = 1


def random_faults(
    seed: int, nodes: Sequence[str], over_s: Seconds, often: Often = Often()
) -> tuple[Fault, ...]:
    """Return faults at random times, by time; those of machines last minutes or hours."""
    dice = random.Random(f"faults-{seed}")

    def when() -> Seconds:
        return dice.uniform(0.0, over_s)

    def while_() -> Seconds:
        return math.exp(dice.uniform(math.log(30.0), math.log(max(31.0, over_s / 5))))

    drawn: list[Timed] = []
    if nodes:
        drawn += [MachineLost(dice.choice(nodes), when(), while_()) for _ in range(often.lost)]
        drawn += [AgentKilled(dice.choice(nodes), when()) for _ in range(often.agents)]
    drawn += [ControllerRestarted(when(), while_() / 10) for _ in range(often.controllers)]
    for _ in range(often.stores):
        fails = dice.random() < 0.5
        drawn.append(
            StoreFails(when(), while_() / 10) if fails else StoreSlow(when(), while_(), 5.0)
        )
    drawn.sort(key=lambda fault: (fault.at, repr(fault)))
    return tuple(drawn)


# -- from a text ---------------------------------------------------------------------------------

_WORDS = {"for": "for_s", "by": "by_s", "notice": "notice_s", "per-h": "per_h"}
"""What a field is called in a text, where that is not its name."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

_TEXT = ("node", "offer")


def parse_faults(text: str) -> tuple[Fault, ...]:
    """Read faults such as `lost:node=n1,at=1h,for=600; controller:at=7200`.

    Raise SpecError that names the part that is wrong and says what can stand there.
    """
    parts = [part.strip() for part in text.split(";")]
    return tuple(_fault(part) for part in parts if part)


def _fault(part: str) -> Fault:
    kind, _, rest = part.partition(":")
    made = KINDS.get(kind.strip())
    if made is None:
        raise SpecError(f"faults: {kind.strip()!r} is no kind of fault", f"Kinds: {_kinds()}.")
    known = {_word(made, field.name): field.name for field in fields(made)}
    needed = {_word(made, each.name) for each in fields(made) if each.default is MISSING}
    values: dict[str, str | float | int] = {}
    for pair in filter(None, (one.strip() for one in rest.split(","))):
        word, equals, value = (bit.strip() for bit in pair.partition("="))
        if not equals or word not in known:
            raise SpecError(
                f"faults: {pair!r} of {part!r} is not understood",
                f"{kind} knows {', '.join(known)}, each as word=value.",
            )
        values[known[word]] = value if word in _TEXT else _number(value, pair, part)
    missing = sorted(word for word in needed if known[word] not in values)
    if missing:
        raise SpecError(
            f"faults: {part!r} lacks {', '.join(missing)}", f"For example {_like(made)}."
        )
    if "seed" in values:
        values["seed"] = int(values["seed"])
    make = cast(Callable[..., Fault], made)
    return _possible(make(**values), part)


def _possible(fault: Fault, part: str) -> Fault:
    """Return a fault; raise SpecError for a share above 1, or a factor that is below."""
    if isinstance(fault, SlowBoot) and fault.share > 1:
        raise SpecError(
            f"faults: {part!r} has a share above 1", f"For example {_like(type(fault))}."
        )
    if isinstance(fault, WrongEstimates) and fault.by < 1:
        raise SpecError(
            f"faults: {part!r} has a factor below 1",
            f"Write up to how many times lengths are off: {_like(type(fault))}.",
        )
    return fault


def _word(made: type[Fault], name: str) -> str:
    for word, field in _WORDS.items():
        if field == name:
            return word
    return name


def _number(value: str, pair: str, part: str) -> float:
    unit = _UNITS.get(value[-1:], 0.0)
    try:
        found = float(value[:-1]) * unit if unit else float(value)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise SpecError(
            f"faults: {pair!r} of {part!r} is no number of 0 or more",
            "Write seconds, or a number with s, m, h or d: 600, 10m, 1.5h.",
        )
    return found


def _kinds() -> str:
    return ", ".join(KINDS)


def _like(made: type[Fault]) -> str:
    kind = next(word for word, each in KINDS.items() if each is made)
    return f"{kind}:" + ",".join(_examples(made))


_EXAMPLES = {"node": "n1", "offer": "g4", "at": "1h", "seed": "7", "share": "0.3"}


def _examples(made: type[Fault]) -> Iterator[str]:
    for field in fields(made):
        word = _word(made, field.name)
        yield f"{word}={_EXAMPLES.get(word, '10')}"
