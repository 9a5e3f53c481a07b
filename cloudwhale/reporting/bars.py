"""Bars: how much of something is taken, in a few characters."""

from collections.abc import Sequence

EIGHTHS = " ▏▎▍▌▋▊▉█"
EMPTY = "·"


def bar(share: float, width: int) -> str:
    """Return a bar of exactly `width` characters; shares outside [0, 1] are cut to it."""
    full, part = divmod(round(min(1.0, max(0.0, share)) * width * 8), 8)
    filled = EIGHTHS[-1] * full + (EIGHTHS[part] if part else "")
    return filled + EMPTY * (width - len(filled))


def stacked(shares: Sequence[float], width: int) -> tuple[tuple[int, ...], int]:
    """Return how many of `width` characters each of several shares gets, and how many stay empty.

    A share above 0 gets one character at least while there is room; ends are rounded, not sizes,
    so that the whole is as long as its sum.
    """
    sizes: list[int] = []
    total = 0.0
    for share in shares:
        total += max(0.0, share)
        begin = sum(sizes)
        end = max(begin + (share > 0), round(min(1.0, total) * width))
        sizes.append(min(width, end) - begin)
    return tuple(sizes), width - sum(sizes)


def taken(used: float, whole: float) -> float:
    """Return the share that is taken, 0 for nothing of nothing."""
    return used / whole if whole > 0 else 0.0
