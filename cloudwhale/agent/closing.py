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
from cloudwhale.clock import wait
from cloudwhale.mailbox.documents import AttemptEnded, Remark
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import StoreUnusable

AGAIN_S: Seconds = 2.0
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
    """Say how an attempt ended, once nothing of it runs; waits for the store as long as needed."""
    report = action.report
    folder = tools.folder((report.job, report.attempt))
    if report.exit_code is None:
        _make_sure_that_nothing_runs(folder)
    if tail is None and folder.log.is_dir():  # an earlier agent ran it
        tail = LogTail(folder, tools.objects, tools.sizes, adopted=True)
    dropped = _finished(tail) if tail is not None else 0
    dropped += folder.unlogged_bytes()
    if dropped:
        tools.poster.say(_shortened(report, dropped))
    tools.poster.say(report, then=lambda: _ended(folder, report))


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
        wait(AGAIN_S)


def _finished(tail: LogTail) -> int:
    while True:
        try:
            return tail.finish()
        except StoreUnusable:
            wait(AGAIN_S)


def _shortened(report: AttemptEnded, dropped: int) -> Remark:
    return Remark(
        at=report.at, agent=report.agent, job=report.job, attempt=report.attempt,
        code=Code.LOG_SHORTENED,
        says=f"{dropped} bytes from the middle of its log were dropped",
    )  # fmt: skip


def _ended(folder: AttemptFolder, report: AttemptEnded) -> None:
    _try(lambda: folder.mark_ended(report))
    for name in NEEDED_NO_MORE:
        _try(partial((folder.path / name).unlink, missing_ok=True))
    shutil.rmtree(folder.log, ignore_errors=True)


def _try(write: Callable[[], object]) -> None:
    """Write what is worth remembering: without it (a full disk) things are said twice at worst."""
    try:
        write()
    except OSError:
        pass
