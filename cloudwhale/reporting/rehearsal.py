"""Judges a rehearsal: whether a job really goes on from what it saved, and what it lacks if not."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from cloudwhale.model.units import Seconds
from cloudwhale.reporting.counters import same_words
from cloudwhale.reporting.figures import size, span
from cloudwhale.reporting.learning import Learned, learned
from cloudwhale.reporting.rehearsed import Act, Rehearsed
from cloudwhale.reporting.votes import Tells, Vote, all_tell, heard, votes

SAME_LINES = 3
"""So many equal lines, with numbers in them that change, are the same work once more."""

LAST_WORDS_S: Seconds = 3.0
"""What an agent keeps of a notice to say what was saved."""

PRINT = (
    "Print a line now and then that counts what is done, like `step 120 of 5000`, and go on "
    "counting where the checkpoint was."
)


class Verdict(StrEnum):
    """What a rehearsal shows; only the first is well."""

    RESUMES = "resumes"
    RESTARTS = "restarts"
    SAVES_NOTHING = "saves-nothing"
    IGNORES_SIGNAL = "ignores-its-signal"
    SAVES_TOO_LATE = "saves-too-late"
    SAVES_GARBAGE = "saves-garbage"
    CANNOT_TELL = "cannot-tell"
    ENDS_EARLY = "ends-early"
    """It was done, or failed, before it could be preempted."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its sentence, what to do about it, and what it rests on."""

    verdict: Verdict
    says: str
    remedy: str = ""
    evidence: tuple[str, ...] = ()
    """Sentences, the weightiest first."""


def judged(seen: Rehearsed) -> Judgement:
    """Return what a rehearsal shows of a job."""
    early = _ended_early(seen.first)
    if early is not None:
        return early
    every = votes(seen)
    evidence = tuple(_told(vote) for vote in every) + _told_read(seen)
    bad = _killed(seen) or _nothing(seen) or _garbage(seen)
    verdict = bad or _by_progress(seen, every)
    return Judgement(verdict.verdict, verdict.says, verdict.remedy, evidence)


def _ended_early(first: Act) -> Judgement | None:
    if not first.by_itself:
        return None
    ran = span(first.ended_at - first.began_at)
    if first.exit_code == 0 and first.how == "exited":
        return Judgement(
            Verdict.ENDS_EARLY,
            f"It was done after {ran}, before it could be preempted.",
            "Rehearse it with more to do, or for a shorter time: --for 10s.",
        )
    code = "" if first.exit_code is None else f" with exit code {first.exit_code}"
    return Judgement(
        Verdict.ENDS_EARLY,
        f"It failed{code} after {ran}, before it was preempted ({first.says or first.how}).",
        f"Mend that first. Its last words: {_last_words(first)}",
    )


# -- what went wrong before anything could be resumed ------------------------------------------


def _killed(seen: Rehearsed) -> Judgement | None:
    first, rule = seen.first, seen.rule
    if not first.killed:
        return None
    grace = span(rule.grace_s)
    if first.writing:
        return Judgement(
            Verdict.SAVES_TOO_LATE,
            f"It was still writing {first.writing[0]} when its grace of {grace} was over, and was "
            f"killed.{_fell_back(seen)}",
            f"Save less or faster, or give it more time with `checkpoint: {{grace: …}}`; of a "
            f"notice of 120 s it gets {span(grace_at(120, rule.grace_s))} at most, of 30 s "
            f"{span(grace_at(30, rule.grace_s))}.",
        )
    return Judgement(
        Verdict.IGNORES_SIGNAL,
        f"It did not end within {grace} of {rule.signal}, {_saved_meanwhile(first)}, and was "
        f"killed.{_fell_back(seen)}",
        f"Handle {rule.signal}: finish the step, save, end. A wrapper such as `sh script.sh` must "
        f"pass it on: begin its last line with `exec`. See docs/checkpoints.md.",
    )


def _saved_meanwhile(first: Act) -> str:
    told_at = first.ended_at if first.asked_at is None else first.asked_at
    names = [save.name for save in first.saves if save.at >= told_at]
    return f"saved {names[-1]} and went on" if names else "wrote nothing meanwhile"


def _fell_back(seen: Rehearsed) -> str:
    if seen.published is None:
        return " Nothing whole was saved."
    return f" What is left is {seen.published.name}, {span(seen.lost_s)} older."


