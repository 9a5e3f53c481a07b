"""Looks at mailboxes and providers; what was seen becomes events and sightings."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cloudwhale.control.arrivals import LOOK_EVERY_S as FIND_EVERY_S
from cloudwhale.control.arrivals import Arrivals, Found
from cloudwhale.control.boots import PACE as BOOTS_PACE
from cloudwhale.control.boots import Boots, Tidings
from cloudwhale.control.clocks import Clocks
from cloudwhale.control.doors import Doors
from cloudwhale.control.effects import Effect, Key
from cloudwhale.control.heard import Heard
from cloudwhale.control.inboxes import Cadence, Inboxes
from cloudwhale.control.mailboxes import MAIN, Mailboxes
from cloudwhale.control.missing import Missing
from cloudwhale.control.offers import ASK_EVERY_S, Offers
from cloudwhale.control.recounted import recounted
from cloudwhale.control.reports import Reading
from cloudwhale.mailbox.box import Box, inbox_from
from cloudwhale.model import event as e
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import Sighting, World
from cloudwhale.spi.provider import Machine, Provider

READ_EVERY_S: Seconds = 1.0  # where no folder notification wakes us
LOOK_EVERY_S: Seconds = 1.0  # whether the agents that we start ourselves are alive
LIST_EVERY_S: Seconds = 10.0  # a cloud's list of machines: a request per region, and its throttle
LIST_AGAIN_S: Seconds = 2.0  # while one is on its way back: it is paid for once it is gone
HANGS_S: Seconds = 10.0  # a store that answers at all does so within seconds
READ_AT_ONCE = 200  # documents read in one go, so that a backlog does not hold up a tick
KEEP_READ = 500  # read documents kept for a person who looks for what happened
NOTE_READ_AFTER_S: Seconds = 300.0  # how long reading only heartbeats goes unrecorded


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to look when nothing rings; a look that nobody asks for costs a request."""

    read_every_s: Seconds = READ_EVERY_S
    look_every_s: Seconds = LOOK_EVERY_S
    ask_every_s: Seconds = ASK_EVERY_S
    """How often providers are asked what they offer."""
    find_every_s: Seconds = FIND_EVERY_S
    """How soon an agent that has come by itself is found."""
    list_every_s: Seconds = LIST_EVERY_S
    """How often clouds are asked for their machines; owned ones are looked at more often."""
    list_again_s: Seconds = LIST_AGAIN_S
    """The same, while one of them is on its way back."""
    inboxes: Cadence | None = None
    """How often inboxes are read, where that depends on who is awaited; None: `read_every_s`."""
    boots: Cadence = BOOTS_PACE
    """How often machines that boot are asked how far they are."""


@dataclass(frozen=True, slots=True)
class Mail:
    """Documents read from one node's inbox."""

    node: str
    last: int
    bodies: tuple[bytes, ...]
    asked_at: Instant
    """When it was asked for: what came later was not there then."""
    later: int | None = None
    """The first document that is there after `last`, `last + 1` for none; None: nobody looked."""

    @property
    def first(self) -> int:
        """Return the number of the first document."""
        return self.last - len(self.bodies) + 1


@dataclass(frozen=True, slots=True)
class Machines:
    """What one provider says of its machines."""

    provider: str
    machines: tuple[Machine, ...]


