"""Sees this machine's GPUs through its driver: one that is lost, a blind driver, a late one."""

from collections.abc import Callable, Iterable, Mapping

from cloudwhale.agent.seen import Devices, Found, Noted, Seen
from cloudwhale.host.gpus import Blind, Driver, Gone, Gpus, GpuUse, NoDriver
from cloudwhale.model.node import Facts
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Instant, Seconds

OPEN_EVERY_S: Seconds = 10.0  # without a driver, or with a GPU that is gone: it may come (back)


def proven(facts: Facts, found: Iterable[Found]) -> Facts:
    """Return the facts with the GPUs that adopted jobs run on, whatever the driver says just now.

    A driver that is blind while an agent starts would take them away; one that sees says later
    that they are gone.
    """
    known = {one.id for one in facts.devices}
    given = {one.id: one for each in found for one in each.order.devices if each.began_at}
    more = tuple(one for name, one in given.items() if name not in known and not one.declared)
    return facts.but(devices=(*more, *facts.devices)) if more else facts


class GpuSight:
    """The GPUs as the controller knows them, and what each is used for.

    While the driver gives no sensible answer the last one stands: no GPU is lost by that, and
    nobody is judged.
    """

    def __init__(self, tell: Callable[[Seen], None]) -> None:
        self._tell = tell
        self._driver = Driver()
        self._is_open = False
        self._opened_at: Instant | None = None
        self._told = Gpus()
        self._count = 0
        self._ever: set[str] = set()
        """Every GPU that was ever seen here."""
        self._uses: dict[str, GpuUse] = {}
        self.is_blind = False
        """Whether what `look` returned last is old."""

    def begin(self, facts: Facts) -> None:
        """Take what the controller was told as known."""
        real = tuple(one for one in facts.devices if not one.declared)
        self._told = Gpus(real, facts.links)
        self._ever = {one.id for one in real}

    def look(self, now: Instant) -> Mapping[str, GpuUse]:
        """Return what each GPU is used for; empty where there is none. May take seconds."""
        try:
            if self.is_blind or self._may_open(now):
                self._open(now)
            if self._is_open:
                self._uses = self._asked(now)
        except Blind as trouble:
            self._go_blind(str(trouble))
        else:
            self._see_again()
        return self._uses

    def _may_open(self, now: Instant) -> bool:
        """Say whether to ask anew which GPUs there are."""
        is_all_here = self._is_open and self._ever <= {one.id for one in self._told.devices}
        if is_all_here:
            return False
        return self._opened_at is None or now - self._opened_at >= OPEN_EVERY_S

    def _open(self, now: Instant) -> None:
        self._opened_at, self._is_open = now, False
        try:
            self._driver.open()
            found = self._driver.gpus()
        except NoDriver as none:
            if self._ever:
                raise Blind(str(none)) from none
            return
        self._is_open, self._count = True, self._driver.count()
        known = (self._told.devices, self._told.links)
        self._told = found
        self._ever |= {one.id for one in found.devices}
        if (found.devices, found.links) != known:
            self._tell(Devices(found.devices, found.links))

    def _asked(self, now: Instant) -> dict[str, GpuUse]:
        """Ask every GPU; once more after a look at what there is, when one does not answer."""
        try:
            if self._driver.count() == self._count:
                return {one.id: self._driver.use(one.id) for one in self._told.devices}
        except (Gone, Blind):
            pass
        self._open(now)
        try:
            return {one.id: self._driver.use(one.id) for one in self._told.devices}
        except Gone as lost:
            raise Blind(str(lost)) from lost  # it went this very moment: the next look tells

    def _go_blind(self, says: str) -> None:
        self._is_open = False
        if not self.is_blind:
            self.is_blind = True
            why = f"the GPUs cannot be seen, and their memory is not guarded: {says}"
            self._tell(Noted(Code.CANNOT_ACT, why))

    def _see_again(self) -> None:
        if self.is_blind:
            self.is_blind = False
            self._tell(Noted(Code.CANNOT_ACT, "the GPUs can be seen again"))