def _nothing(seen: Rehearsed) -> Judgement | None:
    if seen.published is not None:
        return None
    ran = span(seen.first.ended_at - seen.first.began_at)
    if seen.first.saves:
        name = seen.first.saves[-1].name
        return Judgement(
            Verdict.SAVES_NOTHING,
            f"Nothing whole was saved in {ran}: {name} was being written when it ended.",
            "Write to a name that begins with a dot, then rename it: what is renamed is whole.",
        )
    return Judgement(
        Verdict.SAVES_NOTHING,
        f"Nothing lay in $CLOUDWHALE_CHECKPOINT_DIR after {ran} and {seen.rule.signal}.",
        "Save there now and then and on the signal; or name the folder that it saves to with "
        "`checkpoint: {path: …}`. If it saves more seldom than this: --for 10m.",
    )


def _garbage(seen: Rehearsed) -> Judgement | None:
    second = seen.second
    if second is None or not second.by_itself or second.exit_code == 0:
        return None
    name = seen.published.name if seen.published else "its checkpoint"
    code = "" if second.exit_code is None else f" with exit code {second.exit_code}"
    return Judgement(
        Verdict.SAVES_GARBAGE,
        f"Resumed from {name}, it failed{code} after {span(second.ended_at - second.began_at)}.",
        f"Its last words: {_last_words(second)}",
    )


# -- progress ----------------------------------------------------------------------------------


def _by_progress(seen: Rehearsed, every: Sequence[Vote]) -> Judgement:
    counted, known = heard(every), learned(seen)
    if all_tell(Tells.BEGINS_AGAIN, counted):
        return _restarts(_begins_again(counted[0], seen))
    lost = [one for one in known if one.tells == Tells.BEGINS_AGAIN]
    if lost and len(lost) == len(known):
        return _restarts(_forgot(lost[0], counts_on=bool(counted)))
    if all_tell(Tells.GOES_ON, counted):
        return _goes_on(seen, counted[0])
    if counted:
        return _cannot_tell("Its counters do not agree on whether it goes on.", PRINT)
    if known and not lost and seen.was_read:
        return Judgement(Verdict.RESUMES, _knows(known[0]))
    return _uncounted(seen, every)


def _uncounted(seen: Rehearsed, every: Sequence[Vote]) -> Judgement:
    """Judge a job whose progress nothing counts."""
    copied, same = _copied(seen), _same_lines(seen)
    if copied:
        return _restarts(copied)
    if seen.was_read is False and _has_worked(seen.second):
        return _restarts("It has never read what it had saved.")
    if same >= SAME_LINES:
        return _restarts(f"Its first {same} lines are those of its first start, to the last digit.")
    if any(vote.tells == Tells.ELSEWHERE for vote in every):
        return _elsewhere(every)
    if seen.was_read is False:
        return _cannot_tell(
            "It had neither read, saved nor counted anything when it was stopped again.",
            "Give it more time: --for 5m.",
        )
    return _cannot_tell("Nothing that it prints or saves counts how far it is.", PRINT)


def _has_worked(act: Act | None) -> bool:
    """Say whether an attempt has come further than its start: it has saved, or is done."""
    return act is not None and (bool(act.saves) or act.by_itself)


def _goes_on(seen: Rehearsed, vote: Vote) -> Judgement:
    copied = _copied(seen)
    if copied and vote.source != "printed":
        return _restarts(copied)
    if seen.was_read is False and vote.source == "printed":
        return _cannot_tell(
            "It goes on, but has never read what lies in $CLOUDWHALE_CHECKPOINT_DIR: it keeps its "
            "state elsewhere on this host, where another machine has nothing.",
            "Save to that folder and load from it, or name the one that it uses with "
            "`checkpoint: {path: …}`.",
        )
    if seen.was_read is False:
        return _restarts("It has never read what it had saved, whatever its saves are called.")
    began, saved, resumed = (amount(number) for number in vote.numbers)
    return Judgement(
        Verdict.RESUMES,
        f"It goes on where it was: {vote.what} had come from {began} to {saved}, and went on "
        f"with {resumed}.",
    )


def _restarts(why: str) -> Judgement:
    return Judgement(
        Verdict.RESTARTS,
        why,
        "Load the newest entry of $CLOUDWHALE_CHECKPOINT_DIR before the first step, with its step "
        "counter, optimiser and random state. docs/checkpoints.md has the lines for PyTorch, "
        "Trainer and Lightning.",
    )


