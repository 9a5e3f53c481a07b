"""The metadata service answers as Compute Engine's does, to who asks as one must."""

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from cloudwhale_providers.gcp_notices import GcpNotices
from cloudwhale_providers.sandbox.compute.places import MACHINE_ACCOUNT, PROJECT
from cloudwhale_providers.sandbox.endpoint import Instance
from cloudwhale_providers.sandbox.metadata import MetadataService, Trouble
from cloudwhale_providers.sandbox.metadata_gce import gce_talk
from cloudwhale_providers.sandbox.told_gce import Bearer, Known, tree_of

NOON = 1_800_000_000.0
ATTRIBUTES = {"user-data": "#!/bin/sh\n", "cloudwhale-node": "rent-1"}
KNOWN = Known(ATTRIBUTES, bearer=lambda: Bearer("a-token", 3000.0))
ONE = Instance(
    "42", "g2-standard-4", "us-central1", "us-central1-a", "spot", {}, "", NOON, name="cw-1"
)


class Machine:
    """What its service tells; `now` and `one` may change meanwhile."""

    def __init__(self) -> None:
        self.now, self.one, self.known = NOON, ONE, KNOWN

    def tree(self) -> Mapping[str, Any]:
        return tree_of(self.one, self.known, self.now)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def service(machine: Machine) -> Iterator[MetadataService]:
    found = MetadataService(lambda: machine.now)
    yield found
    found.close()


@pytest.fixture
def url(service: MetadataService, machine: Machine) -> str:
    return service.serve("cw-1", gce_talk(machine.tree))


def asked(
    url: str, path: str, headers: Mapping[str, str] | None = None
) -> tuple[int, str, dict[str, str]]:
    said = {"Metadata-Flavor": "Google"} if headers is None else dict(headers)
    link = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    try:
        link.request("GET", path, headers=said)
        answer = link.getresponse()
        return answer.status, answer.read().decode(), dict(answer.headers)
    finally:
        link.close()


def told(url: str, path: str) -> str:
    status, text, headers = asked(url, f"/computeMetadata/v1/{path}")
    assert status == 200
    assert headers["Metadata-Flavor"] == "Google"
    return text


@pytest.mark.parametrize(
    "headers",
    [{}, {"Metadata-Flavor": "Other"}, {"Metadata-Flavor": "Google", "X-Forwarded-For": "1"}],
)
def test_who_does_not_say_the_word_is_told_nothing(url: str, headers: Mapping[str, str]) -> None:
    assert asked(url, "/computeMetadata/v1/instance/name", headers)[0] == 403


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("instance/name", "cw-1"),
        ("instance/id", "42"),
        ("instance/zone", "projects/123456789012/zones/us-central1-a"),
        ("instance/machine-type", "projects/123456789012/machineTypes/g2-standard-4"),
        ("instance/attributes/cloudwhale-node", "rent-1"),
        ("instance/attributes/", "cloudwhale-node\nuser-data\n"),
        ("instance/scheduling/preemptible", "TRUE"),
        ("instance/preempted", "FALSE"),
        ("instance/maintenance-event", "NONE"),
        ("instance/service-accounts/", f"default/\n{MACHINE_ACCOUNT}/\n"),
        ("instance/service-accounts/default/email", MACHINE_ACCOUNT),
        ("project/project-id", PROJECT),
        ("", "instance/\nproject/\n"),
    ],
)
def test_a_machine_learns_who_it_is(url: str, path: str, text: str) -> None:
    assert told(url, path) == text


def test_what_is_not_there_is_missed_and_a_folder_has_a_slash(url: str) -> None:
    assert asked(url, "/computeMetadata/v1/instance/attributes/nothing")[0] == 404
    assert asked(url, "/computeMetadata/v1/instance/name/more")[0] == 404
    assert asked(url, "/latest/meta-data/")[0] == 404
    status, _, headers = asked(url, "/computeMetadata/v1/instance/attributes")
    assert (status, headers["Location"]) == (301, "/computeMetadata/v1/instance/attributes/")


def test_clients_look_at_the_root_whether_it_is_google(url: str) -> None:
    status, text, headers = asked(url, "/")
    assert (status, text, headers["Metadata-Flavor"]) == (200, "computeMetadata/\n", "Google")


