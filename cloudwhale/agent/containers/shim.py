"""The shim of a job in a container: starts it, watches it and writes its exit record.

Run as `python -P -m cloudwhale.agent.containers.shim ATTEMPT_FOLDER` by the agent, with the job's
description as JSON on its standard input, so that secrets are never on a disk. What it promises
is what every shim promises (`spi/runtime`).
"""

import sys

from cloudwhale.agent import shim


def main(folder: str) -> int:
    """Run the job of an attempt's folder, unless another shim has begun it already."""
    text = shim.told()
    if not shim.begins(folder):
        return 0
    from cloudwhale.agent.containers.job import ContainerJob
    from cloudwhale.agent.shim_json import decoded
    from cloudwhale.clock import SystemClock

    ContainerJob(folder, decoded(text), SystemClock()).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
