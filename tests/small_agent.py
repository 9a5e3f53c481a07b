"""An agent whose log loses its middle past some thousand bytes, so that a test is quick."""

import sys

from cloudwhale.agent.__main__ import main
from cloudwhale.agent.launching import Sizes

SIZES = Sizes(log_segment=1_000, log_head=10_000, log_tail=10_000)

if __name__ == "__main__":
    sys.exit(main(sizes=SIZES))
