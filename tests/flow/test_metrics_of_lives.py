"""What a controller tells of itself over lives with rented machines, beside its store."""

import re

from clouding import a_cloudy_stage, an_offer, settles
from scraping import an_exposition, series

from cloudwhale.control.vitals import LEDGER, Vitals
from cloudwhale.model.job import JobState
from cloudwhale.model.units import MICRO_PER_USD
from cloudwhale.reporting.metrics_table import TABLE
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.stage import Stage
from cloudwhale.spi.store import CostQuery, JobQuery

SPENT = "cloudwhale_spent_usd_total"


def watched(stage: Stage) -> Vitals:
    """Begin a controller's life, and have it told of."""
    stage.raise_controller()
    assert stage.controller is not None
    vitals = stage.controller.vitals
    vitals.is_asked = True
    vitals.knows(stage.scenery.store.costs(LEDGER), lambda: 0)
    return vitals


def told(vitals: Vitals) -> dict[str, float]:
    """Return every series that a scraper reads."""
    assert vitals.newest is not None
    return series(an_exposition(vitals).text()[0].decode())


def money(found: dict[str, float], name: str) -> int:
    """Return a sum of all series of a name, in micro-dollars."""
    amounts = (value for key, value in found.items() if key.startswith(name + "{"))
    return round(sum(amounts) * MICRO_PER_USD)


def test_money_and_jobs_are_what_the_store_says() -> None:
    stage = a_cloudy_stage(("quick", "saving", "failing"))
    vitals = watched(stage)
    assert settles(stage, 3000.0)
    store, found = stage.scenery.store, told(vitals)
    (total,) = store.costs(CostQuery())
    assert total.spent > 0
    assert money(found, SPENT) == total.spent
    wasted = total.purposes
    assert money(found, "cloudwhale_wasted_usd_total") == (
        wasted.boot + wasted.idle + wasted.lost + wasted.failed + wasted.over
    )
    assert money(found, "cloudwhale_saved_usd") == total.saved
    states = [job.state for job in store.jobs(JobQuery())]
    for state in (JobState.COMPLETED, JobState.FAILED):
        assert found[f'cloudwhale_jobs_ended_total{{state="{state}"}}'] == states.count(state)
    waits = found['cloudwhale_admission_wait_seconds_count{place="rented"}']
    assert waits == len([job for job in store.jobs(JobQuery()) if job.first_started_at])
    waited = sum(
        job.first_started_at - job.submitted_at
        for job in store.jobs(JobQuery())
        if job.first_started_at is not None
    )
    assert abs(found['cloudwhale_admission_wait_seconds_sum{place="rented"}'] - waited) < 1e-6


def test_money_outlives_the_controller_and_counts_on() -> None:
    stage = a_cloudy_stage(("quick",))
    first = watched(stage)
    assert settles(stage, 3000.0)
    before = money(told(first), SPENT)
    second = watched(stage)
    assert stage.play(lambda: second.newest is not None, 60.0)
    assert money(told(second), SPENT) == before > 0
    assert told(second)['cloudwhale_jobs_ended_total{state="completed"}'] == 0, "begins anew"


def test_while_a_machine_runs_its_cost_so_far_and_the_money_set_aside_are_told() -> None:
    offer = an_offer()
    stage = a_cloudy_stage(("quick",), [Shelf(offer)])
    vitals = watched(stage)
    store = stage.scenery.store
    assert stage.play(
        lambda: {job.state for job in store.jobs(JobQuery())} == {JobState.RUNNING}, 900.0
    )
    found = told(vitals)
    (account,) = [one for one in store.accounts() if one.payer == "run-1"]
    assert money(found, "cloudwhale_budget_reserved_usd") >= account.reserved > 0
    assert found['cloudwhale_budget_limit_usd{kind="run",payer="run-1"}'] == 10.0
    of = f'provider="{offer.provider}",market="{offer.market}"'
    rented = [key for key in found if key.startswith("cloudwhale_rentals{")]
    assert len(rented) == 1 and f'market="{offer.market}"' in rented[0], of
    assert 0 < money(found, "cloudwhale_unsettled_usd") <= account.reserved


def test_every_metric_of_the_table_is_told_from_the_first_tick_on() -> None:
    stage = a_cloudy_stage(("quick",))
    vitals = watched(stage)
    before = an_exposition(vitals).text()[0].decode()
    assert settles(stage, 3000.0)
    after = an_exposition(vitals).text()[0].decode()
    for text in (before, after):
        for metric in TABLE:
            assert f"# TYPE {metric.name} {metric.kind}\n" in text
    assert not [line for line in before.splitlines() if not line.startswith("#")]
    empty = {metric.name for metric in TABLE if not _has_series(metric.series, after)}
    assert empty == ALL_WELL, "each that is empty has its reason"


def test_every_counter_begins_at_0_so_that_its_first_dollar_is_seen_to_come() -> None:
    stage = a_cloudy_stage(("quick", "saving", "failing"))
    vitals = watched(stage)
    first: dict[str, float] = {}

    def is_done() -> bool:
        for key, value in told(vitals).items() if vitals.newest is not None else ():
            first.setdefault(key, value)
        return all(job.ended for job in store.jobs(JobQuery())) and not store.world(0.0).rentals

    store = stage.scenery.store
    assert stage.play(is_done, 3000.0)
    counters = [metric.name for metric in TABLE if metric.kind == "counter"]
    begun = {key: value for key, value in first.items() if key.partition("{")[0] in counters}
    assert not {key: value for key, value in begun.items() if value}
    grown = {key for key, value in told(vitals).items() if key in begun and value}
    assert {key.partition("{")[0] for key in grown} >= {SPENT, "cloudwhale_jobs_ended_total"}


def _has_series(names: tuple[str, ...], text: str) -> bool:
    return any(re.split(r"[{ ]", line)[0] in names for line in text.splitlines())


ALL_WELL = {
    "cloudwhale_jobs",  # nothing is left to do
    "cloudwhale_project_jobs",
    "cloudwhale_rentals",  # all are back
    "cloudwhale_unsettled_usd",
    "cloudwhale_offer_gpu_hour_usd",  # the offer has no GPU
    "cloudwhale_budget_limit_usd",  # the run is over
    "cloudwhale_api_errors_total",  # nobody has said whom it may ask
}
"""What has no series after a life in which all went well."""
