"""Finds in what has happened what people are to be told, and sees to it that they are.

What is to be told is stored before it is sent, and that it has arrived afterwards: a kill between
the two sends it again, as the same message. Nothing here waits: messages go out as effects, each
target's on a lane of its own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cloudwhale.control.effects import Effect, Effects, Key
from cloudwhale.control.notifying.message import Answer, Message
from cloudwhale.control.notifying.outbox import Outbox, Parcel
from cloudwhale.control.notifying.sending import send
from cloudwhale.control.notifying.targets import Target, own_target
from cloudwhale.model import event as e
from cloudwhale.model.job import Job, NotifyRule
from cloudwhale.model.notice import Notice, Noticed
from cloudwhale.model.units import Instant
from cloudwhale.model.world import World
from cloudwhale.planning import noticing
from cloudwhale.planning.queue import earliest
from cloudwhale.spi.store import JobQuery, Store, Told

NOTIFY = "notify"
LOOKED_AT = 200  # events in a tick; of a storm the others are looked at in the next
KEPT_AFTER = 500  # events without anything to tell, after which it is stored how far we are

Send = Callable[[Message, Target, Instant], Answer]


@dataclass(frozen=True, slots=True)
class Sent:
    """A target's answer to a message."""

    target: str
    name: str
    answer: Answer


class Silent:
    """Tells nobody: of whoever plays what has happened, or makes it up."""

    def step(self, now: Instant, epoch: int, effects: Effects) -> Instant | None:
        """See Notifying."""
        return None

    def heard(self, sent: Sent, now: Instant) -> Iterable[e.Event]:
        """See Notifying."""
        return ()

    def waiting(self) -> int:
        """See Notifying."""
        return 0

    def out(self, now: Instant, epoch: int, effects: Effects) -> bool:
        """See Notifying."""
        return False


