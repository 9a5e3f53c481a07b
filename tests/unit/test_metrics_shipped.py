"""Rules, dashboard and docs ask for metrics that there are, and are what the table makes."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cloudwhale.reporting.metrics_table import AT_MOST, BY_NAME, TABLE, as_markdown

ROOT = Path(__file__).parents[2]
RULES = ROOT / "infra" / "prometheus" / "cloudwhale.rules.yml"
GRAFANA = ROOT / "infra" / "grafana"
PROMTOOL = shutil.which("promtool")
NAME = re.compile(r"\b(?:cloudwhale[a-z0-9_]*(?::[a-z0-9_]+)+|cloudwhale_[a-z0-9_]+)")
LABELS = re.compile(r"\bby \(([^)]*)\)")
SERIES = {name: metric for metric in TABLE for name in metric.series}

needs_promtool = pytest.mark.skipif(
    PROMTOOL is None and not os.environ.get("CI"), reason="promtool (Prometheus) is not here"
)


def made() -> Any:
    spec = importlib.util.spec_from_file_location("dashboard", GRAFANA / "dashboard.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def recorded() -> set[str]:
    return {rule["record"] for rule in rules() if "record" in rule}


def promtool(*words: str) -> None:
    ended = subprocess.run(
        ["promtool", *words], cwd=RULES.parent, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def queries() -> list[str]:
    panels = json.loads((GRAFANA / "cloudwhale.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def test_every_query_of_the_dashboard_asks_for_series_that_there_are() -> None:
    for query in queries():
        names = NAME.findall(query)
        assert names, query
        for name in names:
            assert name in SERIES, query
            (wanted,) = LABELS.findall(query) or [""]
            by = {label for label in wanted.split(", ") if label and label != "le"}
            assert by <= set(SERIES[name].labels), query


def test_every_metric_has_a_panel() -> None:
    asked = {SERIES[name].name for query in queries() for name in NAME.findall(query)}
    assert asked == set(BY_NAME)


def test_the_dashboard_is_what_the_table_makes() -> None:
    says = "python infra/grafana/dashboard.py > infra/grafana/cloudwhale.json"
    assert (GRAFANA / "cloudwhale.json").read_text() == made().text(), says


def test_panels_have_names_of_their_own_and_units() -> None:
    panels = json.loads((GRAFANA / "cloudwhale.json").read_text())["panels"]
    titles = [panel["title"] for panel in panels]
    assert len(set(titles)) == len(titles)
    drawn = [panel for panel in panels if panel["type"] != "row"]
    assert {one["fieldConfig"]["defaults"]["unit"] for one in drawn} <= set(made().UNITS.values())
    places = {(one["gridPos"]["x"], one["gridPos"]["y"]) for one in panels}
    assert len(places) == len(panels), "none lies over another"


def test_panels_have_what_grafana_s_schema_does_without_default_for() -> None:
    # kinds/dashboard/dashboard_kind.cue and packages/grafana-schema of grafana/grafana
    whole = json.loads((GRAFANA / "cloudwhale.json").read_text())
    assert len({panel["id"] for panel in whole["panels"]}) == len(whole["panels"])
    for panel in whole["panels"]:
        if panel["type"] == "row":
            assert (panel["collapsed"], panel["panels"]) == (False, [])
            continue
        assert panel["fieldConfig"]["overrides"] == []
        assert all(value is not None for value in panel["fieldConfig"]["defaults"].values())
        assert panel["options"].keys() == {"legend", "tooltip"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        where = panel["gridPos"]
        assert where["x"] + where["w"] <= 24


def test_every_rule_asks_for_series_that_there_are() -> None:
    known = set(SERIES) | recorded()
    for rule in rules():
        names = NAME.findall(rule["expr"])
        assert names and set(names) <= known, rule
        for name, label in re.findall(r"(\w+)\{(\w+)", rule["expr"]):
            assert name == "up" or label in SERIES[name].labels, rule


def test_every_alert_is_seen_to_ring_and_to_be_silent() -> None:
    tests = yaml.safe_load((RULES.parent / "cloudwhale.rules.test.yml").read_text())["tests"]
    seen = {
        (one["alertname"], bool(one["exp_alerts"]))
        for test in tests
        for one in test.get("alert_rule_test", ())
    }
    alerts = {rule["alert"] for rule in rules() if "alert" in rule}
    assert seen == {(name, rings) for name in alerts for rings in (True, False)}


@needs_promtool
def test_promtool_agrees_with_the_rules() -> None:
    promtool("check", "rules", RULES.name)
    promtool("test", "rules", "cloudwhale.rules.test.yml")


def test_the_docs_have_the_table() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text()
    _, _, rest = text.partition("<!-- metrics -->\n")
    assert rest.partition("\n<!-- /metrics -->")[0] == as_markdown()


@pytest.mark.parametrize("metric", TABLE, ids=lambda metric: metric.name)
def test_names_units_and_labels_are_as_prometheus_wants_them(metric: Any) -> None:
    assert re.fullmatch(r"cloudwhale_[a-z0-9_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    bare = metric.name.removesuffix("_total")
    assert not metric.unit or bare.endswith(f"_{metric.unit}")
    assert bool(metric.buckets) == (metric.kind == "histogram")
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert not {"job", "run", "user", "instance"} & set(metric.labels)
    assert not {"node", "payer", "project"} & set(metric.labels) - set(AT_MOST)
