"""Spot policies on recorded availability: what a tick, a start, a loss and a deadline cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from cloudwhale.simulation.spotting import Record, Ridden, Stubborn, one_site, played
from cloudwhale.spi.spot import Errand, Market, Sight, Site, SpotPlayer, Standing, Use

TICK_S = 600.0
SPOT, ON_DEMAND = Use("here", "spot"), Use("here", "on-demand")


@dataclass
class Script:
    """A policy that does as it is told, tick by tick; the last word holds from then on."""

    words: Sequence[Use | None]
    seen: list[Standing] = field(default_factory=list)

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        self.tick_s = errand.tick_s
        return self

    def choose(self, now: Standing) -> Use | None:
        self.seen.append(now)
        tick = round(now.at_s / self.tick_s)
        use = self.words[min(tick, len(self.words) - 1)]
        refused = use is not None and use.market == "spot" and now.is_on[use.site] is False
        return None if refused else use


def an_errand(work_ticks: float = 3, ticks: float = 6, **more: float | None) -> Errand:
    changeover_s = more.get("changeover_s", 300.0)
    return Errand(
        work_ticks * TICK_S, ticks * TICK_S, changeover_s or 0.0, TICK_S,
        probes_every_s=more.get("probes_every_s"),
    )  # fmt: skip


def on_a_record(words: Sequence[Use | None], is_on: Sequence[int], errand: Errand) -> Ridden:
    return played(errand, one_site([bool(on) for on in is_on], 1.2, 3.6), Script(words))


def test_a_start_is_billed_from_its_first_second_and_works_after_the_changeover() -> None:
    ridden = on_a_record([ON_DEMAND], [0] * 6, an_errand())
    assert ridden.ended_s == 3 * TICK_S + 300.0
    assert ridden.usd == pytest.approx(3.6 * 2100.0 / 3600.0)
    assert (ridden.starts, ridden.losses, ridden.missed) == (1, 0, False)
    assert ridden.beats[0].is_start and ridden.beats[0].work_s == 300.0
    assert not ridden.beats[1].is_start


def test_a_spot_machine_is_taken_at_the_beginning_of_a_tick_and_keeps_what_was_done() -> None:
    ridden = on_a_record([SPOT], [1, 0, 1, 1, 1, 1], an_errand())
    assert ridden.losses == 1
    assert ridden.beats[0].work_s == 300.0
    assert ridden.beats[1].use is None and ridden.beats[1].usd == 0.0
    assert ridden.beats[2].is_start and ridden.beats[2].work_s == 300.0
    assert ridden.ended_s == 5 * TICK_S
    assert ridden.hours["spot"] == pytest.approx(4 / 6)


def test_a_changeover_longer_than_a_tick_goes_on_in_the_next() -> None:
    ridden = on_a_record([ON_DEMAND], [0] * 6, an_errand(changeover_s=720.0))
    assert [beat.work_s for beat in ridden.beats[:3]] == [0.0, 480.0, 600.0]


def test_the_money_is_the_sum_of_the_ticks() -> None:
    ridden = on_a_record([SPOT, None, ON_DEMAND], [1] * 6, an_errand())
    assert sum(beat.usd for beat in ridden.beats) == pytest.approx(ridden.usd)
    by_hours = 1.2 * ridden.hours["spot"] + 3.6 * ridden.hours["on-demand"]
    assert by_hours == pytest.approx(ridden.usd)


def test_work_that_is_left_at_the_deadline_is_a_miss() -> None:
    ridden = on_a_record([None], [1] * 6, an_errand())
    assert ridden.missed and ridden.work_left_s == 3 * TICK_S and ridden.usd == 0.0


def test_a_deadline_within_a_tick_cuts_it_short() -> None:
    ridden = on_a_record([ON_DEMAND], [1] * 6, an_errand(work_ticks=3, ticks=3.2))
    assert ridden.missed
    assert ridden.work_left_s == pytest.approx(180.0)
    assert ridden.hours["on-demand"] == pytest.approx(3.2 / 6)


def test_a_job_without_work_has_ended_before_it_began() -> None:
    ridden = on_a_record([SPOT], [1] * 6, an_errand(work_ticks=0))
    assert (ridden.ended_s, ridden.usd, ridden.beats) == (0.0, 0.0, ())


def test_a_record_that_ends_before_the_deadline_is_refused() -> None:
    with pytest.raises(ValueError, match="the deadline needs 6"):
        on_a_record([SPOT], [1] * 5, an_errand())


def two_sites(is_on: Sequence[tuple[int, int]], prices: Sequence[tuple[float, float]]) -> Record:
    return Record(
        ("a", "b"), ("west", "east"), np.array(is_on, dtype=np.bool_), np.array(prices), (4.0, 3.0)
    )


def test_moving_to_another_region_pays_for_the_checkpoint_once_there_is_one() -> None:
    errand = Errand(3000.0, 6000.0, 300.0, TICK_S, {("west", "east"): 0.5, ("east", "west"): 0.7})
    words = [Use("a", "spot"), Use("b", "spot"), Use("b", "spot"), Use("a", "on-demand")]
    ridden = played(errand, two_sites([(1, 1)] * 10, [(1.0, 2.0)]), Script(words))
    assert ridden.egress_usd == pytest.approx(1.2)
    assert ridden.beats[1].usd == pytest.approx(0.5 + 2.0 / 6)
    assert ridden.starts == 3


def test_a_first_start_carries_nothing_over() -> None:
    errand = Errand(600.0, 6000.0, 600.0, TICK_S, {("west", "east"): 0.5})
    words = [Use("a", "spot"), Use("b", "spot")]
    ridden = played(errand, two_sites([(1, 1)] * 10, [(1.0, 2.0)]), Script(words))
    assert ridden.egress_usd == 0.0, "the first machine had only begun to change over"


def test_spot_is_paid_at_the_price_of_its_tick() -> None:
    prices = [(1.0, 2.0)] * 2 + [(2.0, 2.0)] * 8
    errand = Errand(1800.0, 6000.0, 0.0, TICK_S)
    policy = Script([Use("a", "spot")])
    ridden = played(errand, two_sites([(1, 1)] * 10, prices), policy)
    assert ridden.usd == pytest.approx((1.0 + 1.0 + 2.0) / 6)
    assert [now.sites[0].spot_usd_h for now in policy.seen] == [1.0, 1.0, 2.0]


def test_what_is_not_probed_is_seen_by_being_there_and_by_trying() -> None:
    errand = an_errand(work_ticks=4, ticks=10, probes_every_s=3 * TICK_S)
    record = two_sites([(1, 0)] * 2 + [(0, 0)] * 2 + [(1, 1)] * 6, [(1.0, 2.0)])
    policy = Script([Use("a", "spot"), Use("a", "spot"), Use("b", "spot")])
    played(errand, record, policy)
    by_tick: dict[int, list[tuple[bool | None, bool | None]]] = {}
    for now in policy.seen:
        by_tick.setdefault(round(now.at_s / TICK_S), []).append((now.is_on["a"], now.is_on["b"]))
    assert by_tick[0] == [(True, False)], "a probe sees all"
    assert by_tick[1] == [(True, None)], "its own machine stays"
    assert by_tick[2] == [(False, None), (False, False)], "taken; then tried in vain"
    assert by_tick[3] == [(False, False)]
    assert by_tick[4] == [(None, None)]
    assert by_tick[5] == [(None, True)]


class Insists:
    """Asks again and again."""

    def __init__(self, use: Use) -> None:
        self.use = use

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        return self

    def choose(self, now: Standing) -> Use | None:
        return self.use


@pytest.mark.parametrize(("site", "market"), [("here", "spot"), ("nowhere", "on-demand")])
def test_who_insists_on_what_cannot_be_had_is_stopped(site: str, market: Market) -> None:
    with pytest.raises(Stubborn):
        played(an_errand(), one_site([False] * 6, 1.0, 2.0), Insists(Use(site, market)))


def test_sights_before_a_start_have_times_below_zero() -> None:
    record = one_site([True, False, True], 1.0, 2.0)
    seen = record.sights(TICK_S, range(2), 2)
    assert seen == (Sight("here", -1200.0, True), Sight("here", -600.0, False))
