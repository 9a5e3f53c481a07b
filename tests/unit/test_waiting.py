"""The wait policies by themselves: who starts, who waits, who is rented for."""

from collections.abc import Mapping

import pytest
from makers import a_job

from cloudwhale.spi.waiting import Quote, Running, Verdict, Wait, Waiting, Waits
from cloudwhale_policies.waiting.backfill import Conservative, Easy
from cloudwhale_policies.waiting.expecting import Expecting, expecting
from cloudwhale_policies.waiting.starburst import (
    ComputeWait,
    ConstantWait,
    Never,
    NoWait,
    StarWait,
)  # fmt: skip
from cloudwhale_policies.waiting.whale import Whale

HOUR_S = 3600.0


def wants(
    name: str,
    devices: float = 1.0,
    length_h: float | None = 1.0,
    *,
    free: Mapping[str, float],
    usd: float | None = None,
    by_h: float | None = None,
    usd_h: float = 20.0,
    since_h: float = 0.0,
) -> Waiting:
    """Make a waiting job; `usd`: what it could be rented for."""
    length_s = None if length_h is None else length_h * HOUR_S
    return Waiting(
        job=a_job(name, submitted_at=since_h * HOUR_S),
        devices=devices,
        length_s=length_s,
        nodes=tuple(free),
        fits_now=tuple(node for node, some in free.items() if some >= devices),
        quote=None if usd is None else Quote(usd, usd, length_s or HOUR_S),
        start_by=None if by_h is None else by_h * HOUR_S,
        usd_h=usd_h,
    )


def runs(
    name: str, left_h: float, devices: float = 1.0, node: str = "a", ran_h: float = 1.0
) -> Running:
    return Running(a_job(name), node, devices, ran_h * HOUR_S, (ran_h + left_h) * HOUR_S)


def round_of(
    *waiting: Waiting,
    free: Mapping[str, float],
    running: tuple[Running, ...] = (),
    at_h: float = 0.0,
) -> Waits:
    devices = {n: f + sum(r.devices for r in running if r.node == n) for n, f in free.items()}
    return Waits(at_h * HOUR_S, waiting, running, devices, free)


def kinds(policy: Wait, waits: Waits) -> dict[str, str]:
    return {name: verdict.kind for name, verdict in policy.verdicts(waits).items()}


SURE = Whale(spread=1.0)
FULL, ROOM = {"a": 0.0}, {"a": 1.0}


# -- whale -----------------------------------------------------------------------------------


def test_whale_says_nothing_where_nothing_can_be_rented() -> None:
    waits = round_of(wants("x", free=FULL), free=FULL, running=(runs("r", 1.0),))
    assert SURE.needs_quotes and SURE.verdicts(waits) == {}


def test_a_job_that_fits_here_is_never_rented_for() -> None:
    assert kinds(SURE, round_of(wants("x", free=ROOM, usd=0.01), free=ROOM)) == {"x": "start"}


@pytest.mark.parametrize(("usd", "kind"), [(9.99, "rent"), (10.01, "wait")])
def test_whose_wait_costs_more_than_a_machine_is_rented_for(usd: float, kind: str) -> None:
    job = wants("x", free=FULL, usd=usd, usd_h=20.0)
    assert kinds(SURE, round_of(job, free=FULL, running=(runs("r", 0.5),))) == {"x": kind}


def test_a_start_to_come_is_told_with_node_and_time() -> None:
    waits = round_of(
        wants("x", free=FULL, usd=50.0), free=FULL, running=(runs("r", 0.5),), at_h=1.0
    )
    verdict = SURE.verdicts(waits)["x"]
    assert (verdict.node, verdict.at) == ("a", 1.5 * HOUR_S)


def test_the_wait_for_a_boot_counts_against_renting() -> None:
    job = wants("x", free=FULL, usd=9.0)
    slow = Waiting(
        job.job, 1.0, job.length_s, job.nodes, (), Quote(9.0, 9.0, 1.2 * HOUR_S), None, 20.0
    )
    assert kinds(SURE, round_of(slow, free=FULL, running=(runs("r", 0.5),))) == {"x": "wait"}


@pytest.mark.parametrize("policy", [SURE, Whale()])
def test_who_is_too_late_already_starts_where_it_fits(policy: Wait) -> None:
    late = wants("x", free=ROOM, usd=0.01, by_h=1.0)
    assert kinds(policy, round_of(late, free=ROOM, at_h=2.0)) == {"x": "start"}


def test_who_must_start_before_there_is_room_is_rented_for_whatever_it_costs() -> None:
    job = wants("x", free=FULL, usd=1000.0, by_h=0.4)
    assert kinds(SURE, round_of(job, free=FULL, running=(runs("r", 0.5),))) == {"x": "rent"}