def test_a_whole_tree_is_json_in_its_own_spelling_without_tokens(url: str) -> None:
    found = json.loads(told(url, "instance/?recursive=True"))
    assert found["machineType"].endswith("g2-standard-4")
    assert found["id"] == 42
    assert found["attributes"] == ATTRIBUTES
    assert found["scheduling"]["onHostMaintenance"] == "TERMINATE"
    assert found["networkInterfaces"][0]["ip"] == "127.0.0.1"
    account = found["serviceAccounts"][MACHINE_ACCOUNT]
    assert account["email"] == MACHINE_ACCOUNT and account["aliases"] == ["default"]
    assert "token" not in account
    lines = told(url, "instance/scheduling/?recursive=true&alt=text")
    assert lines.splitlines()[0] == "automatic-restart FALSE"


def test_attributes_keep_their_own_names_wherever_the_tree_is_entered(url: str) -> None:
    """As cloud-init asks for them: it looks for `user-data`."""
    for path in ("instance/attributes/?recursive=True", "instance/?recursive=True"):
        found = json.loads(told(url, path))
        found = found.get("attributes", found)
        assert any("-" in name for name in found), found


def test_a_token_is_given_to_who_has_an_account(url: str, machine: Machine) -> None:
    path = "instance/service-accounts/default/token"
    found = json.loads(told(url, f"{path}?scopes=anything"))
    assert found == {"access_token": "a-token", "expires_in": 3000, "token_type": "Bearer"}
    machine.known = replace(KNOWN, account="")
    assert asked(url, f"/computeMetadata/v1/{path}")[0] == 404


def test_who_waits_is_told_of_a_change_when_it_comes(url: str, machine: Machine) -> None:
    path = "/computeMetadata/v1/instance/preempted"
    etag = asked(url, path)[2]["ETag"]
    machine.one = replace(ONE, noticed_at=NOON + 10.0, goes_at=NOON + 40.0)
    heard: list[str] = []
    waiting = threading.Thread(
        target=lambda: heard.append(
            asked(url, f"{path}?wait_for_change=true&timeout_sec=60&last_etag={etag}")[1]
        )
    )
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()  # the notice is not given yet
    machine.now = NOON + 10.0
    waiting.join(10)
    assert heard == ["TRUE"]


def test_who_has_seen_something_else_is_answered_at_once(url: str, machine: Machine) -> None:
    machine.one = replace(ONE, noticed_at=NOON)
    path = "/computeMetadata/v1/instance/preempted?wait_for_change=true&last_etag=other"
    assert asked(url, path)[1] == "TRUE"


def test_a_wait_ends_in_time_and_when_the_machine_ends(url: str, service: MetadataService) -> None:
    path = "/computeMetadata/v1/instance/preempted?wait_for_change=true"
    assert asked(url, f"{path}&timeout_sec=1")[1] == "FALSE"
    heard: list[object] = []

    def wait() -> None:
        try:
            heard.append(asked(url, f"{path}&timeout_sec=600")[1])
        except (OSError, http.client.HTTPException):
            heard.append("hung up")

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(0.3)
    service.remove("cw-1")
    waiting.join(10)
    assert heard == ["hung up"]


def test_a_service_in_trouble_answers_with_an_error(
    service: MetadataService, machine: Machine
) -> None:
    url = service.serve("cw-2", gce_talk(machine.tree), trouble=lambda: Trouble(code=503))
    assert asked(url, "/computeMetadata/v1/instance/name")[0] == 503


def test_an_agent_hears_there_that_its_machine_goes(url: str, machine: Machine) -> None:
    notices = GcpNotices(urlsplit(url).netloc)
    assert notices.look() == ()
    machine.one = replace(ONE, maintained_at=NOON + 60.0)
    machine.known = replace(KNOWN, attributes={**ATTRIBUTES, "cloudwhale-notice-s": "120"})
    maintained = GcpNotices(urlsplit(url).netloc).look()
    assert "maintain" in maintained[0].says
    machine.one = replace(ONE, noticed_at=NOON)
    assert GcpNotices(urlsplit(url).netloc).look()[0].goes_in_s == 120.0
