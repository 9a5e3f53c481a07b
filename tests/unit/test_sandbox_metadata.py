"""The metadata service answers as EC2's does, on a port for each machine."""

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from cloudwhale.clock import SystemClock
from cloudwhale_providers.sandbox.endpoint import Instance
from cloudwhale_providers.sandbox.guests import block, told_of
from cloudwhale_providers.sandbox.metadata import MetadataService, Trouble
from cloudwhale_providers.sandbox.told import Identity, Keys, documents

WHO = Identity(
    "i-1", "g5.xlarge", "us-east-1a", "us-east-1", "spot", {"cloudwhale:node": "rent-1"}, "hello"
)
TTL, TOKEN = "X-aws-ec2-metadata-token-ttl-seconds", "X-aws-ec2-metadata-token"


class Timed:
    now = 1000.0


@pytest.fixture
def service() -> Iterator[MetadataService]:
    found = MetadataService(lambda: Timed.now)
    yield found
    found.close()


def asked(
    url: str, path: str, verb: str = "GET", headers: Mapping[str, str] | None = None
) -> tuple[int, str]:
    link = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    try:
        link.request(verb, path, headers=dict(headers or {}))
        answer = link.getresponse()
        return answer.status, answer.read().decode()
    finally:
        link.close()


def a_token(url: str, ttl_s: str = "60") -> str:
    code, token = asked(url, "/latest/api/token", "PUT", {TTL: ttl_s})
    assert code == 200
    return token


def told(url: str, path: str) -> tuple[int, str]:
    return asked(url, path, headers={TOKEN: a_token(url)})


def test_who_shows_no_token_is_told_nothing(service: MetadataService) -> None:
    url = service.add("i-1", lambda: documents(WHO, {}))
    assert asked(url, "/latest/meta-data/instance-id")[0] == 401
    assert asked(url, "/latest/meta-data/instance-id", headers={TOKEN: "made up"})[0] == 401
    assert told(url, "/latest/meta-data/instance-id") == (200, "i-1")


@pytest.mark.parametrize("ttl_s", ["", "0", "21601", "many"])
def test_a_token_lives_between_a_second_and_six_hours(service: MetadataService, ttl_s: str) -> None:
    url = service.add("i-1", lambda: documents(WHO, {}))
    assert asked(url, "/latest/api/token", "PUT", {TTL: ttl_s})[0] == 400


def test_a_token_runs_out(service: MetadataService, monkeypatch: pytest.MonkeyPatch) -> None:
    url = service.add("i-1", lambda: documents(WHO, {}))
    token = a_token(url, "60")
    monkeypatch.setattr(Timed, "now", 1061.0)
    assert asked(url, "/latest/meta-data/instance-id", headers={TOKEN: token})[0] == 401


def test_a_forwarded_question_gets_no_token(service: MetadataService) -> None:
    url = service.add("i-1", lambda: documents(WHO, {}))
    headers = {TTL: "60", "X-Forwarded-For": "10.0.0.1"}
    assert asked(url, "/latest/api/token", "PUT", headers)[0] == 400


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("instance-type", "g5.xlarge"),
        ("placement/availability-zone", "us-east-1a"),
        ("placement/region", "us-east-1"),
        ("tags/instance/cloudwhale:node", "rent-1"),
        ("tags/instance/", "cloudwhale:node"),
        ("tags/instance", "cloudwhale:node"),
        ("placement/", "availability-zone\nregion"),
    ],
)
def test_a_machine_learns_who_it_is(service: MetadataService, path: str, text: str) -> None:
    url = service.add("i-1", lambda: documents(WHO, {}))
    assert told(url, f"/latest/meta-data/{path}") == (200, text)


def test_a_machine_reads_its_user_data_and_identity(service: MetadataService) -> None:
    url = service.add("i-1", lambda: documents(WHO, {}))
    assert told(url, "/latest/user-data") == (200, "hello")
    identity = json.loads(told(url, "/latest/dynamic/instance-identity/document")[1])
    assert identity["region"] == "us-east-1"


def test_each_machine_is_told_of_itself_alone(service: MetadataService) -> None:
    other = Identity("i-2", "g5.xlarge", "us-east-1b", "us-east-1", "spot", {})
    one = service.add("i-1", lambda: documents(WHO, {}))
    two = service.add("i-2", lambda: documents(other, {}))
    token = a_token(one)
    assert told(two, "/latest/meta-data/instance-id") == (200, "i-2")
    assert asked(two, "/latest/meta-data/instance-id", headers={TOKEN: token})[0] == 401


