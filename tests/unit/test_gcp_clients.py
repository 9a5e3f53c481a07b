"""How Google's APIs are asked: what is imported when, with which credentials, from which thread."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from boxed_gcp import Box, boxed, stepped
from renting_gcp import a_request, an_offer

from cloudwhale.spi.errors import CloudwhaleError, Denied, Unreachable
from cloudwhale_providers.gcp.asking import code_of
from cloudwhale_providers.gcp.clients import Clients
from cloudwhale_providers.gcp.errors import Errand, failure, permission
from cloudwhale_providers.sandbox.compute.places import USER_ACCOUNT
from cloudwhale_providers.sandbox.endpoint import Weather

HEAVY = ("google.auth", "googleapiclient", "httplib2", "google_auth_httplib2", "requests")
LOOK = """
import sys
import cloudwhale_providers.gcp
print(*[name for name in {heavy!r} if name in sys.modules])
"""


def test_importing_the_provider_loads_nothing_of_googles() -> None:
    text = LOOK.format(heavy=HEAVY)
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def test_what_iam_calls_a_method() -> None:
    assert permission("compute", "instances.insert") == "compute.instances.create"
    assert permission("compute", "machineTypes.aggregatedList") == "compute.machineTypes.list"
    assert permission("iam", "projects.serviceAccounts.create") == "iam.serviceAccounts.create"
    assert permission("cloudresourcemanager", "projects.getIamPolicy") == (
        "resourcemanager.projects.getIamPolicy"
    )


def _refused(calls: Clients, **words: Any) -> CloudwhaleError:
    with pytest.raises(CloudwhaleError) as caught:
        calls.call("compute", "projects.get", **{"project": "cloudwhale-sandbox", **words})
    return caught.value


def test_without_credentials_the_command_that_makes_some_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    error = _refused(Clients())
    assert isinstance(error, Denied) and "credentials" in error.says
    assert "gcloud auth application-default login" in error.remedy
    with pytest.raises(Denied, match="credentials"):
        Clients().project()


def test_a_key_file_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.write_text("{}")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    error = _refused(Clients())
    assert isinstance(error, Denied) and "gcloud auth" in error.remedy


def test_nobody_at_the_endpoint_is_unknown() -> None:
    def nobody(limit_s: float) -> Any:
        raise ConnectionRefusedError("nobody listens")

    box = stepped()
    assert box.clients is not None
    calls = Clients("http://box", credentials=lambda: (None, ""), transport=nobody)
    assert isinstance(_refused(calls), Unreachable)


def test_a_word_that_the_method_does_not_have_is_our_mistake() -> None:
    box = stepped()
    assert box.clients is not None
    error = _refused(box.clients(), sise=3)
    assert isinstance(error, Denied) and "please report it" in error.remedy


def test_threads_ask_over_connections_of_their_own(tmp_path: Path) -> None:
    with boxed(tmp_path) as box:
        calls = Clients(box.endpoint.url)
        assert calls.project() == "cloudwhale-sandbox"
        assert calls.who() == USER_ACCOUNT
        names: list[str] = []

        def ask() -> None:
            for _ in range(5):
                answer = calls.call("compute", "projects.get", project="cloudwhale-sandbox")
                names.append(str(answer["name"]))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert names == ["cloudwhale-sandbox"] * 40


# -- projects that lack something ----------------------------------------------------------------


def _launch(box: Box, **said: Any) -> CloudwhaleError:
    with pytest.raises(CloudwhaleError) as caught:
        provider = box.provider("lab", **said)
        provider.launch(a_request("rental-1", an_offer(), box.clock.now() + 3600))
    return caught.value


@pytest.mark.parametrize(
    ("weather", "said", "code", "remedy"),
    [
        (
            Weather(closed_apis=frozenset({"compute.googleapis.com"})), {}, "SERVICE_DISABLED",
            "gcloud services enable compute.googleapis.com --project=cloudwhale-sandbox",
        ),
        (
            Weather(foreign_projects=frozenset({"others-1"})), {"project": "others-1"}, None,
            "others-1",
        ),
        (Weather(), {"project": "nobodys-1"}, None, "gcloud projects list"),
        (
            Weather(external_addresses=False), {}, "conditionNotMet",
            "external_address = false",
        ),
        (Weather(image=False), {}, "notFound", "`image` of [clouds.gcp]"),
        (Weather(), {"image": "no-such-family"}, "notFound", "gcloud compute images list"),
        (Weather(default_network=False), {}, None, "gcloud compute networks create default"),
        (
            Weather(), {"service_account": "nobody@x.iam.gserviceaccount.com"},
            "SERVICE_ACCOUNT_ACCESS_DENIED",
            "add-iam-policy-binding nobody@x.iam.gserviceaccount.com",
        ),
    ],
    ids=[
        "api", "others", "nobodys", "addresses", "images", "family", "network", "account",
    ],
)  # fmt: skip
def test_a_launch_names_what_mends_a_project(
    weather: Weather, said: dict[str, Any], code: str | None, remedy: str
) -> None:
    error = _launch(stepped(weather), **said)
    assert isinstance(error, Denied), error
    assert code is None or code_of(error) == code
    assert remedy in error.remedy, error


def test_without_external_addresses_a_machine_is_had_where_the_settings_say_so() -> None:
    box = stepped(Weather(external_addresses=False))
    provider = box.provider("lab", external_address=False)
    machine = provider.launch(a_request("rental-1", an_offer(), box.clock.now() + 3600))
    assert machine.state == "running"


def test_the_project_is_that_of_the_credentials_unless_the_settings_say_one(
    tmp_path: Path,
) -> None:
    with boxed(tmp_path) as box:
        assert json.loads((tmp_path / "key.json").read_text())["project_id"]
        provider = box.provider("lab", project="")
        assert provider.machines() == []


def test_what_the_library_says_with_its_cause_beside_it_is_told_as_a_sentence() -> None:
    from google.auth.exceptions import MalformedError

    malformed: Any = MalformedError  # which says no types
    error = malformed("Failed to load it", malformed("no key"))
    said = failure(error, Errand("compute.zones.list", "us-east4", "lab"))
    assert str(said).splitlines()[0] == "compute.zones.list in us-east4: Failed to load it"