def test_who_can_start_nowhere_here_is_rented_for() -> None:
    job = wants("x", 8.0, free=ROOM, usd=1000.0)
    assert kinds(SURE, round_of(job, free=ROOM)) == {"x": "rent"}


def test_whoever_is_cheap_to_rent_leaves_the_place_to_one_that_is_not() -> None:
    jobs = (wants("cheap", free=FULL, usd=3.0), wants("dear", free=FULL, usd=60.0))
    waits = round_of(*jobs, free=FULL, running=(runs("r", 0.1),))
    assert kinds(SURE, waits) == {"cheap": "rent", "dear": "wait"}


def test_nothing_that_can_be_rented_for_is_started_where_it_would_push_out_a_dearer_one() -> None:
    free = {"a": 4.0}
    jobs = (
        wants("small", 1.0, 10.0, free=free, usd=1.0),
        wants("large", 8.0, 4.0, free=free, usd=80.0),
    )
    waits = round_of(*jobs, free=free, running=(runs("r", 0.05, 4.0),))
    assert kinds(SURE, waits) == {"small": "rent", "large": "wait"}


def test_one_that_nothing_can_be_rented_for_starts_where_it_fits() -> None:
    free = {"a": 4.0}
    jobs = (wants("large", 8.0, 4.0, free=free, usd=80.0), wants("own", 1.0, 10.0, free=free))
    waits = round_of(*jobs, free=free, running=(runs("r", 0.05, 4.0),))
    assert kinds(SURE, waits)["own"] == "start"


def test_when_a_job_that_outran_its_estimate_ends_nobody_knows_and_half_its_age_is_taken() -> None:
    late = runs("r", -0.5, ran_h=2.0)
    waits = round_of(wants("x", free=FULL, usd=50.0), free=FULL, running=(late,))
    assert SURE.verdicts(waits)["x"].at == pytest.approx(1.0 * HOUR_S)


def test_without_estimates_of_many_jobs_one_ends_soon() -> None:
    free = {f"n{n}": 0.0 for n in range(8)}
    many = tuple(Running(a_job(f"r{n}"), f"n{n}", 1.0, HOUR_S, None) for n in range(8))
    job = wants("x", length_h=None, free=free, usd=20.0)
    waits = Waits(0.0, (job,), many, dict.fromkeys(free, 1.0), free, (HOUR_S,) * 30)
    alone = Waits(0.0, (job,), many[:1], dict.fromkeys(free, 1.0), free, (HOUR_S,) * 30)
    soon, late = (Whale(spread=2.0).verdicts(w)["x"].at for w in (waits, alone))
    assert soon is not None and late is not None and soon < late / 3


def test_whale_plans_the_same_twice() -> None:
    jobs = tuple(wants(f"x{n}", n % 4 + 1.0, n / 3 + 0.1, free=FULL, usd=n + 1.0) for n in range(9))
    running = (runs("r", 0.1, 4.0), runs("s", 0.4, 4.0))
    waits = round_of(*jobs, free=FULL, running=running)
    assert Whale().verdicts(waits) == Whale().verdicts(waits)


def test_far_behind_in_the_line_a_job_starts_where_that_delays_nobody() -> None:
    free = {"a": 0.0, "b": 1.0}
    line = [wants(f"x{n:03}", 8.0, 1.0, free={"a": 0.0}, usd=99.0, usd_h=0.1) for n in range(70)]
    last = wants("last", 1.0, 1.0, free=free, usd=5.0)
    found = kinds(SURE, round_of(*line, last, free=free, running=(runs("r", 0.5, 8.0),)))
    assert found["last"] == "start" and found["x069"] == "wait"


# -- what is expected ------------------------------------------------------------------------


def test_where_all_is_known_there_is_one_future() -> None:
    waits = round_of(wants("x", free=FULL), free=FULL, running=(runs("r", 1.0),))
    assert [expecting(waits, spread, 5).futures for spread in (1.0, 2.0)] == [1, 5]


def test_futures_of_a_length_lie_within_the_spread_and_apart() -> None:
    lefts = Expecting(HOUR_S, 2.0, 5).lefts_s(HOUR_S, 0.0, 3)
    assert len(set(lefts)) == 5 and 0.5 * HOUR_S < min(lefts) < max(lefts) < 2.0 * HOUR_S


def test_who_has_run_for_some_time_has_that_behind_it() -> None:
    lefts = Expecting(HOUR_S, 2.0, 5).lefts_s(HOUR_S, 1.5 * HOUR_S, 0)
    assert 0.0 < min(lefts) and max(lefts) < 0.5 * HOUR_S


