#!/usr/bin/python3 -IS
"""What a machine asks while it boots, of its mailbox in S3 and of its metadata service.

store about | clock | lease | get KEY FILE | tell PHASE STATE [TOOK_S] [WORDS] [-- PHASE ...]

User data carries this text to the machine: the standard library alone, nothing secret. What stands
in the environment is described in user_data.py.
"""

import hashlib
import hmac
import http.client
import json
import os
import random
import shlex
import ssl
import sys
import time
from calendar import timegm
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

METADATA = "http://169.254.169.254"
ANSWERS_S = 10.0
LONGEST_PAUSE_S = 8.0
PIECE = 1 << 20
TAGS = "node", "lease", "installation", "gpus", "role"
SAID = os.environ
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
        link.request(method, to.path or "/", body or None, dict(headers))
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


# -- the metadata service ---------------------------------------------------------------------


@cache
def session(base: str) -> str:
    """Return the word that the metadata service wants to be shown."""
    ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
    answer = ask("PUT", f"{base}/latest/api/token", ttl)
    if answer.status != 200:
        raise Again(f"the metadata service answers {answer.status}")
    return answer.body.decode("latin-1")


def told(path: str) -> bytes:
    """Return what the metadata service says at a path; empty where it has nothing."""
    base = SAID.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", METADATA).rstrip("/")

    def once() -> bytes:
        try:
            shown = {"X-aws-ec2-metadata-token": session(base)}
            found = ask("GET", f"{base}/latest/{quote(path)}", shown)
        except OSError as error:
            raise Again(f"the metadata service does not answer: {error}") from error
        if found.status not in (200, 404):
            raise Again(f"the metadata service answers {found.status}")
        return found.body if found.status == 200 else b""

    return repeated(once, patience())


def tag(name: str) -> str:
    """Return one of the machine's tags; empty: it has none of that name."""
    return told(f"meta-data/tags/instance/cloudwhale:{name}").decode().strip()


def about() -> None:
    """Print, as a shell reads it, what the machine's tags say, and how its clock goes."""
    began = steady()
    found = {name: tag(name) for name in TAGS}
    for name in ("node", "lease"):
        if not found[name]:
            raise Trouble(f"the metadata service shows no tag cloudwhale:{name} of this machine")
    found["gpus"] = found["gpus"] or "0"
    role = found.pop("role")  # IAM knows this machine by it and by its id: `aws:userid`
    found["door"] = f"{role}:{told('meta-data/instance-id').decode()}" if role else ""
    for name, value in found.items():
        print(f"export CLOUDWHALE_{name.upper()}={shlex.quote(value)}")
    ahead, there = clocks()
    print(f"ahead={ahead} store_now={there} left_s={left(found['lease'], ahead)}")
    keep({"watchdog": began})


def lease() -> None:
    """Print NUMBER:SECONDS, as the tag says it from the launch on, from now on."""
    said = tag("lease")
    print(f"{said.partition(':')[0]}:{left(said)}")


def left(said: str, ahead_s: int = 0) -> int:
    """Return for how many seconds a lease still is, where the clock is ahead by some."""
    number, _, seconds = said.partition(":")
    launched = json.loads(told("dynamic/instance-identity/document") or b"{}").get("pendingTime")
    gone_s = 0.0
    if launched:
        gone_s = max(0.0, now() - ahead_s - timegm(time.strptime(launched, "%Y-%m-%dT%H:%M:%SZ")))
    if not number.isdecimal() or not seconds:
        raise Trouble(f"its tag cloudwhale:lease is not NUMBER:SECONDS but {said!r}")
    return max(0, int(float(seconds) - gone_s))


@cache
def keys() -> dict[str, Any]:
    """Return the credentials of the machine's role."""
    folder = "meta-data/iam/security-credentials/"

    def once() -> bytes:
        role = told(folder).decode().strip()
        found = told(folder + role) if role else b""
        if not found:
            raise Again("this machine has no role: `instance_profile` of [clouds.aws] names one")
        return found

    found: dict[str, Any] = json.loads(repeated(once, patience()))
    return found


# -- the mailbox ------------------------------------------------------------------------------


