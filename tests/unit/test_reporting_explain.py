"""The story of a job: what is told, with which numbers, and how it reads."""

from makers import a_job, placed, wants

from cloudwhale.model import event as e
from cloudwhale.model.job import Checkpoint, JobState, Peaks, Placement
from cloudwhale.model.plan import Decision, Plan, Round, Scored
from cloudwhale.model.reason import Code, Reason, Refusal
from cloudwhale.reporting.explain import Story, story
from cloudwhale.reporting.sheet import text_of
from cloudwhale.reporting.story_text import story_keys, story_lines
from cloudwhale.spi.store import Told

JOB = a_job("train-1")
NO_ROOM = Reason(
    code=Code.NO_ROOM_NOW, says="needs 2 CPUs, host has 1 free", change="a job on host ends"
)
HERE = Reason(code=Code.PLACED, says="host scores 0.800, next best spare with 0.300")


def told(*events: e.Event) -> list[Told]:
    return [Told(seq=number, event=event) for number, event in enumerate(events, 1)]


def a_round(number: int, now: float) -> Round:
    return Round(
        number=number, version=1, now=now, seed=0, epoch=1, order="fifo", score="best-fit",
        settings="{}", sightings="{}", plan=Plan(version=1),
    )  # fmt: skip


def scored(node: str, total: float) -> Scored:
    return Scored(placement=Placement(node=node), scores={"tightness": total}, total=total)


def a_saved(at: float, seq: int) -> e.CheckpointSaved:
    saved = Checkpoint(
        attempt=1, seq=seq, name=f"step-{seq}", size_bytes=2048, saved_at=at, manifest="m"
    )
    return e.CheckpointSaved(at=at, job=JOB.id, attempt=1, checkpoint=saved)


def waited_then_placed() -> Story:
    refusal = Refusal(code=Code.CPU, says="needs 2 CPUs, 1 is free", can_wait=True, shortfall=0.5)
    events = told(
        e.Submitted(at=0.0, job=JOB.id, first=JOB),
        e.Waits(at=1.0, job=JOB.id, reason=NO_ROOM),
        e.Placed(at=5.0, job=JOB.id, attempt=1, placement=Placement(node="host"), reason=HERE),
        e.OrderPosted(at=5.1, job=JOB.id, attempt=1, number=1),
        e.Started(at=6.0, job=JOB.id, attempt=1),
    )
    rounds = [
        (
            a_round(3, 1.0),
            Decision(
                job=JOB.id, refused={Code.CPU: 2, Code.LABELS: 1},
                nearest=refusal, nearest_node="host",
            ),
        ),
        (
            a_round(8, 5.0),
            Decision(job=JOB.id, chosen=scored("host", 0.8), rivals=(scored("spare", 0.3),)),
        ),
    ]  # fmt: skip
    job = placed(JOB).but(state=JobState.RUNNING, started_at=6.0, reason=HERE)
    return story(job, events, rounds)


def text(one: Story, width: int = 80) -> str:
    return "\n".join(text_of(line).rstrip() for line in story_lines(one, 100.0, width))


def test_a_story_tells_what_happened_in_order() -> None:
    told_of = [telling.kind for telling in waited_then_placed().tellings]
    assert told_of == ["submitted", "waits", "placed", "started"]


def test_a_decision_carries_the_numbers_of_its_round() -> None:
    waits, place = waited_then_placed().tellings[1:3]
    assert waits.numbers is not None and place.numbers is not None
    assert (waits.numbers.round, place.numbers.round) == (3, 8)
    assert waits.numbers.refused == {Code.CPU: 2, Code.LABELS: 1}
    assert place.numbers.chosen is not None and place.numbers.chosen.total == 0.8


def test_why_here_shows_the_scores_of_the_chosen_place_and_its_rivals() -> None:
    lines = text(waited_then_placed()).splitlines()
    at = next(number for number, line in enumerate(lines) if line.split()[:2] == ["place", "total"])
    assert lines[at + 1].split() == ["host", "0.800", "0.800"]
    assert lines[at + 2].split() == ["spare", "0.300", "0.300"]


def test_why_not_there_counts_refusals_by_code_and_names_the_nearest_miss() -> None:
    said = text(waited_then_placed())
    assert "why not there: 3 nodes refused: cpu 2, labels 1" in said
    assert "nearest miss: host: needs 2 CPUs, 1 is free (short by 50 %)" in said
    assert "what would change it: a job on host ends" in said


