"""Compute Engine over HTTP on loopback: its REST API, tokens for who asks, and machines."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.prices import Market
from cloudwhale_providers.sandbox.compute import oauth
from cloudwhale_providers.sandbox.compute.calls import Call, Caller, Does
from cloudwhale_providers.sandbox.compute.catalogue import catalogue
from cloudwhale_providers.sandbox.compute.discovery import Api, Meant, api
from cloudwhale_providers.sandbox.compute.machines import GUEST
from cloudwhale_providers.sandbox.compute.permits import MayAsk
from cloudwhale_providers.sandbox.compute.project_apis import ProjectApis
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused, as_json, written
from cloudwhale_providers.sandbox.compute.schemas import Fault as Wrong
from cloudwhale_providers.sandbox.compute.schemas import Schemas
from cloudwhale_providers.sandbox.compute.services import Services
from cloudwhale_providers.sandbox.compute.wording import Words
from cloudwhale_providers.sandbox.endpoint.faults import Fault, Faults, Kind
from cloudwhale_providers.sandbox.endpoint.loopback import Loopback
from cloudwhale_providers.sandbox.endpoint.machines import Instance
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.endpoint.weather_values import NOTICE_S, Weather

SERVICE = "compute"
WAIT_MOST_S = 2.0
"""Of real time, in one call of `wait`: it may come back before, says its reference, and does."""

Told = Callable[[Instance], None]


class Compute(Loopback):
    """A Compute Engine of one's own; there may be several in a process.

    APIs are answered below their own paths: `URL/compute/v1/projects/...`; tokens are exchanged at
    `URL/token`.
    """

    def __init__(
        self,
        clock: Clock,
        weather: Weather | None = None,
        *,
        port: int = 0,
        real: Callable[[Seconds], Seconds] = lambda for_s: for_s,
        checked: bool = False,
    ) -> None:
        """Take a clock; `real` says how long a time of that clock takes outside.

        `checked`: answers are held against Google's own description, as what is asked always is;
        one that is wrong is refused. Nothing is kept beyond this process.
        """
        super().__init__(port)
        self._clock, self._weather, self._real = clock, weather or Weather(), real
        self._apis: list[Api] = []
        self._services = Services(self._weather, clock.now)
        self.project_apis = ProjectApis(self._services)
        """What the project has beside its machines."""
        self.outside: Callable[[], Instant] = clock.now
        """The time that clients sign their JWTs by: where a box has a pace, not that of the box."""
        self._tokens = oauth.Tokens(lambda: self.outside(), self._runs)
        self._faults = Faults(
            self._weather.seed, self._weather.fault_share, self._weather.throttle_share
        )
        self._checked = checked
        self.complaints: list[str] = []
        """What was wrong with answers that were checked."""
        self.on_started: Told = _nobody
        """Called by `step` with an instance that runs now."""
        self.on_noticed: Told = _nobody
        """Called by `step` with an instance that is told now that it goes."""
        self.on_ended: Told = _nobody
        """Called by `step` with an instance whose end has begun."""
        self.stirred = threading.Event()
        """Set when `step` may have something to do; whoever steps clears it."""

    # -- life --------------------------------------------------------------------------------

    def start(self) -> str:
        """Listen and return the URL; raise Denied without Google's client library, OSError."""
        self.mount(api("compute", "v1"))
        for described, methods in self.project_apis.described():
            self.mount(described, methods)
        catalogue()
        with ExitStack() as opened:
            self._listen("sandbox-compute", self._answer, opened)
            opened.callback(self._ended.set)
            self._closing = opened.pop_all()
        return self.url

    def mount(self, described: Api, methods: Mapping[str, Does] | None = None) -> None:
        """Answer another API too, by what its discovery document calls its methods."""
        self._apis.append(described)
        self._services.add(methods or {})

    # -- machines ----------------------------------------------------------------------------

    def step(self, now: Instant) -> None:
        """Let all happen that is due, and tell of it; one thread calls this."""
        with self._services.turn:
            self._services.machines.advance(now)
            told = list(self._services.machines.told)
            self._services.machines.told.clear()
        hears = {"started": self.on_started, "noticed": self.on_noticed, "ended": self.on_ended}
        for what, instance in told:
            hears[what](instance)

    def next_at(self) -> Instant | None:
        """Return when `step` has something to do next, by itself; None: not as far as is known."""
        with self._services.turn:
            machines = self._services.machines
            return self._clock.now() if machines.told else machines.next_at()

    def instances(self) -> Sequence[Instance]:
        """Return all machines, also those that went lately, oldest first."""
        with self._services.turn:
            self._services.machines.advance(self._clock.now())
            return [one.instance for one in self._services.machines.all()]

    def instance(self, name: str) -> Instance | None:
        """Return a machine by id, `ZONE/NAME` or name; None when there is none."""
        with self._services.turn:
            self._services.machines.advance(self._clock.now())
            found = self._services.machines.known(name)
            return None if found is None else found.instance

    def end(self, name: str, code: str = GUEST) -> None:
        """Let a machine have shut down by itself: it is TERMINATED, its disk stays. None is fine.

        One that was told to, because it is preempted, ends as such.
        """
        self._with(name, lambda found, now: self._services.machines.end(found, code, now))

    def interrupt(self, name: str, notice_s: Seconds = NOTICE_S) -> None:
        """Take a machine back: at once, if it has not asked for a notice. None is fine.

        `preempted` is TRUE from now on; after the notice its system is told to shut down, and 30 s
        later it is gone.
        """
        self._with(name, lambda found, now: self._services.machines.interrupt(found, now, notice_s))

    def _with(self, name: str, do: Callable[[Any, Instant], None]) -> None:
        with self._services.turn:
            now = self._clock.now()
            self._services.machines.advance(now)
            found = self._services.machines.known(name)
            if found is not None:
                do(found, now)
        self.stirred.set()

    def price_usd_h(
        self, type_name: str, zone: str, market: Market, at: Instant
    ) -> MicroUsd | None:
        """Return what an hour costs at a time; None where no price ships."""
        return self._services.market.price(type_name, zone, market, at)

    # -- who asks ----------------------------------------------------------------------------

    def key_file(self) -> Mapping[str, str]:
        """Return what a file says that GOOGLE_APPLICATION_CREDENTIALS may name: the user's key.

        Its tokens are exchanged here; the key is drawn anew, unless an earlier one was taken.
        """
        return self._tokens.key_file(self.url)

    def take_key(self, told: Mapping[str, str]) -> None:
        """Go on with the key of such a file, of an earlier box: whoever outlived that has it.

        Raise ValueError or KeyError when there is none in it.
        """
        self._tokens.take_key(told)

    def user_token(self) -> str:
        """Return a new access token of the user."""
        return self._tokens.of_user().text

    def credentials_of(self, name: str) -> oauth.Token | None:
        """Return a machine's access token, renewed in time; None: it has no service account, or
        has ended."""
        found = self.instance(name)
        if found is None or not found.profile or found.ended_at is not None:
            return None
        return self._tokens.of_machine(found.id, found.profile)

    def attributes_of(self, name: str) -> Mapping[str, str]:
        """Return the attributes of a machine's metadata, as they are now; none of one unknown."""
        with self._services.turn:
            found = self._services.machines.known(name)
            return {} if found is None else found.attributes

    def knows(self, token: str) -> bool:
        """Say whether an access token is good: other services of the box ask."""
        try:
            self._tokens.who(f"Bearer {token}")
        except Refused:
            return False
        return True

    def who(self, authorization: str) -> Caller:
        """Return whose token a header `Authorization` carries; raise Refused."""
        return self._tokens.who(authorization)

    def hold_to(self, may_ask: MayAsk) -> None:
        """Let somebody else say who may do what."""
        self._services.permits.may_ask = may_ask

    @property
    def services(self) -> Services:
        """Return what answers; whoever changes it holds its `turn`."""
        return self._services

    def _runs(self, machine: str) -> bool:
        found = self._services.machines.known(machine)
        return found is not None and found.instance.ended_at is None

    # -- for tests ---------------------------------------------------------------------------

    def fault(self, action: str, kind: Kind, *, times: int = 1, code: str = "") -> None:
        """Let the next calls of a method fail: a pattern of ids, `compute.instances.insert`.

        `error-before` has done nothing, `error-after-success` and `timeout` have done all; `code`
        stands in place of the service's own. One LIKE_THIS, before, is that of an operation.
        """
        self._faults.add(Fault(action, kind, times, code))

    def fault_share(self, share: float, seed: int = 0) -> None:
        """Let a share of all calls fail in any of the ways."""
        self._faults.share(share, seed)

    def no_faults(self) -> None:
        """Take back all faults that were asked for and have not happened, and the share."""
        self._faults.clear()
        self._faults.share(0.0, 0)

    # -- answering ---------------------------------------------------------------------------

    def _answer(self, asked: Asked) -> Answer | None:
        if asked.method == "POST" and asked.path == oauth.PATH:
            return self._tokens.exchanged(asked)
        try:
            meant = self._meant(asked)
            caller = self._tokens.who(asked.headers.get("authorization", ""))
            call = self._read(meant, asked, caller)
            return self._met(call, lambda: self._done(meant, call))
        except Refused as refused:
            return written(refused)
        finally:
            self.stirred.set()

    def _met(self, call: Call, do: Callable[[], Answer]) -> Answer | None:
        try:
            return self._faults.met(SERVICE, call.method.id, do)
        except Refused as refused:
            is_operation = call.method.answers == "Operation" and call.method.verb != "GET"
            if isinstance(refused, GoogleRefused) or not refused.code.isupper() or not is_operation:
                raise
            with self._services.turn:
                return as_json(self._services.failed(call, refused.code))

    def _meant(self, asked: Asked) -> Meant:
        path = asked.target.partition("?")[0]
        for one in self._apis:
            found = one.meant(asked.method, path)
            if found is not None:
                return found
        raise GoogleRefused("notFound", f"The requested URL {path} was not found on this server.")

    def _read(self, meant: Meant, asked: Asked, caller: Caller) -> Call:
        """Return a call that says what Google's description allows; raise Refused."""
        try:
            body: Any = json.loads(asked.body) if asked.body.strip() else {}
        except ValueError as error:
            says = "Invalid JSON payload received. Parse error."
            raise GoogleRefused("badRequest", says) from error
        schemas, method = Schemas(meant.api), meant.method
        for faults in (
            schemas.of_path(method, meant.path),
            schemas.of_query(method, asked.query),
            schemas.of_body(method, body),
        ):
            for fault in faults:
                raise _bad(fault)
        now = self._clock.now()
        return Call(method, meant.path, asked.query, body, caller, now, asked.repeated)

    def _done(self, meant: Meant, call: Call) -> Answer:
        with self._services.turn:
            told = self._services.answer(call)
        if call.method.id.endswith("Operations.wait") and told["status"] != "DONE":
            self._wait()
            with self._services.turn:
                told = self._services.answer(replace(call, now=self._clock.now()))
        self._check(meant, told)
        return as_json(told)

    def _wait(self) -> None:
        """Let whoever waits for an operation wait, a little."""
        due = self.next_at()
        left_s = WAIT_MOST_S if due is None else self._real(max(0.0, due - self._clock.now()))
        self._ended.wait(min(WAIT_MOST_S, left_s))

    def _check(self, meant: Meant, told: Words) -> None:
        if not self._checked:
            return
        wrong = list(Schemas(meant.api).of_answer(meant.method, told))
        if wrong:
            says = [f"{meant.method.id} answers {one.where}: {one.says}" for one in wrong]
            self.complaints += says
            raise GoogleRefused("internalError", "; ".join(says))


def _bad(fault: Wrong) -> GoogleRefused:
    """Return how Google refuses what its description does not allow."""
    violation = {"field": fault.where, "description": fault.says}
    details = {
        "@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation],
    }  # fmt: skip
    if fault.is_unknown:
        says = f"Invalid JSON payload received. {fault.says}"
        return GoogleRefused("badRequest", says, details=(details,))
    says = f"Invalid value for field '{fault.where}': {fault.says}"
    return GoogleRefused("invalid", says, details=(details,))


def _nobody(instance: Instance) -> None:
    """Hear of an instance, and do nothing."""
