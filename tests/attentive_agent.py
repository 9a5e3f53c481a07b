"""An agent that asks whether Docker is there at every turn, and looks at devices every second."""

import sys
from unittest.mock import patch

from cloudwhale.agent.__main__ import main

if __name__ == "__main__":
    with (
        patch("cloudwhale.agent.containers.docker_sight.LOOK_EVERY_S", 0.0),
        patch("cloudwhale.agent.containers.docker_sight.LOOK_AGAIN_S", 0.1),
        patch("cloudwhale.agent.containers.reach.LOOK_EVERY_S", 1.0),
    ):
        sys.exit(main())
