"""Trials: estimates, the line-up, what is shown and drawn of it."""

import math
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cloudwhale.cli.completing import policy_words, trace_words
from cloudwhale.cli.exits import Bug, for_error
from cloudwhale.cli.output import Paper
from cloudwhale.cli.simulate_asked import SimulateOptions, seeds_of
from cloudwhale.cli.simulate_view import Outcome, document, picture, shown, spread
from cloudwhale.cli.simulating import simulate
from cloudwhale.reporting.sheet import plain_lines
from cloudwhale.reporting.trial_plots import Held, draw, held_over_time, stacked_floors
from cloudwhale.reporting.trial_tables import WORDS, TrialRow, bar_lines, trials_sheet
from cloudwhale.simulation import lineup
from cloudwhale.simulation.metrics import NAMES
from cloudwhale.simulation.playing import PlanRefused
from cloudwhale.simulation.traces import estimated, estimates
from cloudwhale.simulation.traces.synthetic import Mix, mixed, small_nodes
from cloudwhale.simulation.trials import Bench, Todo, Trial, TrialFailed, bounds_of, trial, trials
from cloudwhale.spi.errors import CloudwhaleError, SettingsError

FEW = Mix(jobs=8, hours=0.4)
BENCH = Bench(tuple(small_nodes()), mix=FEW)


# -- estimates -------------------------------------------------------------------------------


def test_exact_estimates_are_the_truth_and_none_are_nothing() -> None:
    jobs = mixed(1, FEW)
    exact = estimated(jobs, estimates("exact"), 0)
    assert [one.spec.duration_s for one in exact] == pytest.approx([one.work_s for one in jobs])
    assert {one.spec.duration_s for one in estimated(jobs, estimates("none"), 0)} == {None}
    assert [one.work_s for one in exact] == [one.work_s for one in jobs], "the truth stays"


def test_noisy_estimates_are_off_by_up_to_the_factor_either_way_and_seeded() -> None:
    jobs = mixed(1, Mix(jobs=400))
    noisy = estimated(jobs, estimates("noisy:3x"), 5)
    off = [math.log((one.spec.duration_s or 0) / one.work_s, 3) for one in noisy]
    assert -1 <= min(off) < -0.9 and 0.9 < max(off) <= 1
    assert abs(sum(off)) / len(off) < 0.1
    assert estimated(jobs, estimates("noisy:3"), 5) == noisy
    assert estimated(jobs, estimates("noisy:3x"), 6) != noisy


@pytest.mark.parametrize("text", ["", "about", "noisy", "noisy:", "noisy:0.5x", "noisy:nan", "3x"])
def test_other_words_are_no_estimates(text: str) -> None:
    with pytest.raises(SettingsError, match="is no kind of estimates"):
        estimates(text)


# -- the line-up -----------------------------------------------------------------------------


def test_everybody_in_the_line_up_has_policies() -> None:
    for name in lineup.names():
        who = lineup.chosen(name, {}, 7)
        assert who.seed == 7 and lineup.contestant(name).says


def test_plain_schedulers_neither_hold_nor_reserve_nor_preempt() -> None:
    rules = lineup.chosen("fifo", {}, 0).policies.rules
    assert not (rules.hold or rules.reserve or rules.preempt)
    assert lineup.chosen("whale", {}, 0).policies.rules.hold
    assert lineup.chosen("whale", {"shares": {"nlp": 2.0}}, 0).policies.rules.shares == {"nlp": 2.0}


def test_an_installed_policy_plays_without_being_in_the_line_up() -> None:
    assert lineup.chosen("fgd", {}, 0).score == "fgd"


def test_an_unknown_policy_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(SettingsError, match=r"'wale'(.|\n)*Did you mean whale\?(.|\n)*fifo"):
        lineup.contestant("wale")


def test_tab_goes_on_with_the_list_and_leaves_out_who_is_in_it() -> None:
    assert "whale" in policy_words("wh")
    assert "fifo,whale" in policy_words("fifo,w")
    assert "whale,whale" not in policy_words("whale,w")
    assert [name for name, _ in trace_words("ph")] == ["philly"]


# -- plays -----------------------------------------------------------------------------------


def test_a_trial_is_the_same_every_time_and_another_seed_is_another() -> None:
    assert trial(BENCH, Todo("whale", 1)) == trial(BENCH, Todo("whale", 1))
    assert trial(BENCH, Todo("whale", 1)).waits_s != trial(BENCH, Todo("whale", 2)).waits_s


def test_trials_in_processes_are_those_that_are_played_here() -> None:
    todo = [Todo("fifo", 1), Todo("priority", 1)]
    found = [one for one in trials(BENCH, todo, processes=2) if isinstance(one, Trial)]
    here = [trial(BENCH, one) for one in todo]
    assert sorted(found, key=lambda one: one.contestant) == here


@pytest.mark.parametrize(
    ("text", "seeds"), [("3", (1, 2, 3)), ("4-6", (4, 5, 6)), ("7-7", (7,)), ("", (1, 2, 3))]
)
def test_seeds_are_a_number_or_a_range(text: str, seeds: Sequence[int]) -> None:
    assert seeds_of(text, is_drawn=True) == seeds
    assert seeds_of("", is_drawn=False) == (1,), "where nothing is drawn, one is enough"


@pytest.mark.parametrize("text", ["0", "5-3", "-2", "a", "1-", "1,2", "1-100000"])
def test_other_words_name_noseeds_of(text: str) -> None:
    with pytest.raises(CloudwhaleError, match="names no seeds"):
        seeds_of(text, is_drawn=True)


