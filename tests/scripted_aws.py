"""AWS over HTTP on loopback for tests: moto answers, but for what a test says otherwise."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

import pytest

from cloudwhale_providers.aws.clients import Clients
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.moto_cloud import MotoCloud
from cloudwhale_providers.sandbox.endpoint.web import Server

ACCOUNT = "123456789012"
"""Moto's own."""
_SCOPE = re.compile(r"Credential=[^/]+/[0-9]+/([^/]+)/([^/]+)/aws4_request")
_S3 = {"HEAD": "HeadBucket", "PUT": "PutObject", "DELETE": "DeleteObject", "GET": "GetObject"}
_SCHEDULER = {"GET": "Get", "POST": "Create", "PUT": "Update", "DELETE": "Delete"}


@dataclass(frozen=True)
class Verb:
    """What was asked: `ec2`, `DescribeRegions`, `us-east-1`."""

    service: str
    name: str
    region: str
    words: Mapping[str, str] = field(default_factory=dict[str, str])


Scripted = Callable[[Verb], Answer | None]
"""None: moto answers."""


def verb_of(asked: Asked) -> Verb:
    """Return what a request asks for."""
    scope = _SCOPE.search(asked.headers.get("authorization", ""))
    region, service = (scope[1], scope[2]) if scope else ("", "")
    target = asked.headers.get("x-amz-target", "")
    if target:
        words = {key: str(value) for key, value in json.loads(asked.body or b"{}").items()}
        return Verb(service, target.rpartition(".")[2], region, words)
    path, _, query = asked.target.partition("?")
    if service == "s3":
        name = "GetBucketLocation" if "location" in query else _S3[asked.method]
        owner = asked.headers.get("x-amz-expected-bucket-owner", "")
        return Verb(service, name, region, {"Path": path, "Owner": owner})
    if service == "scheduler":
        return Verb(service, _of_scheduler(asked.method, path), region, {"Path": path})
    if not service:
        return Verb("", "", "", {"Path": path})
    form = {key: values[0] for key, values in parse_qs(asked.body.decode()).items()}
    return Verb(service, form.get("Action", ""), region, form)


def _of_scheduler(method: str, path: str) -> str:
    what = "ScheduleGroup" if path.startswith("/schedule-groups") else "Schedule"
    if method == "GET" and path.rstrip("/").count("/") == 1:
        return f"List{what}s"
    return _SCHEDULER[method] + what


def refusal(verb: Verb, code: str, says: str = "no", status: int = 400) -> Answer:
    """Return an error as the verb's own service says it."""
    inner = f"<Code>{escape(code)}</Code><Message>{escape(says)}</Message>"
    xml = {"Content-Type": "text/xml"}
    if verb.service == "ec2":
        body = f"<Response><Errors><Error>{inner}</Error></Errors></Response>"
    elif verb.service in ("iam", "sts"):
        body = f"<ErrorResponse><Error><Type>Sender</Type>{inner}</Error></ErrorResponse>"
    elif verb.service == "s3":
        body = "" if verb.name == "HeadBucket" else f"<Error>{inner}</Error>"
    else:
        told = {"Content-Type": "application/json", "x-amzn-ErrorType": code}
        said = json.dumps({"__type": code, "message": says}).encode()
        return Answer(status, told, said)
    return Answer(status, xml, body.encode())


def said(document: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
    """Return a JSON answer."""
    told = {"Content-Type": "application/x-amz-json-1.1", **(headers or {})}
    return Answer(200, told, json.dumps(document).encode())


class ScriptedAws:
    """An account at moto, whose answers a test can replace; there is one at a time."""

    def __init__(self) -> None:
        self._moto = MotoCloud()
        self._scripts: list[Scripted] = []
        self.asked: list[Verb] = []
        """All that was asked since `forget`."""

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Give the URL that it listens on."""
        server = Server(self._answer)
        thread = Thread(target=server.serve_forever, name="scripted-aws")
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.stop()
            thread.join()

    def unscript(self) -> None:
        """Let moto answer everything again."""
        self._scripts.clear()
        self.asked.clear()

    def forget(self) -> None:
        """Empty the account: moto reads its catalogues anew then, which takes seconds."""
        self.unscript()
        self._moto.answer(Asked("POST", "/moto-api/reset", {}, b""))

    def script(self, answers: Scripted) -> None:
        """Ask this first from now on."""
        self._scripts.insert(0, answers)

    def refuse(self, name: str, code: str, says: str = "no", status: int = 400) -> None:
        """Refuse a verb from now on."""
        self.script(lambda verb: refusal(verb, code, says, status) if verb.name == name else None)

    def refuse_all(self, code: str, says: str = "no", status: int = 400) -> None:
        """Refuse everything from now on."""
        self.script(lambda verb: refusal(verb, code, says, status))

    def says(self, name: str, document: Mapping[str, Any]) -> None:
        """Answer a verb of a service that speaks JSON with this from now on."""
        self.script(lambda verb: said(document) if verb.name == name else None)

    def counted(self, name: str) -> int:
        """Return how often a verb was asked since `forget`."""
        return sum(verb.name == name for verb in list(self.asked))

    def _answer(self, asked: Asked) -> Answer:
        verb = verb_of(asked)
        self.asked.append(verb)
        for script in list(self._scripts):
            found = script(verb)
            if found is not None:
                return found
        if verb.service == "servicequotas":  # moto knows none of EC2's
            return said({"Quota": {"QuotaCode": verb.words.get("QuotaCode", ""), "Value": 512.0}})
        return self._moto.answer(asked)


@contextmanager
def an_account(region: str = "us-east-1") -> Iterator[tuple[ScriptedAws, pytest.MonkeyPatch]]:
    """Give an account that this process's environment leads to."""
    aws = ScriptedAws()
    with aws.listening() as url, pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_ENDPOINT_URL", url)
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_REGION", region)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_CONFIG_FILE", "/nonexistent")
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
        yield aws, patch


def hasty_clients() -> Clients:
    """Return clients that ask once."""
    return Clients(attempts=1, answer_s=20.0)
