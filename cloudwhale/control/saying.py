"""Who hears, in sentences, how far something is that takes its time."""

from collections.abc import Callable

Say = Callable[[str], object]


def to_nobody(says: str) -> None:
    """Hear nothing of it."""
