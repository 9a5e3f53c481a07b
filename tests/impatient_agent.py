"""An agent that goes half a second after its last job, not a minute, when its starter is gone."""

import sys
from unittest.mock import patch

from cloudwhale.agent.__main__ import main

if __name__ == "__main__":
    with patch("cloudwhale.agent.duty.IDLE_S", 0.5):
        sys.exit(main())
