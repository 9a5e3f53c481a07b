"""What a controller hears: agents that come by themselves, documents that never come, clocks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from makers import a_job, a_node, a_world, placed

from cloudwhale.control.arrivals import Found
from cloudwhale.control.effects import Effect, Key
from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.control.reports import Reading
from cloudwhale.control.watcher import Machines, Mail, Watcher
from cloudwhale.mailbox.box import inbox_from
from cloudwhale.mailbox.documents import AnyReport, Heartbeat, Joined, Left
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.model import event as e
from cloudwhale.model.node import Facts, Node, NodeState
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Instant
from cloudwhale.model.world import World
from cloudwhale.spi.provider import Machine

FACTS = Facts(cpu=4.0, memory_gib=8.0, disk_gib=50.0)


class Ears:
    """A watcher with the world that its events lead to, as far as nodes go."""

    def __init__(self, world: World | None = None, read_to: dict[str, int] | None = None) -> None:
        self.objects: StoreObjects = open_objects("memory:///")
        self.watcher = Watcher(Mailboxes(self.objects), {}, read_to or {})
        self.world = a_world([], []) if world is None else world
        self.strangers: dict[str, str] = {}

    def say(self, node: str, *reports: AnyReport) -> None:
        """Let an agent say something."""
        box = inbox_from(self.objects, node)
        for report in reports:
            box.post(report.model_dump_json().encode(), box.newest())

    def listen(self, now: Instant) -> list[e.Event]:
        """Take one tick's looks, at once; return what came of them."""
        world = self.world
        heard: list[e.Event] = []
        for look in self.watcher.looks(world.nodes.values(), now, rung=True):
            heard += self._came(look, now)
        self.watcher.sightings(self.world, now)  # as every tick does
        return heard

    def _came(self, look: Effect, now: Instant) -> Sequence[e.Event]:
        match look.do():
            case Mail() as mail:
                reading = Reading(self.world, now)
                events = self.watcher.mail_came(mail, reading, now)
                self.strangers |= reading.strangers
                joined = {one.node.id: one.node for one in events if isinstance(one, e.NodeJoined)}
                self.world = a_world(
                    [*self.world.jobs.values()], [*({**self.world.nodes} | joined).values()]
                )
                return events
            case Found() as found:
                self.watcher.arrived(found)
        return ()

    def kinds(self, now: Instant) -> list[str]:
        """Listen; return the kinds of what came, notes of what was read aside."""
        return [event.kind for event in self.listen(now) if not isinstance(event, e.Read)]


def joined(at: Instant, agent: str = "gpu-1") -> Joined:
    return Joined(at=at, agent=agent, facts=FACTS, public_key="k")


def beat(at: Instant, agent: str = "gpu-1") -> Heartbeat:
    return Heartbeat(at=at, agent=agent)


# -- agents that come by themselves ----------------------------------------------------------


def test_an_agent_that_comes_by_itself_becomes_an_owned_node_that_nobody_here_starts() -> None:
    ears = Ears()
    ears.say("gpu", joined(100.0))
    ears.listen(101.0)
    ears.listen(102.0)
    node = ears.world.nodes["gpu"]
    assert (node.state, node.owned, node.provider) == (NodeState.READY, True, "")


def test_new_agents_are_looked_for_every_few_seconds_only() -> None:
    ears = Ears()
    ears.listen(100.0)
    ears.say("gpu", joined(101.0))
    for now in (101.0, 102.0, 103.0, 104.0):
        assert ears.kinds(now) == []
    assert ears.kinds(105.0) + ears.kinds(106.0) == ["node-joined"]


def test_an_agent_that_is_long_gone_is_no_node() -> None:
    ears = Ears()
    ears.say("old", joined(100.0), beat(110.0))
    ears.say("gone", joined(9_990.0), Left(at=9_995.0, agent="gpu-1"))
    assert [ears.kinds(10_000.0 + tick) for tick in range(20)] == [[]] * 20


def test_an_agent_that_comes_back_under_a_forgotten_name_is_found() -> None:
    ears = Ears()
    ears.say("old", joined(100.0), beat(110.0))
    ears.listen(10_000.0)
    ears.say("old", joined(10_001.0, "old-2"))
    assert [*ears.kinds(10_005.0), *ears.kinds(10_006.0)][-1] == "node-joined"
    assert ears.world.nodes["old"].agent == "old-2"


def test_a_stranger_that_falls_silent_is_read_no_more_until_it_speaks() -> None:
    ears = Ears()

    def is_read(now: Instant) -> bool:
        ears.listen(now)
        return Key("read", "old") in [look.key for look in ears.watcher.looks([], now, rung=True)]

    ears.say("old", beat(100.0))
    assert is_read(100.0) and is_read(101.0) and is_read(185.0)
    assert not is_read(200.0)
    ears.say("old", beat(210.0))
    assert is_read(210.0)


def test_a_folder_that_is_no_name_of_a_node_is_left_alone() -> None:
    ears = Ears()
    ears.say(".hidden", joined(100.0))
    assert [ears.kinds(100.0 + tick) for tick in range(12)] == [[]] * 12


def test_the_machine_of_a_provider_is_not_taken_for_a_newcomer() -> None:
    ears = Ears()
    ears.say("host", joined(100.0))
    seen = Machines("local", (Machine(id="host", node="host", state="running", facts=FACTS),))
    (event,) = ears.watcher.machines_came(seen, ears.world, 100.0)
    assert isinstance(event, e.NodeJoined) and event.node.provider == "local"
    assert [ears.kinds(100.0 + tick) for tick in range(12)] == [[]] * 12


