"""Whether anybody works on the queue, and what to do when nobody does."""

import sys

from cloudwhale.cli.output import say
from cloudwhale.control.store import lock_for
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import StoreUnusable


def nobody(settings: Settings) -> str:
    """Say that nobody works on the queue, and which command does."""
    box = " --sandbox" if settings.sandbox else ""
    return (
        f"No controller runs now: `cloudwhale controller --until-empty{box}` works the queue off."
    )


def nobody_works(settings: Settings) -> bool:
    """Say whether no controller holds the queue; raise StoreUnusable when that cannot be known."""
    lock = lock_for(settings)
    free = lock.acquire()
    lock.release()
    return free


def say_who_works(settings: Settings) -> None:
    """Say how what was asked will come about when no controller is there to do it."""
    if nobody_works(settings):
        say(nobody(settings))


def warn_of_nobody(settings: Settings) -> None:
    """Say on standard error that nothing will happen to what is shown as long as nobody works."""
    try:
        idle = nobody_works(settings)
    except StoreUnusable:
        return  # who may only read can look, and learns nothing of controllers
    if idle:
        say(nobody(settings), sys.stderr)
