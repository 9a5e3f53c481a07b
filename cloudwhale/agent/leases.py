"""What a shim is told of its lease: whether, and when, its job must end without an agent."""

import json
import signal
from typing import Any

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.course import HARDER_AFTER_S
from cloudwhale.agent.place import Place, write_whole
from cloudwhale.agent.storewatch import SILENCE_S
from cloudwhale.clock import real
from cloudwhale.mailbox.documents import StartOrder
from cloudwhale.model.units import Seconds


def keep_lease(place: Place, lease_s: Seconds | None) -> None:
    """Note for how long jobs may run without an agent; None: for ever. Raises OSError.

    For ever only where the controller is on the same host and starts an agent when it needs one:
    it gives the jobs of this machine to no other one meanwhile.
    """
    note = place.path / "lease.json"
    if lease_s is None:
        note.unlink(missing_ok=True)
    else:
        write_whole(note, json.dumps(lease_s))


def told_of_lease(folder: AttemptFolder, order: StartOrder) -> dict[str, Any] | None:
    """Return what an attempt's shim is told of the lease; None when it has none.

    Shims count by the real clock.
    """
    place = folder.path.parents[2]
    try:
        lease_s = float(json.loads((place / "lease.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    rule = order.checkpoint
    grace_s = min(rule.grace_s, lease_s / 2)
    return {
        "heard": str(place / "heard"),
        "lock": str(place / "agent.lock"),
        "hung_s": real(max(lease_s, SILENCE_S)),
        "after_s": real(stops_after_s(lease_s, grace_s)),
        "signal": rule.signal,
        "number": signal_number(rule.signal),
        "grace_s": real(grace_s),
    }


def stops_after_s(lease_s: Seconds, grace_s: Seconds) -> Seconds:
    """Return after how much silence a job must begin to stop to have ended when the lease has."""
    return lease_s - min(grace_s, lease_s / 2) - min(2 * HARDER_AFTER_S, lease_s / 4)


def signal_number(name: str) -> int:
    """Return the number of a signal by name, with or without SIG; one that is unknown is TERM."""
    plain = name.upper().removeprefix("SIG")
    if plain.isdecimal():
        return int(plain)
    return int(getattr(signal.Signals, f"SIG{plain}", signal.SIGTERM))
