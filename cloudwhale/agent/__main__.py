"""`python -m cloudwhale.agent`: the program on every machine."""

import argparse
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

from cloudwhale.agent.address import own_address
from cloudwhale.agent.claiming import ClockDiffers, NameTaken, Wanted, claim
from cloudwhale.agent.launching import NORMAL, Sizes
from cloudwhale.agent.place import Place
from cloudwhale.agent.rim import Charge, Rim
from cloudwhale.agent.state import LEASE_S
from cloudwhale.agent.tenancy import Tenancy, Terms, terms_from
from cloudwhale.agent.users import apart
from cloudwhale.clock import SystemClock
from cloudwhale.host import add_arguments, options_from
from cloudwhale.mailbox.box import Box, boot_of
from cloudwhale.mailbox.documents import BootTold
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import CloudwhaleError, SettingsError
from cloudwhale.spi.notices import Notices

CRASHED = 70  # EX_SOFTWARE; jobs run on under their shims, and the next agent adopts them
UNUSABLE = 1
WRONG_NAME = 2  # another agent is this node: trying again does not help


class Occupied(CloudwhaleError):
    """Another agent works in the same folder."""


class NotApart(CloudwhaleError):
    """Jobs could reach one another, or the store's credentials, on a machine that is rented."""


class _Signals:
    """What the kernel tells us, from the first moment on: a rim that comes later hears of it."""

    def __init__(self) -> None:
        self._rim: Rim | None = None
        self._must_land = False
        signal.signal(signal.SIGTERM, self._land)
        signal.signal(signal.SIGINT, self._land)
        signal.signal(signal.SIGCHLD, self._ring)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal that closes is no reason to go

    def go_to(self, rim: Rim) -> None:
        """Tell this one from now on."""
        self._rim = rim
        if self._must_land:
            rim.land()

    def _land(self, number: int, frame: FrameType | None) -> None:
        self._must_land = True
        if self._rim is not None:
            self._rim.land()

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self._rim is not None:
            self._rim.ring()


def main(words: Sequence[str] | None = None, sizes: Sizes = NORMAL) -> int:
    """Be the agent of a node until it is time to leave; 0 at once when there is one already."""
    told = arguments(words)
    keep_no_cores()
    try:
        return serve(told, sizes)
    except Occupied:
        return 0
    except NameTaken as error:
        print(f"cloudwhale agent: {error}", file=sys.stderr)
        return WRONG_NAME
    except (CloudwhaleError, OSError) as error:
        print(f"cloudwhale agent: {error}", file=sys.stderr)
        return UNUSABLE


def serve(told: argparse.Namespace, sizes: Sizes = NORMAL) -> int:
    """Be the agent of a node until it is time to leave; 0, or WRONG_NAME when it was taken away.

    Raise Occupied, NameTaken, ClockDiffers, NotApart, SettingsError, StoreUnusable, OSError: it
    never was.
    """
    signals = _Signals()
    place = Place(told.home.expanduser().absolute(), told.node)
    options, clock = options_from(told), SystemClock()
    if not place.take():
        raise Occupied(f"an agent of {told.node} works in {place.path} already")
    os.chdir(place.path)
    tenancy = None if told.terms is None else Tenancy(told.terms, place, clock)
    if tenancy is not None:
        tenancy.begin(clock.now())  # first: whatever comes, this machine ends in time
    objects = open_objects(told.mailbox)
    wanted = Wanted(told.node, f"{told.node}-{os.urandom(6).hex()}", told.lease_s, told.door)
    try:
        if tenancy is not None and told.own_users:
            _must_keep_apart(place, boot_of(objects, wanted.folder), clock)
        standing = claim(wanted, place, objects, clock)
    except (NameTaken, ClockDiffers, NotApart):
        if tenancy is not None:
            tenancy.end_machine()  # trying again does not help, and every minute costs
        raise
    charge = Charge(
        node=told.node,
        agent=wanted.agent,
        door=told.door,
        options=options,
        lease_s=told.lease_s,
        parent=told.parent,
        sizes=sizes,
        stands=standing.stands,
        tenancy=tenancy,
        address="" if tenancy is None else own_address(told.mailbox),
        own_users=told.own_users,
        notices=partial(_notices, told.notices) if told.notices else None,
    )
    rim = Rim(charge, place, objects, clock)
    threading.excepthook = _crash
    signals.go_to(rim)
    rim.run()
    place.leave()
    return WRONG_NAME if rim.ousted else 0


