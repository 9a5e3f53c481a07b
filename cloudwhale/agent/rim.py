"""The agent's loop: sees, asks its duty, does; the only place where the three meet."""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cloudwhale.agent import actions, attempts, closing, seen
from cloudwhale.agent.acting import Acting
from cloudwhale.agent.cgroups import groups
from cloudwhale.agent.containers import docker_sight
from cloudwhale.agent.containers import runtime as containers
from cloudwhale.agent.duty import duty, wakes_at
from cloudwhale.agent.eyes import Eyes
from cloudwhale.agent.gpu_sight import proven
from cloudwhale.agent.inputs import Inputs
from cloudwhale.agent.launching import NORMAL, Sizes
from cloudwhale.agent.leases import keep_lease
from cloudwhale.agent.logs import LogThread, flush_s
from cloudwhale.agent.looking import Looking
from cloudwhale.agent.metadata import part_containers
from cloudwhale.agent.noticing import Noticing
from cloudwhale.agent.onward import onward
from cloudwhale.agent.orders import OrderReader, Stands, Told
from cloudwhale.agent.place import Place, ReadTo
from cloudwhale.agent.pool import Pool
from cloudwhale.agent.poster import Poster
from cloudwhale.agent.state import LEASE_S, AgentState
from cloudwhale.agent.storewatch import StoreWatch
from cloudwhale.agent.tenancy import Tenancy
from cloudwhale.agent.tidying import tidy
from cloudwhale.agent.traffic import Traffic
from cloudwhale.agent.underway import Attempts, Tools
from cloudwhale.agent.users import apart, users_here
from cloudwhale.clock import iso, pause, real
from cloudwhale.host import AS_IT_IS, Hierarchies, HostOptions, facts
from cloudwhale.mailbox.bell import Bell
from cloudwhale.mailbox.box import folder_of, inbox_from, orders_to
from cloudwhale.mailbox.documents import Left
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.notices import Notices

LAND_S: Seconds = 15.0
"""For jobs, of the 30 s that a provider waits when it switches a machine off: half of them."""
UPLOAD_S: Seconds = 7.0  # for what they have saved last; then last ends and goodbye, which is all
LAST_ENDS_S: Seconds = 3.0
GOODBYE_S: Seconds = 5.0
SLEPT_S: Seconds = 15.0  # a loop that is so late did not run at all
STORE_AGAIN_S: Seconds = 2.0
TIDY_EVERY_S: Seconds = 3600.0


@dataclass(frozen=True, slots=True)
class Charge:
    """What an agent is started with."""

    node: str
    agent: str
    """Incarnation: a name that no other start has."""
    door: str = ""
    """See `mailbox.box.folder_of`."""
    options: HostOptions = AS_IT_IS
    lease_s: Seconds = LEASE_S
    parent: int | None = None
    """Process that started us: when it is gone and there is nothing to do, we go."""
    sizes: Sizes = NORMAL
    stands: Stands = lambda: True
    """Says whether the node is still ours."""
    tenancy: Tenancy | None = None
    """Of a rented machine; None: it is not rented."""
    address: str = ""
    """By which others of its network reach it; empty: nobody asks."""
    own_users: bool = False
    """Whether each job is to have a user of its own."""
    notices: Callable[[], Notices | None] | None = None
    """Who hears that its provider takes it away; None: nobody."""

    @property
    def folder(self) -> str:
        """Return what the node's folders in the mailbox are called."""
        return folder_of(self.node, self.door)


