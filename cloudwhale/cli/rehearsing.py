"""The command `rehearse`: run a job here for a while, preempt it, resume it, compare progress."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from cloudwhale.cli.exits import Exit, WrongUsage
from cloudwhale.cli.interrupts import Interrupts
from cloudwhale.cli.looking import settings_here
from cloudwhale.cli.output import Paper, emit, is_terminal, stderr_paper, stdout_paper
from cloudwhale.cli.rehearse_asked import Asked, alone, chosen, declared, refuse_impossible
from cloudwhale.cli.rehearse_trial import Interrupted, Trial, Watched, is_over
from cloudwhale.cli.thinking import Thinking
from cloudwhale.cli.wishes import Wishes
from cloudwhale.clock import SystemClock
from cloudwhale.control.intake import read_jobs
from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule, Job, JobSpec, JobState
from cloudwhale.model.units import Seconds
from cloudwhale.reporting.counters import Counter, counters, of_lines
from cloudwhale.reporting.figures import clock_time, counted, size, span
from cloudwhale.reporting.rehearsal import Verdict, judged
from cloudwhale.reporting.rehearsal_text import keys, sheet_lines
from cloudwhale.reporting.rehearsed import Act, Rehearsed
from cloudwhale.settings import Settings

LEAST_S: Seconds = 2.0
RESUMED_PART = 0.6
"""Of the first's time: what the second gets at most to show where it goes on."""
FRESH_PART = 0.5
BEGINS_WITHIN_S: Seconds = 60.0
"""A framework takes as long to import, on a busy machine."""
STARTS = 2
"""So many times what the first needed until it printed or saved, the others get for that."""
ENOUGH_VALUES = 2
"""So often a counter is seen in the second attempt before that is stopped too."""


def rehearse(asked: Asked) -> int:
    """Rehearse one job of a file; return 0 when it resumes, else 1."""
    if asked.for_s < LEAST_S:
        raise WrongUsage(f"--for {asked.for_s:g}s is too short: nothing can be seen in it.")
    spec, settings = _prepared(asked)
    paper = stderr_paper() if asked.as_json else stdout_paper()
    with Interrupts() as interrupts:
        try:
            with Trial(settings, Path.cwd(), interrupts) as trial:
                seen = Rehearsal(trial, spec, paper, asked.for_s).played()
        except Interrupted as error:
            paper.say("Interrupted: nothing of the rehearsal is left.")
            return Exit.SIGNAL + error.number
    judgement = judged(seen)
    if asked.as_json:
        emit(keys(seen, judgement))
    else:
        paper.lines(sheet_lines(seen, judgement, paper.width))
    return Exit.DONE if judgement.verdict is Verdict.RESUMES else Exit.TROUBLE


def _prepared(asked: Asked) -> tuple[JobSpec, Settings]:
    settings = settings_here()
    overrides = Wishes(env=asked.env, args=asked.args, no_checkpoint_ok=True).overrides()
    file = read_jobs(asked.file, now=SystemClock().now(), overrides=overrides)
    spec = alone(chosen(file.specs, asked))
    if asked.declare:
        spec, settings = declared(spec, settings)
    refuse_impossible(spec, settings, asked.file)
    return spec, settings


