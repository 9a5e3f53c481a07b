"""Keeps Python's search for cycles away from work that makes none.

A large round makes hundred thousands of values, each of them living to its end: full collections
meanwhile would take a fifth of its time and find nothing.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def unsought() -> Generator[None]:
    """Put the search off until the work is done; what was off before stays off."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
