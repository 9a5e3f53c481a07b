"""A cloud's API over HTTP on loopback: EC2, S3, SSM, IAM, STS, schedules and quotas."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.prices import Market
from cloudwhale_providers.sandbox.endpoint import s3_actions, schedules
from cloudwhale_providers.sandbox.endpoint.callers import Caller, Callers, Credentials
from cloudwhale_providers.sandbox.endpoint.cloud import Services
from cloudwhale_providers.sandbox.endpoint.estate import ITSELF, Record
from cloudwhale_providers.sandbox.endpoint.faults import Fault, Faults, Kind
from cloudwhale_providers.sandbox.endpoint.loopback import Loopback, started
from cloudwhale_providers.sandbox.endpoint.machines import Instance
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.moto_cloud import check_installed, moto_time
from cloudwhale_providers.sandbox.endpoint.objects import Objects
from cloudwhale_providers.sandbox.endpoint.permits import Heard, Permits
from cloudwhale_providers.sandbox.endpoint.refused import Refused, failed, written
from cloudwhale_providers.sandbox.endpoint.s3_api import S3
from cloudwhale_providers.sandbox.endpoint.weather_values import NOTICE_S, Weather
from cloudwhale_providers.sandbox.names import BUCKET, REGIONS

MIB = 1024 * 1024

Told = Callable[[Instance], None]
ACTIONS: Mapping[str, Callable[[Asked], str]] = {
    "s3": s3_actions.action_of,
    "scheduler": schedules.action_of,
}
"""How requests are called whose method and path alone say what they are."""
ALONE = threading.Lock()
"""Moto's models belong to the process, so one endpoint at a time has them."""


