"""The tick: look, decide, check, record, do. It never waits and never chooses."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from cloudwhale.control.answers import Noted
from cloudwhale.control.arrivals import Found
from cloudwhale.control.boots import Tidings
from cloudwhale.control.carrying import Carried
from cloudwhale.control.dealings import Dealings
from cloudwhale.control.effects import Effects, Key, Result
from cloudwhale.control.executor import Executor, Posted, SecretUnusable
from cloudwhale.control.hired import Hired
from cloudwhale.control.hiring import LAUNCH, VERBS
from cloudwhale.control.inboxes import awaited
from cloudwhale.control.lives import Lives
from cloudwhale.control.notifying.notifying import Sent, Silent
from cloudwhale.control.ordered import ordered
from cloudwhale.control.reports import Reading
from cloudwhale.control.sightings import as_json, differ
from cloudwhale.control.standing import anew, stands, version_after
from cloudwhale.control.sweeping import REMOVE, Sweeping
from cloudwhale.control.timeline import JUMP_S, Timeline
from cloudwhale.control.vitals import Vitals
from cloudwhale.control.watcher import Machines, Mail, Watcher
from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.job import JobState
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import Sighting, World
from cloudwhale.planning import sizing
from cloudwhale.planning.bringing import saved_regions
from cloudwhale.planning.checker import check
from cloudwhale.planning.decided import events_of
from cloudwhale.planning.gravity import regions_of_jobs
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.queue import earliest
from cloudwhale.planning.stirring import LEAVES_EFFECTS, judged_at, stir
from cloudwhale.spi.errors import CloudwhaleError, StaleWorld, TryAnother
from cloudwhale.spi.store import Store

GAP_S: Seconds = 60.0  # a controller whose tick is due for so long has heard nobody
LOOKED_THROUGH = 100  # more events than this since the last round are not looked at one by one


@dataclass(frozen=True, slots=True)
class Chosen:
    """The policies of this controller, with the names they are stored under."""

    policies: Policies
    order: str
    score: str
    seed: int = 0
    holder: str = ""
    """Who we are, for the list of epochs."""
    wait: str = ""
    rent: str = ""
    decide: Callable[[World], p.Plan] | None = None
    """Another planner than the house's, to compare with; None: the house's own."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a controller is made of."""

    store: Store
    watcher: Watcher
    executor: Executor
    effects: Effects
    timeline: Timeline
    sweeping: Sweeping
    notifying: Silent = field(default_factory=Silent)
    vitals: Vitals = field(default_factory=Vitals)