def keep_no_cores() -> None:
    """Let no crash write memory to a disk: the agent, its shims and jobs hold secrets there.

    One byte, as a limit of none still lets the kernel hand a dump to a program of its pattern
    (core(5)). A job may raise it for itself.
    """
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    if most != 0:
        resource.setrlimit(resource.RLIMIT_CORE, (1, most))


def _must_keep_apart(place: Place, told: Box, clock: Clock) -> None:
    """Raise NotApart, and tell why the boot has failed, where jobs cannot be kept apart.

    Where jobs run already, under an agent that could, the rim says what is wrong.
    """
    lacks = apart(place)
    if lacks and not any(place.attempts.iterdir()):
        failed = BootTold(at=clock.now(), phase="agent", state="failed", says=lacks)
        told.post(failed.model_dump_json().encode(), after=0)  # it may not list
        raise NotApart(lacks, "Rent a machine whose image has nftables or iptables.")


def _notices(name: str) -> Notices | None:
    """Return who hears that the provider takes this machine; without one it runs all the same."""
    from cloudwhale.plugins import NOTICES, load

    try:
        hears: Notices = load(NOTICES, name)()
    except SettingsError as error:
        print(f"cloudwhale agent: {error}", file=sys.stderr)
        return None
    return hears


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """Return what `serve` is told by the words of a command line."""
    parser = _parser()
    told = parser.parse_args(words)
    told.terms = _terms(parser, told)
    return told


def _terms(parser: argparse.ArgumentParser, told: argparse.Namespace) -> Terms | None:
    """Return what a rented machine's agent is told of its lease; None: the machine is not."""
    if not told.rented:
        return None
    try:
        return terms_from(told.lease, told.power_off)
    except ValueError:
        parser.error("--rented needs --lease NUMBER:SECONDS, like 1:5400")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cloudwhale.agent",
        description="Run the jobs of one machine as a controller orders through a mailbox.",
    )
    parser.add_argument("--mailbox", required=True, metavar="URL")
    parser.add_argument("--home", required=True, type=Path, metavar="DIR")
    parser.add_argument("--node", required=True, metavar="NAME")
    parser.add_argument(
        "--door", default="", metavar="NAME", help="who it is to the mailbox's store, if that tells"
    )
    parser.add_argument("--lease-s", type=float, default=LEASE_S, metavar="SECONDS")
    parser.add_argument("--parent", type=int, metavar="PID", help="leave when it is gone")
    _add_lease(parser)
    add_arguments(parser)
    return parser


def _add_lease(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rented", action="store_true", help="this machine is rented: it ends with its lease"
    )
    parser.add_argument(
        "--lease", default="", metavar="NUMBER:SECONDS", help="lease of its launch, from now on"
    )
    parser.add_argument(
        "--power-off", default="", metavar="WORDS",
        help="shell command that ends the machine; without it, it ends when the agent does",
    )  # fmt: skip
    parser.add_argument(
        "--own-users", action="store_true", help="as root: each job runs as a user of its own"
    )
    parser.add_argument(
        "--notices", default="", metavar="NAME", help="who hears that its provider takes it"
    )


def _crash(raised: threading.ExceptHookArgs) -> NoReturn:
    """End the whole agent when one of its threads fails: half an agent would hold its jobs."""
    traceback.print_exception(raised.exc_value, file=sys.stderr)
    os._exit(CRASHED)


if __name__ == "__main__":
    sys.exit(main())
