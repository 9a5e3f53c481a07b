"""The command `budget`, typed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    typed = Shell(tmp_path)
    yield typed
    typed.close()


def test_a_project_gets_a_budget_that_is_listed_and_taken_away(shell: Shell) -> None:
    assert shell("budget", "--json").document == {"budgets": []}
    said = shell("budget", "set", "nlp", "200/month", "--soft", "0.5")
    assert said.code == 0
    assert "200.00 USD on rented machines in each month" in said.out
    assert "No job of a project nlp" in said.err
    [row] = shell("budget", "list", "--json").document["budgets"]
    assert (row["project"], row["budget_usd"], row["soft_line_usd"]) == ("nlp", 200.0, 100.0)
    assert shell("budget", "unset", "nlp").code == 0
    assert shell("budget", "list", "--json").document == {"budgets": []}


def test_budgets_have_a_history_and_an_outlook(shell: Shell) -> None:
    shell("budget", "set", "--project", "nlp", "--monthly", "500", "--soft", "90%")
    shell("budget", "set", "--project", "nlp", "400/month", "--soft", "0.5")
    past = shell("budget", "history", "nlp", "--json").document
    assert [one["budget_usd"] for one in past["changes"]] == [500.0, 400.0]
    assert [one["soft_share"] for one in past["changes"]] == [0.9, 0.5]
    assert [one["budget_usd"] for one in past["months"]] == [400.0]
    [one] = shell("budget", "forecast", "--json").document["projects"]
    assert (one["project"], one["expected_usd"], one["warns"]) == ("nlp", 0.0, None)
    assert shell("suggest", "--json").document == {"families": []}


def test_a_run_that_waits_gets_another_budget(shell: Shell) -> None:
    shell.write("a.yaml", 'name: a\nproject: nlp\ncommand: "true"\n')
    run = shell("submit", "a.yaml", "--budget", "5", "--json").document["runs"][0]["run"]
    said = shell("budget", "set", run, "80")
    assert said.code == 0 and "80.00 USD" in said.out
    [row] = shell("budget", "list", "--json").document["budgets"]
    assert (row["run"], row["budget_usd"], row["project"]) == (run, 80.0, None)
    assert shell("budget", "set", run, "80/month").code == 2
    assert shell("budget", "set", run, "80", "--soft", "0.5").code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("set", "nlp", "200"),
        ("set", "nlp", "-5/month"),
        ("set", "nlp", "200EUR/month"),
        ("set", "nlp", "200/week"),
        ("set", "nlp", "5/month", "--soft", "2"),
        ("set", "a/b", "5/month"),
        ("set", "--project", "nlp", "--monthly", ""),
        ("unset", "nlp"),
    ],
)
def test_a_wrong_word_is_wrong_usage_with_a_remedy(shell: Shell, words: tuple[str, ...]) -> None:
    said = shell("budget", *words)
    assert said.code == 2
    assert said.err.startswith("cloudwhale: ") and "\n  " in said.err
    assert shell("budget", "--json").document == {"budgets": []}
