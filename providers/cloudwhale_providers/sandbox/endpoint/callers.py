"""Who asks: the box's own user, a machine by its temporary keys, or nobody that is known."""

import secrets
import threading
from base64 import b32encode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cloudwhale.model.units import Instant, Seconds
from cloudwhale_providers.sandbox.endpoint import account, signatures
from cloudwhale_providers.sandbox.endpoint.messages import Asked
from cloudwhale_providers.sandbox.endpoint.refused import (
    EXPIRED,
    REFUSED_KEYS,
    UNLIKE,
    UNSIGNED,
)
from cloudwhale_providers.sandbox.names import ACCESS_KEY, ACCOUNT, SECRET_KEY

HOLD_S: Seconds = 6 * 3600.0
"""EC2 gives a machine new keys before the old ones run out, which takes six hours or so."""
RENEWED_S: Seconds = 3600.0
"""So long before that it is given new ones: EC2 User Guide, "Retrieve security credentials"."""
Role = Literal["user", "machine", "stops"]
"""The account's own user, a machine's role, and that of the schedules that end machines."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A machine's temporary keys."""

    access_key: str
    secret_key: str
    token: str
    expires_at: Instant


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose keys a request is signed with."""

    role: Role
    arn: str
    user_id: str
    """What policies know it by as `aws:userid`: of a machine, its role and its instance's id."""
    machine: str = ""
    """Its instance; empty: it is none."""


USER = Caller("user", f"arn:aws:iam::{ACCOUNT}:user/sandbox", "AIDACLOUDWHALESANDBOX")


@dataclass(frozen=True, slots=True)
class _Known:
    machine: str
    credentials: Credentials


class Callers:
    """Gives machines their keys, and tells by keys who asks; threads may share it."""

    def __init__(
        self,
        role_of: Callable[[str], str | None],
        now: Callable[[], Instant],
        access_key: str = "",
        id_of: Callable[[str], str] = account.role_id_of,
        draw: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        """`role_of`: the role of an instance that runs; None: it has none, or runs no more.

        `id_of`: what IAM knows a role by, which no policy need name.
        """
        self._role_of = role_of
        self._id_of = id_of
        self._now = now
        self._user_key = access_key or ACCESS_KEY
        self._draw = draw
        self._by_key: dict[str, _Known] = {}
        self._newest: dict[str, Credentials] = {}
        self._turn = threading.Lock()

    def credentials_of(self, machine: str) -> Credentials | None:
        """Return an instance's keys, new ones in time; None: it has no role, or has ended."""
        if self._role_of(machine) is None:
            with self._turn:
                self._newest.pop(machine, None)
            return None
        with self._turn:
            known, now = self._newest.get(machine), self._now()
            if known is None or known.expires_at - now < RENEWED_S:
                known = self._drawn(now + HOLD_S)
                self._newest[machine] = known
                self._by_key[known.access_key] = _Known(machine, known)
            return known

    def who(self, service: str, asked: Asked) -> Caller:
        """Return who asks; raise Refused, in the service's words, for whoever is not known."""
        signed = signatures.read(asked)
        if signed is None:
            raise UNSIGNED.get(service, UNSIGNED[""])
        if signed.key == self._user_key and not signed.token:
            self._check(service, asked, signed, SECRET_KEY)
            return USER
        known = self._by_key.get(signed.key)
        if known is None or known.credentials.token != signed.token:
            raise REFUSED_KEYS.get(service, REFUSED_KEYS[""])
        self._check(service, asked, signed, known.credentials.secret_key)
        role = self._role_of(known.machine)
        if role is None or known.credentials.expires_at <= self._now():
            with self._turn:
                self._by_key.pop(signed.key, None)
            raise EXPIRED.get(service, EXPIRED[""])
        arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/{known.machine}"
        return Caller("machine", arn, f"{self._id_of(role)}:{known.machine}", known.machine)

    def _check(self, service: str, asked: Asked, signed: signatures.Signed, secret: str) -> None:
        if not signatures.is_right(asked, signed, secret):
            raise UNLIKE.get(service, UNLIKE[""])

    def _drawn(self, expires_at: Instant) -> Credentials:
        return Credentials(
            "ASIA" + b32encode(self._draw(10)).decode(),
            b64encode(self._draw(30)).decode(),
            b64encode(self._draw(96)).decode(),
            expires_at,
        )