class Controller:
    """One controller's life, from its epoch to its end."""

    def __init__(self, parts: Parts, chosen: Chosen, epoch: int) -> None:
        self._store = parts.store
        self._watcher = parts.watcher
        self._executor = parts.executor
        self._effects = parts.effects
        self._timeline = parts.timeline
        self.vitals = parts.vitals
        self._notifying = parts.notifying
        self._dealings = Dealings(parts.watcher.offers, parts.sweeping, parts.store.events)
        self._lives = Lives(parts.store.past_rentals)
        self._chosen = chosen
        self.epoch = epoch
        self._planned_version = -1
        self._planned_with: Mapping[str, Sighting] = {}
        self._planned_offers: tuple[Offer, ...] = ()
        self._look_again_at: Instant | None = None
        self._standing: p.Plan | None = None
        """The newest plan, if it is of effects alone: what fails of it is done again as it is."""
        self.due_at: Instant | None = None
        """When the next tick is due though nothing rings; None: never, or before the first."""
        self._ticked_at: Instant | None = None
        self.incident = ""
        """What the checker says against the newest plan; empty when nothing."""
        self.rounds = 0
        """Plans that were made."""
        self._unsaved: list[e.Event] = []
        """What has happened and is not stored yet: a database that is locked loses nothing."""
        self._failing: set[Key] = set()

    def tick(self, *, rung: bool | Collection[str] = True) -> Seconds | None:
        """Take one turn; return how soon the next is due if nothing rings, None for never.

        `rung`: a mailbox folder has changed, or nobody can tell; or the nodes whose folders have,
        where that can be told. Raises StoreUnusable when the database cannot be used now: nothing
        is lost, the next tick goes on.
        """
        self.vitals.begins()
        now = self._now()
        self._look(now, rung=rung)
        world = self._store.world(now)
        self._watcher.offers.learn(self._lives.hazards(world.rentals, now))
        world = replace(
            world,
            seed=self._chosen.seed,
            sightings=self._watcher.sightings(world, now),
            offers=self._watcher.offers.open(
                now,
                world.rentals.values(),
                regions_of_jobs(world.jobs.values()),
                saved_regions(world.jobs.values()),
            ),
        )
        if self._watcher.is_informed:
            if self._is_due(world):
                with self.vitals.round():
                    self._decide(world)
            elif self._may_retry(now):
                self._try_again(world)
        told_at = self._notifying.step(now, self.epoch, self._effects)
        self.due_at = earliest(
            self._look_again_at, self._watcher.next_look_at(), self._effects.retry_at(), told_at
        )
        self.vitals.ends(world, self._store.world, self._effects.counts(), self.incident)
        return None if self.due_at is None else max(0.0, self.due_at - now)

    @property
    def is_settled(self) -> bool:
        """Say whether another tick now would decide nothing more, if nothing has come."""
        if not self._watcher.is_informed:
            return not self._unsaved
        return self._planned_version == self._store.version() and not self._unsaved

    def let_agents_go(self) -> None:
        """Tell the agents that we start ourselves that nothing more will come."""
        world = self._store.world(self._timeline.now())
        for node in world.nodes.values():
            if node.owned and node.agent and self._executor.starts(node):
                leave = self._executor.leave(node.id, self.epoch, world.now)
                self._effects.start(leave, world.now)

    def tell_out(self) -> bool:
        """Tell people what is still to be told, as this controller ends; say whether to go on."""
        return self._notifying.out(self._timeline.now(), self.epoch, self._effects)

    # -- look --------------------------------------------------------------------------------

    def _now(self) -> Instant:
        now = self._timeline.now()
        # What fails may have been due for long; that we were away shows in our own ticks alone.
        before = self._ticked_at
        overslept = before is not None and now - max(before, self.due_at or now) > GAP_S
        if overslept or before is None or abs(self._timeline.jumped_s) > JUMP_S:
            self._watcher.forgive(self._store.world(now).nodes, now)
        if self._timeline.jumped_s < -JUMP_S:
            says = f"this host's clock went back by {-self._timeline.jumped_s:.0f} s"
            self._unsaved.append(_noted("controller", Code.CLOCK_WENT_BACK, says, now))
        self._ticked_at = now
        return now

    def _look(self, now: Instant, *, rung: bool | Collection[str]) -> None:
        self._save()
        world = self._store.world(now)
        reading = self._heard(came, world, now) if (came := self._effects.done(now)) else None
        self._unsaved += sizing.news(world, self._chosen.policies.rules.auto_size)
        self._save()
        known = self._store.world(now)  # with all that was just read
        for doors in (self._watcher.doors, self._executor.doors):
            doors.follow(known.rentals)
        if reading is not None:
            for stray in reading.strays:
                self._effects.start(self._executor.end_stray(stray, self.epoch, now), now)
            self._answer(reading.strangers, now)
        soon = awaited(world) if self._watcher.awaits else ()
        due = self._watcher.looks(world.nodes.values(), now, rung=rung, awaited=soon)
        due += self._watcher.boots.looks(known, now)
        if self._watcher.is_informed:
            due += self._dealings.due(known, now)
        for look in due:
            self._effects.start(look, now)

    def _heard(self, results: Iterable[Result], world: World, now: Instant) -> Reading:
        """Keep what came back to be stored; return what else it says."""
        reading = Reading(world, now, self._dealings.was_rented)
        hired = Hired(world, now, reading.jobs, self._watcher.has_heard_out)
        for result in results:
            self.vitals.answered(result)
            dealt = list(self._dealings.heard(result, hired, now))
            reading.learn(dealt)
            self._unsaved += dealt
            self._unsaved += self._came(result, world, reading, now)
            warned = list(self._dealings.warned(reading.warned, hired, now))
            reading.learn(warned)
            self._unsaved += warned
        self._rise_above(reading.fence, now)
        return reading

    def _answer(self, strangers: Mapping[str, str], now: Instant) -> None:
        """Tell agents of removed nodes and returned machines to leave; ask others who they are.

        An agent that joined long ago is not known when the database was begun anew since.
        """
        for node, agent in strangers.items():
            told = self._store.events(node)
            is_removed = any(isinstance(one.event, e.NodeRemoved) for one in told)
            if is_removed or self._dealings.was_rented(node):
                answer = self._executor.leave(node, self.epoch, now, agent)
            else:
                answer = self._executor.introduce(node, self.epoch, now)
            self._effects.start(answer, now)

    def _rise_above(self, fence: int, now: Instant) -> None:
        """Take a higher epoch when an agent has obeyed one that our database never gave.

        We hold the lock, so nobody else gives orders: the database was replaced by an older one,
        and our orders would be refused for ever.
        """
        if fence > self.epoch:
            self.epoch = self._store.new_epoch(self._chosen.holder, now, at_least=fence + 1)

    def _save(self) -> None:
        """Store what has happened; what cannot be stored now is kept for the next tick."""
        if self._unsaved:
            self._store.append(self._unsaved, epoch=self.epoch)
            self.vitals.happened(self._unsaved)
            self._unsaved = []

    def _came(
        self, result: Result, world: World, reading: Reading, now: Instant
    ) -> Iterable[e.Event]:
        if result.error is not None:
            self._watcher.failed(result.key)
            if result.key.verb == LAUNCH and isinstance(result.error, TryAnother):
                return []  # that is told of the rental, and it is not tried again
            return self._failed(result.key, result.error, world, now)
        self._failing.discard(result.key)
        if result.key.verb in VERBS:
            return []
        match result.value:
            case Mail() | Tidings() as said:
                return self._watcher.heard(said, reading, world, now)
            case Found() as found:
                self._watcher.arrived(found)
                return []
            case Machines() as seen:
                return self._watcher.machines_came(seen, world, now)
            case Sent() as sent:
                return self._notifying.heard(sent, now)
            case Posted() | Carried() as done:
                return ordered(result.key, done, world, now)
            case _ if result.key.verb == "wake":
                self._watcher.woken(result.key.subject)
                return []
            case _:
                return []

    def _failed(
        self, key: Key, error: CloudwhaleError, world: World, now: Instant
    ) -> Iterable[e.Event]:
        """Say once that something cannot be done; it is tried again until it can."""
        verb, subject, attempt, _ = key
        if isinstance(error, SecretUnusable) and subject in world.jobs:
            reason = Reason(code=Code.SECRET_MISSING, says=error.says, change=error.remedy)
            job = world.jobs[subject]
            is_it = job.attempt == attempt and job.state in (JobState.STARTING, JobState.RECOVERING)
            return [e.Parked(at=now, job=subject, reason=reason)] if is_it else []
        if key in self._failing:
            return []
        self._failing.add(key)
        says = f"cannot {verb} {subject}: {error.says}"
        code = Code.LEFTOVER_STAYS if verb == REMOVE else Code.CANNOT_ACT
        return [_noted(subject, code, says, now, error.remedy)]

    # -- decide, check, record, do -----------------------------------------------------------

    def _is_due(self, world: World) -> bool:
        if world.version != self._planned_version and self._is_stirred(world):
            return True
        if self._look_again_at is not None and world.now >= self._look_again_at:
            return True
        if self._standing is None and self._may_retry(world.now):
            return True
        if world.offers is not self._planned_offers:
            return True
        return differ(self._planned_with, world.sightings)

    def _may_retry(self, now: Instant) -> bool:
        retry_at = self._effects.retry_at()
        return retry_at is not None and now >= retry_at

    def _is_stirred(self, world: World) -> bool:
        """Say whether what has happened since the last plan may lead to another."""
        many = world.version - self._planned_version
        if self._planned_version < 0 or many > LOOKED_THROUGH:
            return True
        told = self._store.since(self._planned_version, many)
        events = [one.event for one in told]
        if len(events) != many or stir(events, world, self._chosen.policies):
            return True
        self._planned_version = world.version
        self._look_again_at = earliest(self._look_again_at, judged_at(events, world))
        if not all(isinstance(event, LEAVES_EFFECTS) for event in events):
            self._standing = None  # an order that was posted is not to be posted again
        return False

    def _decide(self, world: World) -> None:
        made, asked = self._planned(world)
        self.vitals.planned(made)
        self.rounds += 1
        settled_at = world.version
        if made.steps and not self._is_refused(made, world):
            try:
                self._record(made, world, asked)
            except StaleWorld:
                return  # somebody wrote meanwhile: the next tick plans for the newer world
            settled_at = version_after(made, world)
            self._executor.carry_out(made, world, self._effects, self.epoch)
            self._unsaved += self._dealings.decided(made, world)
            self._unsaved += self._executor.notes(made, world)
        self._effects.forget_unwanted(world.now)
        self._standing = made if not self.incident and stands(made, world) else None
        self._look_again_at = made.look_again_at
        self._planned_with = world.sightings
        self._planned_offers = world.offers
        self._planned_version = settled_at

    def _try_again(self, world: World) -> None:
        """Do again what has failed of the newest plan: nothing has changed since."""
        made = None if self._standing is None else anew(self._standing, world)
        if made is not None and made.steps and not self._is_refused(made, world):
            self._store.append((), epoch=self.epoch)
            self._executor.carry_out(made, world, self._effects, self.epoch)
        self._effects.forget_unwanted(world.now)

    def _planned(self, world: World) -> tuple[p.Plan, Noted | None]:
        """Return the plan, and what its rent policy was asked."""
        chosen = self._chosen
        if chosen.decide is not None:
            return chosen.decide(world), None
        rent = chosen.policies.rent
        asked = None if rent is None else Noted(self.vitals.timed(rent))
        return plan(world, replace(chosen.policies, rent=asked)), asked

    def _is_refused(self, made: p.Plan, world: World) -> bool:
        faults = check(made, world, self._chosen.policies.rules)
        says = "; ".join(f"{fault.rule}: {fault.says}" for fault in faults[:5])
        if faults and says != self.incident:
            self._unsaved.append(_noted("controller", Code.PLAN_REFUSED, says, world.now))
        self.incident = says
        return bool(faults)

    def _record(self, made: p.Plan, world: World, asked: Noted | None) -> None:
        """Store the round before anything is done; effects alone need no more than the epoch."""
        events = events_of(made, world.now)
        if not events:
            self._store.append((), epoch=self.epoch)
            return
        offers = self._watcher.offers.kept
        round_ = p.Round(
            number=0,
            version=world.version,
            now=world.now,
            seed=world.seed,
            epoch=self.epoch,
            order=self._chosen.order,
            score=self._chosen.score,
            settings=self._chosen.policies.rules.model_dump_json(),
            sightings=as_json(world.sightings),
            offers=offers.digest,
            wait=self._chosen.wait,
            rent=self._chosen.rent,
            answers="" if asked is None else asked.text(),
            plan=made,
        )
        self._store.record(round_, events, epoch=self.epoch, offers=offers.text)
        self.vitals.happened(events)


def _noted(subject: str, code: Code, says: str, at: Instant, change: str = "") -> e.Noted:
    reason = Reason(code=code, says=says, change=change)
    return e.Noted(at=at, subject=subject, reason=reason)
