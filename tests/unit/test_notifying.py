"""Notices from events to their targets: once each, over kills, outages and storms."""

from collections import Counter
from collections.abc import Sequence

from makers import a_job, a_run
from notify_house import TOLD, USD, WHY, House, fails, opened
from stories import HERE, completes, submitted

from cloudwhale.control.notifying.message import Answer, Message
from cloudwhale.control.notifying.targets import Target, targets
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model.budget import Budget
from cloudwhale.model.job import NotifyRule
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.planning.noticing import own_name
from cloudwhale.spi.store import Store

# -- what is told ----------------------------------------------------------------------------


def test_the_end_of_a_job_is_told_once() -> None:
    house = House()
    opened(house, "a", "b")
    house.happens(*completes("a"), *fails("b"))
    house.play(house.now + 10)
    assert house.all.titles() == ["train is completed", "train has failed"]
    house.begin()
    house.play(house.now + 10)
    assert len(house.all.got) == 2, "who comes next tells nothing again"
    assert {one.state for one in house.store.notices()} == {"told"}


def test_what_was_before_the_first_controller_that_tells_is_nottold_of() -> None:
    store = MemoryStore()
    store.append([e.RunOpened(at=1.0, run=a_run())])
    store.append(submitted(a_job("a")))
    store.append(completes("a"))
    house = House(store)
    house.play(house.now + 10)
    assert house.all.got == []


def test_what_happened_while_no_controller_told_is_told_by_the_next() -> None:
    house = House()
    opened(house, "a")
    house.happens(*completes("a"))
    house.begin()
    house.play(house.now + 10)
    assert house.all.titles() == ["train is completed"]


def test_a_target_is_told_only_of_what_it_asks_for() -> None:
    house = House(wanted=targets({"ops": {"webhook": "https://a.example/x", "on": ["failed"]}}))
    opened(house, "a", "b")
    house.happens(*completes("a"), *fails("b"))
    house.play(house.now + 10)
    assert house.all.titles() == ["train has failed"]
    assert len(house.store.notices()) == 1, "what nobody asks for is not kept"


def test_a_job_has_a_webhook_of_its_own() -> None:
    rule = NotifyRule(on=("completed",), webhook="https://mine.example/hook?key=dummy")
    house = House(wanted={})
    opened(house, "a", "b", notify=rule)
    house.happens(*completes("a"), *fails("b"))
    house.play(house.now + 10)
    own = own_name("https://mine.example/hook?key=dummy")
    assert [name for name, _ in house.all.got] == ["job:"]
    (notice,) = house.store.notices()
    assert set(notice.ways) == {own} and "dummy" not in notice.model_dump_json()


def test_a_job_may_ask_for_more_of_those_that_the_settings_tell() -> None:
    wanted = targets({"ops": {"webhook": "https://a.example/x", "on": ["failed"]}})
    house = House(wanted=wanted)
    opened(house, "a", notify=NotifyRule(on=("completed",)))
    house.happens(*completes("a"))
    house.play(house.now + 10)
    assert house.all.titles() == ["train is completed"]


def test_a_job_that_is_interrupted_often_is_told_at_three_and_six_times() -> None:
    house = House()
    opened(house, "a")
    for n in range(1, 8):
        house.happens(
            e.Placed(at=1.0, job="a", attempt=n, placement=HERE, reason=WHY),
            e.Started(at=2.0, job="a", attempt=n),
            e.GaveWay(at=3.0, job="a", attempt=n, reason=WHY),
        )
        house.play(house.now + 10)
    assert house.all.titles() == ["train was interrupted 3 times", "train was interrupted 6 times"]


def test_a_run_s_lines_are_told_once_for_each_budget() -> None:
    house = House()
    run = a_run(budget=MicroUsd(10 * USD), soft_share=0.8)
    house.store.append([e.RunOpened(at=1.0, run=run)])
    house.store.append(submitted(a_job("a")))
    house.step()
    for amount in (4, 5, 1):
        house.happens(_reserved(amount))
        house.step()
    house.happens(e.Released(at=3.0, payer="run-1", rental="m", amount=MicroUsd(5 * USD)))
    house.happens(_reserved(4))
    house.play(house.now + 10)
    assert house.all.titles() == [
        "run-1 has reached 80 % of its budget",
        "run-1 has reached its budget",
    ]
    house.happens(e.RunBudgetSet(at=4.0, run="run-1", limit=MicroUsd(11 * USD)))
    house.play(house.now + 10)
    assert house.all.titles()[2:] == ["run-1 has reached 80 % of its budget"], "another budget"


def test_a_project_s_lines_are_told_by_its_month() -> None:
    house = House()
    opened(house, "a", project="nlp")
    budget = Budget(project="nlp", month=MicroUsd(10 * USD), set_at=1.0)
    house.happens(
        e.RunBudgetSet(at=1.0, run="run-1", limit=MicroUsd(100 * USD)),
        e.BudgetSet(at=1.0, budget=budget),
        _reserved(10).but(projects={"project:nlp:1970-01": MicroUsd(10 * USD)}),
    )
    house.play(house.now + 10)
    assert "project nlp in 1970-01 has reached its budget" in house.all.titles()