class Notifying(Silent):
    """The part of a controller that tells people."""

    def __init__(self, store: Store, targets: Mapping[str, Target], send: Send = send) -> None:
        self._store = store
        self._targets = targets
        self._wanted = {name: target.on for name, target in targets.items()}
        self._send = send
        self._outbox = Outbox(targets)
        self._to = -1
        """All events up to this number were looked at; below 0: nobody has begun."""
        self._kept = -1
        self._known: set[str] = set()
        """Ids of notices that are stored, as far as this controller has met them."""
        self._unsaved: list[e.Event] = []
        self._newest = 0

    def waiting(self) -> int:
        """Return how many notices have not arrived yet, counted for each target."""
        return self._outbox.waiting()

    def step(self, now: Instant, epoch: int, effects: Effects) -> Instant | None:
        """Look at what is new, store what is to be told, and send what is due.

        Return when there is more to do though nothing happens. Raise StoreUnusable when the
        database cannot be used now: nothing is lost.
        """
        self._step(now, epoch, effects, at_once=False)
        return earliest(self._outbox.due_at(now), now if self._to < self._newest else None)

    def out(self, now: Instant, epoch: int, effects: Effects) -> bool:
        """Do the same as the controller ends; say whether something may still arrive soon.

        What does not is told by the next controller.
        """
        for result in effects.done(now):  # those of others are asked for anew by the next
            if isinstance(result.value, Sent):
                self.heard(result.value, now)
        self._step(now, epoch, effects, at_once=True)
        return self._to < self._newest or self._outbox.is_busy

    def _step(self, now: Instant, epoch: int, effects: Effects, *, at_once: bool) -> None:
        if self._to < 0:
            self._begin(now)
        self._save(epoch)
        self._look(now)
        self._unsaved += self._outbox.sorted_out(now, at_once=at_once)
        self._save(epoch)
        for target, parcel in self._outbox.next_ones(now, at_once=at_once):
            effects.start(self._effect(target, parcel, now), now)

    def heard(self, sent: Sent, now: Instant) -> Iterable[e.Event]:
        """Take in a target's answer; what it leads to is stored by the next step."""
        self._unsaved += self._outbox.answered(sent.target, sent.name, sent.answer, now)
        return ()

    # -- looking -----------------------------------------------------------------------------

    def _begin(self, now: Instant) -> None:
        """Go on where an earlier controller was; the first of all tells nothing of before."""
        position = self._store.read_to().get(noticing.POSITION)
        if position is None:
            position = self._store.version()
            self._unsaved.append(Noticed(at=now, to=position))
        due = self._store.notices(due=True)
        self._outbox.load(reversed(due))
        self._known |= {one.id for one in due}
        self._to = self._kept = position

    def _look(self, now: Instant) -> None:
        self._newest = self._store.version()
        if self._to >= self._newest:
            return
        told = self._store.since(self._to, LOOKED_AT)
        if not told:
            return
        found = self._new(self._found(told, now))
        self._to = told[-1].seq
        if found or self._to - self._kept >= KEPT_AFTER:
            self._unsaved.append(Noticed(at=now, to=self._to, notices=tuple(found)))
            self._kept = self._to
        self._outbox.add(found)

    def _found(self, told: Sequence[Told], now: Instant) -> list[Notice]:
        events = [one.event for one in told]
        world = self._store.world(now)
        jobs = self._jobs(noticing.jobs_in(events), world)
        known = self._known_of(events, jobs, world)
        found: list[Notice] = []
        for notice in noticing.notices(told, known):
            job = jobs.get(notice.job)
            rule = NotifyRule() if job is None else job.spec.notify
            ways = noticing.ways(notice, rule, self._wanted)
            if ways:
                found.append(notice.but(ways=ways))
        return found

    def _jobs(self, ids: set[str], world: World) -> dict[str, Job]:
        here = {job: world.jobs[job] for job in ids if job in world.jobs}
        gone = tuple(sorted(ids - here.keys()))
        if not gone:
            return here
        return here | {job.id: job for job in self._store.jobs(JobQuery(names_or_ids=gone))}

    def _known_of(
        self, events: Sequence[e.Event], jobs: Mapping[str, Job], world: World
    ) -> noticing.Known:
        nights = [event.run for event in events if isinstance(event, e.NightClosed)]
        runs, accounts = dict(world.runs), dict(world.accounts)
        for night in nights:
            run = self._store.run(night)
            if run is not None:
                runs[night] = run
        if nights:  # an account that nobody needs any more is in no world
            accounts |= {one.payer: one for one in self._store.accounts() if one.payer in nights}
        interrupted = {job: self._interruptions(job) for job in noticing.interrupted_in(events)}
        counts = {night: self._store.counts(night) for night in nights}
        return noticing.Known(jobs, runs, accounts, interrupted, counts)

    def _interruptions(self, job: str) -> int:
        return sum(noticing.interrupts(one.event) for one in self._store.events(job))

    def _new(self, found: Iterable[Notice]) -> list[Notice]:
        """Return those that are not known already, each once."""
        by_id = {one.id: one for one in reversed(list(found)) if one.id not in self._known}
        if not by_id:
            return []
        stored = {one.id for one in self._store.notices(ids=tuple(by_id))}
        self._known |= by_id.keys()
        return [one for name, one in reversed(by_id.items()) if name not in stored]

    # -- sending -----------------------------------------------------------------------------

    def _effect(self, target: str, parcel: Parcel, now: Instant) -> Effect:
        name, message = parcel.name, parcel.message
        to = self._targets.get(target) or self._own(parcel.notices[0])

        def tell() -> Sent:
            if to is None:
                return Sent(target, name, Answer("never", "its job names no webhook any more"))
            return Sent(target, name, self._send(message, to, now))

        return Effect(Key(NOTIFY, target), tell, lane=f"{NOTIFY} {target}")

    def _own(self, notice: Notice) -> Target | None:
        """Return the webhook that a notice's job names."""
        found = self._store.jobs(JobQuery(names_or_ids=(notice.job,), limit=1))
        url = found[0].spec.notify.webhook if found else None
        return None if url is None else own_target(url)

    def _save(self, epoch: int) -> None:
        if self._unsaved:
            self._store.append(self._unsaved, epoch=epoch)
            self._unsaved = []
