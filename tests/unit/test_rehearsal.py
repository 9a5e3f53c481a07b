"""What is made of a rehearsal: who resumes, who restarts however well it looks, who cannot tell."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from cloudwhale.model.job import Checkpoint, CheckpointRule
from cloudwhale.reporting.counters import RADIX, counters, numbers_of, same_words
from cloudwhale.reporting.rehearsal import InTime, Verdict, grace_at, in_time, judged
from cloudwhale.reporting.rehearsal_text import keys, measured, sheet_lines
from cloudwhale.reporting.rehearsed import Act, Printed, Rehearsed, Save
from cloudwhale.reporting.repeating import repeated
from cloudwhale.reporting.sheet import text_of
from cloudwhale.reporting.votes import Tells, votes

RULE = CheckpointRule(every_s=10.0, grace_s=20.0)


def printed(texts: Sequence[str], since: float, every_s: float = 1.0) -> tuple[Printed, ...]:
    return tuple(Printed(since + every_s * (1 + at), text) for at, text in enumerate(texts))


def steps(first: int, last: int, by: int = 10, more: str = "") -> list[str]:
    return [f"step {step} of 5000{more}" for step in range(first, last + 1, by)]


def an_act(texts: Sequence[str], began: float = 0.0, **fields: object) -> Act:
    ended = began + len(texts) + 2.0
    values: dict[str, object] = {
        "began_at": began, "ended_at": ended, "lines": printed(texts, began),
        "exit_code": 143, "asked_at": ended - 1.0, **fields,
    }  # fmt: skip
    return Act(**values)  # type: ignore[arg-type]


def a_save(name: str, at: float, digest: str = "", **numbers: float) -> Save:
    return Save(name, at, 1000, digest or f"{name}@{at}", numbers)


def seen(
    first: Act, second: Act | None, fresh: Act | None = None, *,
    name: str = "last.pt", saved_at: float | None = None, was_read: bool | None = True,
) -> Rehearsed:  # fmt: skip
    at = first.ended_at - 0.5 if saved_at is None else saved_at
    there = Checkpoint(
        attempt=1, seq=1, name=name, size_bytes=50_000_000, saved_at=at, manifest="m"
    )
    return Rehearsed("train", RULE, first, there, 0.2, 0.5, second, was_read, fresh)


FIRST = an_act(steps(10, 300))
AGAIN = an_act(steps(10, 60), 100.0)
ON = an_act(steps(310, 360), 100.0)


def test_a_count_that_goes_on_where_it_was_saved_is_a_resumption() -> None:
    found = judged(seen(FIRST, ON, AGAIN))
    assert found.verdict is Verdict.RESUMES
    assert "from 10 to 300, and went on with 310" in found.says


def test_a_count_that_begins_again_is_a_restart_although_codes_and_files_look_right() -> None:
    saves = (a_save("step-000310.pt", 105.0),)
    second = an_act(steps(10, 60), 100.0, saves=saves, exit_code=0)
    first = an_act(steps(10, 300), saves=(a_save("step-000300.pt", 30.0),))
    found = judged(seen(first, second, AGAIN, name="step-000300.pt"))
    assert found.verdict is Verdict.RESTARTS
    assert "although it has read its checkpoint" in found.says
    assert "began again with 10" in found.says


def test_times_and_rates_are_no_counters() -> None:
    line = "[12:30:05] 2026-11-30 elapsed 30.5 s, 40 it/s, 12 MB/s, 5m left"
    assert "#" not in numbers_of(line)[0]
    assert same_words("12:00:01 a 3.2 s") == same_words("13:10:59 a 90 s")


def test_seconds_that_begin_anew_do_not_speak_against_a_step_that_goes_on() -> None:
    first = an_act([f"{n} since the start; step {n}" for n in range(10, 300, 10)])
    on = an_act([f"{n} since the start; step {n + 290}" for n in range(10, 60, 10)], 100.0)
    assert judged(seen(first, on, first)).verdict is Verdict.RESUMES


def test_a_clock_that_goes_on_in_a_fresh_start_too_proves_nothing() -> None:
    first = an_act([f"tick {1000 + n}" for n in range(30)])
    second = an_act([f"tick {1100 + n}" for n in range(5)], 100.0)
    fresh = an_act([f"tick {1200 + n}" for n in range(5)], 200.0)
    found = judged(seen(first, second, fresh))
    assert found.verdict is Verdict.CANNOT_TELL
    assert "it is a clock" in found.says
    assert [vote.tells for vote in votes(seen(first, second, fresh))] == [Tells.ELSEWHERE]


def test_state_that_is_kept_outside_of_the_folder_is_no_resumption() -> None:
    found = judged(seen(FIRST, ON, AGAIN, was_read=False))
    assert found.verdict is Verdict.CANNOT_TELL
    assert "another machine has nothing" in found.says


def test_what_was_never_read_was_not_resumed_from() -> None:
    first = an_act(["hello"] * 5)
    worked = an_act(["hello"] * 5, 100.0, saves=(a_save("last.pt", 103.0),))
    assert judged(seen(first, worked, was_read=False)).verdict is Verdict.RESTARTS
    done = an_act(["hello"] * 5, 100.0, asked_at=None, exit_code=0)
    assert judged(seen(first, done, was_read=False)).verdict is Verdict.RESTARTS


def test_what_was_stopped_while_it_still_started_is_given_more_time() -> None:
    found = judged(seen(FIRST, an_act([], 100.0), AGAIN, was_read=False))
    assert found.verdict is Verdict.CANNOT_TELL
    assert "--for" in found.remedy


def test_a_job_that_says_nothing_is_told_what_to_print() -> None:
    found = judged(seen(an_act([]), an_act([], 100.0)))
    assert found.verdict is Verdict.CANNOT_TELL
    assert "`step 120 of 5000`" in found.remedy


def test_where_a_host_cannot_hear_reads_the_count_alone_decides() -> None:
    assert judged(seen(FIRST, ON, AGAIN, was_read=None)).verdict is Verdict.RESUMES
    assert judged(seen(FIRST, AGAIN, AGAIN, was_read=None)).verdict is Verdict.RESTARTS


def test_a_checkpoint_that_was_only_copied_forward_is_no_progress() -> None:
    first = an_act([], saves=(a_save("step-10.pt", 1.5, "same"),))
    second = an_act([], 100.0, saves=(a_save("step-20.pt", 101.0, "same"),))
    found = judged(seen(first, second, name="step-10.pt", saved_at=1.5))
    assert found.verdict is Verdict.RESTARTS
    assert "to the byte" in found.says


def test_a_job_of_constant_names_is_told_by_what_lies_in_its_files() -> None:
    first = an_act([], ended_at=30.0, asked_at=29.0, saves=tuple(
        a_save("last.ckpt", at, global_step=at * 10.0) for at in (10.0, 20.0, 29.5)
    ))  # fmt: skip
    on = a_save("last.ckpt", 105.0, global_step=345.0)
    again = a_save("last.ckpt", 105.0, global_step=50.0)
    on_act = an_act([], 100.0, ended_at=106.0, saves=(on,))
    again_act = an_act([], 100.0, ended_at=106.0, saves=(again,))
    assert judged(seen(first, on_act, saved_at=29.5)).verdict is Verdict.RESUMES
    assert judged(seen(first, again_act, saved_at=29.5)).verdict is Verdict.RESTARTS


def test_a_number_in_a_file_of_a_folder_is_called_as_it_is_there() -> None:
    at = {"trainer_state.json:log.global_step": 300.0}
    first = an_act([], ended_at=30.0, saves=(Save("checkpoint", 29.5, 1, "", at),))
    on = {"trainer_state.json:log.global_step": 350.0}
    second = an_act([], 100.0, ended_at=106.0, saves=(Save("checkpoint", 105.0, 1, "", on),))
    found = judged(seen(first, second, saved_at=29.5))
    assert found.verdict is Verdict.RESUMES
    assert "global_step inside its checkpoint" in found.says


def test_a_constant_name_with_a_number_in_it_counts_nothing() -> None:
    first = an_act([], saves=(a_save("model-v1.pt", 1.0), a_save("model-v1.pt", 1.5)))
    second = an_act([], 100.0, saves=(a_save("model-v1.pt", 101.0),))
    assert votes(seen(first, second, name="model-v1.pt", saved_at=1.5)) == []


def test_a_save_that_had_as_long_as_the_first_proves_nothing() -> None:
    first = an_act([], ended_at=30.0, saves=(a_save("step-290.pt", 29.5),))
    late = an_act([], 100.0, ended_at=131.0, saves=(a_save("step-300.pt", 130.0),))
    found = judged(seen(first, late, name="step-290.pt", saved_at=29.5))
    assert found.verdict is Verdict.CANNOT_TELL


def test_a_step_counts_behind_its_epoch() -> None:
    template, numbers = numbers_of("epoch 2 batch 5/60 loss 0.5")
    assert template == "epoch # batch #/# loss #"
    assert numbers[0] == 2 and numbers[1] == 2 * RADIX + 5
    first = an_act([f"epoch {n // 6} batch {n % 6}" for n in range(30)])
    on = an_act([f"epoch {n // 6} batch {n % 6}" for n in range(30, 36)], 100.0)
    again = an_act([f"epoch {n // 6} batch {n % 6}" for n in range(6)], 100.0)
    assert judged(seen(first, on, again)).verdict is Verdict.RESUMES
    assert judged(seen(first, again, again)).verdict is Verdict.RESTARTS


def test_progress_bars_are_lines() -> None:
    bar = "\x1b[32m 12%|{bar}     | {n}/5000 [00:03<01:20, 39.5it/s]\x1b[0m"
    first = an_act([bar.format(bar="█" * (n // 50), n=n) for n in range(50, 1000, 50)])
    on = an_act([bar.format(bar="█", n=n) for n in (1000, 1050)], 100.0)
    assert judged(seen(first, on)).verdict is Verdict.RESUMES


def test_a_loss_that_happens_to_fall_is_outvoted_by_the_step() -> None:
    first = an_act([f"step {n} loss {1 / n:.4f}" for n in range(1, 30)])
    resets = an_act([f"step {n} loss {1 / (n + 29):.4f}" for n in range(1, 5)], 100.0)
    assert judged(seen(first, resets, first)).verdict is Verdict.RESTARTS


def learning(first: int, last: int, since: int = 0) -> list[str]:
    noise = (0.01, -0.02, 0.015, -0.005, 0.0)
    return [
        f"step {n} loss {2.0 / (1 + 0.2 * (n - since)) + noise[n % 5]:.4f}"
        for n in range(first, last + 1)
    ]


def test_a_step_that_counts_on_while_the_loss_is_back_is_a_restart() -> None:
    first, fresh = an_act(learning(1, 30)), an_act(learning(1, 5))
    on, forgot = an_act(learning(31, 35), 100.0), an_act(learning(31, 35, since=30), 100.0)
    assert judged(seen(first, on, fresh)).verdict is Verdict.RESUMES
    found = judged(seen(first, forgot, fresh))
    assert found.verdict is Verdict.RESTARTS
    assert "has forgotten what it had learned" in found.says


def test_a_loss_alone_tells_when_it_has_clearly_fallen() -> None:
    def said(first: int, last: int, began: float = 0.0) -> Act:
        return an_act([text.split(maxsplit=2)[2] for text in learning(first, last)], began)

    on, again = said(31, 35, 100.0), said(1, 5, 100.0)
    assert judged(seen(said(1, 30), on, said(1, 5))).verdict is Verdict.RESUMES
    assert judged(seen(said(1, 30), again, said(1, 5))).verdict is Verdict.RESTARTS
    noise = an_act([f"loss {0.5 + 0.1 * (n * 7 % 5)}" for n in range(30)])
    assert judged(seen(noise, on)).verdict is Verdict.CANNOT_TELL


def test_counters_that_disagree_are_no_proof() -> None:
    first = an_act([f"step {n} epoch {n}" for n in range(30)])
    half = an_act([f"step {n} epoch {n + 30}" for n in range(5)], 100.0)
    assert judged(seen(first, half, first)).verdict is Verdict.CANNOT_TELL


def test_of_a_counter_that_had_hardly_moved_until_the_save_nothing_is_said() -> None:
    found = seen(FIRST, ON, AGAIN, saved_at=2.5)
    assert votes(found) == []


def test_the_same_output_to_the_last_digit_is_the_same_start() -> None:
    noisy = ["a 3 9 1", "a 7 2 8", "a 1 5 4", "a 9 9 9"]
    found = judged(seen(an_act(noisy), an_act(noisy[:3], 100.0), was_read=True))
    assert found.verdict is Verdict.RESTARTS
    assert "first 3 lines" in found.says


def test_what_is_killed_while_it_writes_saves_too_late() -> None:
    first = an_act(steps(10, 300), killed=True, writing=(".step-300.tmp",), exit_code=137)
    found = judged(seen(first, ON))
    assert found.verdict is Verdict.SAVES_TOO_LATE
    assert ".step-300.tmp" in found.says and "grace" in found.remedy


def test_what_is_killed_and_wrote_nothing_ignores_its_signal() -> None:
    first = an_act(steps(10, 300), killed=True, exit_code=137)
    found = judged(seen(first, ON))
    assert found.verdict is Verdict.IGNORES_SIGNAL
    assert "SIGTERM" in found.says and "exec" in found.remedy
    assert "wrote nothing meanwhile" in found.says


def test_what_saves_on_its_signal_and_does_not_end_is_told_that_it_went_on() -> None:
    first = an_act(steps(10, 300), killed=True, exit_code=137)
    assert first.asked_at is not None
    first = replace(first, saves=(a_save("step-300.pt", first.asked_at + 0.1),))
    found = judged(seen(first, ON))
    assert found.verdict is Verdict.IGNORES_SIGNAL
    assert "saved step-300.pt and went on" in found.says


def test_what_saves_nothing_is_told_where_to_save() -> None:
    found = judged(Rehearsed("train", RULE, FIRST))
    assert found.verdict is Verdict.SAVES_NOTHING
    assert "$CLOUDWHALE_CHECKPOINT_DIR" in found.says
    torn = an_act([], saves=(a_save("step-1.pt", 1.0),))
    assert "rename" in judged(Rehearsed("train", RULE, torn)).remedy


def test_what_cannot_read_its_checkpoint_has_saved_garbage() -> None:
    second = an_act(["step-300.pt cannot be read"], 100.0, exit_code=1, asked_at=None)
    found = judged(seen(FIRST, second, name="step-300.pt"))
    assert found.verdict is Verdict.SAVES_GARBAGE
    assert "cannot be read" in found.remedy


@pytest.mark.parametrize(("code", "says"), [(0, "was done"), (7, "exit code 7")])
def test_what_ends_before_it_is_preempted_shows_nothing(code: int, says: str) -> None:
    first = an_act(["bye"], asked_at=None, exit_code=code, how="exited")
    found = judged(Rehearsed("train", RULE, first))
    assert found.verdict is Verdict.ENDS_EARLY
    assert says in found.says


def test_a_resumed_job_that_completes_has_resumed() -> None:
    done = an_act(steps(310, 360), 100.0, asked_at=None, exit_code=0, how="exited")
    assert judged(seen(FIRST, done, AGAIN)).verdict is Verdict.RESUMES


def test_steps_done_twice_are_compared_to_the_last_digit() -> None:
    first = an_act([f"step {n} loss {n * 0.001:.6f}" for n in range(1, 40)])
    same = an_act([f"step {n} loss {n * 0.001:.6f}" for n in range(31, 36)], 100.0)
    other = an_act([f"step {n} loss {n * 0.002:.6f}" for n in range(31, 36)], 100.0)
    assert repeated(seen(first, same, first, saved_at=30.5)) == (5, 0)
    assert repeated(seen(first, other, first, saved_at=30.5)) == (0, 5)
    told = measured(seen(first, other, None, saved_at=30.5))
    assert any("is not in the checkpoint" in one for one in told)


def test_half_of_a_notice_is_for_the_save_and_the_rest_for_the_upload() -> None:
    assert (grace_at(120.0, 90.0), grace_at(30.0, 90.0), grace_at(30.0, 5.0)) == (60.0, 15.0, 5.0)
    enough = in_time(seen(FIRST, ON), 30.0, 100.0)
    assert enough == InTime(30.0, 15.0, 1.0, 0.5) and enough.is_enough
    slow = in_time(seen(an_act([], ended_at=30.0, asked_at=10.0), ON), 30.0, 100.0)
    assert slow is not None and not slow.is_enough
    assert not InTime(30.0, 15.0, 14.0, 17.0).is_enough


def test_every_verdict_is_told_in_eighty_columns_and_as_a_document() -> None:
    found = seen(FIRST, ON, AGAIN)
    lines = [text_of(line) for line in sheet_lines(found, judged(found), 80)]
    assert lines[0] == "train: resumes"
    assert max(map(len, lines)) <= 80
    document = keys(found, judged(found))
    assert document["verdict"] == "resumes"
    assert [one["is_enough"] for one in document["notices"]] == [True, True]
    assert [one["name"] for one in document["attempts"]] == ["first", "resumed", "fresh"]


def test_a_number_is_called_by_the_word_before_it_also_in_a_dictionary() -> None:
    row = "{'loss': '0.68', 'grad_norm': '0.2', 'epoch': '%s'}"
    act = an_act([row % (n / 8) for n in range(1, 9)])
    assert [one.label for one in counters(act)] == ["epoch"]


def test_counters_are_only_what_moves_one_way() -> None:
    noisy = an_act([f"value {n * 7919 % 13}" for n in range(12)])
    assert counters(noisy) == []
    assert [one.label for one in counters(FIRST)] == ["step"]