def test_the_head_of_a_waiting_job_says_code_numbers_and_what_would_change_it() -> None:
    waiting = story(JOB.but(reason=NO_ROOM), told(e.Waits(at=1.0, job=JOB.id, reason=NO_ROOM)), [])
    head = text(waiting).splitlines()[:3]
    assert head[0].startswith("train-1 (train) is pending")
    assert head[1].strip() == "now: needs 2 CPUs, host has 1 free [no-room-now]"
    assert head[2].strip() == "what would change it: a job on host ends"


def test_equal_things_in_a_row_are_told_once_with_the_newest() -> None:
    first = NO_ROOM.but(says="needs 2 CPUs, host has 0 free")
    events = told(
        e.Waits(at=1.0, job=JOB.id, reason=first),
        e.Waits(at=2.0, job=JOB.id, reason=NO_ROOM),
        *(a_saved(float(number), number) for number in range(3, 9)),
    )
    waits, saved = story(JOB, events, []).tellings
    assert (waits.at, waits.times, waits.until) == (1.0, 2, 2.0)
    assert waits.reason == NO_ROOM
    assert (saved.times, saved.headline) == (6, "checkpoint step-8 saved (2.0 KiB)")


def test_a_doubt_about_an_attempt_is_told() -> None:
    job = placed(a_job("a"))
    told = [Told(seq=1, event=e.Unconfirmed(at=5.0, job="a", attempt=1))]
    (telling,) = story(job, told, []).tellings
    assert telling.kind == "unconfirmed"
    assert "nobody can say" in telling.headline


def test_what_was_noted_of_a_job_is_told_and_the_same_again_only_counted() -> None:
    cannot = Reason(code=Code.CANNOT_ACT, says="cannot start train-1: the bucket is full")
    dropped = Reason(code=Code.CHECKPOINT_DROPPED, says="step-9: larger than 1 GiB")
    noted = [(1.0, cannot), (2.0, cannot), (3.0, dropped)]
    events = told(*(e.Noted(at=at, subject=JOB.id, reason=why) for at, why in noted))
    first, second = story(JOB, events, []).tellings
    assert (first.reason, first.times) == (cannot, 2)
    assert (second.reason, second.headline) == (dropped, "a checkpoint was not kept")
    assert "the bucket is full [cannot-act]" in text(story(JOB, events, []))


def test_a_late_checkpoint_is_told() -> None:
    why = Reason(code=Code.CHECKPOINT_LATE, says="no new checkpoint for 90 s")
    late = e.CheckpointLate(at=9.0, job=JOB.id, attempt=1, reason=why)
    (telling,) = story(JOB, told(late), []).tellings
    assert telling.reason == why


def test_a_switch_is_told_of_one_that_runs_and_a_deadline_that_has_passed() -> None:
    why = Reason(code=Code.SWITCHES, says="its deadline needs on-demand")
    late = Reason(code=Code.DEADLINE_MISSED, says="its deadline passed 5 s ago")
    events = told(
        e.Waits(at=1.0, job=JOB.id, reason=why),
        e.StopWished(at=2.0, job=JOB.id, attempt=1, wish="give-way", reason=why),
        e.DeadlineMissed(at=3.0, job=JOB.id, reason=late),
    )
    heads = [telling.headline for telling in story(JOB, events, []).tellings]
    assert heads[0] == "is to switch to on-demand"
    assert heads[-1] == "is not done by its deadline"


def test_another_code_is_told_apart() -> None:
    other = Reason(code=Code.BACKOFF, says="waits 30 s")
    events = told(
        e.Waits(at=1.0, job=JOB.id, reason=NO_ROOM), e.Waits(at=2.0, job=JOB.id, reason=other)
    )
    assert len(story(JOB, events, []).tellings) == 2


def test_no_line_of_a_story_is_wider_than_asked() -> None:
    for width in (60, 80, 140):
        assert max(len(line) for line in text(waited_then_placed(), width).splitlines()) <= width


def test_the_document_of_a_story_has_every_number() -> None:
    rows = story_keys(waited_then_placed())
    assert [row["round"] for row in rows] == [None, 3, 8, None]
    assert rows[2]["rivals"] == (
        {
            "placement": {"node": "spare", "devices": (), "others": ()},
            "scores": {"tightness": 0.3},
            "total": 0.3,
        },
    )
    assert str(rows[0]["at"]).startswith("1970") or str(rows[0]["at"]).startswith("1969")


