"""Makes the dashboard for Grafana out of the table of metrics: `python infra/grafana/dashboard.py`.

Prints JSON; `cloudwhale.json` beside this file is what it printed. Queries, units and descriptions
come from the table, so that no panel asks for a metric that there is not.
"""

import json
import sys
from dataclasses import dataclass
from typing import Any

from cloudwhale.reporting.metrics_table import BY_NAME, PREFIX, Metric

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
UNITS = {"seconds": "s", "usd": "currencyUSD", "ratio": "percentunit", "": "short"}
"""Of Grafana, by those of the table."""
SCHEMA = 39
"""Of Grafana 11; newer ones read it, too (kinds/dashboard of grafana/grafana)."""
WIDTH, HEIGHT = 8, 8
"""Of a panel; a row of the dashboard is 24 wide."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: a metric, by some of its labels."""

    title: str
    name: str
    by: tuple[str, ...] = ()
    largest: bool = False
    """Not the sum of the series that are put together, but the largest of them."""


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Money",
        (
            Panel("Spent a day, by project", "spent_usd_total", ("project",)),
            Panel("Spent a day, by provider and market", "spent_usd_total", ("provider", "market")),
            Panel("Wasted a day, by cause", "wasted_usd_total", ("cause",)),
            Panel("Saved beside on-demand, so far", "saved_usd", ("project",)),
            Panel("Cost so far of machines that run", "unsettled_usd", ("provider", "market")),
            Panel("Cheapest hour of a GPU", "offer_gpu_hour_usd", ("gpu", "market"), largest=True),
            Panel("Budgets: bound", "budget_limit_usd", ("kind", "payer")),
            Panel("Budgets: set aside", "budget_reserved_usd", ("kind", "payer")),
            Panel("Budgets: spent", "budget_spent_usd", ("kind", "payer")),
        ),
    ),
    (
        "Jobs",
        (
            Panel("Jobs by state and reason", "jobs", ("state", "reason")),
            Panel("Jobs by project", "project_jobs", ("project", "state")),
            Panel("Wait from submission to start", "admission_wait_seconds", ("place",)),
            Panel("Longest wait", "oldest_wait_seconds", largest=True),
            Panel("Jobs that ended, per day", "jobs_ended_total", ("state",)),
            Panel("Checkpoints that are late", "checkpoints_late"),
            Panel("Attempts lost, per day", "attempts_lost_total", ("reason",)),
            Panel("Attempts that gave way, per day", "jobs_gave_way_total"),
            Panel("Work to be done again, per day", "lost_work_seconds_total"),
        ),
    ),
    (
        "Machines",
        (
            Panel("Rented machines by state", "rentals", ("state", "provider", "market")),
            Panel("Rented machines by type", "rentals", ("provider", "type", "market")),
            Panel("GPUs held and free", "gpus", ("place", "use")),
            Panel("Nodes", "nodes", ("place", "state")),
            Panel("Heartbeats: how old", "heartbeat_age_seconds", ("node",), largest=True),
            Panel("Machines taken away, per day", "preemptions_total", ("provider", "market")),
            Panel("Left over at providers", "leaks", ("provider",)),
            Panel("Refusals of providers, per day", "api_errors_total", ("provider", "code")),
        ),
    ),
    (
        "Controller",
        (
            Panel("Time of a planning round", "round_seconds"),
            Panel("Time of a tick", "tick_seconds"),
            Panel("Since the newest tick", "tick_age_seconds", largest=True),
            Panel("Time to choose machines", "solver_seconds"),
            Panel("Choice of machines: gap to the bound", "solver_gap_ratio"),
            Panel("Choices out of effort, per day", "solver_out_of_effort_total"),
            Panel("Effects", "effects", ("state",)),
            Panel("Notices on their way", "notices", ("state",)),
            Panel("Plans refused by the checker", "plan_refused", largest=True),
            Panel("Versions", "build_info", ("version",)),
        ),
    ),
)


def queries(panel: Panel, metric: Metric) -> list[tuple[str, str]]:
    """Return what a panel asks, each with its legend."""
    legend = " ".join(f"{{{{{label}}}}}" for label in panel.by) or panel.title
    if metric.kind == "histogram":
        by = ", ".join(("le", *panel.by))
        rate = f"sum by ({by}) (rate({metric.name}_bucket[$__rate_interval]))"
        name = "" if not panel.by else f" {legend}"
        return [
            (f"histogram_quantile({part}, {rate})", f"{words}{name}")
            for part, words in ((0.5, "median"), (0.9, "9 in 10"), (0.99, "99 in 100"))
        ]
    how = "max" if panel.largest else "sum"
    by = f" by ({', '.join(panel.by)})" if panel.by else ""
    asked = f"increase({metric.name}[1d])" if metric.kind == "counter" else metric.name
    return [(f"{how}{by} ({asked})", legend)]


def drawn(panel: Panel, number: int, at: tuple[int, int]) -> dict[str, Any]:
    """Return a panel as Grafana reads it."""
    metric = BY_NAME[PREFIX + panel.name]
    targets = [
        {"datasource": SOURCE, "expr": expr, "legendFormat": legend, "refId": chr(65 + position)}
        for position, (expr, legend) in enumerate(queries(panel, metric))
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": metric.help,
        "datasource": SOURCE,
        "gridPos": {"x": at[0], "y": at[1], "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {
            "defaults": {"unit": UNITS[metric.unit], **_least(metric)},
            "overrides": [],
        },
        "options": {
            "legend": {
                "showLegend": True,
                "displayMode": "table",
                "placement": "bottom",
                "calcs": ["lastNotNull", "max"],
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": targets,
    }


def _least(metric: Metric) -> dict[str, int]:
    return {} if metric.name == f"{PREFIX}saved_usd" else {"min": 0}


def dashboard() -> dict[str, Any]:
    """Return the whole dashboard."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        place = {"x": 0, "y": y, "w": 24, "h": 1}
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": title,
                "gridPos": place,
                "collapsed": False,
                "panels": [],
            }
        )
        for position, panel in enumerate(row):
            at = (position % 3 * WIDTH, y + 1 + position // 3 * HEIGHT)
            panels.append(drawn(panel, len(panels) + 1, at))
        y += 1 + -(-len(row) // 3) * HEIGHT
    return {
        "title": "cloudwhale",
        "uid": "cloudwhale",
        "tags": ["cloudwhale"],
        "description": "What a controller of cloudwhale tells of itself (docs/metrics.md).",
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "type": "datasource",
                    "query": "prometheus",
                    "label": "Source",
                    "hide": 0,
                }
            ]
        },
        "panels": panels,
    }


def text() -> str:
    """Return the dashboard as the file holds it."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
