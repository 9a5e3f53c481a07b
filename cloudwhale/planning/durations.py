"""How long a job is expected to run: what its file says, else what its like have taken."""

from collections.abc import Mapping, Sequence
from typing import Literal

from cloudwhale.model.job import JobSpec
from cloudwhale.model.units import Seconds
from cloudwhale.model.value import Value

GUESS_S: Seconds = 3600.0
"""Expected of a job that nothing is known of."""

RunTimes = Mapping[tuple[str, str], Sequence[Seconds]]
"""Run times of completed jobs by project and name, as a world has them."""

Source = Literal["file", "family", "project", "nothing"]


class Expected(Value):
    """How long a job is expected to run, and how that is known."""

    length_s: Seconds
    source: Source
    samples: int = 0
    """How many completed jobs it is the median of."""

    @property
    def is_guessed(self) -> bool:
        """Say whether nobody has said it."""
        return self.source != "file"


class Durations:
    """Answers for many jobs; a project's history is gathered once."""

    def __init__(self, run_times: RunTimes) -> None:
        self._families = run_times
        self._projects: dict[str, list[Seconds]] = {}
        for (project, _), times in run_times.items():
            self._projects.setdefault(project, []).extend(times)
        self._lengths: dict[tuple[str, str], Seconds] = {}

    def length_s(self, spec: JobSpec) -> Seconds:
        """Return how long a job is expected to run; called for every waiting job in a round."""
        if spec.duration_s is not None:
            return spec.duration_s
        family = (spec.project, spec.name)
        length_s = self._lengths.get(family)
        if length_s is None:
            length_s = self._lengths[family] = self.of(spec).length_s
        return length_s

    def of(self, spec: JobSpec) -> Expected:
        """Return what the file says, else the family's median, the project's, or an hour."""
        if spec.duration_s is not None:
            return Expected(length_s=spec.duration_s, source="file")
        family = self._families.get((spec.project, spec.name), ())
        if family:
            return Expected(length_s=_median(family), source="family", samples=len(family))
        project = self._projects.get(spec.project, ())
        if project:
            return Expected(length_s=_median(project), source="project", samples=len(project))
        return Expected(length_s=GUESS_S, source="nothing")


def _median(times: Sequence[Seconds]) -> Seconds:
    """Return the middle one of some times, of an even number the mean of the middle two."""
    ordered = sorted(times)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