WHALE = {"finish": 0.3, "strand": 0.25, "fit": 0.15, "release": 0.1, "affinity": 0.1, "quiet": 0.1}


def a_whale_place(node: str, device: str, total: float) -> Scored:
    place = Placement(node=node, devices=(device,))
    return Scored(placement=place, scores=dict.fromkeys(WHALE, total), total=total)


def placed_by_whale() -> Story:
    event = e.Placed(at=5.0, job=JOB.id, attempt=1, placement=Placement(node="host"), reason=HERE)
    decision = Decision(
        job=JOB.id,
        chosen=a_whale_place("workstation", "declared-0", 0.8),
        rivals=(a_whale_place("spare-with-a-very-long-name", "GPU-6f3c-11", 0.3),),
    )
    return story(JOB, told(event), [(a_round(3, 5.0), decision)], lambda stored: WHALE)


def test_the_table_of_scores_has_what_each_counts() -> None:
    lines = text(placed_by_whale(), 140).splitlines()
    at = next(number for number, line in enumerate(lines) if line.split()[:2] == ["place", "total"])
    assert lines[at].split() == ["place", "total", *WHALE]
    assert lines[at + 1].split()[:3] == ["workstation", "(declared-0)", "0.800"]
    assert lines[at + 3].split() == ["weight", *(f"{each:.2f}" for each in WHALE.values())]


def test_six_scores_fit_a_terminal_of_80_columns() -> None:
    lines = text(placed_by_whale(), 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("… (GPU-6f3c-11)" in line for line in lines)


def test_a_long_headline_is_wrapped() -> None:
    where = Placement(node="a-workstation-with-a-very-long-name-in-the-cellar", devices=("GPU-1",))
    began = e.Started(at=6.0, job=JOB.id, attempt=2, resumed_from=1)
    stop = e.StopWished(at=9.0, job=JOB.id, attempt=2, wish="give-way", reason=NO_ROOM)
    placed_there = e.Placed(at=5.0, job=JOB.id, attempt=2, placement=where, reason=HERE)
    lines = text(story(JOB, told(placed_there, began, stop), [(a_round(4, 9.0), None)]), 60)
    assert max(map(len, lines.splitlines())) <= 60
    assert lines.count("round 4") == 1


def test_a_hold_says_how_long_it_lasts_at_most() -> None:
    reason = Reason(code=Code.HELD, says="host is free in 40 s and finishes it 2 min sooner")
    held = e.Held(at=10.0, job=JOB.id, until=70.0, reason=reason)
    one = story(JOB, told(held), [(a_round(3, 10.0), None)])
    said = text(one)
    assert "is held back although it fits somewhere" in said and "round 3" in said
    assert "1 min 00 s after it was decided" in said
    assert str(story_keys(one)[0]["held_until"]).startswith("19")


def test_who_gave_way_to_whom_is_told_with_the_round_that_decided_it() -> None:
    why = Reason(code=Code.PREEMPTED, says="makes room for urgent-1 (priority 90)")
    events = told(
        e.StopWished(at=10.0, job=JOB.id, attempt=1, wish="give-way", reason=why),
        e.GaveWay(
            at=12.0, job=JOB.id, attempt=1, lost_s=2.0, peaks=Peaks(gpu_gib=9.5, cpu=1.25),
            reason=Reason(code=Code.PREEMPTED, says="gave way"),
        ),
    )  # fmt: skip
    said = text(story(placed(JOB), events, [(a_round(4, 10.0), None)]))
    assert "gives way  round 4" in said
    assert "makes room for urgent-1 (priority 90) [preempted]" in said
    assert "used at most: 9.5 GiB of GPU memory, 1.2 CPUs" in said


def test_an_attempt_that_outgrew_its_memory_says_what_the_next_one_asks_for() -> None:
    reason = Reason(code=Code.OUT_OF_MEMORY, says="used 2 GiB of 2 GiB")
    again = e.Retried(
        at=12.0, job=JOB.id, attempt=1, exit_code=137, reason=reason, not_before=12.0,
        grown=wants(cpu=1.0, memory_gib=3.0), peaks=Peaks(memory_gib=2.0),
    )  # fmt: skip
    one = story(placed(JOB), told(again), [])
    said = text(one)
    assert "will start again with more" in said
    assert "asks now for: 1 CPU, 3 GiB of memory" in said
    assert story_keys(one)[0]["peaks"] is not None
