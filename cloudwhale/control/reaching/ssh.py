"""Runs things on another machine through the user's own ssh: its configuration, keys, hosts."""

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import CloudwhaleError, Denied, SettingsError, Unreachable

CONNECT_S = 10  # a host that does not answer by then is down or behind a firewall
RUN_S: Seconds = 600.0  # the longest that anything may take there: pip on a slow line
PIECE_BYTES = 1 << 18
_SAFE = re.compile(r"[A-Za-z0-9_./@%+=:,-]+")

Progress = Callable[[int, int], None]
"""Told how many bytes of how many were sent."""


class ThereFailed(CloudwhaleError):
    """What was run on the other machine has failed."""


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to talk to, as ssh understands it."""

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        return f"{self.user}@{self.host}" if self.user else self.host


def target(address: str) -> Target:
    """Return what `ssh://user@host:port` means; raise SettingsError for anything else."""
    wrong = SettingsError(
        f"{address!r} is not the address of a host", "Write ssh://user@host or ssh://host:port."
    )
    try:
        parts = urlsplit(address)
        found = Target(parts.hostname or "", parts.username, parts.port)
    except ValueError as error:
        raise wrong from error
    if parts.scheme != "ssh" or parts.path not in ("", "/") or parts.password is not None:
        raise wrong
    # A host that begins with a dash would be an option of ssh.
    for word in (found.host, found.user or "a"):
        if not _SAFE.fullmatch(word) or word.startswith("-"):
            raise wrong
    # urlsplit lowers the letters, and ssh's configuration tells them apart.
    host = re.search(re.escape(found.host), address, re.IGNORECASE)
    return Target(host[0] if host else found.host, found.user, found.port)


class Ssh:
    """Runs scripts on one machine; every call is a connection of its own."""

    def __init__(self, to: Target) -> None:
        self.to = to

    def script(self, text: str) -> str:
        """Run a shell script there and return what it prints; raise a sentence when it fails."""
        done = self._run(["sh", "-s"], text.encode())
        return done.decode(errors="replace")

    def upload(self, body: bytes, path: str, progress: Progress) -> None:
        """Write a file there; `path` has no character that a shell would read."""
        if not _SAFE.fullmatch(path):
            raise SettingsError(
                f"{path!r} cannot be a folder of an agent", "Choose another --home."
            )
        self._run(["cat", ">", path], body, progress)

    def _run(self, words: list[str], body: bytes, progress: Progress | None = None) -> bytes:
        try:
            process = subprocess.Popen(
                [*self._ssh(), *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except FileNotFoundError as error:
            raise SettingsError(
                "there is no ssh on this host", "Install it: `apt-get install openssh-client`."
            ) from error
        with process:
            try:
                if progress is not None and process.stdin is not None:
                    _send(process.stdin.write, body, progress)
                    body = b""
                out, errors = process.communicate(body, timeout=RUN_S)
            except BrokenPipeError:
                out, errors = process.communicate()
            except subprocess.TimeoutExpired as error:
                process.kill()
                raise Unreachable(f"{self.to} did not answer within {RUN_S:g} s") from error
        if process.returncode:
            raise _trouble(self.to, process.returncode, errors.decode(errors="replace"))
        return out

    def _ssh(self) -> list[str]:
        options = [
            "-o", "BatchMode=yes",  # nobody is asked for a password
            "-o", f"ConnectTimeout={CONNECT_S}",
            "-o", "ServerAliveInterval=15",
            "-T",
        ]  # fmt: skip
        if self.to.port is not None:
            options += ["-p", str(self.to.port)]
        return ["ssh", *options, "--", str(self.to)]


def _send(write: Callable[[bytes], object], body: bytes, progress: Progress) -> None:
    for piece, sent in _pieces(body):
        write(piece)
        progress(sent, len(body))


def _pieces(body: bytes) -> Iterator[tuple[bytes, int]]:
    for begin in range(0, len(body), PIECE_BYTES):
        piece = body[begin : begin + PIECE_BYTES]
        yield piece, begin + len(piece)


def _trouble(to: Target, code: int, errors: str) -> CloudwhaleError:
    """Return what stands between us and the host, in a sentence with its remedy."""
    last = next((line for line in reversed(errors.splitlines()) if line.strip()), "it said nothing")
    if code != 255:  # ssh's own failures; anything else is of what ran there
        return ThereFailed(f"on {to}: {last.strip()}")
    for pattern, make in _KNOWN:
        if re.search(pattern, errors):
            return make(to, last.strip())
    return Unreachable(f"ssh cannot reach {to}: {last.strip()}", f"Does `ssh {to}` work by hand?")


def _changed(to: Target, last: str) -> CloudwhaleError:
    return Denied(
        f"the key of {to} is not the one that is known of it: it is another machine, or somebody "
        "stands between",
        f"When it was installed anew: `ssh-keygen -R {to.host}`, then `ssh {to}` once by hand.",
    )


def _unknown_key(to: Target, last: str) -> CloudwhaleError:
    return Denied(
        f"the key of {to} is not known here",
        f"Connect once by hand and compare it: `ssh {_by_hand(to)}`.",
    )


def _permission(to: Target, last: str) -> CloudwhaleError:
    return Denied(
        f"{to} does not let us in: {last}",
        f"Give it your public key: `ssh-copy-id {_by_hand(to)}`.",
    )


def _refused(to: Target, last: str) -> CloudwhaleError:
    return Unreachable(
        f"nobody listens at port {to.port or 22} of {to.host}",
        "Is sshd running there, and at this port?",
    )


def _no_name(to: Target, last: str) -> CloudwhaleError:
    return Unreachable(f"nobody knows a host {to.host}", "Is the name right?")


def _no_answer(to: Target, last: str) -> CloudwhaleError:
    return Unreachable(f"{to.host} does not answer", "Is it on, and does a firewall let ssh pass?")


def _by_hand(to: Target) -> str:
    return f"-p {to.port} {to}" if to.port else str(to)


_KNOWN: tuple[tuple[str, Callable[[Target, str], CloudwhaleError]], ...] = (
    ("IDENTIFICATION HAS CHANGED", _changed),
    ("Host key verification failed", _unknown_key),
    ("Permission denied|Too many authentication failures", _permission),
    ("Connection refused", _refused),
    ("Could not resolve", _no_name),
    ("timed out|No route to host|Network is unreachable", _no_answer),
)
