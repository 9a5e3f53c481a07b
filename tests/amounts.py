"""How much of the same the tests play: a part, or with `FULL=1 make test` all there is.

What is cut are more seeds, launches and places to die of a kind that is played already.
"""

import os

IS_FULL = bool(os.environ.get("FULL"))


def amount(part: int, whole: int) -> int:
    """Return how many to play."""
    return whole if IS_FULL else part