def test_money_that_does_not_reach_is_told_once_for_its_run() -> None:
    house = House()
    run = a_run(budget=MicroUsd(USD))
    house.store.append([e.RunOpened(at=1.0, run=run)])
    house.store.append(submitted(a_job("a"), a_job("b")))
    house.step()
    no = Reason(code=Code.OVER_BUDGET, says="could cost 3.00 USD, 1.00 of 1.00 USD are left")
    house.happens(*(e.Waits(at=2.0, job=job, reason=no) for job in ("a", "b", "a")))
    house.play(house.now + 10)
    assert house.all.titles() == ["the budget of run run-1 does not reach for train"]


def test_what_was_left_over_in_a_cloud_istold_of() -> None:
    house = House()
    found = Reason(code=Code.LEFTOVER_REMOVED, says="volume v-1 belongs to no machine: removed")
    house.step()
    house.happens(e.Noted(at=2.0, subject="m-1", reason=found))
    house.happens(e.Noted(at=2.0, subject="m-1", reason=WHY))
    house.play(house.now + 10)
    assert house.all.titles() == ["something was left over in a cloud"]


# -- targets that fail -----------------------------------------------------------------------


def test_a_target_that_is_away_is_tried_ever_more_seldom_and_gets_it_in_the_end() -> None:
    house, back_at = House(), 100.0 + 3 * 3600
    tries: list[Instant] = []

    def answer(target: Target, message: Message) -> Answer:
        tries.append(house.now)
        return TOLD if house.now >= back_at else Answer("again", "nothing in time")

    house.all.answer = answer
    opened(house, "a")
    house.happens(*completes("a"))
    house.play(house.now + 12 * 3600)
    waits = [after - before for before, after in zip(tries, tries[1:], strict=False)]
    assert 4.0 <= waits[0] <= 6.0 and max(waits) <= 3600 * 1.2 and len(tries) < 20
    assert {message.id for _, message in house.all.got} == {house.all.got[0][1].id}
    (notice,) = house.store.notices()
    assert notice.state == "told"
    kinds = Counter(one.outcome for one in _notified(house.store))
    assert kinds == {"failing": 1, "told": 1}, "each new answer is stored once"


def test_what_has_not_arrived_after_a_day_is_given_up_with_its_last_answer() -> None:
    house = House()
    house.all.answer = lambda target, message: Answer("again", "nothing in time")
    opened(house, "a")
    house.happens(*completes("a", ran_s=98.0))
    house.play(house.now + 25 * 3600)
    (notice,) = house.store.notices()
    assert notice.state == "given-up"
    assert notice.ways["ops"].says == "tried for a day; nothing in time"
    tried = len(house.all.got)
    house.play(house.now + 25 * 3600)
    assert len(house.all.got) == tried


def test_a_target_that_is_gone_is_not_tried_again() -> None:
    house = House()
    house.all.answer = lambda target, message: Answer("never", "hooks.example answers 410 Gone")
    opened(house, "a")
    house.happens(*completes("a"))
    house.play(house.now + 3600)
    assert len(house.all.got) == 1
    assert house.store.notices()[0].ways["ops"].says == "hooks.example answers 410 Gone"


def test_a_target_is_left_alone_for_as_long_as_it_asks() -> None:
    house = House()
    house.all.answer = lambda target, message: Answer("again", "429", after_s=600.0)
    opened(house, "a", "b")
    house.happens(*completes("a"), *completes("b"))
    house.play(house.now + 590)
    assert len(house.all.got) == 1, "no other message goes there either"
    house.play(house.now + 20)
    assert len(house.all.got) == 2


def test_a_message_that_is_never_taken_is_in_nobody_s_way() -> None:
    house = House()
    house.all.answer = lambda target, message: (
        Answer("again", "400", only_this=True) if "completed" in message.title else TOLD
    )
    opened(house, "a", "b")
    house.happens(*completes("a"), *fails("b"))
    house.play(house.now + 3)
    assert "train has failed" in house.all.titles()


def test_a_target_that_is_no_more_in_the_settings_is_given_up() -> None:
    house = House()
    house.all.answer = lambda target, message: Answer("again", "nothing in time")
    opened(house, "a")
    house.happens(*completes("a"))
    house.play(house.now + 10)
    house.wanted = {}
    house.begin()
    house.play(house.now + 10)
    assert "no target ops any more" in house.store.notices()[0].ways["ops"].says


def test_a_clock_that_jumps_an_hour_loses_nothing_and_doubles_nothing() -> None:
    house = House()
    opened(house, "a", "b")
    house.happens(*completes("a"))
    house.play(house.now + 1)
    house.now += 3600
    house.happens(*completes("b"))
    house.play(house.now + 10)
    assert len(house.all.got) == 2


# -- reading ----


def _reserved(usd: float) -> e.Reserved:
    return e.Reserved(at=2.0, payer="run-1", rental="m", amount=MicroUsd(int(usd * USD)))


def _notified(store: Store) -> Sequence[e.Notified]:
    events = [one.event for one in store.events(":events")]
    return [one for one in events if isinstance(one, e.Notified)]
