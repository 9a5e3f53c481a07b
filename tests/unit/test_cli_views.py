"""What a person sees while jobs run, at two widths and several heights."""

import io

import pytest
from clouding import an_offer
from makers import a_job, a_spec, placed
from rich.console import Console

from cloudwhale.cli.fleet import Fleet
from cloudwhale.cli.live_view import LiveView
from cloudwhale.cli.picture import Seen, picture, rows_shown
from cloudwhale.cli.plan_keys import plan_keys
from cloudwhale.cli.plan_view import plan_sheet
from cloudwhale.control.preview import Preview, PreviewJob
from cloudwhale.model import event as e
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.units import NOTHING, micro_usd
from cloudwhale.planning.durations import Expected
from cloudwhale.reporting.sheet import plain_lines

RUN = Run(id="run-1", opened_at=0.0, user="", folder="/", budget=micro_usd(50))
NO_FLEET = Fleet(RUN.id)
WAITS = Reason(code=Code.NO_ROOM_NOW, says="needs 2 CPUs, 1 is free on host; " * 4)


def running(name: str) -> Job:
    return placed(a_job(name), "host").but(state=JobState.RUNNING, started_at=0.0)


def done(name: str) -> Job:
    return placed(a_job(name)).but(state=JobState.COMPLETED, started_at=0.0, ended_at=5.0)


def seen(*jobs: Job, lines: dict[str, str] | None = None, fleet: Fleet | None = None) -> Seen:
    return Seen(RUN, {job.id: job for job in jobs}, lines or {}, fleet or Fleet(RUN.id), 65.0)


def drawn(what: Seen, width: int = 80, height: int = 24) -> list[str]:
    console = Console(width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(picture(what, width, height))
    return [line.rstrip() for line in captured.get().splitlines()]


@pytest.mark.parametrize("width", [80, 140])
def test_no_picture_is_wider_than_the_terminal(width: int) -> None:
    waiting = a_job("sweep-with-a-rather-long-name").but(reason=WAITS)
    lines = drawn(seen(running("a-1"), waiting, lines={"a-1": "loss " * 60}), width)
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("height", [8, 24, 50])
def test_no_picture_is_taller_than_the_terminal(height: int) -> None:
    jobs = [running("a-1"), *(a_job(f"w-{number}") for number in range(1000))]
    assert len(drawn(seen(*jobs), height=height)) < height


def test_one_job_shows_state_place_time_and_the_way_out() -> None:
    lines = drawn(seen(running("a-1")))
    assert any("a-1 running on host" in line and "1:05" in line for line in lines)
    assert lines[-1] == "run-1  spent 0.00 USD of 50.00 USD  Ctrl-C: detach or stop"


def test_a_row_shows_the_newest_line_of_its_job() -> None:
    lines = drawn(seen(running("a-1"), running("b-1"), lines={"a-1": "loss 0.1"}))
    assert "loss 0.1" in next(line for line in lines if "a-1" in line)


def test_a_waiting_row_says_why() -> None:
    lines = drawn(seen(running("a-1"), a_job("b-1").but(reason=WAITS)))
    assert "needs 2 CPUs" in next(line for line in lines if "b-1" in line)


def test_what_moves_is_shown_first_when_there_is_no_room() -> None:
    jobs = [done("a"), a_job("b"), running("c"), a_job("d").but(state=JobState.PARKED), done("f")]
    assert [job.id for job in rows_shown(jobs, 3)] == ["b", "c", "d"]
    assert [job.id for job in rows_shown(jobs, 9)] == ["a", "b", "c", "d", "f"]


def test_jobs_that_are_not_shown_are_counted() -> None:
    lines = drawn(seen(*(a_job(f"w-{number}") for number in range(100))), height=16)
    assert any("and 91 jobs more" in line for line in lines)
    assert any("0 of 100 jobs ended" in line for line in lines)


def a_rental(name: str = "rent-1-1", state: RentalState = RentalState.READY) -> Rental:
    lease = Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0)
    return Rental(
        id=name, node=name, payer=RUN.id, offer="big", lease=lease, reserved=micro_usd(2),
        taken=an_offer(), jobs={"a-1": "default"}, state=state, requested_at=5.0, reserved_at=5.0,
    )  # fmt: skip


