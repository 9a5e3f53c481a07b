"""What is said of the lengths of jobs: the truth, something near it, or nothing."""

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cloudwhale.simulation.playing import Arrival
from cloudwhale.spi.errors import SettingsError

_NOISY = re.compile(r"noisy:([0-9]+(?:\.[0-9]+)?)x?")
FACTOR_MOST = 1000.0


@dataclass(frozen=True, slots=True)
class Estimates:
    """How far what is said of a length may be from the truth."""

    factor: float | None
    """1: exact; 3: up to three times too long or too short; None: nothing is said at all."""

    @property
    def is_drawn(self) -> bool:
        """Say whether another seed gives others."""
        return self.factor is not None and self.factor > 1.0


EXACT, NONE = Estimates(1.0), Estimates(None)


def estimates(text: str) -> Estimates:
    """Return what `exact`, `noisy:3x` or `none` means; raise SettingsError for other words."""
    word = text.strip().lower()
    if word in ("exact", "none"):
        return EXACT if word == "exact" else NONE
    noisy = _NOISY.fullmatch(word)
    if noisy is None or not 1.0 <= float(noisy[1]) <= FACTOR_MOST:
        raise SettingsError(
            f"{text!r} is no kind of estimates",
            f"Write exact, none, or noisy:3x with a factor from 1 to {FACTOR_MOST:g}.",
        )
    return Estimates(float(noisy[1]))


def estimated(arrivals: Sequence[Arrival], how: Estimates, seed: int) -> list[Arrival]:
    """Return the same jobs with other estimates; noise is uniform in the logarithm.

    With none, lengths are learned of those that have ended: by name and project, by project.
    """
    if how.factor is None:
        return [_said(one, None) for one in arrivals]
    width, dice = math.log(how.factor), random.Random(f"estimates-{seed}")
    return [_said(one, one.work_s * math.exp(dice.uniform(-width, width))) for one in arrivals]


def _said(one: Arrival, length_s: float | None) -> Arrival:
    return replace(one, spec=one.spec.but(duration_s=length_s))
