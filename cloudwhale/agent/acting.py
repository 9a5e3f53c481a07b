"""Carries out what duty decides; what comes of it is told to duty later."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from cloudwhale.agent import actions, closing, launching, peaks, preparing, remains, seen
from cloudwhale.agent.containers.fetching import fetched
from cloudwhale.agent.entries import End
from cloudwhale.agent.inputs import NoRoom, Unwanted, Wanted
from cloudwhale.agent.leases import signal_number
from cloudwhale.agent.pool import Pool
from cloudwhale.agent.seen import Key
from cloudwhale.agent.underway import Attempts, Tools, Underway
from cloudwhale.clock import real
from cloudwhale.mailbox.documents import Remark, StartOrder
from cloudwhale.mailbox.sealing import SealBroken
from cloudwhale.mailbox.sources import NothingThere
from cloudwhale.mailbox.sums import Damaged
from cloudwhale.model.job import Checkpoint
from cloudwhale.model.reason import Code
from cloudwhale.spi.errors import Denied, StoreUnusable

FETCH_MOST = 64  # they mostly wait; one whose image lies here must not wait behind them

OnAttempt: TypeAlias = (
    actions.StartShim
    | actions.KeepStop
    | actions.KeepPeaks
    | actions.Signal
    | actions.Kill
    | actions.Publish
    | actions.SaveOutputs
    | actions.Forget
)


class Acting:
    """Does one action after the other in the rim's thread, slow ones in a pool's."""

    def __init__(self, tools: Tools, attempts: Attempts) -> None:
        self._tools = tools
        self._attempts = attempts
        self._fetching = Pool(FETCH_MOST)
        """Of its own: an image can take many minutes, and others must be able to publish."""

    def do(self, action: actions.Action) -> None:
        """Begin an action, or do it when it is quick."""
        match action:
            case actions.Post():
                self._tools.poster.say(action.report)
            case actions.Prepare():
                self._prepare(action.order)
            case actions.Close():
                self._close(action)
            case actions.Repeat():
                self._repeat(action.key)
            case actions.Leave() | actions.KeepTenure():
                pass  # the rim's own
            case _:
                one = self._attempts.here.get(action.key)
                if one is not None:
                    self._do_to(one, action)

    def adopt(self, found: seen.Found) -> None:
        """Go on with an attempt that an earlier agent saw begin; others are prepared anew."""
        if found.began_at is not None:
            one = self._attempts.take(found.order, adopted=True)
            one.began = True
            self._attempts.listen(one)

    def _do_to(self, one: Underway, action: OnAttempt) -> None:
        match action:
            case actions.StartShim():
                self._start(one)
            case actions.KeepStop():
                self._keep_stop(one, action.wish)
            case actions.KeepPeaks():
                peaks.keep(one.folder.path, action.peaks)
            case actions.Signal():
                number = signal_number(action.wish.signal)
                one.folder.tell_shim(f"stop {number} {real(action.wish.grace_s)}")
            case actions.Kill():
                one.folder.tell_shim("kill")
                if action.hard:
                    remains.kill_shim(one.folder)
            case actions.Publish():
                self._publish(one, action)
            case actions.SaveOutputs():
                self._save_outputs(one)
            case actions.Forget():
                self._forget(one, action.checkpoints)

    def _prepare(self, order: StartOrder) -> None:
        folder = self._tools.folder((order.job, order.attempt))
        try:
            folder.accept(order)
            one = self._attempts.take(order)
        except (OSError, ValueError) as trouble:
            self._tools.tell(preparing.cannot(folder, trouble))
            return
        if preparing.needs_time(order):
            is_long = order.image is not None or order.inputs
            pool = self._fetching if is_long else self._tools.pool
            pool.do(
                lambda: self._tools.tell(self._prepared(one)),
                lambda error: self._tools.tell(preparing.cannot(folder, error)),
            )
        else:
            self._tools.tell(self._prepared(one))

    def _prepared(self, one: Underway) -> seen.Prepared | seen.CannotStart:
        order = one.order
        took = fetched(one, self._tools, lambda: self._attempts.here.get(one.folder.key) is one)
        if isinstance(took, seen.CannotStart):
            return took
        told = preparing.prepare(order, one.folder, self._tools.objects)
        if isinstance(told, seen.CannotStart):
            return told
        if order.inputs and not one.folder.has_begun:
            refused = self._give_inputs(one)
            if refused is not None:
                return refused
        told = replace(told, fetched=took)
        if order.secrets:
            try:
                one.secrets = preparing.opened_secrets(order, self._tools.place.keys()[0])
            except (SealBroken, OSError) as trouble:
                return preparing.cannot(one.folder, trouble)
        if not one.folder.has_begun:
            if self._tools.users is not None:
                try:
                    self._tools.users.own(order, one.folder, one.publisher.checkpoints)
                except (OSError, ValueError) as trouble:
                    return preparing.cannot(one.folder, trouble)
            one.publisher.begin()
        return told

    def _give_inputs(self, one: Underway) -> seen.CannotStart | None:
        """Fetch what the job reads; return why it cannot be."""
        key, tools = one.folder.key, self._tools
        wanted = Wanted(
            one.folder, one.order, tools.clock, partial(self._remark, key, Code.TRANSFERS),
            is_wanted=lambda: self._attempts.here.get(key) is one,
        )  # fmt: skip
        try:
            took = tools.inputs.give(wanted)
        except (NothingThere, Denied, Damaged) as trouble:
            return seen.CannotStart(key, "inputs-refused", trouble.says)
        except NoRoom as trouble:
            return seen.CannotStart(key, "disk-full", str(trouble))
        except Unwanted:
            return seen.CannotStart(key, "start-failed", "it was stopped")
        except (StoreUnusable, ValueError, OSError) as trouble:
            return preparing.cannot(one.folder, trouble)
        self._remark(key, Code.INPUTS_FETCHED, took)
        return None

    def _start(self, one: Underway) -> None:
        tools = self._tools
        self._attempts.listen(one)  # before it is there: it is quicker than we are
        try:
            told = launching.description(
                one.order, one.folder, one.secrets, tools.groups, tools.sizes
            )
            one.shim = launching.launch(launching.runtime_of(one.order), one.folder, told)
        except OSError as trouble:
            one.started = False
            tools.tell(preparing.cannot(one.folder, trouble))
        one.secrets.clear()

    def _keep_stop(self, one: Underway, wish: seen.StopWish) -> None:
        try:
            one.folder.keep_stop(wish)
        except OSError:
            pass  # a full disk: an agent that starts again hears of the stop from the controller

    def _publish(self, one: Underway, action: actions.Publish) -> None:
        tools = self._tools

        def publish() -> None:
            now, wall = tools.now(), tools.clock.now()
            end = _end(one) if action.last else None
            tools.tell(one.publisher.publish(action.seq, now, wall, end))

        def failed(error: Exception) -> None:
            key, says = action.key, f"it could not be published: {error!r}"
            told = seen.Dropped(key, "checkpoint", says) if action.last else None
            tools.tell(told or seen.PublishFailed(key, says))

        tools.pool.do(publish, failed)

    def _save_outputs(self, one: Underway) -> None:
        tools, key = self._tools, one.folder.key

        def failed(error: Exception) -> None:
            tools.tell(seen.OutputsSaved(key, f"it could not be stored: {error!r}"))

        say = partial(self._remark, key, Code.TRANSFERS)
        tools.pool.do(lambda: tools.tell(one.outputs.save(tools.clock, say)), failed)

    def _remark(self, key: Key, code: Code, says: str) -> None:
        """Say something of an attempt at once; from any thread."""
        tools = self._tools
        tools.poster.say(
            Remark(
                at=tools.clock.now(), agent=tools.agent, job=key[0], attempt=key[1], code=code,
                says=says,
            )
        )  # fmt: skip

    def _forget(self, one: Underway, old: Sequence[Checkpoint]) -> None:
        """Delete checkpoints once the newer ones are told of: a controller may still want them.

        In the pool: a store that does not let us delete must not hold up what is said.
        """
        tools = self._tools
        tools.poster.afterwards(lambda: tools.pool.do(partial(one.publisher.forget, old)))

    def _close(self, action: actions.Close) -> None:
        """Remember the end at once, as what led to it is not read again; the rest takes time."""
        key = (action.report.job, action.report.attempt)
        closing.remember(self._tools.folder(key), action.report)
        one = self._attempts.let_go(key)
        has_log = one is not None and (one.started or one.folder.log.is_dir())
        tail = one.tail if one is not None and has_log else None
        self._tools.pool.do(
            lambda: closing.close(action, self._tools, tail),
            lambda error: closing.close_anyway(action, self._tools),
        )

    def _repeat(self, key: Key) -> None:
        report = self._tools.folder(key).ended()
        if report is not None:
            self._tools.poster.say(report)


def _end(one: Underway) -> End:
    """Return how the job's process ended; of one whose shim died nobody knows when."""
    exit = one.folder.exit()
    if exit is None:
        return End(at=None)
    return End(exit.ended_at, finished=exit.code == 0)
