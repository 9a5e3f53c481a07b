"""Who switches to on-demand for its deadline: when, onto what, with which money."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from clouding import an_offer
from makers import a_device, a_job, a_node, placed, wants
from switching_world import (
    CHANGES,
    FIRM,
    HOUR,
    IS_READY,
    LEASE,
    NEXT,
    NOW,
    ON_ITS_WAY,
    ON_SPOT,
    SPOT,
    THERE,
    a_rental,
    checked,
    rents,
    runs,
    seen,
    waits,
    world,
)

from cloudwhale.model import plan as p
from cloudwhale.model.job import (
    GpuRequest,
    Job,
    JobState,
    RetryRule,
    Wish,
)
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import MicroUsd, micro_usd, usd
from cloudwhale.model.world import Account

# -- when ------------------------------------------------------------------------------------


def test_the_moment_of_one_that_waits_counts_tick_boot_restore_and_all_its_work() -> None:
    found = seen(world(waits(NOW + 4 * HOUR))).known["j"]
    assert found.at == pytest.approx(NOW + 2 * HOUR - CHANGES)


def test_the_moment_of_one_that_runs_counts_its_newest_checkpoint_and_the_hand_over() -> None:
    found = seen(world(runs(NOW + 4 * HOUR), rentals=ON_SPOT)).known["j"]
    assert found.at == pytest.approx(NOW + 3 * HOUR - CHANGES - 120.0)


def test_an_hour_on_a_slow_machine_is_no_hour_of_its_work() -> None:
    slow = runs(NOW + 4 * HOUR).but(pace=0.5)
    found = seen(world(slow, rentals=ON_SPOT)).known["j"]
    assert found.runs_s == pytest.approx(1.5 * HOUR)
    gone = slow.but(state=JobState.PENDING, placement=None, started_at=None, run_s=HOUR)
    again = seen(world(gone.but(ahead_s=-HOUR / 2))).known["j"]
    assert again.runs_s == pytest.approx(1.5 * HOUR)


def test_the_plan_says_how_fast_a_place_is() -> None:
    device = a_device("gpu-0", "T4", 16.0)
    job = waits(NOW + 9 * HOUR, resources=wants(gpu=GpuRequest(count=1)), speeds={"T4": 0.25})
    of = replace(world(job), nodes={"host": a_node(cpu=8.0, devices=(device,))})
    (place,) = [step for step in checked(of).steps if isinstance(step, p.Place)]
    assert place.pace == 0.25


def test_a_large_checkpoint_takes_longer_to_fetch() -> None:
    job = runs(NOW + 4 * HOUR)
    saved = job.checkpoint
    assert saved is not None
    large = job.but(checkpoint=saved.but(size_bytes=50_000_000_000))
    before, after = (seen(world(one, rentals=ON_SPOT)).known["j"].at for one in (job, large))
    assert before - after == pytest.approx(500.0)


@pytest.mark.parametrize(
    ("why", "job"),
    [
        ("it has no deadline", waits(0.0).but(spec=waits(0.0).spec.but(deadline=None))),
        ("its deadline has passed", waits(NOW)),
        ("it wants spot alone", waits(NOW + 4 * HOUR, market="spot")),
        ("it is for machines of ours", waits(NOW + 4 * HOUR, market="local")),
        ("it is to be cancelled", waits(NOW + 4 * HOUR).but(wish=Wish.CANCEL)),
        ("it is to be paused", waits(NOW + 4 * HOUR).but(wish=Wish.PAUSE)),
        ("it is on a machine of ours", placed(waits(NOW + 4 * HOUR), "host")),
        ("no machine would be in time", waits(NOW + HOUR)),
        ("it is a gang", waits(NOW + 4 * HOUR, nodes=2)),
    ],
)  # fmt: skip
def test_nobody_switches_when(why: str, job: Job) -> None:
    assert seen(world(job)).known == {}, why


def test_who_recovers_and_may_not_be_tried_again_is_not_rented_for() -> None:
    gone = a_rental(state=RentalState.DRAINING)
    job = runs(NOW + 4 * HOUR, retry=RetryRule(max=0)).but(state=JobState.RECOVERING)
    assert seen(world(job, rentals=(gone,))).known == {}


def test_who_comes_after_others_is_not_looked_at_before_they_are_done() -> None:
    other = a_job("k", resources=wants(cpu=4), duration_s=HOUR)
    assert seen(world(waits(NOW + 4 * HOUR).but(after=("k",)), other)).known == {}


def test_who_has_an_on_demand_machine_on_its_way_needs_no_other() -> None:
    rentals = (*ON_SPOT, ON_ITS_WAY)
    assert seen(world(runs(NOW + 4 * HOUR), rentals=rentals)).known == {}


def test_the_cheapest_that_is_in_time_counts_and_a_dearer_one_when_it_no_longer_is() -> None:
    fast = an_offer("fast", boot_s=10.0, price_usd_h=micro_usd(36), cap_usd_h=micro_usd(36))
    early = world(waits(NOW + 4 * HOUR), offers=(fast, FIRM))
    assert seen(early).known["j"].offer.id == "firm"
    late = world(waits(NOW + 2 * HOUR + 100.0), offers=(fast, FIRM))
    assert seen(late).known["j"].offer.id == "fast"


# -- what is done ----------------------------------------------------------------------------


def test_before_its_moment_one_that_runs_is_looked_at_by_then() -> None:
    of = world(runs(NOW + 4 * HOUR), rentals=ON_SPOT)
    made = checked(of)
    assert rents(made) == []
    assert made.look_again_at is not None
    assert made.look_again_at <= NOW + 3 * HOUR - CHANGES - 120.0


def test_at_its_moment_one_that_runs_is_rented_for_and_goes_on_meanwhile() -> None:
    of = world(runs(NOW + HOUR + CHANGES + 120.0), rentals=ON_SPOT)
    made = checked(of)
    assert rents(made) == [("firm", ("j",))]
    assert not [step for step in made.steps if isinstance(step, p.AskToStop | p.Return)]
    (rent,) = [step for step in made.steps if isinstance(step, p.Rent)]
    assert rent.reason.code is Code.SWITCHES
    assert "330 s until it goes on there and 3600 s of work" in rent.reason.says
    due = datetime.fromtimestamp(NOW + HOUR + CHANGES + 120.0, UTC)
    assert f"its deadline at {due:%Y-%m-%d %H:%M:%S} UTC needs" in rent.reason.says


def test_one_that_waits_past_its_moment_is_rented_for_on_demand_though_spot_is_cheaper() -> None:
    early, late = waits(NOW + 3 * HOUR), waits(NOW + 2 * HOUR + CHANGES)
    assert rents(checked(world(early))) == [("spot", ())]
    assert rents(checked(world(late))) == [("firm", ())]


def test_a_spot_machine_that_would_come_too_late_to_help_is_not_rented() -> None:
    soon = waits(NOW + 2 * HOUR + CHANGES + SPOT.boot_s + SPOT.notice_s + 50.0)
    later = waits(NOW + 2 * HOUR + CHANGES + SPOT.boot_s + SPOT.notice_s + 70.0)
    assert rents(checked(world(soon))) == [("firm", ())]
    assert rents(checked(world(later, offers=(FIRM, SPOT.but(hazard_per_h=0.0))))) == [("spot", ())]


def test_a_spot_machine_that_boots_for_one_that_is_due_goes_back() -> None:
    boots = a_rental(state=RentalState.BOOTING)
    made = checked(world(waits(NOW + 2 * HOUR + CHANGES), rentals=(boots,)))
    assert rents(made) == [("firm", ())]
    assert [step.rental.id for step in made.steps if isinstance(step, p.Return)] == [THERE]


def test_one_that_recovers_past_its_moment_is_rented_for_on_demand() -> None:
    gone = a_rental(state=RentalState.DRAINING)
    job = runs(NOW + HOUR + CHANGES + 120.0).but(state=JobState.RECOVERING)
    assert [offer for offer, _ in rents(checked(world(job, rentals=(gone,))))] == ["firm"]


def test_once_its_machine_is_ready_it_is_stopped_to_go_on_there() -> None:
    of = world(runs(NOW + HOUR + 2 * CHANGES), rentals=(*ON_SPOT, IS_READY))
    (stop,) = [step for step in checked(of).steps if isinstance(step, p.AskToStop)]
    assert (stop.job, stop.wish, stop.reason.code) == ("j", "give-way", Code.SWITCHES)


def test_nobody_is_stopped_for_a_machine_that_goes_back_in_the_same_round() -> None:
    over = LEASE.but(away_until=NOW + 100.0, stop_at=NOW + 220.0)
    ready = IS_READY.but(lease=over, told=over)
    of = world(runs(NOW + HOUR + 200.0), rentals=(*ON_SPOT, ready), limit=10)
    made = checked(of)
    assert [step.rental.id for step in made.steps if isinstance(step, p.Return)] == [NEXT]
    assert not [step for step in made.steps if isinstance(step, p.AskToStop)]


def test_who_is_done_before_that_stops_being_safe_is_not_moved() -> None:
    job = runs(NOW + HOUR, saved_s=2 * HOUR - 600.0).but(started_at=NOW - 2 * HOUR + 50.0)
    saved = job.checkpoint
    assert saved is not None
    job = job.but(checkpoint=saved.but(saved_at=NOW - 100.0))
    of = world(job, rentals=(*ON_SPOT, IS_READY))
    made = checked(of)
    assert not [step for step in made.steps if isinstance(step, p.AskToStop)]
    assert made.look_again_at is not None and made.look_again_at < NOW + HOUR


def test_it_goes_to_its_on_demand_machine_and_not_back_to_the_spot_machine_that_it_left() -> None:
    why = Reason(code=Code.SWITCHES, says="stops to go on elsewhere")
    job = runs(NOW + HOUR + CHANGES).but(
        state=JobState.PENDING, placement=None, started_at=None, reason=why, run_s=HOUR,
    )  # fmt: skip
    made = checked(world(job, rentals=(*ON_SPOT, IS_READY)))
    (place,) = [step for step in made.steps if isinstance(step, p.Place)]
    assert place.placement.node == NEXT
    assert [step.rental.id for step in made.steps if isinstance(step, p.Return)] == [THERE]


def test_a_place_of_ours_that_is_in_time_goes_before_on_demand() -> None:
    home = a_node(cpu=8.0)
    job = waits(NOW + 2 * HOUR + CHANGES)
    of = replace(world(job), nodes={home.id: home})
    made = checked(of)
    assert rents(made) == []
    assert [s.placement.node for s in made.steps if isinstance(s, p.Place)] == [home.id]


# -- money -----------------------------------------------------------------------------------


def test_a_budget_that_holds_a_spot_machine_and_the_switch_starts_on_spot() -> None:
    may = seen(world(waits(NOW + 4 * HOUR))).known["j"].may_cost
    assert micro_usd(11) < may < micro_usd(13)  # two hours and a half at 3.60, boot, landing, stop
    made = checked(world(waits(NOW + 4 * HOUR), limit=25))
    assert rents(made) == [("spot", ())]
    (rent,) = [step for step in made.steps if isinstance(step, p.Rent)]
    assert f"{usd(may)} USD are kept to switch to on-demand in time" in rent.reason.says


def test_a_budget_that_does_not_hold_both_goes_to_on_demand_at_once() -> None:
    made = checked(world(waits(NOW + 4 * HOUR), limit=20))
    assert rents(made) == [("firm", ())]
    (rent,) = [step for step in made.steps if isinstance(step, p.Rent)]
    assert "not hold a spot machine and the switch" in rent.reason.says


def test_a_budget_that_holds_neither_is_told() -> None:
    made = checked(world(waits(NOW + 4 * HOUR), limit=8))
    assert rents(made) == []
    (told,) = [step for step in made.steps if isinstance(step, p.Explain)]
    assert told.reason.code is Code.OVER_BUDGET


def test_nobody_takes_the_money_that_is_kept_for_a_switch() -> None:
    job = runs(NOW + 4 * HOUR)
    other = a_job("k", resources=wants(cpu=8), duration_s=2 * HOUR).but(submitted_at=NOW)
    rental = ON_SPOT[0].but(jobs={"j": "default"})
    assert rents(checked(world(job, other, rentals=(rental,), limit=30))) == [("spot", ())]
    assert rents(checked(world(job, other, rentals=(rental,), limit=20))) == []
    free = job.but(spec=job.spec.but(deadline=None))
    assert rents(checked(world(free, other, rentals=(rental,), limit=20))) == [("spot", ())]


def test_past_the_soft_line_a_switch_goes_on_and_nothing_else_is_rented() -> None:
    spent = Account(
        payer="run-1", limit=micro_usd(100), reserved=micro_usd(5), spent=micro_usd(86)
    )  # fmt: skip
    late = runs(NOW + HOUR + CHANGES + 120.0)
    other = a_job("k", resources=wants(cpu=8), duration_s=600.0).but(submitted_at=NOW)
    of = world(late, other, rentals=ON_SPOT, accounts={"run-1": spent})
    assert rents(checked(of)) == [("firm", ("j",))]


def about_to_renew(reserved: int = 5) -> Rental:
    """Make its spot machine, whose lease ends in two minutes."""
    lease = LEASE.but(away_until=NOW + 120.0, stop_at=NOW + 240.0)
    return ON_SPOT[0].but(lease=lease, told=lease, reserved=micro_usd(reserved))


def test_at_its_moment_nothing_is_spent_first_on_the_machine_that_it_leaves() -> None:
    late = runs(NOW + HOUR + CHANGES + 120.0)
    needs = seen(world(late, rentals=ON_SPOT)).known["j"].may_cost
    enough = float(usd(MicroUsd(micro_usd(5) + needs)))
    of = world(late, rentals=(about_to_renew(),), limit=round(enough + 0.01, 2))
    assert rents(checked(of)) == [("firm", ("j",))]


def test_a_controller_that_is_offered_nothing_yet_keeps_what_was_promised() -> None:
    job, end = runs(NOW + 4 * HOUR), about_to_renew()
    needs = seen(world(job, rentals=ON_SPOT)).known["j"].may_cost
    enough = round(float(usd(MicroUsd(micro_usd(5) + needs))) + 0.5, 2)
    for offers in ((FIRM, SPOT), ()):
        made = checked(world(job, rentals=(end,), limit=enough, offers=offers))
        (longer,) = (step.rental.renewal for step in made.steps if isinstance(step, p.Renew))
        assert longer is not None and longer.reserved <= micro_usd("0.51")
    late = world(runs(NOW + HOUR), rentals=(end,), offers=())
    assert not seen(late).due
    assert (checked(late).look_again_at or NOW + 1.0) > NOW


def test_at_its_moment_nobody_goes_before_it_onto_a_machine_that_is_kept_longer_for_that() -> None:
    late = runs(NOW + HOUR + CHANGES + 120.0)
    needs = seen(world(late, rentals=ON_SPOT)).known["j"].may_cost
    other = a_job("k", resources=wants(cpu=1), duration_s=30 * HOUR).but(submitted_at=NOW)
    short = about_to_renew().but(jobs={"j": "default"})
    enough = float(usd(MicroUsd(micro_usd(5) + needs)))
    made = checked(world(late, other, rentals=(short,), limit=round(enough + 0.5, 2)))
    assert rents(made) == [("firm", ("j",))]
    assert not [step for step in made.steps if isinstance(step, p.Join)]


def test_who_recovers_gets_another_spot_machine_and_what_it_was_promised_stays_so_once() -> None:
    job = runs(NOW + 8 * HOUR).but(state=JobState.RECOVERING)
    gone = ON_SPOT[0].but(state=RentalState.DRAINING, interrupted_at=NOW)
    needs = seen(world(job, rentals=(gone,))).known["j"].may_cost
    own = 6.5  # what a spot machine may cost, late included
    once = round(5 + own + float(usd(needs)), 2)
    assert rents(checked(world(job, rentals=(gone,), limit=once))) == [("spot", ())]
    assert rents(checked(world(job, rentals=(gone,), limit=once - 1))) == [("firm", ())]


def test_whoever_lost_its_spot_machine_and_waits_keeps_the_money_to_switch() -> None:
    lost = runs(NOW + 8 * HOUR).but(state=JobState.PENDING, placement=None, started_at=None)
    waiting = lost.but(not_before=NOW + 30.0)
    other = a_job("k", resources=wants(cpu=8), duration_s=2 * HOUR).but(submitted_at=NOW)
    assert rents(checked(world(waiting, other, limit=13))) == []
    assert rents(checked(world(waiting, other, limit=30))) == [("spot", ())]
    new = waiting.but(attempt=0, checkpoint=None)
    assert rents(checked(world(new, other, limit=13))) == [("spot", ())]
    assert rents(checked(world(lost, limit=13))) != [], "its own money is there for it"


def test_money_that_is_not_there_is_promised_to_nobody_who_was_never_on_spot() -> None:
    """It ran at home, and nothing was kept for it: it does not keep others from theirs."""
    gave_way = runs(NOW + 8 * HOUR).but(state=JobState.PENDING, placement=None, started_at=None)
    gave_way = gave_way.but(checkpoint=None, not_before=NOW + 30.0)
    other = a_job("k", resources=wants(cpu=4), duration_s=600.0).but(submitted_at=NOW)
    assert rents(checked(world(gave_way, other, limit=8))) == [("spot", ())]


def test_its_own_budget_holds_both_too() -> None:
    rich, poor = (waits(NOW + 4 * HOUR, budget=micro_usd(usd)) for usd in (25, 20))
    assert rents(checked(world(rich))) == [("spot", ())]
    assert rents(checked(world(poor))) == [("firm", ())]


def test_where_on_demand_cannot_be_paid_spot_is_better_than_nothing() -> None:
    late = waits(NOW + 2 * HOUR + CHANGES + 100.0)
    cheap = SPOT.but(cap_usd_h=micro_usd("1.2"))
    assert seen(world(late)).due == {"j"}
    assert rents(checked(world(late, limit=5, offers=(FIRM, cheap)))) == [("spot", ())]


def test_who_runs_and_cannot_be_paid_a_switch_is_told_once() -> None:
    job = runs(NOW + HOUR + CHANGES + 120.0)
    of = world(job, rentals=ON_SPOT, limit=6)
    (told,) = [step for step in checked(of).steps if isinstance(step, p.Explain)]
    assert told.reason.code is Code.OVER_BUDGET
    assert "its deadline asks for on-demand" in told.reason.says
    again = replace(of, jobs={"j": job.but(reason=told.reason)})
    assert not [step for step in checked(again).steps if isinstance(step, p.Explain)]


# -- a deadline that passes ------------------------------------------------------------------


def test_who_runs_when_its_deadline_passes_goes_on_and_is_told_once() -> None:
    job = runs(NOW - 5.0)
    made = checked(world(job, rentals=ON_SPOT))
    (told,) = [step for step in made.steps if isinstance(step, p.Missed)]
    assert told.reason.code is Code.DEADLINE_MISSED and "5 s ago" in told.reason.says
    assert not [step for step in made.steps if isinstance(step, p.AskToStop)]
    said = checked(world(job.but(deadline_said=True), rentals=ON_SPOT))
    assert not [step for step in said.steps if isinstance(step, p.Missed)]


def test_a_deadline_to_come_is_looked_at_when_it_comes() -> None:
    job = runs(NOW + 30.0)
    again = checked(world(job, rentals=ON_SPOT)).look_again_at
    assert again is not None and again <= NOW + 30.0


def test_who_is_due_is_rented_for_though_nobody_has_answered_for_its_spot_machine() -> None:
    asked = a_rental(state=RentalState.RESERVED, machine="", requested_at=None)
    made = checked(world(waits(NOW + 2 * HOUR + CHANGES - 10.0), rentals=(asked,)))
    assert rents(made) == [("firm", ())]


def test_who_is_due_is_rented_for_while_another_goes_on_on_their_old_machine() -> None:
    """Both gave way there; the other is placed there again in the same round."""
    other = waits(NOW + 20 * HOUR).but(id="k")
    due = waits(NOW + 2 * HOUR + CHANGES - 10.0)
    both = a_rental(jobs={"j": "default", "k": "default"})
    made = checked(world(due, other, rentals=(both,)))
    assert rents(made) == [("firm", ())]
    assert {step.job for step in made.steps if isinstance(step, p.Place)} == {"k"}
