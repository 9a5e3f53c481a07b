"""Runs a controller in a thread of whatever process holds the lock."""

import logging
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from cloudwhale.clock import SystemClock, lasted, pause, real
from cloudwhale.control import desk as desks
from cloudwhale.control.controller import Chosen, Controller, Parts
from cloudwhale.control.doors import Doors
from cloudwhale.control.effects import ThreadedEffects
from cloudwhale.control.executor import Executor
from cloudwhale.control.hiring import Where
from cloudwhale.control.inboxes import BOOTS_OVER_HTTP, OVER_HTTP, at_speed
from cloudwhale.control.notifying.notifying import Notifying
from cloudwhale.control.notifying.targets import targets
from cloudwhale.control.store.opening import lock_for
from cloudwhale.control.supply import limits_of
from cloudwhale.control.sweeping import Sweeping
from cloudwhale.control.this_host import leave_out_this_host
from cloudwhale.control.timeline import Timeline
from cloudwhale.control.vitals import LEDGER, Vitals
from cloudwhale.control.watcher import LIST_AGAIN_S, LIST_EVERY_S, Pace, Watcher
from cloudwhale.mailbox.bell import Bell, Rang
from cloudwhale.mailbox.box import INBOX
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import CloudwhaleError, Fenced, StoreUnusable
from cloudwhale.spi.provider import LaunchRequest, Provider
from cloudwhale.spi.store import Store

if TYPE_CHECKING:
    from cloudwhale.control.bundle import Bundle
    from cloudwhale.control.bundle_delivery import Delivers


class Unexpected(CloudwhaleError):
    """A bug ended the controller; nothing is lost, the next one goes on from the events."""

    def __init__(self, error: Exception) -> None:
        where = traceback.extract_tb(error.__traceback__)[-1]
        super().__init__(
            f"the controller met a bug: {type(error).__name__}: {error} "
            f"({Path(where.filename).name}:{where.lineno})",
            "Nothing is lost: the same command goes on. Please report this sentence.",
        )


POLL_S: Seconds = 0.05  # how soon a job that another process submits is seen; costs 0.3 % of a core
LONGEST_WAIT_S: Seconds = 1.0
TROUBLE_WAIT_S: Seconds = 1.0
TELL_OUT_S: Seconds = 10.0  # of a real clock; as long as one who does not answer is waited for

log = logging.getLogger("cloudwhale.controller")


