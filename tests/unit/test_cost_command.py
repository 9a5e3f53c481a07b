"""What `cost` shows of a ledger: everything adds up, whatever the names, in every form."""

import csv
import io
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from cost_lines import NASTY, NOVEMBER, a_ledger, a_line, some_lines
from typer.testing import CliRunner

from cloudwhale.cli import completing
from cloudwhale.cli.app import whole_app
from cloudwhale.cli.cost_asked import Wanted
from cloudwhale.cli.costing import cost
from cloudwhale.cli.exits import WrongUsage
from cloudwhale.model.cost import CostLine
from cloudwhale.model.units import usd
from cloudwhale.spi.errors import SettingsError

LINES = some_lines()
SPENT = usd(sum(line.spent for line in LINES))  # type: ignore[arg-type]


def wanted(*forms: str, by: str = "project", period: str = "all", **others: object) -> Wanted:
    chosen = {"zone": "UTC", "running": True, "project": None, "wasted": False, "into": None}
    return Wanted(by=by, period=period, forms=forms, **(chosen | others))  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLOUDWHALE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def full(home: Path) -> Path:
    a_ledger(home, LINES)
    return home


def document(capsys: pytest.CaptureFixture[str], **asked: object) -> dict[str, object]:
    cost(wanted("json", **asked))  # type: ignore[arg-type]
    found: dict[str, object] = json.loads(capsys.readouterr().out, parse_float=Decimal)
    return found


@pytest.mark.parametrize(
    "by", ["project", "user", "job", "family", "run", "provider", "market", "region", "gpu", "day",
           "project,day", "gpu,market,region"],
)  # fmt: skip
def test_rows_add_up_to_the_total_whatever_they_are_by(
    full: Path, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    found = document(capsys, by=by)
    rows, total = found["costs"], found["total"]
    assert isinstance(rows, list) and isinstance(total, dict)
    for key in ("spent_usd", "wasted_usd", "saved_usd", "machine_usd", "wasted_boot_usd", "gpu_h"):
        summed = sum(Decimal(str(row[key])) for row in rows if row[key] is not None)
        assert abs(summed - Decimal(str(total[key]))) < Decimal(
            "0.0001" if key == "gpu_h" else "1e-9"
        )
    assert Decimal(str(total["spent_usd"])) == SPENT
    causes = [
        value for key, value in total.items() if key.startswith("wasted_") and key != "wasted_usd"
    ]
    assert sum(causes) == total["wasted_usd"] and len(causes) == 5


def test_a_pipe_gets_every_row_exactly(full: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cost(wanted(by="job"))
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("job-")]) == len(
        {x.job for x in LINES} - {None}
    )
    assert f" {SPENT} " in next(line for line in lines if line.startswith("total"))


def test_a_pipe_gets_causes_when_they_are_asked_for(
    full: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cost(wanted(by="project,day"))
    assert "BOOT" not in capsys.readouterr().out.splitlines()[1].split()
    cost(wanted(by="project,day", wasted=True))
    heads = capsys.readouterr().out.splitlines()[1].split()
    assert {"BOOT", "IDLE", "LOST", "FAILED", "OVER"} <= set(heads)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("--html", "x.html"), "`cloudwhale cost --html -o x.html`"),
        (("--csv", "my costs.csv"), "`cloudwhale cost --csv -o 'my costs.csv'`"),
        (("--focus", "f.csv", "--sandbox"), "`cloudwhale cost --focus -o f.csv --sandbox`"),
        (("--json", "x.json"), "`cloudwhale cost --json > x.json`"),
        (("Project,day",), "`cloudwhale cost --by project,day`"),
        (("last", "month"), "--by says by what, --for when, -o into which file"),
    ],
)
def test_a_word_that_is_too_much_is_told_how_it_is_said(words: tuple[str, ...], meant: str) -> None:
    done = CliRunner().invoke(whole_app(), ("cost", *words))
    assert done.exit_code == 2
    assert meant in " ".join(done.output.split())


def test_a_period_takes_the_days_of_its_zone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = NOVEMBER - 1800  # half past eleven in the evening, UTC; half past midnight in Berlin
    a_ledger(home, [a_line(1, "nlp", began_at=at)])
    in_utc = document(capsys, period="2026-11", by="day")
    there = document(capsys, period="2026-11", by="day", zone="Europe/Berlin")
    assert in_utc["costs"] == []
    assert [row["day"] for row in there["costs"]] == ["2026-11-01"]  # type: ignore[attr-defined]
    assert there["since"] == "2026-11-01T00:00:00+01:00"


