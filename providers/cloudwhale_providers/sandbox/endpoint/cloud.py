"""The whole cloud in memory: who answers which service, one call at a time but for S3."""

import threading
from collections.abc import Callable

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.endpoint import account, needs, needs_ec2
from cloudwhale_providers.sandbox.endpoint.callers import Caller
from cloudwhale_providers.sandbox.endpoint.ec2 import Cloud, Ec2
from cloudwhale_providers.sandbox.endpoint.estate import USER, Estate
from cloudwhale_providers.sandbox.endpoint.market import Prices
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.moto_cloud import MotoCloud
from cloudwhale_providers.sandbox.endpoint.permits import STOPS, Permits
from cloudwhale_providers.sandbox.endpoint.query import Query
from cloudwhale_providers.sandbox.endpoint.quotas import Quotas
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.endpoint.regions import Region, is_region
from cloudwhale_providers.sandbox.endpoint.room import Room, Stock
from cloudwhale_providers.sandbox.endpoint.schedules import Schedules
from cloudwhale_providers.sandbox.endpoint.tokens import Tokens
from cloudwhale_providers.sandbox.endpoint.weather_values import Weather
from cloudwhale_providers.sandbox.names import REGIONS


class Services:
    """All services but S3; `turn` is held for every call, as moto's models need it."""

    def __init__(self, weather: Weather, now: Callable[[], Instant], permits: Permits) -> None:
        began_at = now()
        self._permits = permits
        self._weather, self._now = weather, now
        self.turn = threading.RLock()
        self.estate = Estate(weather, began_at)
        self.prices = Prices(weather, began_at)
        self._quotas = Quotas(weather.quotas)
        self._stock = Stock(self.prices, self._quotas, account.has_spot_role)
        room = Room(self.estate, self._stock, weather, began_at)
        self._query = Query()
        self._ec2 = Ec2(Cloud(self.estate, self.prices, room, self._query))
        self._schedules = Schedules(account.has_role, weather.schedule_late_s)
        self._tokens = Tokens("IdempotentParameterMismatch")
        self._regions: dict[str, Region] = {}
        self._moto: MotoCloud | None = None

    def warm(self) -> None:
        """Load what the first calls would wait for: one to three seconds."""
        with self.turn:
            self._loaded()
            for name in REGIONS:  # each takes some tenths of a second
                self._region(name)
            self._query.read({"Action": "DescribeInstances"})
            _ = self.prices.listings

    def answer(self, service: str, asked: Asked, caller: Caller) -> Answer:
        """Return an answer; raise Refused, also for who may not ask."""
        with self.turn:
            moto, now = self._loaded(), self._now()
            self.advance(now)
            region = asked.signed[1] or REGIONS[0]
            if self._permits.is_held(caller):
                self._permit(service, asked, region, caller)
            if service == "servicequotas":
                return self._quotas.answer(asked, region)
            if service == "scheduler":
                return self._schedules.answer(asked, region, now)
            if service == "ec2":
                return self._of_ec2(self._region(region), asked, now)
            if service == "ssm":
                self._region(region)
            return moto.answer(asked)

    def advance(self, now: Instant) -> None:
        """Let all happen that is due, in the order of its time; `turn` is held."""
        while True:
            fires_at = self._schedules.next_at()
            self.estate.advance(now if fires_at is None else min(now, fires_at))
            if fires_at is None or fires_at > now:
                return
            self._schedules.advance(fires_at, self._fired)

    def next_at(self) -> Instant | None:
        """Return when something happens next by itself; `turn` is held."""
        found = [at for at in (self.estate.next_at(), self._schedules.next_at()) if at is not None]
        return min(found, default=None)

    def _fired(self, region: str, machine: str, at: Instant) -> None:
        record = self.estate.get(machine)
        if record is None or record.instance.region != region:
            return
        if self._permits.is_held(STOPS):
            things = self._things(self._region(region))
            if not self._permits.may(STOPS, things.named("TerminateInstances", machine)):
                return  # the schedule fails, as EventBridge has it
        self.estate.end(record, USER, at)

    # -- permissions -------------------------------------------------------------------------

    def _permit(self, service: str, asked: Asked, region: str, caller: Caller) -> None:
        """Raise Refused for what somebody may not do."""
        if service != "ec2":
            self._permits.check(service, caller, needs.of_others(service, asked, region))
            return
        words = self._query.read(asked.form)
        things = self._things(self._region(region))
        found = needs_ec2.needs(asked.action, words, things)
        self._permits.check(service, caller, found)
        if needs.spot_role() in found and not words.get("DryRun"):
            account.add_spot_role()  # EC2 makes it for whoever may

    def _things(self, region: Region) -> needs_ec2.Things:
        return needs_ec2.Things(
            region.name,
            lambda name: self._ec2.fleet_tags(region, name) or region.tags(name),
            region.template_of,
            account.role_of_profile,
            region.address_of,
            account.has_spot_role,
        )

    def _of_ec2(self, region: Region, asked: Asked, now: Instant) -> Answer:
        form, moto = asked.form, self._loaded()
        if self._ec2.knows(form.get("Action", "")):
            return self._ec2.answer(region, form, now)
        words = {key: value for key, value in form.items() if key != "ClientToken"}
        whose = (region.name, form.get("Action", ""))
        return self._tokens.once(
            whose, form.get("ClientToken", ""), words, lambda: moto.answer(asked)
        )

    def _loaded(self) -> MotoCloud:
        if self._moto is None:
            self._moto = MotoCloud()
            account.add_roles(self._weather.spot_role)
        return self._moto

    def _region(self, name: str) -> Region:
        if name in self._weather.closed_regions or not is_region(name):
            says = "AWS was not able to validate the provided access credentials"
            raise Refused("AuthFailure", says, 401)
        found = self._regions.get(name)
        if found is None:
            found = Region(name, self._weather.image, self._weather.default_network)
            if self._weather.image:
                account.add_parameters(name)
            self._regions[name] = found
        return found