class Rim:
    """One agent, from its start to its end."""

    def __init__(self, charge: Charge, place: Place, objects: Objects, clock: Clock) -> None:
        self._charge = charge
        self._place = place
        self._clock = clock
        self._now = onward(clock)
        self._seen: deque[tuple[seen.Seen, int | None]] = deque()
        self._bell = Bell()
        self._state = AgentState(charge.node, charge.agent, lease_s=charge.lease_s)
        self._store = StoreWatch(place.path / "heard", self._now(), self._tell)
        inbox = inbox_from(objects, charge.folder)
        tools = Tools(
            agent=charge.agent,
            place=place,
            objects=objects,
            clock=clock,
            now=self._now,
            tell=self._tell,
            bell=self._bell,
            pool=Pool(),
            poster=Poster(inbox, clock, self._heard, Traffic(objects).use),
            logs=LogThread(flush_s(objects)),
            groups=groups(Hierarchies.of_this_process()),
            sizes=charge.sizes,
            inputs=Inputs(place),
            users=users_here(place, wanted=charge.own_users),
        )
        self._tools = tools
        under_way = Attempts(tools)
        self._acting = Acting(tools, under_way)
        self._looking = Looking(tools, under_way)
        self._eyes = Eyes(under_way, self._now, self._tell)
        self._docker = docker_sight.DockerSight(tools.pool, self._tell)
        self._orders = OrderReader(
            objects, charge.folder, self._read, charge.stands, self._lose_the_node
        )
        self._tenancy = charge.tenancy
        self._noticing = (
            None if charge.notices is None else Noticing(charge.notices, self._tell, self._now)
        )
        self._ends_machine = False
        self._landing = threading.Event()
        self.ousted = False
        """Whether another agent has become this node meanwhile."""
        self._read_to = ReadTo()
        self._tidy_at: Instant = 0.0

    def land(self) -> None:
        """Stop every job as its rule says, then leave; from a signal handler or a thread."""
        self._landing.set()
        self._bell.ring()

    def _keep_lease(self) -> None:
        """Let shims know whether they must stop their jobs when no agent lives any more."""
        try:
            keep_lease(self._place, None if self._same_host else self._charge.lease_s)
        except OSError as error:
            _say(str(error))

    def _lose_the_node(self) -> None:
        """Obey no order any more, land what runs, and go; from the thread that reads orders."""
        _say(f"another agent has become {self._charge.node}: this one lands its jobs and leaves")
        self.ousted = True
        self.land()

    def ring(self) -> None:
        """Look at once; from a signal handler or a thread."""
        self._bell.ring()

    def run(self) -> None:
        """Work until it is time to leave."""
        self._keep_lease()
        self._wake()
        self._tools.logs.start()
        self._tools.poster.start()
        while not self._state.left:
            self._turn()
        if self._noticing is not None:
            self._noticing.close()
        self._orders.close()
        self._eyes.close()
        self._tools.logs.close()
        self._tools.pool.drain(self._patience_s())  # what has ended is said before the goodbye
        self._tools.poster.say(Left(at=self._clock.now(), agent=self._charge.agent))
        self._tools.poster.drain(max(GOODBYE_S, self._patience_s() - LAST_ENDS_S))
        self._tools.poster.close()
        self._tools.pool.close()
        if self._tenancy is not None and (self._ends_machine or self.ousted):
            _say("this machine ends")
            self._tenancy.end_machine()

    def _patience_s(self) -> Seconds:
        """Return how long the last reports may take, on a real clock.

        A machine that ends keeps nothing for later, so the store is waited for as long as the
        lease allows.
        """
        tenure = self._state.tenure
        if tenure is None or not self._ends_machine:
            return LAST_ENDS_S
        return max(LAST_ENDS_S, real(tenure.away_until - self._now()))

    # -- one turn ----------------------------------------------------------------------------

    def _turn(self) -> None:
        now = self._now()
        attempts_now = self._state.attempts
        due = min(
            wakes_at(self._state),
            self._looking.wakes_at(attempts_now, now),
            self._store.wakes_at(),
        )
        if not self._seen:
            self._bell.wait(real(max(0.0, due - now)))
            self._slept(self._now() - max(now, due))
        self._look()
        while self._seen:
            self._meet(*self._seen.popleft())
        self._step(seen.Tick())
        self._looking.look_for_checkpoints(self._state.attempts, self._now())

    def _slept(self, late_s: Seconds) -> None:
        """Forgive the store a silence during which this host was asleep, and its controller too.

        A controller elsewhere was awake: what it did then in our silence, we cannot know.
        """
        if late_s > SLEPT_S and self._same_host:
            self._store.fresh(self._now())

    @property
    def _same_host(self) -> bool:
        """Say whether the controller is on this host: nobody gives its jobs to another one."""
        return self._charge.parent is not None and self._tools.objects.folder is not None

    def _look(self) -> None:
        now = self._now()
        self._looking.look()
        self._store.look(now)
        self._docker.look(now)
        if self._tenancy is not None:
            self._tenancy.look()
        if self._eyes.hangs(now):
            says = "a look at this machine hangs in its driver: GPU memory is not guarded"
            self._step(seen.Noted(Code.CANNOT_ACT, says))
        if self._landing.is_set() and self._state.land_until is None:
            self._step(seen.LeaveAsked(LAND_S, UPLOAD_S))
        if self._charge.parent is not None and not self._state.orphaned:
            if os.getppid() != self._charge.parent:
                self._step(seen.Orphaned())
        if now >= self._tidy_at:
            self._tidy_at = now + TIDY_EVERY_S
            self._tools.pool.do(partial(tidy, self._place.attempts, self._clock.now()))
            self._tools.pool.do(partial(containers.sweep, self._place.attempts))
            if self._tools.groups is not None:
                self._tools.pool.do(self._tools.groups.sweep)

    def _meet(self, event: seen.Seen, number: int | None) -> None:
        if docker_sight.is_doubtful(event):
            self._docker.doubt()
        if isinstance(event, seen.Warned):
            _say(f"{iso(self._clock.now())} {event.says}")
        if isinstance(event, seen.Runtimes) and self._charge.own_users:
            self._tools.pool.do(self._keep_apart)  # a Docker has started, and has made its rules
        self._step(event)
        if number is not None:
            self._keep_read_to(number)

    def _step(self, event: seen.Seen) -> None:
        self._state, todo = duty(self._state, event, self._now())
        for action in todo:
            match action:
                case actions.KeepTenure():
                    self._keep_tenure(action.tenure)
                case actions.Leave():
                    self._ends_machine = action.ends_machine
                case _:
                    self._acting.do(action)

    def _keep_tenure(self, tenure: seen.Tenure) -> None:
        if self._tenancy is not None:
            try:
                self._tenancy.keep(tenure, self._now())
            except OSError as error:
                _say(str(error))  # a full disk: the lease that is kept is the shorter one

    # -- what comes in -----------------------------------------------------------------------

    def _wake(self) -> None:
        self._read_to = read_to = self._place.read_to() or self._first_read_to()
        found = attempts.found(self._place.attempts)
        if not found or self._same_host:
            self._store.fresh(self._now())
        for one in found:
            self._acting.adopt(one)
        here = proven(facts(self._place.path, self._charge.options), found)
        if self._tenancy is not None:
            here = here.but(address=self._charge.address)
        woke = seen.Woke(
            facts=here,
            public_key=self._place.keys()[1],
            found=found,
            newest=attempts.known(self._place.attempts),
            fence=read_to.fence,
            tenure=None if self._tenancy is None else self._tenancy.begin(self._now()),
        )
        self._step(woke)
        for report in attempts.closing(self._place.attempts):
            self._acting.do(actions.Close(report))
        for key in attempts.broken(self._place.attempts):
            self._acting.do(actions.Close(closing.unreadable(key, self._charge.agent, self._now())))
        for path in attempts.strays(self._place.attempts):
            _say(f"attempts/{path.name} is not ours and is left alone")
        if self._charge.own_users:
            self._keep_apart()
        self._orders.start(read_to)
        self._eyes.start(here)
        self._docker.begin(here, self._now())
        if self._noticing is not None:
            self._noticing.start()

    def _keep_apart(self) -> None:
        """Keep jobs from one another and from the metadata service; say what cannot be done."""
        says = apart(self._place) or part_containers()
        if says:
            self._tell(seen.Noted(Code.CANNOT_ACT, says))

    def _first_read_to(self) -> ReadTo:
        """Return where a new place begins: after all orders, if an agent was here before it.

        That one said something; what it was ordered may have been done, so it is not done again.
        """
        objects, folder = self._tools.objects, self._charge.folder
        while not self._landing.is_set():
            try:
                heard = inbox_from(objects, folder).newest()
                missed_to = orders_to(objects, folder).newest() if heard else 0
                self._read_to = ReadTo(missed_to=missed_to)
                break
            except StoreUnusable as error:
                _say(str(error))
                pause(STORE_AGAIN_S, self._landing)
        self._place.keep_read_to(self._read_to)
        return self._read_to

    def _tell(self, event: seen.Seen) -> None:
        self._seen.append((event, None))
        self._bell.ring()

    def _heard(self, works: bool, ago_s: Seconds) -> None:
        self._store.heard(self._now() - ago_s, works=works)

    def _read(self, orders: Sequence[Told]) -> None:
        self._seen.extend(orders)
        self._bell.ring()

    def _keep_read_to(self, number: int) -> None:
        try:
            self._read_to = replace(self._read_to, number=number, fence=self._state.fence)
            self._place.keep_read_to(self._read_to)
        except OSError as error:
            # Read again after a restart: every order is obeyed once, however often it is read.
            _say(str(error))


def _say(what: str) -> None:
    print(f"cloudwhale agent: {what}", file=sys.stderr, flush=True)