class Rehearsal:
    """One rehearsal in three acts: from zero, resumed, and from zero once more to compare."""

    def __init__(self, trial: Trial, spec: JobSpec, paper: Paper, for_s: Seconds) -> None:
        self._trial = trial
        self._spec = spec
        self._rule = spec.checkpoint or CheckpointRule()
        self._paper = paper
        self._for_s = for_s

    def played(self) -> Rehearsed:
        """Play it; raise Interrupted."""
        spec = self._spec
        self._say(f"{spec.name} is rehearsed in a home of its own; nothing of yours is touched")
        job = self._trial.submit(spec, dict(os.environ))
        first, watched = self._first(job)
        ran_s = first.ended_at - first.began_at
        if first.by_itself and first.exit_code == 0 and ran_s >= LEAST_S:
            # It is shorter than was thought: half of it leaves as much to go on with.
            self._for_s = ran_s / 2
            job = self._trial.submit(spec, dict(os.environ))
            first, watched = self._first(job)
        told = self._trial.job(job)
        seen = Rehearsed(
            job=spec.name, rule=self._rule, first=first, published=told.checkpoint,
            publish_s=_publish_s(self._trial.events(), first), lost_s=_lost_s(told, first),
        )  # fmt: skip
        if first.by_itself or told.checkpoint is None:
            return seen
        second, was_read = self._second(job, seen, watched.saves.before)
        fresh = self._fresh(first) if _is_worth_comparing(first, second) else None
        return Rehearsed(
            job=spec.name, rule=self._rule, first=first, published=seen.published,
            publish_s=seen.publish_s, lost_s=seen.lost_s, second=second, was_read=was_read,
            fresh=fresh,
        )  # fmt: skip

    # -- the acts ----------------------------------------------------------------------------

    def _first(self, job: str) -> tuple[Act, Watched]:
        trial, rule = self._trial, self._rule
        watched = trial.watch(job, 1, rule)
        with _telling(f"{self._spec.name} starts"):
            now = trial.until(watched, _runs_or_is_over)
        if now.state is JobState.RUNNING:
            self._say(f"runs for {span(self._for_s)}")
            with _telling(f"{self._spec.name} runs, from zero"):
                # What it takes to start, imports above all, is no part of the time to be seen.
                begins_s = max(self._for_s, BEGINS_WITHIN_S)
                now = trial.until(watched, lambda job: is_over(job) or _sign(watched), begins_s)
                if _sign(watched) and not is_over(now):
                    now = trial.until(watched, is_over, self._for_s)
        if not is_over(now):
            self._say(f"is preempted: {rule.signal}, {span(rule.grace_s)} of grace")
            trial.preempt(watched)
            with _telling(f"{self._spec.name} has heard {rule.signal}"):
                trial.until(watched, is_over)
        first = trial.ended(watched, rule)
        self._say(_ended_words(first))
        return first, watched

    def _second(self, job: str, seen: Rehearsed, packed: set[str]) -> tuple[Act, bool | None]:
        trial, published = self._trial, seen.published
        assert published is not None
        old = {published.name, *packed}
        watched = trial.watch(job, 2, self._rule, old)
        self._say(f"is resumed from {published.name} ({size(published.size_bytes)})")
        trial.go_on(job)
        wanted = [one for one in counters(seen.first) if one.source == "printed"]
        with _telling(f"{self._spec.name} runs, resumed"):
            trial.until(watched, _runs_or_is_over)
            trial.until(
                watched,
                lambda job: is_over(job) or _has_shown(watched, wanted),
                RESUMED_PART * self._for_s + STARTS * _start_s(seen.first),
            )
        was_read = watched.reads.was_read(published.name) if watched.reads.can_hear else None
        self._stop(watched, hard=seen.first.killed)
        second = trial.ended(watched, self._rule)
        self._say(_ended_words(second))
        return second, was_read

    def _fresh(self, first: Act) -> Act:
        trial = self._trial
        job = trial.submit(self._spec, dict(os.environ))
        watched = trial.watch(job, 1, self._rule)
        self._say("is started from zero once more, to compare")
        wanted = [one for one in counters(first) if one.source == "printed"]
        with _telling(f"{self._spec.name} runs, from zero again"):
            trial.until(watched, _runs_or_is_over)
            trial.until(
                watched,
                lambda job: is_over(job) or _has_shown(watched, wanted, values=1),
                FRESH_PART * self._for_s + STARTS * _start_s(first),
            )
        self._stop(watched, hard=True)
        return trial.ended(watched, self._rule)

    def _stop(self, watched: Watched, *, hard: bool) -> None:
        trial = self._trial
        if is_over(trial.job(watched.job)):
            return
        trial.stop(watched, hard=hard)
        trial.until(watched, lambda job: job.ended)

    def _say(self, text: str) -> None:
        self._paper.say(f"{clock_time(self._trial.desk.clock.now())} {text}")


def _telling(what: str) -> AbstractContextManager[object]:
    """Count the seconds for who looks; a pipe has been told what begins."""
    return Thinking(what) if is_terminal(sys.stderr) else nullcontext()


def _runs_or_is_over(job: Job) -> bool:
    return job.state is JobState.RUNNING or is_over(job)


def _sign(watched: Watched) -> bool:
    """Say whether a job has printed or saved anything yet."""
    return bool(watched.log.lines or watched.saves.saves)


def _start_s(first: Act) -> Seconds:
    """Return how long the first attempt needed until something of it counted, or was saved."""
    counted = [one.values[0].at for one in counters(first)]
    at = min([*counted, *(save.at for save in first.saves)], default=first.ended_at)
    return max(0.0, at - first.began_at)


def _has_shown(watched: Watched, wanted: list[Counter], values: int = ENOUGH_VALUES) -> bool:
    """Say whether every counter of progress that the first printed was seen often enough."""
    named = [one.slot for one in wanted if one.says_progress] or [one.slot for one in wanted]
    if not named:
        return False
    found = of_lines(watched.log.lines)
    return all(len(found.get(slot, ())) >= values for slot in named)


def _is_worth_comparing(first: Act, second: Act) -> bool:
    """Say whether another start from zero tells something: what counts there and is no progress."""
    failed = second.by_itself and second.exit_code != 0
    return bool(first.lines) and not failed


def _lost_s(job: Job, first: Act) -> Seconds:
    if job.checkpoint is None:
        return first.ended_at - first.began_at
    # What it did from the signal on was for the save, unless that was never finished.
    worked_until = first.ended_at if first.killed else first.asked_at or first.ended_at
    return max(0.0, worked_until - job.checkpoint.saved_at)


def _publish_s(events: list[e.Event], first: Act) -> Seconds | None:
    at = [event.at for event in events if isinstance(event, e.CheckpointSaved)]
    late = [when for when in at if when >= first.ended_at]
    return None if not late else late[-1] - first.ended_at


def _ended_words(act: Act) -> str:
    code = "" if act.exit_code is None else f" with exit code {act.exit_code}"
    if act.stop_s is None:
        return f"ended by itself{code} after {span(act.ended_at - act.began_at)}"
    how = "was killed" if act.killed else "ended"
    return f"{how}{code} {span(act.stop_s)} after the signal, {_saves_words(act)}"


def _saves_words(act: Act) -> str:
    if not act.saves:
        return "saved nothing"
    last = act.saves[-1]
    return f"saved {counted(len(act.saves), 'time')}, last {last.name} ({size(last.size_bytes)})"
