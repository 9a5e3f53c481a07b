"""An agent with a second to save and a second until its watchdog bites, so that a test is quick."""

import sys
from unittest.mock import patch

from cloudwhale.agent.__main__ import main

if __name__ == "__main__":
    with (
        patch("cloudwhale.agent.tenure.SAVING_S", 1.0),
        patch("cloudwhale.agent.tenancy.WATCHDOG_AFTER_S", 1.0),
    ):
        sys.exit(main())