def url_of(key: str) -> str:
    """Return where an object of the mailbox is."""
    bucket, _, prefix = SAID["CLOUDWHALE_MAILBOX"].removeprefix("s3://").partition("/")
    path = quote("/".join(part for part in (prefix.strip("/"), key) if part), safe="/-_.~")
    endpoint = SAID.get("AWS_ENDPOINT_URL", "").rstrip("/")
    host = f"s3.{SAID['CLOUDWHALE_REGION']}.amazonaws.com"
    if not endpoint and "." not in bucket:
        return f"https://{bucket}.{host}/{path}"
    return f"{endpoint or f'https://{host}'}/{bucket}/{path}"


def signed(
    method: str, url: str, headers: Mapping[str, str], body: bytes, role: Mapping[str, Any]
) -> dict[str, str]:
    """Return headers with a signature: AWS Signature Version 4, of S3."""
    to, at = urlsplit(url), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now() + OFF[0]))
    scope = [at[:8], SAID["CLOUDWHALE_REGION"], "s3", "aws4_request"]
    digest = hashlib.sha256(body).hexdigest()
    own = {"host": to.netloc, "x-amz-content-sha256": digest, "x-amz-date": at, **headers}
    if role.get("Token"):
        own["x-amz-security-token"] = role["Token"]
    names = ";".join(sorted(own))
    lines = [f"{name}:{own[name]}" for name in sorted(own)]
    asked = "\n".join([method, to.path, "", *lines, "", names, digest]).encode()
    text = ["AWS4-HMAC-SHA256", at, "/".join(scope), hashlib.sha256(asked).hexdigest()]
    key = f"AWS4{role['SecretAccessKey']}".encode()
    for word in [*scope, "\n".join(text)]:
        key = hmac.new(key, word.encode(), "sha256").digest()
    own["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={role['AccessKeyId']}/{'/'.join(scope)}, "
        f"SignedHeaders={names}, Signature={key.hex()}"
    )
    return own


def stored(method: str, key: str, body: bytes = b"", path: str = "") -> int:
    """Read an object into a file, or create one; return 200, or 404 and 412 where that is so."""
    url, only_new = url_of(key), {"if-none-match": "*"} if method == "PUT" else {}

    def once() -> bytes:
        answer = ask(method, url, signed(method, url, only_new, body, keys()), body, path)
        if answer.status not in (200, 404, 412):
            # A new role is known everywhere after some seconds: 403 may become right, too.
            said = answer.body.decode(errors="replace")
            code = said.partition("<Code>")[2].partition("</Code>")[0]
            if code == "RequestTimeTooSkewed":  # what is wrong can be told all the same
                OFF[0] = moment(answer.date) - now()
            raise Again(f"{urlsplit(url).netloc} answers {answer.status} {code} to {method} {key}")
        return str(answer.status).encode()

    return int(repeated(once, patience()))


def get(key: str, path: str) -> None:
    """Read an object of the mailbox into a file."""
    if stored("GET", key, path=path) != 200:
        raise Trouble(f"there is no {key} in {SAID['CLOUDWHALE_MAILBOX']}")


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


def tell(*words: str) -> None:
    """Say how far the boot is: the next of the numbered documents, each created once.

    Several are said at once with `--` between them.
    """
    known, rest = kept(), [*words, "--"]
    while rest:
        end = rest.index("--")
        known["number"] = _told(known, *rest[:end])
        rest = rest[end + 1 :]
        keep(known)


def _told(known: dict[str, float], phase: str, state: str, took_s: str = "", *words: str) -> int:
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
        status = stored("PUT", f"{folder}/{number:06d}.json", body)
    if status != 200:
        raise Trouble(f"there is no bucket {SAID['CLOUDWHALE_MAILBOX']}")
    return number


def moment(date: str) -> float:
    """Return the middle of the second that a header names."""
    return parsedate_to_datetime(date).timestamp() + 0.5


def clock() -> None:
    """Print by how many seconds this machine's clock is ahead, and what time it is at the store."""
    print(*clocks())


def clocks() -> tuple[int, int]:
    """Return the same."""

    url = url_of("")

    def once() -> bytes:
        try:
            return ask("GET", url, {}).date.encode()
        except ssl.SSLError:  # to a clock that is off by months no certificate holds
            return ask("GET", url.replace("https:", "http:", 1), {}).date.encode()

    there = moment(repeated(once, patience()).decode())
    return round(now() - there), round(there)


VERBS = {one.__name__: one for one in (about, clock, lease, get, tell)}


def main(words: list[str]) -> int:
    """Do what a line says; 1 with a sentence on stderr where it cannot be done."""
    try:
        VERBS[words[0]](*words[1:])
    except (Trouble, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
