"""The scores of the chosen place and its best rivals, with what each score counts."""

from collections.abc import Iterator, Mapping, Sequence

from cloudwhale.model.plan import Scored
from cloudwhale.reporting.sentences import where
from cloudwhale.reporting.sheet import Cell, Line

LEAST_LABEL = 12
"""A place's name is cut to no less than this."""
NARROW_INDENT = 4
"""Where the table begins when it does not fit to the right of the times."""


def score_lines(
    chosen: Scored, rivals: Sequence[Scored], weights: Mapping[str, float], width: int, indent: int
) -> Iterator[Line]:
    """Yield a row a place, a column a named score; the last row says what each counts."""
    names = ["total", *chosen.scores]
    wide = [max(5, len(name)) for name in names]
    places = [chosen, *rivals]
    label = max(len(where(place.placement)) for place in places)
    numbers = sum(wide) + 2 * len(wide)
    if indent + label + numbers > width:
        indent = min(indent, NARROW_INDENT)
        label = max(LEAST_LABEL, min(label, width - indent - numbers))
    head = "".join(f"  {name:>{size}}" for name, size in zip(names, wide, strict=True))
    yield (Cell(" " * indent + f"{'place':<{label}}{head}", "quiet"),)
    for place in places:
        values = [place.total, *(place.scores.get(name, 0.0) for name in names[1:])]
        row = "".join(f"  {value:>{size}.3f}" for value, size in zip(values, wide, strict=True))
        text = " " * indent + f"{_cut(where(place.placement), label):<{label}}{row}"
        yield (Cell(text, "strong" if place is chosen else "plain"),)
    if any(name in weights for name in names):
        counts = [f"{weights[name]:.2f}" if name in weights else "" for name in names]
        row = "".join(f"  {count:>{size}}" for count, size in zip(counts, wide, strict=True))
        yield (Cell(" " * indent + f"{'weight':<{label}}{row}", "quiet"),)


def _cut(name: str, label: int) -> str:
    """Shorten a place's name; the device at its end tells more places apart than its node."""
    if len(name) <= label:
        return name
    node, _, devices = name.partition(" (")
    room = label - len(devices) - 3  # the ellipsis, the blank, the bracket
    if not devices or room < 1:
        return f"…{name[len(name) - label + 1 :]}"
    return f"{node[:room]}… ({devices}"