def test_a_machine_whose_agent_sleeps_is_as_its_provider_says() -> None:
    ears = Ears()
    docked = FACTS.but(cpu=99.0, runtimes=("process", "container"), images=("a:1",))

    def came(state: Literal["running", "gone"], provider: str = "local") -> list[e.Event]:
        machines = (Machine(id="host", node="host", state=state, facts=docked),)
        return list(ears.watcher.machines_came(Machines(provider, machines), ears.world, 200.0))

    known = Node(id="host", facts=FACTS, provider="local", agent="host-1", joined_at=100.0)
    ears.world = replace(ears.world, nodes={"host": known})
    assert came("running") == came("gone", "other") == []
    (event,) = came("gone")
    assert isinstance(event, e.NodeJoined)
    facts = FACTS.but(runtimes=docked.runtimes, images=docked.images)
    assert event.node == known.but(facts=facts)
    ears.world = replace(ears.world, nodes={"host": event.node})
    assert came("gone") == []


def test_who_reports_from_a_removed_node_is_a_stranger() -> None:
    ears = Ears(read_to={"gpu": 1})
    ears.say("gpu", joined(100.0), beat(101.0))
    ears.listen(102.0)
    assert ears.kinds(103.0) == []
    assert ears.strangers == {"gpu": "gpu-1"}


# -- documents that never come ---------------------------------------------------------------


def with_a_hole() -> Ears:
    job = placed(a_job("j"), "gpu").but(order_posted=True)
    ears = Ears(a_world([job], [a_node("gpu", agent="gpu-1")]), read_to={"gpu": 0})
    ears.say("gpu", beat(100.0), beat(110.0))
    ears.listen(110.0)
    ears.say("gpu", beat(120.0), beat(130.0), beat(140.0))
    inbox_from(ears.objects, "gpu").forget(3, 4)
    return ears


def test_a_hole_in_an_inbox_is_passed_over_and_told() -> None:
    ears = with_a_hole()
    events = [event for now in range(141, 200) for event in ears.listen(float(now))]
    note = next(event for event in events if isinstance(event, e.Noted))
    assert note.reason.code is Code.MAIL_MISSING
    assert "documents 3 to 4 are missing in inbox/gpu" in note.reason.says
    assert len([event for event in events if isinstance(event, e.Noted)]) == 1
    assert ears.watcher.sightings(ears.world, 200.0)["gpu"].heard_at > 140.0


def test_what_a_missing_document_may_have_said_of_a_job_is_asked_for() -> None:
    ears = with_a_hole()
    events = [event for now in range(141, 200) for event in ears.listen(float(now))]
    assert [event.job for event in events if isinstance(event, e.Unconfirmed)] == ["j"]


def test_a_document_that_is_only_late_is_waited_for() -> None:
    ears = with_a_hole()
    for now in (141.0, 142.0, 143.0):  # a list has shown by now that later ones are there
        ears.listen(now)
    for number, at in ((3, 120.0), (4, 130.0)):
        inbox_from(ears.objects, "gpu").create(number, beat(at).model_dump_json().encode())
    events = [event for now in range(144, 200) for event in ears.listen(float(now))]
    assert not [event for event in events if isinstance(event, e.Noted)]


def test_a_node_that_is_quiet_costs_two_lists_a_minute() -> None:
    lists: list[str] = []

    class Counting(StoreObjects):
        def keys(self, prefix: str) -> Sequence[str]:
            lists.append(prefix)
            return super().keys(prefix)

    ears = Ears(a_world([], [a_node("gpu")]))
    counting = Counting(ears.objects._store)
    ears.watcher = Watcher(Mailboxes(counting), {}, {})
    for now in range(100, 221):
        ears.listen(float(now))
    assert 3 <= len([prefix for prefix in lists if prefix == "inbox/gpu"]) <= 6


# -- clocks ----------------------------------------------------------------------------------


def notes(ears: Ears, now: Instant) -> list[str]:
    events = [event for event in ears.listen(now) if isinstance(event, e.Noted)]
    assert all(event.reason.code is Code.CLOCK_DIFFERS for event in events)
    return [event.reason.says for event in events]


def test_a_clock_that_is_ahead_is_told_once() -> None:
    ears = Ears(a_world([], [a_node("gpu")]))
    for now in (100.0, 110.0, 120.0):
        ears.say("gpu", beat(now + 45.0))
        told = notes(ears, now)
        assert told == (["the clock of gpu is 45 s ahead of this host's"] if now == 100.0 else [])


def test_a_clock_that_is_behind_is_told_once_it_must_be() -> None:
    ears = Ears(a_world([], [a_node("gpu")]))
    ears.say("gpu", beat(55.0))
    assert notes(ears, 100.0) == [], "it may have lain there"
    ears.say("gpu", beat(65.0))
    assert notes(ears, 110.0) == ["the clock of gpu is 35 s behind this host's"]


def test_a_clock_that_was_set_right_may_be_told_of_again() -> None:
    ears = Ears(a_world([], [a_node("gpu")]))
    for now, ahead_s, count in ((100.0, 45.0, 1), (110.0, 0.0, 0), (120.0, 45.0, 1)):
        ears.say("gpu", beat(now + ahead_s))
        assert len(notes(ears, now)) == count


def test_old_mail_that_nobody_has_read_is_no_wrong_clock() -> None:
    ears = Ears(a_world([], [a_node("gpu")]))
    ears.say("gpu", beat(100.0), beat(110.0))
    assert notes(ears, 90_000.0) == []
