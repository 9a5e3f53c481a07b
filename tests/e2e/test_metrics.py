"""A burst as a real Prometheus sees it: a controller is killed, another goes on, on its port."""

import http.client
import json
import math
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from mortal_box import Home, MortalBox, Running
from prometheus_client.parser import text_string_to_metric_families
from scraping import series
from shell import Shell, until
from small_prometheus import Prometheus, a_free_port, a_prometheus

from cloudwhale.clock import SystemClock, wait
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None and not os.environ.get("CI"), reason="no Prometheus here"
)
DASHBOARD = Path(__file__).parents[2] / "infra" / "grafana" / "cloudwhale.json"
WEATHER = (
    "speed: 20\nowned: none\nboot: 20s\ninterrupt: [{after: 4m, which: running, notice: 0s}]\n"
)
JOBS = """
defaults: {duration: 20m, market: spot, checkpoint: {every: 30s, grace: 10s}}
jobs:
  - {name: train, project: nlp, command: sleep 18, resources: {cpu: 1, gpu: "L4:1"}}
  - {name: render, project: vision, command: sleep 2, resources: {cpu: 1, gpu: "A10G:1"}}
  - {name: broken, project: nlp, command: exit 3, retry: {max: 0}, resources: {cpu: 1, gpu: "L4:1"}}
"""
SPREADS = "cloudwhale_solver_seconds_count"
ENDS_WITHIN_S = 300.0
ANSWERS_WITHIN_S = 1.0  # at the median; a host that is busy with others may take longer once
Told = Mapping[str, float]


@dataclass
class Watch:
    """What a scraper has seen, one after the other."""

    port: int
    told: list[Told] = field(default_factory=list[Told])
    took_s: list[float] = field(default_factory=list[float])

    def look(self) -> Told:
        """Scrape once; empty where nobody serves, or has nothing to tell yet."""
        began = SystemClock().steady()
        try:
            text = self._text()
        except OSError:
            return {}
        self.took_s.append(SystemClock().steady() - began)
        found = series(text)
        if found:
            self.told.append(found)
        return found

    def _text(self) -> str:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            kind = answer.headers["Content-Type"]
            assert answer.status == 200 and kind.startswith("text/plain; version=0.0.4"), kind
            return answer.read().decode()


@dataclass(frozen=True)
class Burst:
    """What was seen, and what commands said when it was over."""

    told: list[Told]
    took_s: list[float]
    last: Told
    """When all was over."""
    second: str
    """What the controller has said that came second."""
    costs: dict[str, dict[str, Any]]
    """By project."""
    budgets: list[dict[str, Any]]
    states: Counter[str]
    taken: frozenset[str]
    """Machines that their cloud has taken, as the events have it."""
    agreed: int
    """How often the queue was the same here and in `ps`."""
    prometheus: Prometheus


@pytest.fixture(scope="module")
def burst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Burst]:
    folder, port = tmp_path_factory.mktemp("metrics"), a_free_port()
    with MortalBox(folder / "box", WEATHER) as box, a_prometheus(folder / "prom", port) as scraper:
        home, watch = box.home("home"), Watch(port)
        shell = Shell(home.folder, {"OPENBLAS_NUM_THREADS": "1"})
        words = ("controller", "--metrics", str(port))
        with home.started(*words) as first:
            until("it tells something", watch.look)
            # What has not begun at 0 for it has not risen.
            until("Prometheus has that", lambda: scraper.has(SPREADS))
            assert home.run("budget", "set", "nlp", "100/month") == 0, home.said
            home.write("jobs.yaml", JOBS)
            assert home.run("submit", "jobs.yaml", "--budget", "8") == 0, home.said
            with home.started(*words) as second:
                agreed = watched(home, shell, watch, scraper, first)
                assert first.ends() == -signal.SIGKILL, home.said
                until("its metrics agree with an empty queue", lambda: is_over(watch.look()))
                last = watch.look()
                yield seen(home, shell, watch, last, scraper, agreed)
                os.kill(second.pid, signal.SIGTERM)
                assert second.ends() == 0, home.said


