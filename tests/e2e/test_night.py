"""The night of the examples, in the box: more work than money, and a report in the morning."""

from pathlib import Path

from mortal_box import MortalBox

from cloudwhale.model.job import JobState
from cloudwhale.model.units import micro_usd
from cloudwhale_providers.sandbox import Sandbox

EXAMPLES = Path(__file__).parents[2] / "examples"
BUDGET = micro_usd(8)


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
        assert home.run("night", "night.yaml", "--budget", "8", "-y") != 0, "it is over"
        assert "is over: it closed" in home.said
