"""Asks a store again when it does not answer, where somebody waits for the answer."""

from collections.abc import Callable
from typing import TypeVar

from cloudwhale.clock import pause
from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import StoreUnusable

STORE_TRIES = 3
STORE_TRY_AGAIN_S: Seconds = 2.0  # of real time: a store recovers no faster where time is

_T = TypeVar("_T")


def patiently(ask: Callable[[], _T]) -> _T:
    """Ask the store, again a few times when it does not answer; then raise StoreUnusable."""
    for _ in range(STORE_TRIES - 1):
        try:
            return ask()
        except StoreUnusable:
            pause(STORE_TRY_AGAIN_S)
    return ask()
