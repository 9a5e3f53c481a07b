"""What each interruption has cost: work, money for machines that did none, and time."""

from decimal import Decimal

from makers import a_job

from cloudwhale.model import event as e
from cloudwhale.model.job import Member, Placement
from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import MicroUsd
from cloudwhale.reporting.explain import story
from cloudwhale.reporting.sheet import text_of
from cloudwhale.reporting.story_text import story_keys, story_lines
from cloudwhale.reporting.tolls import Toll, tolls
from cloudwhale.spi.store import Told

JOB = "train-1"
TAKEN = Reason(code=Code.TAKEN_AWAY, says="AWS takes it")
USD_H = MicroUsd(3_600_000)  # a thousandth of a dollar a second


def a_machine(name: str, since: float, until: float | None, **fields: object) -> Rental:
    offer = Offer(
        id=name, provider="aws", zone="a", region="r", market="spot",
        facts=Facts(cpu=2, memory_gib=8, disk_gib=50), price_usd_h=USD_H, cap_usd_h=USD_H,
        boot_s=60.0, billing_least_s=60.0,
    )  # fmt: skip
    lease = Lease(number=1, watched_until=1.0, away_until=2.0, stop_at=3.0)
    found = Rental(
        id=name, payer="run-1", offer=name, lease=lease, reserved=MicroUsd(10**9), node=name,
        requested_at=since, ended_at=until, taken=offer, state=RentalState.DRAINING,
    )  # fmt: skip
    return found.but(**fields)


def numbered(*events: e.Event) -> list[Told]:
    return [Told(seq=number, event=event) for number, event in enumerate(events, 1)]


def place(at: float, attempt: int, node: str, *others: str) -> e.Placed:
    ranks = tuple(Member(node=name) for name in others)
    return e.Placed(
        at=at, job=JOB, attempt=attempt, placement=Placement(node=node, others=ranks),
        reason=Reason(code=Code.PLACED, says="rented"),
    )  # fmt: skip


def start(at: float, attempt: int) -> e.Started:
    return e.Started(at=at, job=JOB, attempt=attempt)


def lost(at: float, attempt: int) -> e.AttemptLost:
    return e.AttemptLost(at=at, job=JOB, attempt=attempt, reason=TAKEN)


def stops(at: float, attempt: int, lost_s: float) -> e.GaveWay:
    return e.GaveWay(at=at, job=JOB, attempt=attempt, reason=TAKEN, lost_s=lost_s)


NOTICED = numbered(
    place(10.0, 1, "one"), start(11.0, 1),
    lost(200.0, 1), stops(202.0, 1, 1.5),
    place(209.0, 2, "two"), start(210.0, 2),
)  # fmt: skip
ONE, TWO = a_machine("one", 0.0, 205.0), a_machine("two", 201.0, None)


def test_an_interruption_costs_lost_work_idle_machines_and_time() -> None:
    # 1.5 s of lost work, 3 s until the old machine was gone, 9 s until the job ran on the new one.
    assert tolls(JOB, NOTICED, [ONE, TWO]) == {
        4: Toll(lost_s=1.5, wasted=MicroUsd(13_500), away_s=10.0)
    }


def test_a_gang_loses_work_and_time_on_each_of_its_machines() -> None:
    told = numbered(
        place(10.0, 1, "one", "other"), start(11.0, 1),
        lost(200.0, 1), stops(202.0, 1, 1.5),
        place(209.0, 2, "two", "another"), start(210.0, 2),
    )  # fmt: skip
    others = [ONE.but(id="other", node="other"), TWO.but(id="another", node="another")]
    (toll,) = tolls(JOB, told, [ONE, TWO, *others]).values()
    assert toll == Toll(lost_s=1.5, wasted=MicroUsd(2 * 13_500), away_s=10.0)


def test_what_is_billed_at_least_is_part_of_it() -> None:
    young = ONE.but(requested_at=200.0)  # a minute of it is billed, at least
    found = tolls(JOB, NOTICED, [young, TWO])[4]
    assert found.wasted == 1_500 + 58_000 + 9_000


def test_of_a_shared_machine_only_its_part_counts() -> None:
    shared = ONE.but(held_s={JOB: 50.0, "other": 150.0})
    found = tolls(JOB, NOTICED, [shared, TWO])[4]
    assert found.wasted == 4_500 // 4 + 9_000


def test_a_machine_that_was_there_before_costs_nothing_more() -> None:
    found = tolls(JOB, NOTICED, [ONE, TWO.but(requested_at=100.0)])[4]
    assert found.wasted == 4_500


def test_who_goes_on_at_home_pays_for_no_machine() -> None:
    assert tolls(JOB, NOTICED, [])[4] == Toll(lost_s=1.5, wasted=None, away_s=10.0)


def test_what_has_not_run_again_is_open() -> None:
    assert tolls(JOB, NOTICED[:4], [ONE])[4].away_s is None


def test_two_interruptions_before_it_ran_again_both_end_with_that() -> None:
    told = numbered(
        place(10.0, 1, "one"), start(11.0, 1), lost(100.0, 1), stops(101.0, 1, 0.5),
        place(110.0, 2, "two"), lost(111.0, 2), stops(112.0, 2, 0.0),
        place(120.0, 3, "three"), start(121.0, 3),
    )  # fmt: skip
    assert [one.away_s for one in tolls(JOB, told, []).values()] == [21.0, 10.0]


def test_an_agent_that_says_again_that_it_runs_ends_nothing() -> None:
    told = numbered(place(1.0, 1, "one"), start(2.0, 1), start(50.0, 1))
    assert tolls(JOB, told, []) == {}


def test_the_story_tells_it_below_the_end_of_the_attempt() -> None:
    one = story(a_job(JOB), NOTICED, [], rentals=[ONE, TWO])
    text = "\n".join(text_of(line) for line in story_lines(one, 300.0, 100))
    assert "its machine one is taken away" in text
    assert "it cost: 1.5 s of work, 0.0135 USD of idle machine time; it ran 10 s later" in text
    [keys] = [row["interruption"] for row in story_keys(one) if row["interruption"]]
    assert keys == {"lost_work_s": 1.5, "wasted_usd": Decimal("0.0135"), "away_s": 10.0}