def test_an_empty_ledger_and_a_month_without_data_say_so(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_ledger(home, [])
    for form in ((), ("csv",), ("html",), ("focus",), ("json",)):
        cost(wanted(*form))
    out = capsys.readouterr().out
    assert "Nothing was spent yet" in out and '"costs": []' in out
    a_ledger(home, LINES)
    cost(wanted(period="2025-01"))
    assert "Nothing was spent in this period: January 2025, UTC." in capsys.readouterr().out


def test_a_project_can_be_looked_at_alone(full: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, project="nlp")
    alone = usd(sum(line.spent for line in LINES if line.project == "nlp"))  # type: ignore[arg-type]
    assert found["only"] == {"project": "nlp"}
    assert found["total"]["spent_usd"] == alone  # type: ignore[index]


def test_no_text_of_a_csv_is_a_formula_and_none_breaks_a_row(
    full: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cost(wanted("csv", by="project,market"))
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert len({len(row) for row in rows}) == 1
    assert sum(Decimal(row[2]) for row in rows[1:]) == SPENT
    names = {row[0] for row in rows[1:]}
    assert not [
        name
        for name in names
        if name[0] in "=+-@" or not name.isprintable() and "\u202e" not in name
    ]
    assert {'team, "a"', "🐳 whale", "'=cmd|' /C calc'!A0", "'@SUM(1+1)", "a;b c"} <= names


def test_a_csv_counts_jobs_as_the_document_does(
    full: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = [str(row["jobs"]) for row in document(capsys, by="market")["costs"]]  # type: ignore[attr-defined]
    cost(wanted("csv", by="market"))
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["jobs"] for row in rows] == counted and "0" not in counted


def test_a_page_is_whole_alone_and_escaped_and_its_columns_add_up(
    full: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cost(wanted("html", into=tmp_path / "costs.html"))
    page = (tmp_path / "costs.html").read_text()
    assert "<script" not in page and "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count("</style>") == 1 and "\x1b" not in page
    assert not re.search(r"""(?:src|href)=["'](?!data:,)|url\(|@import""", page)
    tables = re.findall(r"<table>.*?</table>", page, re.S)
    assert len(tables) == 4
    for table in tables:
        rows = [
            re.findall(r"<td[^>]*><bdi[^>]*>(.*?)</bdi></td>", row) for row in table.split("</tr>")
        ]
        amounts = [[Decimal(x.replace(",", "")) for x in row if re.fullmatch(r"-?[\d,]+\.\d{2}", x)]
                   for row in rows if row]  # fmt: skip
        *body, total = amounts
        assert sum(row[0] for row in body) == total[0] > 0
    spent = re.search(r"<span>spent</span><b>([\d.,]+) USD", page)
    assert spent is not None and Decimal(spent[1].replace(",", "")) == round(SPENT, 2)


def test_what_a_terminal_shows_adds_up_at_80_and_140_columns() -> None:
    from cloudwhale.planning.cost_sums import sums
    from cloudwhale.reporting.cost_sheet import Look, costs_sheet
    from cloudwhale.reporting.costs import Costs, added, in_order
    from cloudwhale.reporting.periods import period
    from cloudwhale.spi.store import CostQuery

    many = [a_line(number, f"p{number}") for number in range(100)]
    rows = in_order(sums(many, CostQuery(by=("project",))), ("project",))
    costs = Costs(
        period("all", NOVEMBER, "UTC"), "UTC", ("project",), rows, added(rows), NOVEMBER, True
    )
    for width, heads in ((80, 7), (140, 12)):
        sheet = costs_sheet(costs, Look(width))
        assert len(sheet.columns) == heads and len(sheet.rows) == 42
        assert sheet.rows[-2][0].text == "60 others"
        spent = [Decimal(row[1].text.replace(",", "")) for row in sheet.rows]
        assert (
            sum(spent[:-1])
            == spent[-1]
            == round(usd(added(rows).spent), len(str(spent[-1]).split(".")[1]))
        )
        assert "▒" in sheet.rows[0][2].text


def test_what_is_not_known_on_demand_is_not_zero(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_ledger(home, [a_line(1, "old", on_demand=None)])
    found = document(capsys)
    assert found["total"]["saved_usd"] is None  # type: ignore[index]
    cost(wanted())
    assert "1 of 1 charge nobody knows the price on demand" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (wanted(by="projekt"), "--by 'projekt'"), (wanted(by=""), "--by ''"),
        (wanted(by="day,day"), "day is there twice"), (wanted(period="soon"), "'soon'"),
        (wanted(period="2026-11..2026-10"), "ends before it begins"),
        (wanted("csv", "html"), "--csv and --html"), (wanted(into=Path("x")), "-o x"),
        (wanted("html", into=Path("/nowhere/x.html")), "/nowhere/x.html cannot be written"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_named_with_a_remedy(full: Path, asked: Wanted, says: str) -> None:
    with pytest.raises(WrongUsage) as caught:
        cost(asked)
    assert says in caught.value.says and caught.value.remedy


def test_a_zone_that_there_is_not_is_refused(full: Path) -> None:
    with pytest.raises(SettingsError, match="--zone: 'Mars'"):
        cost(wanted(zone="Mars"))


def test_the_shell_offers_dimensions_periods_and_zones() -> None:
    assert completing.dimension_words("project,pr") == ["project,provider"]
    assert completing.period_words("last m") == ["last month"]
    assert "Europe/Berlin" in completing.zone_words("berl")
    assert completing.zone_words("Europe/Be") == [
        "Europe/Belfast",
        "Europe/Belgrade",
        "Europe/Berlin",
    ]


def test_names_that_break_things_are_among_those_tested() -> None:
    assert {line.project for line in LINES} >= set(NASTY)
    assert all(_adds_up(line) for line in LINES)


def _adds_up(line: CostLine) -> bool:
    parts = (line.items, line.purposes)
    return all(sum(dict(part).values()) == line.spent for part in parts)


def test_the_shell_offers_whom_the_settings_tell_and_nothing_rather_than_an_error(
    home: Path,
) -> None:
    assert completing.target_words("") == completing.night_words("") == []
    assert completing.payer_words("") == []
    Path("cloudwhale.toml").write_text('[notify.ops]\ncommand = ["true"]\n')
    assert [name for name, _ in completing.target_words("o")] == ["ops"]
    assert completing.target_words("x") == []