def watched(home: Home, shell: Shell, watch: Watch, scraper: Prometheus, first: Running) -> int:
    """Scrape until all jobs have ended, and kill the first controller on the way.

    Return how often `ps` had a queue that was scraped while it ran.
    """
    agreed, is_killed, end = 0, False, SystemClock().steady() + ENDS_WITHIN_S
    while not all(job.ended for job in home.books.jobs):
        assert SystemClock().steady() < end, home.said
        told = watch.look()
        if not agreed and any(True for _ in rows(told, "cloudwhale_rentals")):
            agreed += agrees(shell, watch)
        # Not between a machine's loss and the scrape that tells it: that is counted in one life.
        if not is_killed and ended(told) and total(told, "cloudwhale_preemptions_total"):
            until("Prometheus has what was chosen", lambda: scraper.has(f"{SPREADS} > 0"))
            os.kill(first.pid, signal.SIGKILL)
            is_killed = True
        wait(0.2)
    if not is_killed:
        os.kill(first.pid, signal.SIGKILL)
    return agreed


def agrees(shell: Shell, watch: Watch) -> bool:
    """Say whether `ps` lists a queue that was scraped while it ran."""
    listing = shell.start("ps", "--sandbox", "--json")
    told = [queued(watch.look())]
    while listing.poll() is None:
        told.append(queued(watch.look()))
        wait(0.05)
    assert listing.stdout is not None
    with listing.stdout as said:
        jobs = json.load(said)["jobs"]
    live = [job["state"] for job in jobs if JobState(job["state"]) not in ENDED]
    return bool(live) and Counter(live) in told


ENDED = (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)


def queued(told: Told) -> Counter[str]:
    """Return how many jobs are in each state."""
    found: Counter[str] = Counter()
    for labels, value in rows(told, "cloudwhale_jobs"):
        found[labels["state"]] += int(value)
    return found


def ended(told: Told) -> float:
    return total(told, "cloudwhale_jobs_ended_total")


def is_over(told: Told) -> bool:
    gone = ("cloudwhale_jobs", "cloudwhale_rentals", "cloudwhale_unsettled_usd")
    return bool(told) and not any(list(rows(told, name)) for name in gone)


def seen(
    home: Home, shell: Shell, watch: Watch, last: Told, scraper: Prometheus, agreed: int
) -> Burst:
    costs = shell("cost", "--by", "project", "--sandbox", "--json").document["costs"]
    return Burst(
        watch.told, watch.took_s, last, (home.folder / "home" / "said.log").read_text(),
        {one["project"]: one for one in costs},
        shell("budget", "list", "--sandbox", "--json").document["budgets"],
        Counter(str(job.state) for job in home.books.jobs), taken(home), agreed, scraper,
    )  # fmt: skip


def taken(home: Home) -> frozenset[str]:
    with closing(open_store(sqlite_url(home.inside), may_migrate=False)) as store:
        events = [one.event for one in store.since(0, store.version())]
    changes = [one.rental for one in events if isinstance(one, e.RentalChanged)]
    return frozenset(one.id for one in changes if one.interrupted_at is not None)


def rows(told: Told, name: str) -> Iterator[tuple[dict[str, str], float]]:
    """Yield the series of a name: labels and value."""
    text = "".join(f"{key} {value}\n" for key, value in told.items() if key.startswith(f"{name}{{"))
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            yield one.labels, one.value


def total(told: Told, name: str, **labels: str) -> float:
    found = (value for had, value in rows(told, name) if labels.items() <= had.items())
    return math.fsum(found)


def micro(usd: float) -> int:
    return round(usd * 1e6)


def test_a_scrape_of_a_busy_controller_takes_less_than_a_second(burst: Burst) -> None:
    assert len(burst.took_s) > 20
    assert median(burst.took_s) < ANSWERS_WITHIN_S


