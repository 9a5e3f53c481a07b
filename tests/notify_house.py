"""A store, a controller's telling over it, receivers that answer as they are asked to, a clock."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from makers import a_job, a_run
from stories import completes, submitted

from cloudwhale.control.effects import InlineEffects
from cloudwhale.control.notifying.message import Answer, Message
from cloudwhale.control.notifying.notifying import Notifying, Sent
from cloudwhale.control.notifying.targets import Target, targets
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant
from cloudwhale.spi.store import Store

OPS = targets({"ops": {"webhook": "https://hooks.example/ops"}})
TOLD = Answer("told", "hooks.example answers 204")
WHY = Reason(code=Code.COMMAND_FAILED, says="its process ended with 3")
USD = 1_000_000


@dataclass
class Receivers:
    """Whoever is told: what they answer, and what they got, by target."""

    answer: Callable[[Target, Message], Answer] = lambda target, message: TOLD
    got: list[tuple[str, Message]] = field(default_factory=list[tuple[str, Message]])

    def send(self, message: Message, target: Target, now: Instant) -> Answer:
        """Take a message."""
        answer = self.answer(target, message)
        self.got.append((target.name, message))
        return answer

    def titles(self, target: str = "ops") -> list[str]:
        """Return what one was told."""
        return [message.title for name, message in self.got if name == target]


class House:
    """A store, a controller's telling over it, and a clock."""

    def __init__(
        self, store: Store | None = None, wanted: Mapping[str, Target] = OPS, at: Instant = 100.0
    ) -> None:
        self.store = store or MemoryStore()
        self.wanted, self.now = wanted, at
        self.all = Receivers()
        self.effects = InlineEffects()
        self.begin()

    def begin(self, store: Store | None = None) -> None:
        """Begin the next controller's life."""
        self.epoch = self.store.new_epoch("one", self.now)
        self.telling = Notifying(store or self.store, self.wanted, self.all.send)

    def step(self) -> Instant | None:
        """Take a tick."""
        for result in self.effects.done(self.now):
            assert isinstance(result.value, Sent)
            self.telling.heard(result.value, self.now)
        return self.telling.step(self.now, self.epoch, self.effects)

    def play(self, until: Instant) -> None:
        """Take ticks when they are due, until a time."""
        while self.now < until:
            due = self.step()
            while self.effects.has_ended:
                due = self.step()
            self.now = min(until, max(self.now, due if due is not None else until))
            if due is not None and due <= self.now:
                continue
        self.step()

    def happens(self, *events: e.Event) -> None:
        """Store what has happened, as the controller does."""
        self.store.append(events, epoch=self.epoch)


def opened(house: House, *jobs: str, **fields: object) -> None:
    """Open a run and submit jobs; the controller looks at them."""
    house.store.append([e.RunOpened(at=house.now, run=a_run())])
    house.store.append(submitted(*(a_job(job, **fields) for job in jobs)))
    house.step()


def fails(job: str, at: Instant = 100.0) -> list[e.Event]:
    return [*completes(job)[:2], e.Failed(at=at, job=job, attempt=1, exit_code=3, reason=WHY)]


def told_of(house: House, *, distinct: bool = False) -> dict[str, int]:
    """Return how often each notice came, alone or in a digest; of messages by id if distinct."""
    messages: Iterable[Message] = (message for _, message in house.all.got)
    if distinct:
        messages = {message.id: message for message in messages}.values()
    found: Counter[str] = Counter()
    digests: dict[str, list[str]] = {}
    for one in house.store.notices():
        for way in one.ways.values():
            if way.digest:
                digests.setdefault(way.digest, []).append(one.id)
    for message in messages:
        found.update(digests.get(message.id, [message.facts.get("id", "")]))
    return dict(found)
