"""Which rules of the weather mean an instance, and when they strike it."""

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.endpoint.machines import Instance
from cloudwhale_providers.sandbox.endpoint.weather_values import (
    Interruption,
    Maintenance,
    Weather,
    Which,
)


class Strikes:
    """Counts launches by rule, and remembers which rules are used up; one for a cloud."""

    def __init__(self, weather: Weather, began_at: Instant) -> None:
        self._weather, self._began_at = weather, began_at
        self._met: dict[object, int] = {}
        self._struck: set[object] = set()
        """Rules that strike once, and have."""

    def announced_at(self, one: Instance, rule: Interruption | Maintenance) -> Instant | None:
        """Return when a rule announces the end of an instance that is new; None: it never does."""
        if not self.is_meant(rule, rule.which, rule.nth, one):
            return None
        if rule.at_s is None:
            return one.launched_at + (rule.age_s or 0.0)
        at = self._began_at + rule.at_s
        if rule.once:
            return max(at, one.launched_at + self._weather.boot_s)
        return at if at >= one.launched_at else None

    def strikes(self, rule: Interruption | Maintenance, one: Instance) -> bool:
        """Say whether a rule meets an instance now; one that strikes once is used up with that."""
        if not rule.once:
            return True
        is_met = one.goes_at is not None or one.maintained_at is not None
        if is_met or one.state != "running" or self.has_struck(rule):
            return False
        self._struck.add(id(rule))
        return True

    def has_struck(self, rule: Interruption | Maintenance) -> bool:
        """Say whether a rule that strikes once has."""
        return id(rule) in self._struck

    def hangs(self, one: Instance) -> bool:
        """Say whether the system of a new instance never comes up."""
        found = [self.is_meant(rule, rule.which, rule.nth, one) for rule in self._weather.hangs]
        return any(found)

    def is_meant(self, rule: object, which: Which, nth: int | None, one: Instance) -> bool:
        """Say whether a rule means an instance; each launch that fits it is counted."""
        if not which.fits(one.type, one.zone, one.market):
            return False
        met = self._met[id(rule)] = self._met.get(id(rule), 0) + 1
        return nth is None or nth == met
