"""What Compute Engine has begun: waited for until it is done, within a limit."""

from collections.abc import Callable, Mapping
from threading import Event
from typing import Any

from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import CloudwhaleError, Unreachable
from cloudwhale_providers.gcp import names
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.errors import Errand, failed
from cloudwhale_providers.gcp.saying import wrong_with

LIMIT_S: Seconds = 300.0
"""A launch that is not done by then is looked for again: stock-outs answer within half a minute."""
POLL_S: Seconds = 0.25
"""Between two waits, where one has ended early."""

Pause = Callable[[Seconds], object]


def for_real(for_s: Seconds) -> None:
    """Wait by a real clock, like the waits of Google's own libraries."""
    Event().wait(for_s)


def done(
    account: Account, operation: Mapping[str, Any], errand: Errand, pause: Pause
) -> Mapping[str, Any]:
    """Return an operation when it is done, failed or not.

    Each wait of Compute Engine's is "best effort" and ends within two minutes, done or not. Raise
    Unreachable when it is not done in time, or cannot be asked about.
    """
    zone, name = names.last(operation.get("zone")), str(operation.get("name", ""))
    begun_at, told = account.clock.steady(), operation
    while told.get("status") != "DONE":
        if account.clock.steady() - begun_at >= LIMIT_S:
            raise Unreachable(
                f"{errand.permission} in {zone}: {name} is not done after {LIMIT_S:.0f} s",
                "It is looked for again by itself.",
            )
        told = _waited(account, zone, name)
        if told.get("status") != "DONE":
            pause(POLL_S)
    return told


def why_failed(operation: Mapping[str, Any], errand: Errand) -> CloudwhaleError | None:
    """Return why an operation that is done has failed, the first that it says; None: it has not."""
    found = wrong_with(operation)
    return failed(found[0], errand) if found else None


def _waited(account: Account, zone: str, name: str) -> Mapping[str, Any]:
    try:
        return account.compute("zoneOperations.wait", zone=zone, operation=name)
    except Unreachable:
        raise
    except CloudwhaleError as error:
        # Whoever may not ask does not know how it went.
        raise Unreachable(error.says, error.remedy) from error
