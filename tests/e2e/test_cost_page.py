"""Pages of costs and of a night in a real browser: no error, nothing beside screen or paper."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from cost_lines import a_line, some_lines
from mornings import FAILED, WAITS, a_night_job, the_report

from cloudwhale.model.cost import CostLine, CostSum, Dimension
from cloudwhale.model.job import JobState
from cloudwhale.planning.cost_sums import sums
from cloudwhale.reporting.cost_days import days_of
from cloudwhale.reporting.cost_page import Parts, costs_page
from cloudwhale.reporting.costs import Costs, added, in_order
from cloudwhale.reporting.morning_page import morning_page
from cloudwhale.reporting.page import page, said
from cloudwhale.reporting.periods import period
from cloudwhale.spi.store import CostQuery

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
LONG = "a-project-with-a-name-of-sixty-three-letters-that-has-no-place-"

needs_chromium = pytest.mark.skipif(
    BROWSER is None and not os.environ.get("CI"), reason="needs chromium; CI has it"
)

WIDTHS = (360, 375, 480, 800, 1200)

MEASURE = """<!DOCTYPE html><meta charset="utf-8"><body>FRAMES<pre id="found"></pre><script>
let found = document.getElementById("found");
const frames = document.querySelectorAll("iframe");
for (const frame of frames) frame.onload = () => {
  const inside = frame.contentDocument, root = inside.documentElement;
  const cut = [...inside.querySelectorAll(".wide")].filter(
    one => one.scrollWidth > one.clientWidth);
  const drawn = [...inside.querySelectorAll(".bars svg, .plot svg")];
  const seen = drawn.filter(one => one.getBoundingClientRect().width > 40 &&
    one.getBoundingClientRect().height > 10);
  found.textContent += "[" + frame.width + ": needs " + root.scrollWidth + " of " +
    root.clientWidth + ", title " + inside.title + ", seen " + seen.length + " of " +
    drawn.length + ", cut " + cut.length + "]";
};
for (const frame of frames) frame.src = "page.html";</script>""".replace(
    "FRAMES",
    "".join(
        f'<iframe width="{width}" height="20000" style="border:0"></iframe>' for width in WIDTHS
    ),
)


@dataclass
class Lines:
    """What is asked for days, answered from lines in memory."""

    lines: list[CostLine]

    def sums(self, *by: Dimension) -> Sequence[CostSum]:
        return sums(self.lines, CostQuery(by=by))

    def by_day_of(self, dimension: Dimension, value: str) -> Sequence[CostSum]:
        return sums(self.lines, CostQuery(by=("day",)).but(**{dimension: value}))


def a_page(lines: list[CostLine]) -> str:
    rows = in_order(sums(lines, CostQuery(by=("project",))), ("project",))
    now = max(line.ended_at for line in lines)
    costs = Costs(
        period("2026-11", now, "UTC"), "UTC", ("project",), rows, added(rows), now, True, 2
    )
    jobs = in_order(
        [
            one
            for one in sums(lines, CostQuery(by=("job", "family", "project", "user")))
            if one.key[0]
        ],
        ("job",),
    )
    return costs_page(Parts(costs, days_of(("project",), Lines(lines)), jobs[:20]))


def browse(folder: Path, name: str, *options: str) -> tuple[str, str]:
    """Return what a page became, and what was said about it."""
    assert BROWSER is not None
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
        "--allow-file-access-from-files", f"--user-data-dir={folder / 'profile'}", *options,
        (folder / name).as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def costs_of_long_names() -> str:
    return a_page([*some_lines(), a_line(99, LONG)])


def a_morning() -> str:
    done = a_night_job(LONG[:40], JobState.COMPLETED, project=LONG).but(id="a")
    told = the_report((done, FAILED, WAITS))
    return morning_page(told.but(jobs=tuple(one.but(id=f"{LONG}{one.id}") for one in told.jobs)))


@needs_chromium
@pytest.mark.parametrize(
    ("made", "begins", "drawn"),
    [(costs_of_long_names, "Costs of rented machines", 10), (a_morning, "Night of", 2)],
    ids=["costs", "morning"],
)
def test_a_page_fits_phones_and_a_desk_without_an_error(
    tmp_path: Path, made: Callable[[], str], begins: str, drawn: int
) -> None:
    (tmp_path / "page.html").write_text(made(), encoding="utf-8")
    (tmp_path / "measure.html").write_text(MEASURE, encoding="utf-8")
    shown, errors = browse(tmp_path, "measure.html", "--virtual-time-budget=20000", "--dump-dom")
    form = r"\[(\d+): needs (\d+) of (\d+), title (.*?), seen (\d+) of (\d+), cut (\d+)\]"
    found = sorted(re.findall(form, shown), key=lambda one: int(one[0]))
    assert [int(width) for width, *_ in found] == list(WIDTHS), shown[-2000:]
    for width, needs, has, title, seen, all_drawn, cut in found:
        assert int(needs) <= int(has) == int(width)
        assert int(cut) == 0, "a table is wider than its page"
        assert title.startswith(begins)
        assert int(seen) == int(all_drawn) >= drawn
    assert errors == ""


@needs_chromium
def test_the_page_prints_on_paper(tmp_path: Path) -> None:
    (tmp_path / "costs.html").write_text(a_page(some_lines()), encoding="utf-8")
    paper = tmp_path / "costs.pdf"
    browse(tmp_path, "costs.html", f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    printed = paper.read_bytes()
    assert printed.startswith(b"%PDF") and len(printed) > 10_000
    boxes = {found for found in re.findall(rb"/MediaBox \[([^\]]*)\]", printed)}
    assert boxes and all(re.match(rb"0 0 59[45]\S* 84[12]", box) for box in boxes)  # A4, in points


@needs_chromium
def test_an_error_on_the_console_would_be_seen(tmp_path: Path) -> None:
    broken = page("x", [said("y")]).replace("</body>", "<script>nobody()</script></body>")
    (tmp_path / "costs.html").write_text(broken, encoding="utf-8")
    _, errors = browse(tmp_path, "costs.html", "--dump-dom")
    assert "nobody is not defined" in errors
