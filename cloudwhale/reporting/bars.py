"""Bars: how much of something is taken, in a few characters."""

EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(share: float, width: int) -> str:
    """Return a bar of exactly `width` characters; shares outside [0, 1] are cut to it."""
    full, part = divmod(round(min(1.0, max(0.0, share)) * width * 8), 8)
    filled = EIGHTHS[-1] * full + (EIGHTHS[part] if part else "")
    return filled + "·" * (width - len(filled))


def taken(used: float, whole: float) -> float:
    """Return the share that is taken, 0 for nothing of nothing."""
    return used / whole if whole > 0 else 0.0
