"""Who asks: access tokens of the project's user and of its machines, and what they are given for.

The user has a service account's key, made when the box is: a JWT signed with it is exchanged for a
token (Google Identity docs, "Using OAuth 2.0 for server to server applications"), or is a token
by itself. Machines have tokens from their metadata service.
"""

import json
import secrets
import threading
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from cloudwhale.model.units import Instant, Seconds
from cloudwhale_providers.sandbox.compute.calls import Caller
from cloudwhale_providers.sandbox.compute.places import PROJECT, USER_ACCOUNT
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused, as_json
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked

LIFE_S: Seconds = 3600.0
"""Of a token, and the longest of a JWT."""
SKEW_S: Seconds = 300.0
"""By so much may the clocks of two hosts differ."""
RENEWED_S: Seconds = 300.0
"""Compute Engine docs, "Authenticate workloads": a token with at least five minutes is kept."""
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
PATH = "/token"


@dataclass(frozen=True, slots=True)
class Token:
    """An access token."""

    text: str
    caller: Caller
    expires_at: Instant
    """By the clock that clients sign by."""
    left_s: Seconds = LIFE_S
    """How long it lived when it was given out."""


class BadJwt(Exception):
    """A JWT is not taken; says why as Google does."""


class Tokens:
    """Gives tokens, and knows them again; threads may share it."""

    def __init__(self, now: Callable[[], Instant], runs: Callable[[str], bool]) -> None:
        """`now`: by the clock that clients sign by; `runs`: whether a machine still runs."""
        self._now, self._runs = now, runs
        self._known: dict[str, Token] = {}
        self._newest: dict[str, Token] = {}
        self._turn = threading.Lock()
        self.key_id = secrets.token_hex(20)

    # -- giving ------------------------------------------------------------------------------

    def key_file(self, url: str) -> Mapping[str, str]:
        """Return what a service account's JSON file says; `url`: where tokens are exchanged."""
        from cryptography.hazmat.primitives import serialization as forms

        text = self._key.private_bytes(
            forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()
        )
        return {
            "type": "service_account", "project_id": PROJECT, "private_key_id": self.key_id,
            "private_key": text.decode(), "client_email": USER_ACCOUNT, "client_id": "1" * 21,
            "token_uri": url + PATH, "universe_domain": "googleapis.com",
        }  # fmt: skip

    def take_key(self, told: Mapping[str, str]) -> None:
        """Go on with the key of an earlier box's file; raise ValueError, KeyError for none."""
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        found: Any = load_pem_private_key(told["private_key"].encode(), None)
        self.key_id, self.__dict__["_key"] = told["private_key_id"], found

    def of_user(self) -> Token:
        """Return a new token of the user."""
        return self._given(Caller(USER_ACCOUNT))

    def of_machine(self, machine: str, email: str) -> Token:
        """Return a machine's token, a new one in time."""
        with self._turn:
            found = self._newest.get(machine)
        if found is None or found.expires_at - self._now() < RENEWED_S:
            found = self._given(Caller(email, machine))
            with self._turn:
                self._newest[machine] = found
        return replace(found, left_s=found.expires_at - self._now())

    def exchanged(self, asked: Asked) -> Answer:
        """Answer whoever has a JWT and wants a token."""
        form = asked.form
        if form.get("grant_type") != GRANT:
            return _no("unsupported_grant_type", f"Invalid grant_type: {form.get('grant_type')}")
        try:
            claims = self._claims(form.get("assertion", ""))
            if not str(claims.get("aud", "")).endswith(PATH):
                raise BadJwt("Invalid JWT: Failed audience check.")
            if not claims.get("scope"):
                raise BadJwt("Invalid JWT: no scope is asked for.")
        except BadJwt as error:
            return _no("invalid_grant", str(error))
        found = self.of_user()
        return as_json(
            {"access_token": found.text, "expires_in": int(LIFE_S) - 1, "token_type": "Bearer"}
        )

    def _given(self, caller: Caller) -> Token:
        text = f"ya29.{secrets.token_urlsafe(40)}"
        found = Token(text, caller, self._now() + LIFE_S)
        with self._turn:
            self._known[text] = found
        return found

    # -- knowing again -----------------------------------------------------------------------

    def who(self, authorization: str) -> Caller:
        """Return whose token a header carries; raise Refused for none, and for one that is no
        good (any more)."""
        kind, _, text = authorization.partition(" ")
        if kind.lower() != "bearer" or not text:
            says = "Request is missing required authentication credential."
            raise GoogleRefused("authError", says, 401)
        if text.count(".") == 2 and not text.startswith("ya29."):
            return self._who_signed(text)
        with self._turn:
            found = self._known.get(text)
        is_good = found is not None and found.expires_at > self._now()
        if found is None or not is_good:
            raise _invalid()
        if found.caller.machine and not self._runs(found.caller.machine):
            raise _invalid()
        return found.caller

    def _who_signed(self, text: str) -> Caller:
        try:
            self._claims(text)
        except BadJwt as error:
            raise _invalid() from error
        return Caller(USER_ACCOUNT)

    def _claims(self, text: str) -> Mapping[str, Any]:
        """Return what a JWT says; raise BadJwt."""
        parts = text.split(".")
        try:
            head, claims = (json.loads(_decoded(one)) for one in parts[:2])
            signature = _decoded(parts[2])
        except (ValueError, IndexError) as error:
            raise BadJwt("Invalid JWT: it cannot be read.") from error
        if head.get("alg") != "RS256" or not self._is_ours(".".join(parts[:2]), signature):
            raise BadJwt("Invalid JWT Signature.")
        if claims.get("iss") != USER_ACCOUNT:
            raise BadJwt("Invalid grant: account not found")
        self._check_times(claims)
        return dict(claims)

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self._now()
        issued_at, until = float(claims.get("iat", 0)), float(claims.get("exp", 0))
        is_now = issued_at - SKEW_S <= now <= until + SKEW_S
        if not is_now or until - issued_at > LIFE_S + SKEW_S:
            raise BadJwt(
                "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable "
                "timeframe. Check your iat and exp values in the JWT claim."
            )

    def _is_ours(self, text: str, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.hashes import SHA256

        try:
            self._key.public_key().verify(signature, text.encode(), PKCS1v15(), SHA256())
        except InvalidSignature:
            return False
        return True

    @cached_property
    def _key(self) -> Any:
        from cryptography.hazmat.primitives.asymmetric import rsa

        return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _no(error: str, says: str) -> Answer:
    return as_json({"error": error, "error_description": says}, 400)


def _invalid() -> GoogleRefused:
    says = (
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login "
        "cookie or other valid authentication credential."
    )
    return GoogleRefused("authError", says, 401)