class Endpoint(Loopback):
    """A cloud of one's own; a second one in a process is refused until the first is closed."""

    def __init__(
        self,
        clock: Clock,
        weather: Weather | None = None,
        *,
        port: int = 0,
        folder: Path | None = None,
        real: Callable[[Seconds], Seconds] = lambda for_s: for_s,
    ) -> None:
        """Take a clock; `real` says how long a time of that clock takes outside.

        `folder`: where objects of S3 are kept beyond this process; None: nowhere.
        """
        super().__init__(port)
        self._clock, self._weather, self._real = clock, weather or Weather(), real
        self._folder = folder
        self._began_at = clock.now()
        self.on_started: Told = _nobody
        """Called by `step` with an instance that runs now."""
        self.on_noticed: Told = _nobody
        """Called by `step` with an instance that is told now that it goes."""
        self.on_ended: Told = _nobody
        """Called by `step` with an instance whose end has begun."""
        self.stirred = threading.Event()
        """Set when `step` may have something to do; whoever steps clears it."""
        self.warmed = threading.Event()
        """Set when EC2 is loaded; calls before that wait for it."""

    # -- life --------------------------------------------------------------------------------

    def start(self) -> str:
        """Listen, load EC2 in a thread, and return the URL; raise Denied without moto."""
        check_installed()
        if not ALONE.acquire(blocking=False):
            raise RuntimeError("another endpoint of this process is open")
        with ExitStack() as opened:  # what is open is closed again when the port is taken
            opened.callback(ALONE.release)
            self._open(opened)
            self._closing = opened.pop_all()
        return self.url

    def _open(self, opened: ExitStack) -> None:
        opened.enter_context(moto_time(self._clock.now))
        self._permits = Permits(self._weather.strict_policies)
        self._services = Services(self._weather, self._clock.now, self._permits)
        estate, weather = self._services.estate, self._weather
        self._callers = Callers(estate.role_of, self._clock.now, weather.access_key)
        self._objects = Objects(self._folder)
        self._objects.make(BUCKET, REGIONS[0], self._clock.now())
        self._s3 = S3(self._objects, self._clock.now, weather.foreign_buckets, self._permits)
        self._faults = Faults(weather.seed, weather.fault_share, weather.throttle_share)
        self._listen("sandbox-endpoint", self._answer, opened)
        opened.callback(started("sandbox-warming", self._warm).join)
        opened.callback(self._ended.set)

    # -- machines ----------------------------------------------------------------------------

    def step(self, now: Instant) -> None:
        """Let all happen that is due, and tell of it; one thread calls this."""
        with self._services.turn:
            self._services.advance(now)
            told = list(self._services.estate.told)
            self._services.estate.told.clear()
        hears = {"started": self.on_started, "noticed": self.on_noticed, "ended": self.on_ended}
        for what, instance in told:
            hears[what](instance)

    def next_at(self) -> Instant | None:
        """Return when `step` has something to do next, by itself; None: not as far as is known."""
        with self._services.turn:
            told = self._services.estate.told
            return self._clock.now() if told else self._services.next_at()

    def instances(self) -> Sequence[Instance]:
        """Return all instances that are listed, and those that are not found yet, oldest first."""
        with self._services.turn:
            self._services.advance(self._clock.now())
            return [_newest(record) for record in self._services.estate]

    def instance(self, name: str) -> Instance | None:
        """Return an instance; None when there is none."""
        with self._services.turn:
            self._services.advance(self._clock.now())
            record = self._services.estate.get(name)
            return None if record is None else _newest(record)

    def credentials_of(self, name: str) -> Credentials | None:
        """Return an instance's temporary keys, renewed in time; None: it has no role, or ended.

        With them it may ask for what the policy of its role allows, for as long as it runs.
        """
        return self._callers.credentials_of(name)

    def end(self, name: str, code: str = ITSELF) -> None:
        """End an instance: it has shut down by itself, or what the code says; none is fine."""
        with self._services.turn:
            now = self._clock.now()
            self._services.advance(now)
            record = self._services.estate.get(name)
            if record is not None:
                self._services.estate.end(record, code, now)
        self.stirred.set()

    def interrupt(self, name: str, notice_s: Seconds = NOTICE_S) -> None:
        """Announce that an instance is taken back, and take it then; none is fine."""
        with self._services.turn:
            now = self._clock.now()
            self._services.advance(now)
            record = self._services.estate.get(name)
            if record is not None:
                self._services.estate.interrupt(record, now, notice_s)
        self.stirred.set()

    def price_usd_h(
        self, type_name: str, zone: str, market: Market, at: Instant
    ) -> MicroUsd | None:
        """Return what an hour costs at a time; None where no price ships."""
        return self._services.prices.price(type_name, zone, market, at)

    # -- for tests ---------------------------------------------------------------------------

    def fault(self, action: str, kind: Kind, *, times: int = 1, code: str = "") -> None:
        """Let the next calls of an action fail: a pattern of names, `CreateFleet`, `PutObject`.

        `error-before` has done nothing, `error-after-success` and `timeout` have done all;
        `code` stands in place of the service's own.
        """
        self._faults.add(Fault(action, kind, times, code))

    def fault_share(self, share: float, seed: int = 0) -> None:
        """Let a share of all calls, S3 apart, fail in any of the ways."""
        self._faults.share(share, seed)

    def no_faults(self) -> None:
        """Take back all faults that were asked for and have not happened, and the share."""
        self._faults.clear()
        self._faults.share(0.0, 0)

    def hear_permissions(self, heard: Heard) -> None:
        """Tell of each permission that somebody needs who is held to a policy."""
        self._permits.heard = heard

    def store_requests(self) -> Mapping[tuple[str, str], int]:
        """Return how often S3 was asked, by method (`LIST` too) and bucket with folder."""
        return dict(self._s3.requests)

    # -- answering ---------------------------------------------------------------------------

    def _answer(self, asked: Asked) -> Answer | None:
        service = asked.signed[2] or ("ec2" if asked.form else "s3")
        is_s3 = service == "s3"
        try:
            if is_s3 and self._weather.is_out("s3", self._clock.now() - self._began_at):
                raise failed("s3")
            caller = self._callers.who(service, asked)
            action = ACTIONS.get(service, _action)(asked)
            return self._faults.met(service, action, lambda: self._done(service, asked, caller))
        except Refused as refused:
            return self._dated(written(service, refused))
        finally:
            if not is_s3:
                self.stirred.set()

    def _done(self, service: str, asked: Asked, caller: Caller) -> Answer:
        if service != "s3":
            return self._services.answer(service, asked, caller)
        answer = self._s3.answer(asked, caller)
        given = len(answer.body) if answer.stretch is None else answer.stretch.size
        size = len(asked.body) + given
        slow_s = self._weather.s3_slow_s
        if self._weather.s3_mib_s is not None:
            slow_s += size / MIB / self._weather.s3_mib_s
        if slow_s:
            self._ended.wait(self._real(slow_s))
        return self._dated(answer)

    def _dated(self, answer: Answer) -> Answer:
        """Return an answer with what time it is here: whoever is refused reads it too."""
        date = formatdate(int(self._clock.now()), usegmt=True)
        return replace(answer, headers={**answer.headers, "Date": date})

    def _warm(self) -> None:
        self._services.warm()
        self.warmed.set()


def _newest(record: Record) -> Instance:
    tags = record.made.tags()
    if tags != record.instance.tags:
        record.instance = replace(record.instance, tags=tags)
    return record.instance


def _action(asked: Asked) -> str:
    return asked.action


def _nobody(instance: Instance) -> None:
    """Hear of an instance, and do nothing."""
