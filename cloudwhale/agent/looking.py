"""Looks at the attempts under way: at their files, their shims and what they have saved."""

import math
from collections.abc import Mapping
from functools import partial

from cloudwhale.agent import remains, seen
from cloudwhale.agent.entries import STILL_S, entries
from cloudwhale.agent.seen import Key
from cloudwhale.agent.state import Attempt, Phase
from cloudwhale.agent.underway import Attempts, Tools, Underway, has_ended
from cloudwhale.clock import pause
from cloudwhale.model.units import Instant, Seconds

LOOK_EVERY_S: Seconds = 1.0
KILL_AGAIN_S: Seconds = 5.0
SIGN_EVERY_S: Seconds = 1.0


class Looking:
    """Tells duty what has changed since the last look."""

    def __init__(self, tools: Tools, attempts: Attempts) -> None:
        self._tools = tools
        self._attempts = attempts

    def look(self) -> None:
        """Look at every attempt that has a shim; called after each ring."""
        self._attempts.collect()
        self._hear_moves()
        for one in self._attempts.here.values():
            if one.started and not one.over:
                self._look_at(one)

    def _hear_moves(self) -> None:
        for folder, name in self._tools.bell.moved():
            for one in self._attempts.here.values():
                if folder == one.publisher.checkpoints:
                    one.publisher.renamed(name)
                    one.look_at = 0.0

    def look_for_checkpoints(self, attempts: Mapping[Key, Attempt], now: Instant) -> None:
        """Look into the checkpoint folders of attempts whose next publish is near."""
        for key, attempt in attempts.items():
            one = self._attempts.here.get(key)
            if one is not None and not one.looking and now >= _look_at(one, attempt):
                one.looking = True
                one.look_at = now + LOOK_EVERY_S
                self._tools.pool.do(partial(self._look_for_checkpoint, one))

    def wakes_at(self, attempts: Mapping[Key, Attempt], now: Instant) -> Instant:
        """Return when to look next although nothing rings."""
        times = [
            _look_at(one, attempts[key])
            for key, one in self._attempts.here.items()
            if key in attempts and not one.looking
        ]
        if any(_must_ask(one) for one in self._attempts.here.values()):
            times.append(now + LOOK_EVERY_S)
        return min(times, default=math.inf)

    def _look_at(self, one: Underway) -> None:
        lives = self._shim_lives(one)  # first: it may write its record and end while we look
        if lives:
            self._keep_sign(one)
        exit = one.folder.exit()
        pids = None if one.began else one.folder.pids()
        if pids is not None:
            one.began = True
            self._tools.tell(seen.Began(one.folder.key, pids.began_at))
        if exit is not None or not lives:
            self._hear_moves()  # its last save may have come after we listened
        if exit is not None:
            one.over = True
            self._tools.tell(seen.Over(one.folder.key, exit))
        elif not lives:
            one.over = True
            self._tools.pool.do(lambda: self._lose(one), lambda error: self._lose_again(one))

    def _shim_lives(self, one: Underway) -> bool:
        if one.shim is not None:
            if not has_ended(one.shim):
                return True
            one.shim = None
        return one.folder.shim_lives()

    def _keep_sign(self, one: Underway) -> None:
        """Remember that it lives, for an agent that comes when neither of us does."""
        now = self._tools.now()
        if now - one.alive_at < SIGN_EVERY_S:
            return
        one.alive_at = now
        try:
            one.folder.keep_sign()
        except OSError:
            pass  # its shim comes up, and has taken no lock; or the disk does not take the date

    def _lose(self, one: Underway) -> None:
        """Kill what is left, however long that takes: nothing may run on when the end is told."""
        try:
            one.folder.fence_out()
        except OSError:
            pass  # it has begun, or the disk is full and no shim could begin it either
        runs_on = one.alive_at > 0.0 or remains.runs_on(one.folder)
        while not remains.kill_remains(one.folder):
            pause(KILL_AGAIN_S)
        at = self._tools.clock.now()
        if not runs_on:
            at = min(at, _last_sign(one, at))
        self._tools.tell(seen.Lost(one.folder.key, at, one.folder.shim_says()))

    def _lose_again(self, one: Underway) -> None:
        """Look at it once more after a while: as long as something may run, no end is told."""
        pause(KILL_AGAIN_S)
        one.over = False
        self._tools.bell.ring()

    def _look_for_checkpoint(self, one: Underway) -> None:
        try:
            whole = one.publisher.look(self._tools.now())
        finally:
            one.looking = False
        if whole is not None:
            self._tools.tell(whole)


def _last_sign(one: Underway, now: Instant) -> Instant:
    """Return when an attempt was last known to live whose end no agent saw: now, at worst.

    The time for which a whole machine was off is no work that was lost.
    """
    try:
        at = one.folder.last_sign()
    except OSError:
        return now
    saved = [entry.saved_at for entry in entries(one.publisher.checkpoints)]
    return max([at, *saved])


def _must_ask(one: Underway) -> bool:
    """Say whether only asking tells what its shim does: it is not our child, or does not ring."""
    return one.started and not one.over and (one.shim is None or not one.rings)


def _look_at(one: Underway, attempt: Attempt) -> Instant:
    if attempt.phase is not Phase.RUNNING or attempt.publishing or one.over:
        return math.inf
    return max(one.look_at, attempt.publish_at - STILL_S - LOOK_EVERY_S)