def test_a_notice_appears_when_it_is_given(service: MetadataService) -> None:
    notices: dict[str, str] = {}
    url = service.add("i-1", lambda: documents(WHO, notices))
    assert told(url, "/latest/meta-data/spot/instance-action")[0] == 404
    notices["spot/instance-action"] = "{}"
    assert told(url, "/latest/meta-data/spot/instance-action") == (200, "{}")


def test_a_machine_that_is_gone_is_not_answered(service: MetadataService) -> None:
    url = service.add("i-1", lambda: documents(WHO, {}))
    service.remove("i-1")
    service.remove("i-1")
    with pytest.raises(OSError):
        asked(url, "/latest/meta-data/instance-id")


def an_instance(**fields: object) -> Instance:
    given = {"launched_at": 0.0, "tags": {}, "user_data": "", **fields}
    return Instance("i-1", "g5.xlarge", "us-east-1", "us-east-1a", "spot", **given)  # type: ignore[arg-type]


def test_a_rebalance_comes_before_the_notice_and_the_notice_says_when() -> None:
    one = an_instance(rebalance_at=10.0, noticed_at=20.0, goes_at=140.0)
    assert told_of(one, 5.0) == {}
    assert set(told_of(one, 10.0)) == {"events/recommendations/rebalance"}
    noticed = told_of(one, 20.0)
    action = json.loads(noticed["spot/instance-action"])
    assert action == {"action": "terminate", "time": "1970-01-01T00:02:20Z"}


def test_what_an_agent_needs_is_read_from_the_user_data() -> None:
    text = (
        '#!/bin/sh\n# cloudwhale: begin\n# cloudwhale: {"mailbox": "s3://b/m"}\n# cloudwhale: end'
    )
    assert block(text) == {"mailbox": "s3://b/m"}


@pytest.mark.parametrize("text", ["", "#!/bin/sh\n", "# cloudwhale: {}", "# cloudwhale: {nonsense"])
def test_user_data_that_says_nothing_boots_nothing(text: str) -> None:
    with pytest.raises(ValueError):
        block(text)


KEYS = Keys("agent", "ASIADUMMY", "dummy", "token", until=4600.0, updated_at=1000.0)


def test_a_machine_with_a_role_is_told_its_keys_and_others_have_none(
    service: MetadataService,
) -> None:
    who = replace(WHO, profile="arn:aws:iam::123456789012:instance-profile/agent")
    url = service.add("i-1", lambda: documents(who, {}, "10.0.0.2", KEYS))
    assert told(url, "/latest/meta-data/iam/security-credentials/") == (200, "agent")
    keys = json.loads(told(url, "/latest/meta-data/iam/security-credentials/agent")[1])
    assert keys["Code"] == "Success" and keys["AccessKeyId"] == "ASIADUMMY"
    assert keys["Expiration"] == "1970-01-01T01:16:40Z"
    assert who.profile in told(url, "/latest/meta-data/iam/info")[1]
    other = service.add("i-2", lambda: documents(WHO, {}))
    assert told(other, "/latest/meta-data/iam/security-credentials/")[0] == 404


def test_tags_are_found_by_names_as_a_url_has_them(service: MetadataService) -> None:
    url = service.add("i-1", lambda: documents(WHO, {}))
    path = "/latest/meta-data/tags/instance/cloudwhale%3Anode"
    assert told(url, path) == (200, "rent-1")


@pytest.mark.parametrize(("version", "code"), [("2021-03-23", 200), ("1.0", 200), ("newest", 404)])
def test_older_versions_answer_alike(service: MetadataService, version: str, code: int) -> None:
    url = service.add("i-1", lambda: documents(WHO, {}))
    assert told(url, f"/{version}/meta-data/instance-id")[0] == code


def test_a_service_in_trouble_answers_late_or_with_an_error(service: MetadataService) -> None:
    trouble = [Trouble(code=500)]
    url = service.add("i-1", lambda: documents(WHO, {}), trouble=lambda: trouble[0])
    assert asked(url, "/latest/api/token", "PUT", {TTL: "60"})[0] == 500
    trouble[0] = Trouble(delay_s=0.2)
    clock = SystemClock()
    began = clock.steady()
    assert told(url, "/latest/meta-data/instance-id") == (200, "i-1")
    assert clock.steady() - began >= 0.4  # a token, and the document
