"""Which regions of a cloud somebody means."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase


def meant(
    asked: Sequence[str], cloud: str, known: Iterable[str], form: re.Pattern[str]
) -> list[str]:
    """Return regions by name: all that are known where nothing is asked for.

    A name that looks like one of the cloud's regions is taken although it is not known; patterns
    are looked up among those that are.
    """
    names = sorted(set(known))
    if not asked:
        return names
    found: dict[str, None] = {}
    for word in asked:
        whose, slash, pattern = word.rpartition("/")
        if slash and whose != cloud:
            continue
        matching = [name for name in names if fnmatchcase(name, pattern)]
        if not matching and form.fullmatch(pattern):
            matching = [pattern]
        found |= dict.fromkeys(matching)
    return list(found)
