"""The command `controller`: works on the queue without following anything."""

import logging
import os
import sys
from pathlib import Path

from cloudwhale.cli.exits import Bug, Exit, WrongUsage
from cloudwhale.cli.finding import work_is_left
from cloudwhale.cli.interrupts import Interrupts
from cloudwhale.cli.looking import settings_here
from cloudwhale.cli.measured import address_of, measured, with_file
from cloudwhale.cli.nights_serving import Nights
from cloudwhale.cli.output import say
from cloudwhale.control.abroad import must_reach
from cloudwhale.control.desk import Desk, open_desk
from cloudwhale.control.host import ControllerHost
from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import StoreUnusable

TRY_EVERY_S: Seconds = 1.0  # how soon it takes over when the holder goes
LOOK_EVERY_S: Seconds = 0.5  # whether anything is left to do


def controller(
    until_empty: bool, metrics: str | None, metrics_file: Path | None, nights: Path | None = None
) -> int:
    """Work until told to end, or until nothing is left to do.

    `nights`: a folder of night files, each of which opens by itself. `metrics`: where to serve
    metrics, `[HOST:]PORT`. `metrics_file`: where else to write them.
    """
    address = None if metrics is None else address_of(metrics)
    if nights is not None and not nights.is_dir():
        raise WrongUsage(f"--nights: {nights} is not a folder.", "Name one with night files.")
    settings = with_file(settings_here(starts=True), metrics_file)
    must_reach(settings)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    logging.getLogger("cloudwhale").setLevel(logging.INFO)
    host = ControllerHost(settings)
    with Interrupts() as interrupts, measured(host, settings, address):
        try:
            waited = False
            while not host.try_start() and interrupts.pending is None:
                if not waited:
                    _tell(f"waiting: {host.holder() or 'another process'} works on the queue")
                    waited = True
                interrupts.wait(TRY_EVERY_S)
            with open_desk(settings, may_migrate=host.holds) as desk:
                _tell(f"working on the queue of {settings.home}")
                beside = None if nights is None else Nights(nights, _tell)
                _work(host, desk, interrupts, until_empty, beside)
        finally:
            host.stop(leave_agents=True)
    return Exit.DONE


def _tell(text: str) -> None:
    """Say something if it can be said: no full disk and no closed pipe ends a controller."""
    try:
        say(text)
    except OSError:
        # What could not be written stays in the buffer, and would fail again at the end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _work(
    host: ControllerHost,
    desk: Desk,
    interrupts: Interrupts,
    until_empty: bool,
    nights: Nights | None,
) -> None:
    """Wait for the end; raise what ended the controller when nobody asked it to."""
    seen = -1
    while interrupts.pending is None:
        if host.failure is not None:
            raise host.failure
        if not host.holds:
            raise Bug("the controller has died", "Its jobs run on; start it again.")
        if nights is not None and not host.trouble:
            nights.look(desk)
        if until_empty and not host.trouble:
            seen, is_empty = _look(desk, seen)
            if is_empty:
                host.stop(leave_agents=False)
                return
        interrupts.wait(LOOK_EVERY_S)


def _look(desk: Desk, seen: int) -> tuple[int, bool]:
    """Return the version that was seen, and whether nothing is left to do; no when unchanged."""
    try:
        version = desk.store.version()
        return version, version != seen and not work_is_left(desk.store)
    except StoreUnusable:
        return -1, False  # the controller meets the same, says so, and waits
