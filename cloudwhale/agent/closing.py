"""Closes an attempt: its whole log into the store, its end to the controller, its folder tidied."""

import shutil
from collections.abc import Callable
from functools import partial

from cloudwhale.agent import remains
from cloudwhale.agent.actions import Close
from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.logs import LogTail
from cloudwhale.agent.seen import Key
from cloudwhale.agent.underway import Tools
from cloudwhale.clock import pause
from cloudwhale.mailbox.documents import AttemptEnded, Heartbeat, Remark
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import StoreUnusable

AGAIN_S: Seconds = 2.0
LOG_TRIES = 2  # then the pool's thread is free for others
NEEDED_NO_MORE = ("control", "shim.lock", "exit.new", "log.json", "stop.json", "closing.json")


def remember(folder: AttemptFolder, report: AttemptEnded) -> None:
    """Keep how an attempt ends that has no exit record, so that the next agent can say it.

    Before anything else is done about it: an attempt that is fenced out looks as if it had run.
    """
    if report.exit_code is None:
        _try(lambda: folder.keep_end(report))


def unreadable(key: Key, agent: str, now: Instant) -> AttemptEnded:
    """Return the end of an attempt that may have run and of which no order can be read here."""
    return AttemptEnded(
        at=now, agent=agent, job=key[0], attempt=key[1], how="shim-lost", exit_code=None,
        says="what this machine's agent had kept of the attempt cannot be read any more",
    )  # fmt: skip


def close(action: Close, tools: Tools, tail: LogTail | None) -> None:
    """Say how an attempt ended, once nothing of it runs and its log is where it belongs.

    A store that takes nothing is waited for; a log that alone cannot be stored is not.
    """
    report = action.report
    folder = tools.folder((report.job, report.attempt))
    if report.exit_code is None:
        _make_sure_that_nothing_runs(folder)
    if tail is None and folder.log.is_dir():  # an earlier agent ran it
        order = folder.order()
        rank = None if order is None else order.rank
        tail = LogTail(folder, tools.objects, tools.sizes, adopted=True, rank=rank)
    dropped = 0 if tail is None else _finished(tail)
    if tail is None or isinstance(dropped, int):
        _say(report, folder, tools, dropped)
        return
    # Is it the store, or this log? When the store has taken something else, it is tried once more.
    beat = Heartbeat(at=report.at, agent=report.agent)
    again = partial(_say_at_last, report, folder, tools, tail)
    anyway = partial(close_anyway, action, tools)
    tools.poster.say(beat, then=lambda: tools.pool.do(again, lambda error: anyway()))


def close_anyway(action: Close, tools: Tools) -> None:
    """Say how an attempt ended although its log failed in a way that nobody has foreseen."""
    report = action.report
    folder = tools.folder((report.job, report.attempt))
    if report.exit_code is None:
        _make_sure_that_nothing_runs(folder)
    tools.poster.say(report, then=lambda: _ended(folder, report, keep_log=True))


def _say_at_last(report: AttemptEnded, folder: AttemptFolder, tools: Tools, tail: LogTail) -> None:
    _say(report, folder, tools, _finished(tail))


def _say(report: AttemptEnded, folder: AttemptFolder, tools: Tools, dropped: int | str) -> None:
    lost = isinstance(dropped, str)
    unlogged = folder.unlogged_bytes()
    if isinstance(dropped, str):
        says = f"its whole log could not be stored and lies in {folder.log}: {dropped}"
        tools.poster.say(_shortened(report, says))
    elif dropped + unlogged:
        says = f"{dropped + unlogged} bytes from the middle of its log were dropped"
        tools.poster.say(_shortened(report, says))
    tools.poster.say(report, then=lambda: _ended(folder, report, keep_log=lost))


def _make_sure_that_nothing_runs(folder: AttemptFolder) -> None:
    """A shim of an earlier agent may come late: it must not begin, or be killed.

    One may even run on from before this folder was taken away and made anew.
    """
    try:
        if not folder.fence_out() and folder.shim_lives():
            remains.kill_shim(folder)
    except OSError:
        pass  # what cannot be written here cannot be written by a shim either
    while not remains.kill_remains(folder):
        pause(AGAIN_S)


def _finished(tail: LogTail) -> int | str:
    """Store the whole log; return how many bytes of it were dropped, or why it cannot be."""
    trouble = ""
    for _ in range(LOG_TRIES):
        try:
            return tail.finish()
        except StoreUnusable as error:
            trouble = error.says
        except OSError as error:
            trouble = str(error)
        pause(AGAIN_S)
    return trouble


def _shortened(report: AttemptEnded, says: str) -> Remark:
    return Remark(
        at=report.at, agent=report.agent, job=report.job, attempt=report.attempt,
        code=Code.LOG_SHORTENED, says=says,
    )  # fmt: skip


def _ended(folder: AttemptFolder, report: AttemptEnded, *, keep_log: bool) -> None:
    _try(lambda: folder.mark_ended(report))
    for name in NEEDED_NO_MORE:
        _try(partial((folder.path / name).unlink, missing_ok=True))
    if not keep_log:
        shutil.rmtree(folder.log, ignore_errors=True)


def _try(write: Callable[[], object]) -> None:
    """Write what is worth remembering: without it (a full disk) things are said twice at worst."""
    try:
        write()
    except OSError:
        pass
