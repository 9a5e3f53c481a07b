"""What is asked over HTTP, and what is answered."""

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import parse_qsl, unquote

SCOPE = re.compile(r"Credential=([^/]+)/[0-9]{8}/([^/]+)/([^/]+)/aws4_request")
"""Signature Version 4: access key, region and service that a request is signed for."""


@dataclass(frozen=True)
class Asked:
    """One request, its body read."""

    method: str
    target: str
    """Path and query as they came."""
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes = b""

    @cached_property
    def path(self) -> str:
        """Return the path, decoded."""
        return unquote(self.target.partition("?")[0])

    @cached_property
    def query(self) -> dict[str, str]:
        """Return the fields of the address."""
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    @cached_property
    def repeated(self) -> dict[str, tuple[str, ...]]:
        """Return all that each field of the address says, in order."""
        found: dict[str, tuple[str, ...]] = {}
        for name, text in parse_qsl(self.target.partition("?")[2], keep_blank_values=True):
            found[name] = (*found.get(name, ()), text)
        return found

    @cached_property
    def form(self) -> dict[str, str]:
        """Return the fields of a form, as EC2, IAM and STS are asked; empty for others."""
        if not self.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            return {}
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))

    @cached_property
    def signed(self) -> tuple[str, str, str]:
        """Return access key, region and service; empty ones where it is not signed."""
        words = self.headers.get("authorization", "") or (
            "Credential=" + self.query.get("X-Amz-Credential", "")
        )
        found = SCOPE.search(words)
        return (found[1], found[2], found[3]) if found else ("", "", "")

    @property
    def action(self) -> str:
        """Return what is asked for, `CreateFleet`, where the body or a header names it."""
        target = self.headers.get("x-amz-target", "")
        return self.form.get("Action", "") or target.rpartition(".")[2]


class Stretch:
    """Bytes of a file that is open for as long as this is."""

    def __init__(self, path: Path, begins_at: int, size: int) -> None:
        """Open it; raise OSError."""
        self._begins_at, self.size = begins_at, size
        self._file = -1
        self._file = os.open(path, os.O_RDONLY)

    def send(self, connection: socket.socket) -> None:
        """Send all of it from the kernel's memory; raise OSError."""
        sent = 0
        while sent < self.size:
            at = self._begins_at + sent
            count = os.sendfile(connection.fileno(), self._file, at, self.size - sent)
            if not count:
                raise ConnectionAbortedError
            sent += count

    def __del__(self) -> None:
        """Close it, sent or not: an answer may be dropped on its way."""
        if self._file >= 0:
            os.close(self._file)


@dataclass(frozen=True)
class Answer:
    """One answer."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    length: int | None = None
    """What a HEAD would have sent; None: what the body has."""
    stretch: Stretch | None = None
    """What is sent instead of the body, without passing through this process's memory."""
