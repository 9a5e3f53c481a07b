#!/usr/bin/python3 -IS
"""What a machine asks while it boots, of its mailbox and of its cloud's metadata service.

store about | clock | lease | get KEY FILE | tell PHASE STATE [TOOK_S] [WORDS] [-- PHASE ...]

A cloud's own part follows this text and makes a `Desk` of its own; both are one program then, which
user data carries to the machine: the standard library alone, nothing secret. What stands in the
environment is described in first_words.py.
"""

import http.client
import json
import os
import random
import shlex
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urlsplit

ANSWERS_S = 10.0
LONGEST_PAUSE_S = 8.0
PIECE = 1 << 20
TAGS = "node", "lease", "installation", "gpus"
SAID = os.environ
PART = "a cloud's own part of this program is missing"
OFF = [0.0]
"""By how much the store's clock is ahead, once it has refused ours."""


class Trouble(Exception):
    """It cannot be done; the words are for a person."""


class Again(Exception):
    """It may be done a little later."""


class Answer(NamedTuple):
    """What a server has said."""

    status: int
    date: str
    body: bytes


def now() -> float:
    """Return the time; where a sandbox pretends it, as `CLOUDWHALE_CLOCK` says."""
    at = time.time()
    begin, _, rest = SAID.get("CLOUDWHALE_CLOCK", "").partition(":")
    speed, _, start = rest.partition(":")
    return float(start or begin) + (at - float(begin)) * float(speed) if speed else at


def steady() -> float:
    """Return seconds since the machine's start, as fast as time goes here."""
    speed = SAID.get("CLOUDWHALE_CLOCK", "").split(":")[1:2] or ["1"]
    return time.clock_gettime(time.CLOCK_BOOTTIME) * float(speed[0])


def repeated(ask: "Callable[[], bytes]", patience_s: float) -> bytes:
    """Ask until it is answered, with pauses that grow; raise Trouble when that takes too long."""
    until, pause_s = time.monotonic() + patience_s, 0.5
    while True:
        try:
            return ask()
        except (OSError, http.client.HTTPException, Again) as error:
            if time.monotonic() + pause_s > until:
                says = str(error) or type(error).__name__
                raise Trouble(f"{says} (tried for {patience_s:g} s)") from error
        time.sleep(pause_s * random.uniform(0.5, 1))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def patience() -> float:
    """Return for how many seconds something is tried."""
    return float(SAID.get("CLOUDWHALE_PATIENCE_S", "60"))


def ask(
    method: str, url: str, headers: Mapping[str, str], body: bytes = b"", path: str = ""
) -> Answer:
    """Ask once; what is answered with 200 goes into a file where one is named."""
    to = urlsplit(url)
    secure = to.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    link = kind(to.netloc, timeout=ANSWERS_S)
    try:
        where = (to.path or "/") + (f"?{to.query}" if to.query else "")
        link.request(method, where, body or None, dict(headers))
        answer = link.getresponse()
        status, date = answer.status, answer.headers.get("Date", "")
        if path and status == 200:
            _keep(answer, path)
            return Answer(status, date, b"")
        return Answer(status, date, answer.read())
    finally:
        link.close()


def _keep(answer: http.client.HTTPResponse, path: str) -> None:
    wanted, size = answer.length, 0
    with open(path, "wb") as file:
        while piece := answer.read(PIECE):
            size += file.write(piece)
    if wanted not in (None, size):
        raise Again(f"{size} bytes came of {wanted}")


def _notes() -> str:
    return f"{os.path.dirname(os.path.abspath(__file__))}/told"


def kept() -> dict[str, float]:
    """Return the number that was used last, and when phases have begun."""
    try:
        with open(_notes()) as file:
            found: dict[str, float] = json.load(file)
            return found
    except (OSError, ValueError):
        return {}


def keep(known: dict[str, float]) -> None:
    """Remember that."""
    with open(_notes(), "w") as file:
        json.dump(known, file)


def moment(date: str) -> float:
    """Return the middle of the second that a header names."""
    return parsedate_to_datetime(date).timestamp() + 0.5


_NOTHING: Mapping[str, str] = {}