def test_the_queue_is_what_ps_says_while_it_changes(burst: Burst) -> None:
    assert burst.agreed >= 1
    assert burst.states == {"completed": 2, "failed": 1}
    states = {labels["state"] for told in burst.told for labels, _ in rows(told, "cloudwhale_jobs")}
    assert {"pending", "running"} <= states


def test_machines_are_told_through_their_lives(burst: Burst) -> None:
    found = [labels for told in burst.told for labels, _ in rows(told, "cloudwhale_rentals")]
    assert {"booting", "ready"} <= {labels["state"] for labels in found}
    assert {labels["market"] for labels in found if labels["market"]} == {"spot"}
    assert any(total(told, "cloudwhale_unsettled_usd") > 0 for told in burst.told)
    assert max(total(told, "cloudwhale_preemptions_total") for told in burst.told) == len(
        burst.taken
    )


def test_money_is_what_cost_says_to_the_micro_dollar(burst: Burst) -> None:
    assert set(burst.costs) == {"nlp", "vision"}
    for project, cost in burst.costs.items():
        of = {"project": project}
        spent = total(burst.last, "cloudwhale_spent_usd_total", **of)
        assert micro(spent) == micro(cost["spent_usd"]) > 0
        assert micro(total(burst.last, "cloudwhale_saved_usd", **of)) == micro(cost["saved_usd"])
        for labels, wasted in rows(burst.last, "cloudwhale_wasted_usd_total"):
            if labels["project"] == project:
                key = f"wasted_{labels['cause'].replace('-', '_')}_usd"
                assert micro(wasted) == micro(cost[key]), key


def test_money_never_goes_back_though_its_controller_is_killed(burst: Burst) -> None:
    for name in ("cloudwhale_spent_usd_total", "cloudwhale_wasted_usd_total"):
        sums = [total(told, name) for told in burst.told]
        assert all(before <= after + 1e-9 for before, after in zip(sums, sums[1:], strict=False))
        assert sums[0] == 0 < sums[-1]


def test_budgets_are_what_budget_says(burst: Burst) -> None:
    (nlp,) = [one for one in burst.budgets if one.get("project") == "nlp"]
    for what, key in (
        ("limit", "budget_usd"),
        ("spent", "spent_usd"),
        ("reserved", "reserved_usd"),
    ):
        told = total(burst.last, f"cloudwhale_budget_{what}_usd", kind="project", payer="nlp")
        assert micro(told) == micro(nlp[key]), what
    limits = [total(told, "cloudwhale_budget_limit_usd", kind="run") for told in burst.told]
    assert 8.0 in limits, "while the run is not over"


def test_the_second_controller_waits_for_the_queue_and_for_the_port(burst: Burst) -> None:
    assert "waiting: " in burst.second and "works on the queue" in burst.second
    assert "Address already in use; tried again every 5 s" in burst.second


def test_prometheus_finds_something_for_every_query_of_the_dashboard(burst: Burst) -> None:
    empty: list[str] = []
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            found = burst.prometheus.range(target["expr"].replace("$__rate_interval", "1h"))
            values = [float(value) for one in found for _, value in one["values"]]
            if all(math.isnan(value) for value in values):
                empty.append(f"{panel['title']}: {target['expr']}")
    assert empty == []


def test_prometheus_counts_the_first_dollar_too(burst: Burst) -> None:
    spent = sum(one["spent_usd"] for one in burst.costs.values())
    told = burst.prometheus.value("sum(increase(cloudwhale_spent_usd_total[1h]))")
    assert told == pytest.approx(spent, rel=0.1), "it works out what lies between two samples"


def test_every_rule_of_ours_can_be_worked_out(burst: Burst) -> None:
    rules = burst.prometheus.rules()
    assert len(rules) > 10
    assert {rule["health"] for rule in rules} == {"ok"}, [rule.get("lastError") for rule in rules]