# -- what is shown ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    """Two contestants over two seeds."""
    found = [trial(BENCH, Todo(name, seed)) for name in ("whale", "fifo") for seed in (1, 2)]
    return Outcome("a trace", BENCH.nodes, (1, 2), found, bounds_of(BENCH, (1, 2)), {"no CSV": 2})


def test_the_document_has_means_spread_and_every_seed(outcome: Outcome) -> None:
    found = document(outcome)
    one, other = (trial_.metrics.mean_wait_s or 0.0 for trial_ in outcome.of("fifo"))
    assert found["policies"]["fifo"]["mean_wait_s"] == pytest.approx((one + other) / 2)
    assert found["spread"]["fifo"]["mean_wait_s"] == pytest.approx(abs(one - other) / 2**0.5)
    assert found["seeds"]["fifo"]["2"]["mean_wait_s"] == other
    assert list(found["policies"]) == ["whale", "fifo"]
    assert found["bounds"]["makespan_s"] > 0 and found["skipped"] == {"no CSV": 2}


def test_a_single_play_has_no_spread() -> None:
    assert spread([4.0]) is None and spread([None, 4.0]) is None
    assert spread([1.0, 3.0]) == pytest.approx(2**0.5)


def test_the_table_has_a_row_each_the_bound_and_what_was_skipped(
    outcome: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    shown(outcome, Paper(sys.stdout, plain=True))
    said = capsys.readouterr().out
    rows = [line.split()[0] for line in said.splitlines() if line and line[0] != " "]
    assert rows[:5] == ["a", "POLICY", "whale", "fifo", "bound"]
    assert "rows that were passed over: 2 no CSV" in said
    assert "mean completion" in said and "█" in said


def test_the_readme_shows_what_the_command_prints() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    told = readme.split("<!-- simulate -->")[1].split("<!-- /simulate -->")[0]
    row = TrialRow("whale", dict.fromkeys((*NAMES, "cloud_usd"), 1.0))
    sheet = trials_sheet([row], "", [])
    narrow = [column.name for column in sheet.columns if not column.optional]
    assert " ".join(narrow).replace(" USD", "") in " ".join(told.split()), "nothing was rented"
    assert all(word in told for word in WORDS)
    assert all(f"`{name}`" in readme for name in lineup.LINE_UP)


def test_an_empty_trace_gives_an_empty_table() -> None:
    sheet = trials_sheet([TrialRow("whale", {"jobs": 0.0, "completed": 0.0})], "nothing", [])
    assert plain_lines(sheet) == ["nothing", "POLICY  DONE", "whale      0"]


@pytest.mark.parametrize("width", [40, 80, 140])
def test_bars_fit_the_terminal(width: int) -> None:
    rows = [TrialRow("conservative-backfill", {"mean_completion_s": 1e6, "utilisation": 0.5})]
    lines = ["".join(cell.text for cell in line) for line in bar_lines(rows, width)]
    assert len(lines) == 4 and max(map(len, lines)) <= max(width, 60)


def test_everything_is_drawn_as_png_and_svg(outcome: Outcome, tmp_path: Path) -> None:
    files = draw(picture(outcome), tmp_path / "new")
    names = {file.stem for file in files}
    assert {"simulate", "simulate-gantt", "simulate-utilisation"} <= names
    assert {file.suffix for file in files} == {".png", ".svg"}
    for file in files:
        assert file.stat().st_size > 4000, file.name
    again = draw(picture(outcome), tmp_path / "again")
    svgs = [(one, other) for one, other in zip(files, again, strict=True) if one.suffix == ".svg"]
    assert all(one.read_bytes() == other.read_bytes() for one, other in svgs)


def test_what_is_held_over_time_is_a_mean_over_each_slice() -> None:
    held = [Held("a", "j", 0.0, 300.0, 1.0), Held("b", "k", 0.0, 150.0, 0.5)]
    times, shares = held_over_time(held, 2)
    assert len(times) == len(shares) == 301
    assert shares[0] == pytest.approx(0.75) and shares[200] == pytest.approx(0.5)
    assert shares[-1] == 0.0
    assert held_over_time([], 2) == ([0.0, 0.0], [0.0, 0.0])


def test_those_beside_each_other_on_a_device_do_not_cover_each_other() -> None:
    held = [
        Held("a", "one", 0, 10, 0.5),
        Held("a", "two", 2, 20, 0.5),
        Held("a", "three", 10, 15, 0.25),
        Held("b", "other", 0, 20, 0.5),
    ]
    assert stacked_floors(held) == [0.0, 0.5, 0.0, 0.0]


def test_a_play_that_breaks_off_says_whose_it_was_of_which_seed_when_and_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PlanRefused("one-place: a is placed twice", 61.0, 7)

    monkeypatch.setattr("cloudwhale.simulation.trials.play", refused)
    with pytest.raises(TrialFailed) as failed:
        trial(BENCH, Todo("srtf", 3))
    told = str(failed.value)
    for word in ("srtf", "seed 3", "61.0 s", "round 7", "one-place: a is placed twice", "Report"):
        assert word in told
    again = pickle.loads(pickle.dumps(failed.value))  # from a process of the pool
    assert isinstance(again, TrialFailed) and str(again) == told


def test_the_command_says_it_and_ends_as_a_bug_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Iterator[Trial]:
        raise TrialFailed("the policy las broke off on seed 2", "Report it.")
        yield

    monkeypatch.setattr("cloudwhale.cli.simulating.trials", broken)
    with pytest.raises(Bug, match="the policy las broke off on seed 2\nReport it.") as ended:
        simulate(SimulateOptions(policies="las", jobs=3))
    assert for_error(ended.value) == 70
