"""An agent whose pool never comes to anything: four restores take for ever, say."""

import sys
from collections.abc import Callable
from unittest.mock import patch

from cloudwhale.agent.__main__ import main
from cloudwhale.agent.pool import Pool
from cloudwhale.mailbox.documents import StartOrder


def keep(
    pool: Pool, task: Callable[[], object], failed: Callable[[Exception], object] | None = None
) -> None:
    """Take a task that no thread ever gets to."""


def takes_time(order: StartOrder) -> bool:
    """Say that every job must be prepared in the pool."""
    return True


if __name__ == "__main__":
    with (
        patch.object(Pool, "do", keep),
        patch("cloudwhale.agent.preparing.needs_time", takes_time),
    ):
        sys.exit(main())