class Watcher:
    """Remembers when each node was last heard, and how far its inbox was read."""

    def __init__(
        self,
        mailboxes: Mailboxes,
        providers: Mapping[str, Provider],
        read_to: Mapping[str, int],
        skew_s: Seconds = 30.0,
        pace: Pace = Pace(),
    ) -> None:
        self._mailboxes = mailboxes
        self._pace = pace
        self.offers = Offers(providers, pace.ask_every_s)
        self.doors = Doors()
        self.boots = Boots(mailboxes, pace.boots)
        self._arrivals = Arrivals(mailboxes.main, pace.find_every_s)
        self._missing = Missing()
        self._clocks = Clocks(skew_s)
        self._providers = providers
        self._read_to = dict(read_to)
        self._noted_at: dict[str, Instant] = {}
        self._heard = Heard()
        self._looked_at: dict[str, Instant] = {}
        """When each provider was asked for its machines."""
        self._goes_back = False
        """Whether a rented machine is on its way back."""
        self._inboxes = Inboxes(pace.inboxes or Cadence(pace.read_every_s))
        self._unseen = {Key("look", name) for name in providers}
        """Looks that nothing may be judged before."""
        self._unseen_since: Instant | None = None
        self._empty_at: dict[str, Instant] = {}
        """When each inbox was last asked for what it did not have."""
        self._gone_at: dict[str, Instant] = {}
        """Since when machines are listed as gone whose last words are not known to be read."""

    @property
    def is_informed(self) -> bool:
        """Say whether every provider and every inbox was looked at, or could not be.

        Before that, and again after a gap in our own ticks, nothing is decided.
        """
        return not self._unseen

    @property
    def awaits(self) -> bool:
        """Say whether it matters here who will say something soon."""
        return self._pace.inboxes is not None

    def forgive(self, nodes: Iterable[str], now: Instant) -> None:
        """Count every silence from now, and read every inbox first: it was we who were away."""
        self._heard.forgive(now)
        self._unseen |= {Key("read", node) for node in nodes}
        self._unseen_since = now
        self._inboxes.read_soon()

    def look_soon(self) -> None:
        """Look at every provider at the next chance: something is said to have changed there."""
        self._looked_at = {}
        self.offers.ask_soon()

    def has_heard_out(self, node: str, now: Instant) -> bool:
        """Say whether all that a machine has said is read, now that it is listed as gone.

        Else that is read first, and its provider is asked again after it: its job may have ended
        well, or saved more than is known here.
        """
        self._gone_at.setdefault(node, now)
        if self._has_more_to_say(node):
            return False
        del self._gone_at[node]
        return True

    def _has_more_to_say(self, node: str) -> bool:
        return self._empty_at.get(node, -math.inf) < self._gone_at[node]

    def looks(
        self,
        nodes: Iterable[Node],
        now: Instant,
        *,
        rung: bool | Collection[str],
        awaited: Collection[str] = (),
    ) -> list[Effect]:
        """Return the looks that are due: inboxes at once when something rang.

        `rung`: the nodes whose inboxes have changed, where that can be told. `awaited`: those that
        will soon say something, known or not.
        """
        self._give_up_waiting(now)
        nodes = list(nodes)
        known = [node.id for node in nodes]
        effects = self._reads([*known, *sorted(set(awaited) - set(known))], now, rung, awaited)
        if self.is_informed:  # so that the names of providers' machines are known
            arrivals = self._arrivals.look({*known, *awaited, *self._heard.owned}, now)
            effects += [] if arrivals is None else [arrivals]
        self._goes_back = any(not one.owned and one.state is NodeState.DRAINING for one in nodes)
        for name in self._providers:
            if self._is_over(self._looked_at.get(name), self._look_every_s(name), now):
                self._looked_at[name] = now
                effects.append(self._look(name))
        return effects + self.offers.looks(now)

    def _give_up_waiting(self, now: Instant) -> None:
        """Wait no longer for a cloud's store that hangs: who meets us elsewhere is seen to.

        Nothing is judged of those that meet us there: their silence does not count, see
        `sightings`.
        """
        since = self._unseen_since
        if self._mailboxes.is_one or since is None or now - since < HANGS_S:
            return
        self._unseen_since = None
        self._unseen = {key for key in self._unseen if key.verb != "read" or not self._far(key)}

    def _far(self, key: Key) -> bool:
        return self.doors.lane(key.subject, self._mailboxes) != MAIN

    def _reads(
        self,
        names: list[str],
        now: Instant,
        rung: bool | Collection[str],
        awaited: Collection[str],
    ) -> list[Effect]:
        """Return the reads of inboxes that are due."""
        if self._inboxes.begin(names, awaited, now) or (rung is True and self._mailboxes.is_one):
            self._inboxes.all_read(now)
            self._arrivals.let_go({*names, *self._heard.owned}, self._heard.at, now)
            return [self._read(name, now) for name in names + self._arrivals.followed]
        some = {*self._inboxes.due(now), *filter(self._has_more_to_say, self._gone_at)}
        if not isinstance(rung, bool):
            some |= set(rung)
        elif rung:  # a folder has: not the stores of clouds, each look into which is a request
            some |= {name for name in names if self.doors.lane(name, self._mailboxes) == MAIN}
        return [self._read(name, now) for name in sorted(some)]

    def next_look_at(self) -> Instant | None:
        """Return when the next look is due."""
        looks = [at + self._look_every_s(name) for name, at in self._looked_at.items()]
        boots_at = self.boots.next_look_at()
        times = [self._inboxes.next_at(), self.offers.next_look_at(), boots_at, *looks]
        return min((at for at in times if at is not None), default=None)

    def _look_every_s(self, provider: str) -> Seconds:
        if self._providers[provider].stops is None:
            return self._pace.look_every_s
        return self._pace.list_again_s if self._goes_back else self._pace.list_every_s

    @staticmethod
    def _is_over(at: Instant | None, every_s: Seconds, now: Instant) -> bool:
        return at is None or now - at >= every_s

    def _read(self, node: str, now: Instant) -> Effect:
        folder, provider = self.doors.folder(node), self.doors.provider(node)
        first = self._read_to.get(node, 0) + 1
        may_pass = self._missing.may_pass(node, first, now)
        must_look = self._missing.must_look(node, self._heard.at.get(node, now), now)

        def read() -> Mail:
            box = inbox_from(self._mailboxes.of(provider), folder)
            later = None
            bodies = _from(box, first)
            if not bodies and (may_pass or must_look):
                later = box.first_kept(first)
            if later is not None and may_pass:
                bodies = _from(box, later)
            begin = later if bodies and later is not None else first
            last = begin - 1 + len(bodies)
            if bodies and last // KEEP_READ > (begin - 1) // KEEP_READ:
                box.forget(max(1, last - 2 * KEEP_READ), last - KEEP_READ)
            return Mail(node, last, bodies, now, later)

        return Effect(Key("read", node), read, lane=self._mailboxes.name_of(provider))

    def _look(self, provider: str) -> Effect:
        def look() -> Machines:
            return Machines(provider, tuple(self._providers[provider].machines()))

        return Effect(Key("look", provider), look, lane=f"list of {provider}")

    # -- what came back ----------------------------------------------------------------------

    def failed(self, key: Key) -> None:
        """Note that a look could not be made: silence does not count, and nobody waits for it."""
        self._unseen.discard(key)

    def heard(
        self, said: Mail | Tidings, reading: Reading, world: World, now: Instant
    ) -> Iterable[e.Event]:
        """Return the events of what an agent said, or a machine that boots."""
        if isinstance(said, Tidings):
            return self.boots.came(said, world, now)
        return self.mail_came(said, reading, now)

    def mail_came(self, mail: Mail, reading: Reading, now: Instant) -> Sequence[e.Event]:
        """Return the events of some documents; reading the same mail twice gives nothing."""
        known = self._read_to.get(mail.node, 0)
        fresh = mail.bodies[max(0, len(mail.bodies) - (mail.last - known)) :]
        empty_at = self._empty_at.get(mail.node)
        self._note_missing(mail, known, now)
        if len(mail.bodies) == READ_AT_ONCE:
            self._inboxes.read_soon()  # there may be more
        else:
            self._heard.listened(mail.node, now)
            self._emptied(mail)
            self._unseen.discard(Key("read", mail.node))
        if mail.last <= known or not fresh:
            return []
        self._heard.said(mail.node, now)
        self._read_to[mail.node] = mail.last
        events: list[e.Event] = []
        if 0 < known < mail.first - 1:
            events += reading.missing(mail.node, known + 1, mail.first - 1)
        events += [event for body in fresh for event in reading.events(mail.node, body)]
        if mail.node in reading.measured:
            self._heard.measured(mail.node, reading.measured[mail.node])
        events += self._off_clock(mail, reading, empty_at, now)
        noted_at = self._noted_at.setdefault(mail.node, now)
        if events or now - noted_at >= NOTE_READ_AFTER_S:
            self._noted_at[mail.node] = now
            events.append(e.Read(at=now, node=mail.node, number=mail.last))
        return events

    def _emptied(self, mail: Mail) -> None:
        """Note that an inbox had no more; whoever is gone may count as gone from now on."""
        is_awaited = mail.node in self._gone_at and self._has_more_to_say(mail.node)
        self._empty_at[mail.node] = mail.asked_at
        if is_awaited and not self._has_more_to_say(mail.node):
            self._looked_at = {}

    def _note_missing(self, mail: Mail, known: int, now: Instant) -> None:
        if mail.bodies:
            self._missing.read(mail.node)
        elif mail.later is not None:
            self._missing.looked(mail.node, known + 1, mail.later, now)

    def _off_clock(
        self, mail: Mail, reading: Reading, empty_at: Instant | None, now: Instant
    ) -> Sequence[e.Event]:
        said_at = reading.said_at.get(mail.node)
        if said_at is None:
            return ()
        return self._clocks.compare(mail.node, said_at, empty_at, now)

    def arrived(self, found: Found) -> None:
        """Follow the inboxes of agents that have come by themselves."""
        self._arrivals.came(found)

    def woken(self, node: str) -> None:
        """Count an agent as alive that was just started, until the next look."""
        self._heard.alive(node, is_it=True)

    def machines_came(self, seen: Machines, world: World, now: Instant) -> Sequence[e.Event]:
        """Return events for owned machines that were not known yet, or are others now."""
        self._unseen.discard(Key("look", seen.provider))
        events: list[e.Event] = []
        for machine in seen.machines:
            if not machine.owned:
                continue  # `hired` says what becomes of those that are rented
            self._heard.alive(machine.node, is_it=machine.state == "running")
            known = world.nodes.get(machine.node)
            if known is not None and not known.provider:
                # It came by itself before; from now on it is started when it is needed.
                node = known.but(provider=seen.provider)
                events.append(e.NodeJoined(at=now, node=node))
            elif known is not None:
                # While an agent runs there, it tells what has changed.
                sleeps = machine.state == "gone"
                node = recounted(known, machine, seen.provider) if sleeps else known
                events += [] if node is known else [e.NodeJoined(at=now, node=node)]
            elif machine.facts is not None:
                node = Node(id=machine.node, facts=machine.facts, provider=seen.provider)
                events.append(e.NodeJoined(at=now, node=node))
        return events

    def sightings(self, world: World, now: Instant) -> Mapping[str, Sighting]:
        """Return what was seen of every known node."""
        return self._heard.sightings(world.nodes, now)


def _from(box: Box, first: int) -> tuple[bytes, ...]:
    """Return the documents from a number on, as many as there are without a gap."""
    bodies: list[bytes] = []
    while len(bodies) < READ_AT_ONCE and (body := box.read(first + len(bodies))) is not None:
        bodies.append(body)
    return tuple(bodies)