def test_an_unknown_length_has_the_mean_of_what_has_ended() -> None:
    assert Expecting(7.0).length_s(None) == 7.0


def test_one_that_should_have_ended_just_now_ends_now_and_one_that_is_late_goes_on() -> None:
    """Two that end together are heard of one after the other: neither is planned as staying."""
    right = Expecting(HOUR_S)
    assert right.lefts_s(100.0, 40.0, 0) == [60.0]
    assert 0.0 < right.lefts_s(100.0, 100.0, 0)[0] < 0.01
    assert right.lefts_s(100.0, 100.5, 0) == [1.0], "else it is asked again without an end"
    assert right.lefts_s(100.0, 120.0, 0) == [60.0]


def test_a_length_within_bounds_is_expected_below_their_middle() -> None:
    expected_s = Expecting(HOUR_S, 3.0).length_s(HOUR_S)
    assert HOUR_S < expected_s < 5.0 / 3.0 * HOUR_S


# -- Starburst's rules -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "waited_h"),
    [(NoWait(), 0.0), (ConstantWait(360.0), 0.1), (StarWait(360.0), 0.2), (ComputeWait(0.1), 0.4)],
)  # fmt: skip
def test_each_rule_waits_for_as_long_as_it_says(policy: Wait, waited_h: float) -> None:
    job = wants("x", 2.0, 2.0, free=FULL, usd=1.0)
    before = policy.verdicts(round_of(job, free=FULL, at_h=waited_h - 0.01))["x"]
    after = policy.verdicts(round_of(job, free=FULL, at_h=waited_h + 1e-9))["x"]
    assert after.kind == "rent"
    if waited_h:
        assert before.kind == "wait"
        assert before.at == pytest.approx(waited_h * HOUR_S)


def test_constant_wait_keeps_the_line_and_compute_wait_lets_pass() -> None:
    jobs = (wants("large", 2.0, free=ROOM, usd=1.0), wants("small", 1.0, free=ROOM, usd=1.0))
    waits = round_of(*jobs, free=ROOM)
    assert kinds(ConstantWait(), waits) == {"large": "wait", "small": "wait"}
    assert kinds(ComputeWait(), waits) == {"large": "wait", "small": "start"}


def test_starburst_takes_the_fullest_node_that_fits() -> None:
    free = {"a": 4.0, "b": 2.0}
    assert NoWait().verdicts(round_of(wants("x", free=free), free=free)) == {
        "x": Verdict("start", "there is room", node="b")
    }


def test_never_says_nothing() -> None:
    assert Never().verdicts(round_of(wants("x", free=FULL, usd=0.1), free=FULL)) == {}


# -- backfilling -----------------------------------------------------------------------------


def backfilled(policy: Wait, later: Waiting) -> dict[str, str]:
    free = {"a": 2.0}
    head = wants("head", 4.0, 1.0, free=free)
    return kinds(policy, round_of(head, later, free=free, running=(runs("r", 1.0, 3.0),)))


@pytest.mark.parametrize("policy", [Easy(), Conservative()], ids=["easy", "conservative"])
@pytest.mark.parametrize(
    ("devices", "length_h", "kind"),
    [(2.0, 1.0, "start"), (1.0, 5.0, "start"), (2.0, 1.1, "wait")],
    ids=["ends before", "leaves enough", "would delay"],
)
def test_a_later_job_starts_if_it_does_not_delay_the_head(
    policy: Wait, devices: float, length_h: float, kind: str
) -> None:
    later = wants("later", devices, length_h, free={"a": 2.0})
    assert backfilled(policy, later) == {"head": "wait", "later": kind}


def test_easy_lets_a_job_delay_the_second_and_conservative_does_not() -> None:
    free = {"a": 1.0}
    jobs = (
        wants("head", 2.0, 1.0, free=free),
        wants("second", 3.0, 1.0, free=free),
        wants("third", 1.0, 2.5, free=free),
    )
    waits = round_of(*jobs, free=free, running=(runs("r", 1.0, 2.0),))
    assert kinds(Easy(), waits)["third"] == "start"
    assert kinds(Conservative(), waits)["third"] == "wait"


@pytest.mark.parametrize("policy", [Easy(), Conservative()], ids=["easy", "conservative"])
def test_backfilling_never_rents_and_needs_no_quote(policy: Wait) -> None:
    job = wants("x", free=FULL, usd=0.01)
    assert not policy.needs_quotes
    assert kinds(policy, round_of(job, free=FULL, running=(runs("r", 9.0),))) == {"x": "wait"}