class Desk:
    """Answers for one machine; a cloud's own has its tags, its times and its store."""

    only_new: Mapping[str, str] = {}
    """Header of the request that must not replace anything."""

    # -- what a cloud has of its own --------------------------------------------------------------

    def tag(self, name: str) -> str:
        """Return what the machine was launched with under a name; empty: nothing."""
        raise Trouble(PART)

    def door(self) -> str:
        """Return who the machine is to the mailbox's store; empty: it tells none apart."""
        return ""

    def launched_at(self) -> float | None:
        """Return when its lease began to count; None where nobody says."""
        raise Trouble(PART)

    def url_of(self, key: str) -> str:
        """Return where an object of the mailbox is."""
        raise Trouble(PART)

    def headers(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> dict[str, str]:
        """Return headers with what proves who asks."""
        raise Trouble(PART)

    # -- the machine ------------------------------------------------------------------------------

    def about(self) -> None:
        """Print, as a shell reads it, what the machine's tags say, and how its clock goes."""
        began = steady()
        found = {name: self.tag(name) for name in TAGS}
        for name in ("node", "lease"):
            if not found[name]:
                raise Trouble(f"the metadata service shows no {self.called(name)} of this machine")
        found["gpus"] = found["gpus"] or "0"
        found["door"] = self.door()
        for name, value in found.items():
            print(f"export CLOUDWHALE_{name.upper()}={shlex.quote(value)}")
        ahead, there = self.clocks()
        print(f"ahead={ahead} store_now={there} left_s={self.left(found['lease'], ahead)}")
        keep({"watchdog": began})

    def called(self, name: str) -> str:
        """Return what a tag is called there, for a person."""
        raise Trouble(PART)

    def lease(self) -> None:
        """Print NUMBER:SECONDS, as the tag says it from the launch on, from now on."""
        said = self.tag("lease")
        print(f"{said.partition(':')[0]}:{self.left(said)}")

    def left(self, said: str, ahead_s: int = 0) -> int:
        """Return for how many seconds a lease still is, where the clock is ahead by some."""
        number, _, seconds = said.partition(":")
        launched_at = self.launched_at()
        gone_s = 0.0 if launched_at is None else max(0.0, now() - ahead_s - launched_at)
        if not number.isdecimal() or not seconds:
            raise Trouble(f"its {self.called('lease')} is not NUMBER:SECONDS but {said!r}")
        return max(0, int(float(seconds) - gone_s))

    # -- the mailbox ------------------------------------------------------------------------------

    def stored(self, method: str, key: str, body: bytes = b"", path: str = "") -> int:
        """Read an object into a file, or create one; return 200, or 404 and 412 where it is so."""
        url = self.url_of(key)
        only_new = self.only_new if method == "PUT" else _NOTHING

        def once() -> bytes:
            answer = ask(method, url, self.headers(method, url, only_new, body), body, path)
            if answer.status not in (200, 404, 412):
                # A new role is known everywhere after some seconds: 403 may become right, too.
                said = answer.body.decode(errors="replace")
                code = said.partition("<Code>")[2].partition("</Code>")[0]
                if code == "RequestTimeTooSkewed":  # what is wrong can be told all the same
                    OFF[0] = moment(answer.date) - now()
                host = urlsplit(url).netloc
                raise Again(f"{host} answers {answer.status} {code} to {method} {key}")
            return str(answer.status).encode()

        return int(repeated(once, patience()))

    def get(self, key: str, path: str) -> None:
        """Read an object of the mailbox into a file."""
        if self.stored("GET", key, path=path) != 200:
            raise Trouble(f"there is no {key} in {SAID['CLOUDWHALE_MAILBOX']}")

    def tell(self, *words: str) -> None:
        """Say how far the boot is: the next of the numbered documents, each created once.

        Several are said at once with `--` between them.
        """
        known, rest = kept(), [*words, "--"]
        while rest:
            end = rest.index("--")
            known["number"] = self._told(known, *rest[:end])
            rest = rest[end + 1 :]
            keep(known)

    def _told(
        self, known: dict[str, float], phase: str, state: str, took_s: str = "", *words: str
    ) -> int:
        """Say one thing; return its number."""
        if state == "begun":
            known.setdefault(phase, steady())
        elif not took_s and phase in known:
            took_s = str(round(steady() - known[phase], 3))
        body = json.dumps({
            "v": 1, "at": now(), "phase": phase, "state": state,
            "took_s": float(took_s) if took_s else None,
            "says": " ".join(" ".join(words).split())[:900],
        }).encode()  # fmt: skip
        number, status = int(known.get("number", 0)), 412
        door, node = SAID.get("CLOUDWHALE_DOOR", ""), SAID["CLOUDWHALE_NODE"]
        folder = f"boots/@{door}@{node}" if door else f"boots/{node}"
        while status == 412:  # there is one: ours, of which we got no answer
            number += 1
            status = self.stored("PUT", f"{folder}/{number:06d}.json", body)
        if status != 200:
            raise Trouble(f"there is no bucket {SAID['CLOUDWHALE_MAILBOX']}")
        return number

    def clock(self) -> None:
        """Print how many seconds this clock is ahead of the store's, and what time it is there."""
        print(*self.clocks())

    def clocks(self) -> tuple[int, int]:
        """Return the same."""
        url = self.url_of("")

        def once() -> bytes:
            try:
                return ask("GET", url, {}).date.encode()
            except ssl.SSLError:  # to a clock that is off by months no certificate holds
                return ask("GET", url.replace("https:", "http:", 1), {}).date.encode()

        there = moment(repeated(once, patience()).decode())
        return round(now() - there), round(there)

    def main(self, words: list[str]) -> int:
        """Do what a line says; 1 with a sentence on stderr where it cannot be done."""
        verbs: dict[str, Callable[..., None]] = {
            one.__name__: one for one in (self.about, self.clock, self.lease, self.get, self.tell)
        }
        try:
            verbs[words[0]](*words[1:])
        except (Trouble, OSError, ValueError) as error:
            print(error, file=sys.stderr)
            return 1
        return 0
