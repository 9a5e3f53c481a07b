"""Notices when an agent's clock differs from ours by more than is borne."""

from cloudwhale.model import event as e
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant, Seconds


class Clocks:
    """Compares when reports were written with when they can have been."""

    def __init__(self, skew_s: Seconds) -> None:
        self._skew_s = skew_s
        self._told: set[str] = set()

    def compare(
        self, node: str, said_at: Instant, not_before: Instant | None, now: Instant
    ) -> list[e.Event]:
        """Return a note, once until the clock is right again.

        `not_before`: when the report was looked for and was not there yet; None: nobody knows, as
        we were not listening, so it may be as old as it says.
        """
        ahead_s = said_at - now
        behind_s = 0.0 if not_before is None else not_before - said_at
        if max(ahead_s, behind_s) <= self._skew_s:
            self._told.discard(node)
            return []
        if node in self._told:
            return []
        self._told.add(node)
        off = f"{ahead_s:.0f} s ahead of" if ahead_s > 0 else f"{behind_s:.0f} s behind"
        reason = Reason(
            code=Code.CLOCK_DIFFERS,
            says=f"the clock of {node} is {off} this host's",
            change="let both clocks be set (`timedatectl set-ntp true`); durations do not depend "
            "on it, times in its reports do",
        )
        return [e.Noted(at=now, subject=node, reason=reason)]