class ControllerHost:
    """The controller of this process, once it holds the lock."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = lock_for(settings)
        self._bell: Bell | None = None
        self._stop = threading.Event()
        self._leave_agents = True
        self._thread: threading.Thread | None = None
        self.failure: CloudwhaleError | None = None
        """Why the controller ended, when it was not asked to."""
        self.trouble = ""
        """What it cannot do at the moment and tries again; empty when all is well."""
        self.vitals = Vitals(lambda: real(SystemClock().steady()))
        """What it tells of itself; seconds of work are those of this host."""

    @property
    def holds(self) -> bool:
        """Say whether this process has the controller."""
        return self._thread is not None and self._thread.is_alive()

    def holder(self) -> str:
        """Return who holds the lock, in words."""
        return self._lock.holder()

    def try_start(self) -> bool:
        """Take the lock and start the controller; False when another process holds it."""
        if self.holds:
            return True
        if not self._lock.acquire():
            return False
        self._stop.clear()
        self._bell = Bell()
        self._thread = threading.Thread(target=self._live, name="controller", daemon=True)
        self._thread.start()
        return True

    def stop(self, *, leave_agents: bool) -> None:
        """End the controller and let the lock go.

        `leave_agents`: keep this host's agents running for the next controller.
        """
        self._leave_agents = leave_agents
        self._stop.set()
        if self._bell is not None:
            self._bell.ring()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._lock.release()

    # -- the thread --------------------------------------------------------------------------

    def _live(self) -> None:
        assert self._bell is not None
        try:
            with desks.open_desk(self._settings, may_migrate=True) as desk:
                self._turn(desk, self._bell)
                while not self._stop.is_set():
                    self._go_on(desk, self._bell)
        except CloudwhaleError as error:
            self.failure = error
            log.error("controller ended: %s", error)
        except Exception as error:
            # The last catch of the tick: a bug must reach the person, not vanish with a thread.
            self.failure = Unexpected(error)
            log.exception("controller ended by a bug")
        finally:
            self._bell.close()
            self._bell = None

    def _go_on(self, desk: desks.Desk, bell: Bell) -> None:
        """Control again, under the next epoch, after the lock was lost with its session.

        Raise Fenced when another controller has it.
        """
        try:
            if self._lock.acquire():
                self._turn(desk, bell)
                return
            holder = self._lock.holder() or "another controller"
        except StoreUnusable as error:
            self._waits(error)
            return
        raise Fenced(
            f"this controller has lost the lock of the queue, and {holder} has it now",
            "Nothing to do: this one stops, the other goes on.",
        )

    def _turn(self, desk: desks.Desk, bell: Bell) -> None:
        """Control under one epoch, until asked to stop or until the lock is lost."""
        name = _installation(desk) if self._settings.clouds else ""
        found = desks.providers(self._settings, name)
        with closing(ThreadedEffects(bell.ring)) as effects:
            controller = _controller(desk, found, effects, self.vitals)
            self._tick_on(controller, desk, bell)
            if self._stop.is_set():
                self._tell_out(controller, desk, bell)
            if self._stop.is_set() and not self._leave_agents and _is_empty(desk):
                controller.let_agents_go()

    def _tick_on(self, controller: Controller, desk: desks.Desk, bell: Bell) -> None:
        rang, due_s, version = Rang(anything=True, folder=True), 0.0, -1
        while not self._stop.is_set():
            steady = desk.clock.steady()
            if rang.anything or steady >= due_s or self._version(desk) != version:
                if not self._lock.is_held():
                    return
                # Only a folder means mail: an effect that ended must not start the next look.
                due_s = steady + self._tick(controller, desk, bell, rung=rang.folder)
                version = self._version(desk)
            rang = bell.wait(min(POLL_S, max(0.0, real(due_s - desk.clock.steady()))))

    def _tell_out(self, controller: Controller, desk: desks.Desk, bell: Bell) -> None:
        """Give what is to be told its time before the end: one try of each target."""
        until_s = desk.clock.steady() + lasted(TELL_OUT_S)
        try:
            while self._lock.is_held() and controller.tell_out():
                if desk.clock.steady() >= until_s:
                    return
                bell.wait(POLL_S)
        except StoreUnusable as error:
            log.error("controller ends and has not told all: %s", error)

    def _version(self, desk: desks.Desk) -> int:
        try:
            return desk.store.version()
        except StoreUnusable:
            return -1  # the tick says what is wrong

    def _tick(self, controller: Controller, desk: desks.Desk, bell: Bell, *, rung: bool) -> Seconds:
        """Take one turn; return how soon the next is due."""
        try:
            wait_s = controller.tick(rung=rung)
            _watch(desk, bell)
            self.trouble = ""
        except StoreUnusable as error:
            self._waits(error)
            return 0.0
        longest_s, poll_s = lasted(LONGEST_WAIT_S), lasted(POLL_S)  # of this host's time
        return longest_s if wait_s is None else min(max(wait_s, poll_s), longest_s)

    def _waits(self, error: StoreUnusable) -> None:
        if self.trouble != error.says:
            log.error("controller waits: %s", error)
        self.trouble = error.says
        pause(TROUBLE_WAIT_S, self._stop)


def _watch(desk: desks.Desk, bell: Bell) -> None:
    if desk.objects.folder is None and desk.mailboxes.is_one:
        return
    world, doors = desk.store.world(desk.clock.now()), Doors()
    doors.know(world.rentals.values())
    for node in world.nodes:
        folder = doors.store(node, desk.mailboxes).folder
        if folder is not None:
            bell.watch(folder / INBOX / doors.folder(node))


def _is_empty(desk: desks.Desk) -> bool:
    world = desk.store.world(desk.clock.now())
    return not world.jobs and not world.rentals  # a machine that is not back costs money


def _controller(
    desk: desks.Desk, found: Mapping[str, Provider], effects: ThreadedEffects, vitals: Vitals
) -> Controller:
    settings, now = desk.settings, desk.clock.now()
    epoch = desk.store.new_epoch(desks.node_name(settings), now)
    leave_out_this_host(desk)
    where = Where(
        desks.mailbox_url(settings), str(settings.home), desk.clock, _archive(desk),
        desks.own_mailboxes(settings), _prove_ours(desk),
    )  # fmt: skip
    is_near = desk.objects.folder is not None and desk.mailboxes.is_one
    over_http = None if is_near else at_speed(OVER_HTTP, lasted(1.0))
    pace = Pace(
        inboxes=over_http,
        boots=at_speed(BOOTS_OVER_HTTP, lasted(1.0)),
        list_every_s=max(LIST_EVERY_S, lasted(1.0)),
        list_again_s=max(LIST_AGAIN_S, lasted(0.5)),
    )
    watcher = Watcher(desk.mailboxes, found, desk.store.read_to(), settings.clock_skew_s, pace)
    watcher.offers.limit_to(limits_of(settings), accept_no_stop=settings.accept_no_stop)
    parts = Parts(
        store=desk.store,
        watcher=watcher,
        executor=Executor(desk.store, desk.mailboxes, found, lambda: desk.key, where),
        effects=effects,
        timeline=Timeline(desk.clock, not_before=_newest_at(desk.store)),
        sweeping=Sweeping(found, desk.mailboxes),
        vitals=vitals,
        notifying=Notifying(desk.store, targets(settings.notify)),
    )
    if vitals.is_asked:
        vitals.knows(desk.store.costs(LEDGER), parts.notifying.waiting, found)
    chosen = Chosen(
        desks.policies(settings, desk.clock), settings.order, settings.score, settings.seed,
        desks.node_name(settings), wait=settings.wait, rent=settings.rent,
    )  # fmt: skip
    return Controller(parts, chosen, epoch)


def _installation(desk: desks.Desk) -> str:
    from cloudwhale.control.installation import installation

    return installation(desk)


def _prove_ours(desk: desks.Desk) -> Callable[[str], object]:
    """Return what proves, before a launch, that a cloud's own mailbox is this installation's.

    Not at the start: a store that does not answer then keeps nobody from the others.
    """
    if desk.mailboxes.is_one:
        return str
    from cloudwhale.control.installation import Proofs

    return Proofs(desk).prove


def _archive(desk: desks.Desk) -> "Delivers | None":
    """Return who gives machines their agent; None where they are processes of this host."""
    if not desk.settings.clouds:
        return None
    from cloudwhale.control.bundle_delivery import Deliveries
    from cloudwhale.control.surrounding import boots

    if not boots(desk.settings):
        return None

    def make() -> "Bundle":
        from cloudwhale.control.bundle import made

        return made(say=log.info)

    return Deliveries(desk.mailboxes, make)


def _newest_at(store: Store) -> Instant:
    """Return when the newest event was: time goes on from there, whatever the wall clock says."""
    told = store.since(store.version() - 1, 1)
    return told[0].event.at if told else 0.0


def wake_local_agent(settings: Settings) -> None:
    """Start this host's agent now, so that it is there when its first order is posted."""
    for provider in desks.this_host(settings).values():
        node = desks.node_name(settings)
        request = LaunchRequest(
            request_id=f"early-{node}",
            node=node,
            offer=None,
            mailbox=desks.mailbox_url(settings),
            home=str(settings.home),
        )
        provider.launch(request)


def leave_controller_behind(settings: Settings) -> int:
    """Start a controller that ends when nothing is left to do; return its process id."""
    settings.home.mkdir(parents=True, exist_ok=True)
    with (settings.home / "controller.log").open("ab") as output:
        file = settings.metrics_file
        also = [] if file is None else ["--metrics-file", str(file)]
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cloudwhale", "controller", "--until-empty", *also],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return process.pid