def a_fleet(*rentals: Rental) -> Fleet:
    return Fleet(RUN.id, {rental.id: rental for rental in rentals})


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("height", [8, 12, 24])
def test_a_picture_with_machines_fits_the_terminal(width: int, height: int) -> None:
    jobs = [running("a-1"), *(a_job(f"w-{number}") for number in range(30))]
    fleet = a_fleet(*(a_rental(f"rent-{number}") for number in range(20)))
    lines = drawn(seen(*jobs, fleet=fleet), width, height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width


def test_a_machine_s_row_says_what_it_is_and_what_it_has_cost() -> None:
    lines = drawn(seen(running("a-1"), running("b-1"), fleet=a_fleet(a_rental())), width=140)
    (row,) = [line for line in lines if "rent-1-1" in line]
    assert "ready" in row and "cloud big on-demand in r-a" in row
    assert "0.06 USD" in row  # a minute at 3.60 USD an hour
    assert "spent 0.06 USD of 50.00 USD, 2.00 reserved" in lines[-1]


def test_a_foot_with_usual_sums_fits_eighty_columns() -> None:
    run = RUN.but(id="run-v5ods4")
    dear = a_rental().but(reserved=micro_usd("131.20"))
    lines = drawn(Seen(run, {"a-1": running("a-1")}, {}, a_fleet(dear), 65.0))
    assert lines[-1].endswith("Ctrl-C: detach or stop")


def test_one_job_has_its_machine_below_it() -> None:
    booting = a_rental(state=RentalState.BOOTING)
    lines = drawn(seen(running("a-1"), fleet=a_fleet(booting)))
    assert any("rent-1-1  booting" in line and "of about 20 s" in line for line in lines)


def test_of_machines_that_are_back_only_the_money_is_left() -> None:
    back = a_rental(state=RentalState.RETURNED).but(spent=micro_usd("0.50"), reserved=NOTHING)
    lines = drawn(seen(running("a-1"), running("b-1"), fleet=a_fleet(back)))
    assert not any("rent-1-1" in line for line in lines)
    assert "spent 0.50 USD of 50.00 USD  Ctrl-C" in lines[-1]


class Terminal:
    """A live view on a terminal that remembers."""

    def __init__(self, several: bool) -> None:
        self.out = io.StringIO()
        console = Console(
            file=self.out, width=80, height=24, force_terminal=True, color_system=None
        )
        self.view = LiveView(console, RUN, several)


def test_a_single_job_streams_its_lines_above_the_picture() -> None:
    terminal = Terminal(several=False)
    job = running("a-1")
    terminal.view.draw({job.id: job}, NO_FLEET, 1.0)
    terminal.view.logged(job, ["loss 0.1", "\x1b[31mred\x1b[0m"], " 45 %")
    terminal.view.draw({job.id: job}, NO_FLEET, 2.0)
    terminal.view.rest()
    said = terminal.out.getvalue()
    assert "loss 0.1" in said
    assert " 45 %" in said
    assert "red" in said


def test_of_several_jobs_only_what_went_wrong_stays_on_the_screen() -> None:
    terminal = Terminal(several=True)
    bad = placed(a_job("a-1")).but(state=JobState.FAILED, exit_code=3)
    reason = Reason(code=Code.COMMAND_FAILED, says="its process ended with 3")
    terminal.view.told(done("b-1"), e.Finished(at=1.0, job="b-1", attempt=1))
    terminal.view.told(bad, e.Failed(at=1.0, job="a-1", attempt=1, exit_code=3, reason=reason))
    said = terminal.out.getvalue()
    assert "a-1 failed with exit code 3" in said
    assert "b-1" not in said


def test_a_view_that_rested_can_be_drawn_again() -> None:
    terminal = Terminal(several=False)
    job = running("a-1")
    for now in (1.0, 9.0):
        terminal.view.draw({job.id: job}, NO_FLEET, now)
        terminal.view.rest()
    assert terminal.out.getvalue().count("a-1") >= 2


# -- plans -----------------------------------------------------------------------------------


SAID = Expected(length_s=7800.0, source="file")


def previewed(name: str, state: str, reason: Reason, expected: Expected = SAID) -> PreviewJob:
    return PreviewJob.model_validate(
        {
            "name": name, "project": "default", "state": state, "devices": (), "reason": reason,
            "node": "host" if state == "runs-now" else None, "runner_up": None,
            "expected": expected,
        }
    )  # fmt: skip


def test_a_plan_says_where_why_and_what_would_change_it() -> None:
    jobs = (
        previewed("a", "runs-now", Reason(code=Code.PLACED, says="host scores 0.500")),
        previewed("b", "waits", Reason(code=Code.CPU, says="needs 2 CPUs", change="a job ends")),
    )
    preview = Preview(jobs=jobs, budget_usd=micro_usd(50))
    lines = plain_lines(plan_sheet(preview, [a_spec("a"), a_spec("b")], ["`image` later"]))
    assert lines[1].split()[:4] == ["a", "runs", "now", "host"]
    assert "needs 2 CPUs; a job ends" in lines[2]
    assert lines[-2:] == ["nothing is rented: 0.00 USD of a budget of 50.00 USD", "`image` later"]


def test_a_time_that_nobody_has_said_is_shown_as_guessed_with_what_it_comes_from() -> None:
    here = Reason(code=Code.PLACED, says="here")
    like = Expected(length_s=90.0, source="family", samples=3)
    other = Expected(length_s=600.0, source="project", samples=1)
    unknown = Expected(length_s=3600.0, source="nothing")
    preview = Preview(
        jobs=tuple(
            previewed(name, "runs-now", here, expected)
            for name, expected in (("a", SAID), ("b", like), ("c", other), ("d", unknown))
        )
    )
    lines = plain_lines(plan_sheet(preview, [a_spec(name) for name in "abcd"]))
    for line, shown in zip(
        lines[1:5], ("  2 h 10 min ", "~1 min 30 s ", "~10 min 00 s ", "~1 h 00 min "), strict=True
    ):
        assert shown in line
    (note,) = [line for line in lines if line.startswith("guessed")]
    assert "~1 min 30 s is the median of 3 runs of that name" in note
    assert "~10 min 00 s is the median of 1 run of that project" in note
    assert "~1 h 00 min is what is taken when nothing is known" in note
    keys = plan_keys(preview)["jobs"]
    assert [(job["expected_s"], job["guessed"]) for job in keys[:2]] == [
        (7800.0, False),
        (90.0, True),
    ]


def test_a_held_job_and_who_would_give_way_are_shown() -> None:
    better = Reason(code=Code.HELD, says="big is free in 40 s", change="big becomes free")
    held = previewed("a", "waits", better).but(held_until=90.0)
    preview = Preview(jobs=(held,), gives_way=tuple(f"batch-{n}" for n in range(7)))
    lines = plain_lines(plan_sheet(preview, [a_spec("a")]))
    assert lines[1].split()[:3] == ["a", "is", "held"]
    assert lines[1].endswith("big is free in 40 s; big becomes free")
    assert (
        "gives way, checkpoint first: batch-0, batch-1, batch-2, batch-3, batch-4 and 2 more"
        in (lines)
    )
    assert plan_keys(preview)["jobs"][0]["held_until"] is not None


def test_a_plan_of_said_times_has_no_note_on_guesses() -> None:
    here = Reason(code=Code.PLACED, says="here")
    lines = plain_lines(plan_sheet(Preview(jobs=(previewed("a", "waits", here),)), [a_spec("a")]))
    assert not [line for line in lines if "guessed" in line]


def test_a_plan_of_many_jobs_is_summed_up() -> None:
    here = Reason(code=Code.PLACED, says="here")
    jobs = tuple(previewed(f"j{number}", "waits", here) for number in range(1000))
    lines = plain_lines(plan_sheet(Preview(jobs=jobs), [a_spec() for _ in jobs]))
    assert len(lines) < 30
    assert "and 980 jobs more: 980 waits" in lines


def test_a_job_that_has_no_id_yet_is_called_by_its_name() -> None:
    waits = Reason(code=Code.WAITS_FOR_JOB, says="waits for tok-2#11 to complete")
    preview = Preview(jobs=(previewed("s", "waits", waits),))
    assert plain_lines(plan_sheet(preview, [a_spec("s")]))[1].endswith(
        "waits for tok-2 to complete"
    )
    assert plan_keys(preview)["jobs"][0]["reason"]["says"] == "waits for tok-2 to complete"


def test_jobs_of_one_name_and_fate_are_one_row() -> None:
    here = Reason(code=Code.PLACED, says="here")
    jobs = (previewed("s", "runs-now", here), *(previewed("s", "waits", WAITS) for _ in range(7)))
    specs = [a_spec("s", array={"lr": "1e-3", "seed": str(number)}) for number in range(8)]
    lines = plain_lines(plan_sheet(Preview(jobs=jobs), specs))
    assert lines[1].startswith("s lr=1e-3 seed=0  runs now")
    assert lines[2].startswith("s (7 jobs)        waits")


def test_the_document_of_a_plan_has_every_key() -> None:
    jobs = (previewed("a", "waits", WAITS),)
    keys = plan_keys(Preview(jobs=jobs))
    assert list(keys) == [
        "jobs", "machines", "cost_usd", "bound_usd", "gap", "one_each_usd", "worst_case_usd",
        "budget_usd", "left_usd", "least_budget_usd", "more", "later", "can_launch",
        "notes",
    ]  # fmt: skip
    assert keys["jobs"][0]["reason"] == {"code": "no-room-now", "says": WAITS.says}
