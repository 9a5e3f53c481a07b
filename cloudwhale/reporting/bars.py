"""Bars: how much of something is taken, in a few characters."""

from cloudwhale.reporting.figures import percent

EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(share: float, width: int) -> str:
    """Return a bar of exactly `width` characters; shares outside [0, 1] are cut to it."""
    full, part = divmod(round(min(1.0, max(0.0, share)) * width * 8), 8)
    filled = EIGHTHS[-1] * full + (EIGHTHS[part] if part else "")
    return filled + "·" * (width - len(filled))


def bare_bar(share: float, width: int) -> str:
    """Return the same in ASCII, for pipes and for terminals that know no more."""
    full = round(min(1.0, max(0.0, share)) * width)
    return "#" * full + "." * (width - full)


def taken(used: float, whole: float) -> float:
    """Return the share that is taken, 0 for nothing of nothing."""
    return used / whole if whole > 0 else 0.0


def with_percent(share: float, width: int) -> str:
    """Return a bar followed by its share as a number."""
    return f"{bar(share, width)} {percent(share):>5}"
