"""The night of the examples, in the box: more work than money, and a report in the morning."""

import re
import shlex
from html import unescape
from pathlib import Path

from mortal_box import Home, MortalBox

from cloudwhale.control.given import WITHOUT
from cloudwhale.model.job import JobState
from cloudwhale.model.units import micro_usd
from cloudwhale_providers.sandbox import Sandbox

EXAMPLES = Path(__file__).parents[2] / "examples"
BUDGET = micro_usd(8)
NAMED = re.compile(r"`(cloudwhale [^`]+)`|<code>(cloudwhale [^<]+)</code>")
SHOWS = (
    ("morning",), ("morning", "--html"), ("morning", "--json"), ("receipt",), ("ps", "--all"),
    ("explain", "large-eval"), ("explain", "broken", "--json"), ("cost", "--by", "project,day"),
    ("cost", "--html"), ("budget",), ("budget", "history"), ("budget", "forecast"), ("suggest",),
    ("leaks",), ("nodes",), ("notify",), ("notify", "list"), ("night", "--list"),
)  # fmt: skip
"""What somebody looks at in the morning."""


def named_in(text: str) -> set[str]:
    """Return the commands that a text tells its reader to give, but those with words to fill in."""
    found = {unescape(command or in_page) for command, in_page in NAMED.findall(text)}
    return {one for one in found if not re.search(r"\b[A-Z]{3,}\b", one)}


def every_command_that_is_named_runs(home: Home) -> None:
    """Follow what the night and its reports name; whoever was in the sandbox is led there again."""
    log = home.folder / "home" / "said.log"
    for words in SHOWS:
        assert home.run(*words) == 0, (words, home.said)
    named = named_in(log.read_text())
    assert any(one.startswith("cloudwhale logs broken") for one in named), named
    for found in map(shlex.split, sorted(named)):
        if found[1] in WITHOUT:  # the same in there and outside; `catalog update` asks far away
            continue
        assert "--sandbox" in found, f"leads to another home: {found}"
        given = [one for one in found[1:] if one != "--sandbox"]  # which is given to all here
        assert home.run(*given) == 0, (given, home.said)


def test_a_night_stays_inside_its_budget_and_reports_what_is_left_over(tmp_path: Path) -> None:
    with MortalBox(tmp_path, (EXAMPLES / "weather" / "night.yaml").read_text()) as box:
        home = box.home("home")
        home.write("night.yaml", (EXAMPLES / "night.yaml").read_text())
        code = home.run("night", "night.yaml", "--budget", "8", "-y")
        assert code == 3, home.said
        report = (home.folder / "home" / "said.log").read_text()
        assert "2 left over" in report or "1 left over" in report, report
        books, bill = home.books, Sandbox().meter(box.box)
        states = {job.spec.name: job.state for job in books.jobs if job.spec.name != "large-eval"}
        assert states.pop("broken") is JobState.FAILED
        assert set(states.values()) == {JobState.COMPLETED}
        left = [job for job in books.jobs if not job.ended]
        assert left and {job.spec.name for job in left} == {"large-eval"}
        assert 0 < books.spent <= BUDGET and books.reserved == 0
        assert books.spent == sum(one.cost for one in bill)
        assert {"nlp", "vision", "speech"} <= set(report.split())
        assert list(home.folder.rglob("morning-night-*.html")), "the same is there as a page"
        every_command_that_is_named_runs(home)
        assert home.run("night", "night.yaml", "--budget", "8", "-y") != 0, "it is over"
        assert "is over: it closed" in home.said
