"""What `catalog update` does: read prices anew, say what has changed, show that it is at work."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from cloudwhale.cli.exits import Exit, NotFound
from cloudwhale.cli.looking import settings_here
from cloudwhale.cli.output import Paper, console_on, document_or, is_terminal
from cloudwhale.clock import SystemClock
from cloudwhale.control.catalogue import price_lists
from cloudwhale.control.catalogue.changes import Changes, Move, Thing, words_of
from cloudwhale.control.catalogue.updating import Updated, update
from cloudwhale.model.units import Seconds, usd
from cloudwhale.reporting.figures import counted
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import Unreachable

if TYPE_CHECKING:
    from rich.status import Status

QUIET_S: Seconds = 2.0
LONGEST_S: Seconds = 3600.0
"""Of all that is read; the lists of six regions take minutes, a server that trickles for ever."""
MOVES_TOLD = 10


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of `catalog update`."""

    regions: tuple[str, ...]
    providers: tuple[str, ...]
    as_json: bool


class Working:
    """Within it, a person sees what is being read once it takes longer than a glance."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = self._clock.steady()
        self._status: Status | None = None
        self._words = ""

    def told(self, words: str) -> None:
        """Show what is being done now; raise Unreachable when it takes too long."""
        took_s = self._clock.steady() - self._since
        if took_s > LONGEST_S:
            raise Unreachable(f"reading takes over {LONGEST_S / 60:.0f} min ({words})")
        if not is_terminal(sys.stderr) or took_s < QUIET_S:
            return
        if self._status is None:
            self._status = console_on(sys.stderr).status(words)
            self._status.start()
        if words != self._words:
            self._status.update(words)
            self._words = words

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()


def update_catalog(wanted: Wanted) -> int:
    """Read prices anew; the exit code says whether every cloud could be read."""
    settings = settings_here()
    lists = price_lists()
    unknown = [name for name in wanted.providers if name not in lists]
    if unknown:
        raise NotFound(f"No provider is called {unknown[0]}.", f"Known: {', '.join(lists)}.")
    chosen = {name: lists[name] for name in wanted.providers or lists}
    clock = SystemClock()
    with Working(clock) as working:
        found = update(
            settings.home, chosen, wanted.regions or settings.regions, clock.now(), working.told
        )
    document_or(
        wanted.as_json,
        lambda: {"updates": [_keys(one) for one in found]},
        lambda paper: _draw(paper, found),
    )
    return Exit.DONE if _is_done(found) else Exit.TROUBLE


def _is_done(found: Sequence[Updated]) -> bool:
    """Say whether all that was asked for was read, and anything at all."""
    asked = [one for one in found if one.is_asked]
    return bool(asked) and all(one.changes is not None for one in asked)


def _draw(paper: Paper, found: Sequence[Updated]) -> None:
    for one in found:
        if one.changes is None:
            paper.say(f"{one.cloud}: not read.")
        else:
            where = counted(len(one.regions), "region")
            paper.say(f"{one.cloud}: {counted(one.listings, 'listing')}, {where} read.")
            _draw_changes(paper, one.changes)
        for note in one.notes:
            paper.say(f"  {note}")


def _draw_changes(paper: Paper, changed: Changes) -> None:
    paper.say(
        f"  {len(changed.new):,} new, {len(changed.gone):,} gone, {len(changed.dearer):,} dearer, "
        f"{len(changed.cheaper):,} cheaper, {changed.same:,} as before."
    )
    for name, moves in (("dearer", changed.dearer), ("cheaper", changed.cheaper)):
        if moves:
            paper.say(f"  {name}: {words_of(moves)}")


def _keys(one: Updated) -> dict[str, Any]:
    changed = one.changes
    return {
        "provider": one.cloud, "read": changed is not None, "regions": list(one.regions),
        "listings": one.listings, "notes": list(one.notes),
        "new": 0 if changed is None else len(changed.new),
        "gone": 0 if changed is None else len(changed.gone),
        "dearer": 0 if changed is None else len(changed.dearer),
        "cheaper": 0 if changed is None else len(changed.cheaper),
        "same": 0 if changed is None else changed.same,
        "gone_first": [] if changed is None else [_thing(x) for x in changed.gone[:MOVES_TOLD]],
        "moves": [] if changed is None else _moves(changed),
    }  # fmt: skip


def _moves(changed: Changes) -> list[dict[str, Any]]:
    moves = sorted((*changed.dearer, *changed.cheaper), key=_by_size)
    return [
        {
            **_thing(move.thing), "before_usd_h": usd(move.before), "price_usd_h": usd(move.after),
            "share": round(move.share, 4),
        }
        for move in moves[:MOVES_TOLD]
    ]  # fmt: skip


def _by_size(move: Move) -> tuple[float, Thing]:
    return (-abs(move.share), move.thing)


def _thing(thing: Thing) -> dict[str, Any]:
    return {"type": thing.type, "region": thing.region, "market": thing.market}
