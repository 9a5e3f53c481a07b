"""Opens the nights of a folder by themselves: what `controller --nights` does beside its work."""

from collections.abc import Callable, Iterator
from pathlib import Path

from cloudwhale.cli.mornings import report_of, write_page
from cloudwhale.cli.nights import Tonight, page_of, tonight
from cloudwhale.cli.queueing import queue_night
from cloudwhale.cli.turns import in_turn
from cloudwhale.cli.wishes import Wishes
from cloudwhale.control.desk import Desk
from cloudwhale.control.nights import begun, of_file
from cloudwhale.control.store import turn_lock
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.nights import clock
from cloudwhale.spi.errors import CloudwhaleError

LOOK_EVERY_S: Seconds = 30.0
AHEAD_S: Seconds = 300.0  # machines of ours may begin before the window opens
ENDINGS = (".yaml", ".yml")


class Nights:
    """The night files of a folder, looked at again and again; one that is wrong is told of once."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder = folder.absolute()
        self._say = say
        self._looked_at: Instant | None = None
        self._told: dict[Path, str] = {}
        self._reported: set[str] | None = None
        """Runs whose page is written, or was closed before we came."""

    def look(self, desk: Desk) -> None:
        """Begin the nights that are due, and report those that have closed."""
        now = desk.clock.now()
        if self._looked_at is not None and 0 <= now - self._looked_at < LOOK_EVERY_S:
            return
        self._looked_at = now
        for path in self._files():
            try:
                self._begin(desk, path, now)
                self._told.pop(path, None)
            except CloudwhaleError as error:
                self._tell(path, str(error))
        self._report(desk)

    def _files(self) -> Iterator[Path]:
        try:
            found = sorted(self._folder.iterdir())
        except OSError as error:
            self._tell(self._folder, f"{self._folder} cannot be read: {error.strerror}")
            return
        yield from (path for path in found if path.suffix in ENDINGS and path.is_file())

    def _tell(self, path: Path, says: str) -> None:
        if self._told.get(path) != says:
            self._told[path] = says
            self._say(says)

    def _begin(self, desk: Desk, path: Path, now: Instant) -> None:
        if not self._is_due(desk, tonight(desk, path, Wishes(), now=False), now):
            return
        with in_turn(turn_lock(desk.settings), self._say):
            found = tonight(desk, path, Wishes(), now=False)
            if self._is_due(desk, found, desk.clock.now()):
                run = queue_night(desk, found)
                closes = clock(found.night, found.night.closes_at)
                self._say(f"{run.id}: night {found.night.name} has begun, and closes {closes}")

    @staticmethod
    def _is_due(desk: Desk, found: Tonight, now: Instant) -> bool:
        is_near = now >= found.night.opens_at - AHEAD_S
        return is_near and begun(desk.store, found.path, found.night.date) is None

    def _report(self, desk: Desk) -> None:
        closed = {
            run.id: run
            for path in self._files()
            for run in of_file(desk.store, path)
            if run.night is not None and run.night.closed_at is not None
        }
        if self._reported is None:
            self._reported = set(closed)
        for name in sorted(closed.keys() - self._reported):
            page = page_of(closed[name], desk.settings.home / "mornings")
            page.parent.mkdir(parents=True, exist_ok=True)
            write_page(report_of(desk, closed[name]), page)
            self._reported.add(name)
            self._say(f"{name}: the night has closed; its report: {page}")
