"""What jobs of one file wait for: names that lead in a circle are refused."""

from collections.abc import Iterable, Mapping, Sequence

from cloudwhale.control.intake.tree import Section
from cloudwhale.control.intake.unfit import Spot, Unfit
from cloudwhale.model.job import JobSpec


def check_dependencies(jobs: Iterable[tuple[Section, JobSpec]]) -> None:
    """Raise Unfit when jobs wait for each other; a name that no job has is left for submission."""
    afters: dict[str, tuple[str, ...]] = {}
    spots: dict[str, Spot] = {}
    for section, spec in jobs:
        afters[spec.name] = (*afters.get(spec.name, ()), *spec.after)
        if spec.after:
            spots.setdefault(spec.name, section.entries["after"].value)
    circle = _circle(afters)
    if circle:
        raise Unfit(
            f"these jobs wait for each other: {' → '.join(circle)}",
            "Take one of the names out of `after`.",
            spots[circle[0]],
        ).under("after")


def _circle(afters: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the names of a circle, first and last alike, or nothing; walks without recursion."""
    done: set[str] = set()
    for start in afters:
        if start in done:
            continue
        path = {start: iter(afters[start])}
        while path:
            last = next(reversed(path))
            name = next((name for name in path[last] if name in afters and name not in done), None)
            if name is None:
                done.add(last)
                del path[last]
            elif name in path:
                names = list(path)
                return (*names[names.index(name) :], name)
            else:
                path[name] = iter(afters[name])
    return ()