def _begins_again(vote: Vote, seen: Rehearsed) -> str:
    began, saved, resumed = (amount(number) for number in vote.numbers)
    read = "although it has read its checkpoint" if seen.was_read else "with an exit code as usual"
    return (
        f"It starts from zero, {read}: {vote.what} had come from {began} to {saved} when it was "
        f"saved, and began again with {resumed}."
    )


def _forgot(one: Learned, *, counts_on: bool) -> str:
    but = "It counts on, but has forgotten what it had learned" if counts_on else "It has forgotten"
    came = f"had come from {amount(one.began)} to {amount(one.saved)} when it was saved"
    now = f"and is {amount(one.resumed)} again"
    return f"{but}: {one.label} {came}, {now}. Its weights or its optimiser were not loaded."


def _knows(one: Learned) -> str:
    return (
        f"It goes on where it was: {one.label} in its output had come from {amount(one.began)} to "
        f"{amount(one.saved)}, and is {amount(one.resumed)}."
    )


def _cannot_tell(why: str, remedy: str) -> Judgement:
    return Judgement(Verdict.CANNOT_TELL, why, remedy)


def _elsewhere(every: Sequence[Vote]) -> Judgement:
    vote = next(vote for vote in every if vote.tells == Tells.ELSEWHERE)
    return _cannot_tell(
        f"{vote.what.capitalize()} goes on after a fresh start without any checkpoint too: it is a "
        f"clock, or the job keeps its state elsewhere, where another machine has nothing.",
        PRINT,
    )


def _copied(seen: Rehearsed) -> str:
    """Say that the second attempt has saved again, byte for byte, what the first had."""
    if seen.second is None:
        return ""
    old = {save.digest: save.name for save in seen.first.saves if save.digest}
    again = next((save for save in seen.second.saves if save.digest in old), None)
    if again is None:
        return ""
    return f"What it saved as {again.name} is {old[again.digest]} of its first start, to the byte."


def _same_lines(seen: Rehearsed) -> int:
    """Return how many lines the second attempt's output begins with that are the first's."""
    if seen.second is None:
        return 0
    one = [same_words(line.text) for line in seen.first.lines]
    two = [same_words(line.text) for line in seen.second.lines]
    same = 0
    for mine, theirs in zip(one, two, strict=False):
        if mine != theirs:
            break
        same += 1
    # Words that every start says are no work: a number must change from line to line.
    return same if len({line for line in two[:same] if any(map(str.isdigit, line))}) > 1 else 0


# -- sentences ---------------------------------------------------------------------------------


def _told(vote: Vote) -> str:
    began, saved, resumed = (amount(number) for number in vote.numbers)
    return f"{vote.what}: {began} to {saved} until the save, then {resumed} ({vote.tells})"


def _told_read(seen: Rehearsed) -> tuple[str, ...]:
    if seen.second is None or seen.published is None or seen.was_read is None:
        return ()
    name, bytes_ = seen.published.name, size(seen.published.size_bytes)
    return (f"{name} ({bytes_}) was {'read' if seen.was_read else 'never read'} by the second",)


def amount(number: float) -> str:
    """Return a counter's number: whole as it is, else with four digits that count."""
    return f"{number:.0f}" if number == round(number) else f"{number:.4g}"


def _last_words(act: Act) -> str:
    said = [line.text.strip() for line in act.lines if line.text.strip()]
    return said[-1][:300] if said else "it printed nothing."


def grace_at(notice_s: Seconds, grace_s: Seconds) -> Seconds:
    """Return how long a job gets when its machine is taken away in so many seconds.

    Half of a notice at most: the rest is for the upload.
    """
    return min(grace_s, notice_s / 2)


@dataclass(frozen=True, slots=True)
class InTime:
    """Whether what a job saves when it is told to would be safe before its machine goes."""

    notice_s: Seconds
    grace_s: Seconds
    stop_s: Seconds
    upload_s: Seconds

    @property
    def is_enough(self) -> bool:
        """Say whether it ends within its grace, and the upload before the machine goes."""
        in_all_s = self.stop_s + self.upload_s + LAST_WORDS_S
        return self.stop_s <= self.grace_s and in_all_s <= self.notice_s


def in_time(seen: Rehearsed, notice_s: Seconds, mb_s: float) -> InTime | None:
    """Return how a notice would do, at an assumed rate in MB/s; None when nothing was measured."""
    stop_s, published = seen.first.stop_s, seen.published
    if stop_s is None or published is None:
        return None
    upload_s = published.size_bytes / 1e6 / mb_s
    return InTime(notice_s, grace_at(notice_s, seen.rule.grace_s), stop_s, upload_s)
