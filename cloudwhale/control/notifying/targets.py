"""Targets: whom the settings say to tell, each a table [notify.NAME]."""

import os
import re
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from cloudwhale.control.notifying.addresses import is_loopback, url_fault
from cloudwhale.model.notice import ALL, EVERY_KIND, OWN
from cloudwhale.planning.noticing import kinds
from cloudwhale.spi.errors import SettingsError

Way = Literal["webhook", "slack", "smtp", "command"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS = re.compile(r"[^@\s<>,;]+@[^@\s<>,;]+")
_COMMON = frozenset({"on"})
_KEYS: Mapping[Way, frozenset[str]] = {
    "webhook": frozenset(
        {"webhook", "webhook_env", "webhook_file", "secret_env", "secret_file", "ca_file"}
    ),
    "slack": frozenset({"slack", "slack_env", "slack_file", "ca_file"}),
    "smtp": frozenset(
        {"smtp", "tls", "user", "password_env", "password_file", "from", "to", "ca_file"}
    ),
    "command": frozenset({"command"}),
}
_TLS = ("starttls", "implicit", "none")
_PORTS: Mapping[str, int] = {"starttls": 587, "implicit": 465, "none": 25}
_SECRET_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret lies: the value itself is read when it is needed, and kept nowhere."""

    env: str = ""
    file: str = ""

    @property
    def is_given(self) -> bool:
        """Say whether there is to be one."""
        return bool(self.env or self.file)

    def read(self) -> str:
        """Return the value; raise SettingsError when it is not there, or others can read it."""
        if self.env:
            value = os.environ.get(self.env, "")
            if not value:
                raise SettingsError(
                    f"the environment of the controller has no ${self.env}",
                    f"Run `export {self.env}=...` before it is started.",
                )
            return value
        return _from_file(Path(self.file).expanduser())


@dataclass(frozen=True, slots=True)
class Target:
    """One whom notices are sent to."""

    name: str
    way: Way
    on: frozenset[str]
    """The kinds of notices that it is sent."""
    url: str = field(default="", repr=False)
    """Of a webhook or Slack; its path may be a secret, so it is shown nowhere."""
    url_from: Secret = Secret()
    secret: Secret = Secret()
    """What a webhook's messages are signed with, or the password of SMTP."""
    host: str = ""
    port: int = 0
    tls: str = "starttls"
    user: str = ""
    sender: str = ""
    to: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    ca_file: str = ""
    """Certificates (PEM) of those who may have signed the server's, beside those of this host."""

    def address(self) -> str:
        """Return the URL; raise SettingsError when it cannot be read, or is none to send to."""
        return self.url or checked_url(self.url_from.read().strip(), f"[notify.{self.name}]")


def targets(tables: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Target]:
    """Return the targets of the settings by name; raise SettingsError for the first wrong one."""
    return {name: _target(name, table) for name, table in sorted(tables.items())}


def own_target(url: str) -> Target:
    """Return the webhook that a job names itself: it has no secret to sign with."""
    return Target(OWN, "webhook", EVERY_KIND, url=url)


def checked_url(url: str, where: str) -> str:
    """Return a URL that may be sent to; raise SettingsError, which does not hold it."""
    fault = url_fault(url)
    if fault:
        raise SettingsError(f"{where}: {fault}", "Write it like https://example.org/hook.")
    return url


# -- reading a table -------------------------------------------------------------------------


def _target(name: str, table: object) -> Target:
    if not _NAME.fullmatch(name) or name == ALL:
        raise SettingsError(
            f"[notify.{name}]: a target cannot be called so",
            f"Use letters, digits, `-` and `_`; `{ALL}` has a meaning already.",
        )
    reading = _Table(name, table)
    way = reading.way()
    on = reading.kinds()
    match way:
        case "webhook":
            url, url_from = reading.url("webhook")
            return Target(
                name, way, on, url=url, url_from=url_from, secret=reading.secret("secret"),
                ca_file=reading.file("ca_file"),
            )  # fmt: skip
        case "slack":
            url, url_from = reading.url("slack")
            return Target(
                name, way, on, url=url, url_from=url_from, ca_file=reading.file("ca_file")
            )
        case "smtp":
            return _mail(reading, name, on)
        case "command":
            return Target(name, way, on, command=reading.command())


def _mail(reading: "_Table", name: str, on: frozenset[str]) -> Target:
    tls = reading.word("tls", "starttls")
    if tls not in _TLS:
        raise reading.wrong("tls", f"one of {', '.join(_TLS)}")
    host, port = reading.host(_PORTS[tls])
    user, password = reading.word("user", ""), reading.secret("password")
    if bool(user) != password.is_given:
        raise reading.wrong("user", "there together with password_env or password_file")
    if tls == "none" and user and not is_loopback(host):
        raise reading.wrong("tls", '"starttls" or "implicit" where a password is sent')
    sender, to = reading.addresses("from")[:1], reading.addresses("to")
    return Target(
        name, "smtp", on, secret=password, host=host, port=port, tls=tls, user=user,
        sender=sender[0], to=to, ca_file=reading.file("ca_file"),
    )  # fmt: skip


class _Table:
    """One table, and how it is complained about."""

    def __init__(self, name: str, table: object) -> None:
        if not isinstance(table, dict):
            raise SettingsError(
                f"[notify] holds tables: {name} is none", f"Write a table [notify.{name}]."
            )
        self._name = name
        self._table: dict[str, Any] = table

    def wrong(self, key: str, wanted: str) -> SettingsError:
        """Return the complaint that a key is not what it must be; it does not show the value."""
        return SettingsError(f"[notify.{self._name}]: {key} must be {wanted}", "Correct it.")

    def way(self) -> Way:
        """Return how it is told; raise for none, two, or a key that does not belong."""
        found: list[Way] = [way for way, keys in _KEYS.items() if self._has(way, keys)]
        if len(found) != 1:
            raise SettingsError(
                f"[notify.{self._name}] says {'two ways' if found else 'no way'} to tell somebody",
                "Give it one of webhook, slack, smtp and command.",
            )
        unknown = sorted(set(self._table) - _KEYS[found[0]] - _COMMON)
        if unknown:
            known = ", ".join(sorted(_KEYS[found[0]] | _COMMON))
            raise SettingsError(
                f"[notify.{self._name}]: unknown key {unknown[0]!r}", f"Known keys: {known}."
            )
        return found[0]

    def _has(self, way: Way, keys: frozenset[str]) -> bool:
        mine = (way, f"{way}_env", f"{way}_file")
        return any(key in self._table for key in mine if key in keys)

    def kinds(self) -> frozenset[str]:
        """Return what it is told of; everything when it does not say."""
        words, known = _texts(self._table.get("on", ALL)), [*sorted(EVERY_KIND), ALL]
        if not words or any(word not in known for word in words):
            raise self.wrong("on", f"a list of some of {', '.join(known)}")
        return kinds(words)

    def word(self, key: str, default: str | None = None) -> str:
        """Return a text of one line."""
        value = self._table.get(key, default)
        if not isinstance(value, str) or not value.isprintable() or (default is None and not value):
            raise self.wrong(key, "a text")
        return value

    def file(self, key: str) -> str:
        """Return the name of a file; empty when there is to be none."""
        named = self.word(key, "")
        return str(Path(named).expanduser()) if named else ""

    def secret(self, key: str) -> Secret:
        """Return where a secret lies; the value does not stand in the settings."""
        env, file = self.word(f"{key}_env", ""), self.word(f"{key}_file", "")
        if env and file:
            raise self.wrong(f"{key}_env", f"there alone, without {key}_file")
        if env and not _ENV.fullmatch(env):
            raise self.wrong(f"{key}_env", "the name of a variable of the environment")
        return Secret(env, file)

    def url(self, key: str) -> tuple[str, Secret]:
        """Return an address, or where it lies."""
        given, lies = self.word(key, ""), self.secret(key)
        if bool(given) == lies.is_given:
            raise self.wrong(key, f"an address, or be left out for {key}_env or {key}_file")
        return (checked_url(given, f"[notify.{self._name}]") if given else ""), lies

    def host(self, default_port: int) -> tuple[str, int]:
        """Return host and port of `mail.example.org:587`."""
        wanted = "a host with its port, like mail.example.org:587"
        try:
            parts = urlsplit(f"//{self.word('smtp')}")
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise self.wrong("smtp", wanted) from error
        if not host or parts.path or parts.username is not None:
            raise self.wrong("smtp", wanted)
        return host, port or default_port

    def addresses(self, key: str) -> tuple[str, ...]:
        """Return mail addresses, one at least."""
        found = _texts(self._table.get(key, []))
        if not found or not all(one.isascii() and _ADDRESS.fullmatch(one) for one in found):
            raise self.wrong(key, "a mail address, like ada@example.org")
        return tuple(found)

    def command(self) -> tuple[str, ...]:
        """Return the words of a command; no shell reads them."""
        value = self._table["command"]
        try:
            words = shlex.split(value) if isinstance(value, str) else value
        except ValueError as error:
            raise self.wrong("command", f"a command or a list of its words ({error})") from error
        found = _texts(words)
        if not found:
            raise self.wrong("command", "a command or a list of its words")
        return (os.path.expanduser(found[0]), *found[1:])


def _texts(value: Any) -> list[str]:
    """Return a list of texts, also of a single one; an empty one for what is none."""
    found = cast("list[object]", value) if isinstance(value, list) else [value]
    texts = [one for one in found if isinstance(one, str)]
    return texts if len(texts) == len(found) else []


def _from_file(path: Path) -> str:
    try:
        mode = path.stat().st_mode
        is_file = stat.S_ISREG(mode)  # a pipe would be waited for without end
        value = path.read_bytes() if is_file else b""
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}", "Make it.") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(f"{path} can be read by others", f"chmod 600 {path}")
    try:
        text = value.decode().strip()
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} holds no text", "Write the secret there.") from error
    if not text or len(value) > _SECRET_MOST_BYTES:
        raise SettingsError(f"{path} holds no secret, or too much", "Write the secret there.")
    return text
