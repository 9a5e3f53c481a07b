"""Says what came of the time that a notice left: what was saved and stored in it, and what not."""

from cloudwhale.agent.progress import size
from cloudwhale.agent.seen import ExitRecord, StopWish
from cloudwhale.agent.state import Attempt
from cloudwhale.model.units import Instant, Seconds

GRAIN_S: Seconds = 0.02
"""A file's time is that of the kernel's last tick, up to 10 ms ago."""


def saved_words(attempt: Attempt, exit: ExitRecord, lost_s: Seconds, now: Instant) -> str:
    """Say it of an attempt that ends now; empty when no notice has stopped it.

    `lost_s`: the run time that no stored checkpoint holds.
    """
    stop = attempt.stopping
    if stop is None or stop.wish.since is None or stop.wish.goes_at is None:
        return ""
    killed = f"; it was killed after its grace of {stop.wish.grace_s:.0f} s" if stop.kills else ""
    lost = f"{lost_s:.1f} s of work are lost{killed}"
    newest = attempt.published[-1] if attempt.published else None
    if newest is None:
        return f"nothing that it saved was stored in time: {lost}"
    what = f"{newest.name} ({size(newest.size_bytes)})"
    if newest.saved_at < stop.wish.since - GRAIN_S:
        ago_s = max(0.0, exit.ended_at - newest.saved_at)
        return (
            f"nothing that it saved after the notice was stored in time, so {what}, saved "
            f"{ago_s:.1f} s before its end, is the newest: {lost}"
        )
    return f"{what} was saved after the notice and stored {_when(attempt, stop.wish, now)}: {lost}"


def _when(attempt: Attempt, wish: StopWish, now: Instant) -> str:
    at = now if attempt.stored_at is None else attempt.stored_at
    since, goes_at = wish.since or at, wish.goes_at or at
    left_s = goes_at - at
    before = f"{left_s:.1f} s before" if left_s >= 0 else f"{-left_s:.1f} s after"
    return f"{max(0.0, at - since):.1f} s later, {before} the machine goes"
