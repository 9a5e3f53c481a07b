"""Mailboxes in Cloud Storage: created once whatever fails on the way, refusals in its own words."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import google.auth
import pytest
import small_gs
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError

from cloudwhale.agent.address import LOOPBACK, own_address
from cloudwhale.mailbox.kinds import endpoint_of, kind_of
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.mailbox.sources import Source
from cloudwhale.spi.errors import Denied, SettingsError, StoreUnusable
from cloudwhale_providers.gcp import regions_of_buckets
from cloudwhale_providers.sandbox.storage import Storage


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    with small_gs.serving(monkeypatch) as serves:
        yield serves


def test_who_was_told_of_an_error_and_had_written_all_the_same_has_written(
    storage: Storage,
) -> None:
    objects = open_objects(small_gs.URL)
    storage.fault("PutObject", "error-after-success")
    assert objects.create("claim", b"mine")
    storage.fault("PutObject", "error-after-success")
    assert not objects.create("claim", b"another's")
    assert objects.get("claim") == b"mine"


def test_a_refusal_says_who_may_not_do_what(storage: Storage) -> None:
    storage.knows = lambda token: False
    with pytest.raises(StoreUnusable) as caught:
        open_objects(small_gs.URL).create("hello", b"")
    assert "the store refuses us" in caught.value.says
    assert "cloudwhale doctor" in caught.value.remedy


def test_an_input_that_may_not_be_read_says_what_the_role_needs(storage: Storage) -> None:
    storage.knows = lambda token: False
    with pytest.raises(Denied) as caught:
        Source("gs://team/data/").listed()
    assert "storage.objects.list" in caught.value.remedy


@pytest.mark.parametrize(
    "holds", [None, '{"type": "service_account"}'], ids=["no-file", "no-key-in-it"]
)
def test_a_key_file_of_no_use_is_told_as_such_and_not_as_a_wrong_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, holds: str | None
) -> None:
    file = tmp_path / "key.json"
    if holds is not None:
        file.write_text(holds)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    with pytest.raises(SettingsError) as caught:
        open_objects("gs://team/mailbox")
    assert "service account file" in caught.value.says
    assert "credentials" in caught.value.remedy
    assert "s3://" not in caught.value.remedy


def test_an_address_without_a_scheme_is_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "127.0.0.1:4443/")
    assert endpoint_of("gs://b/f") == "http://127.0.0.1:4443"
    assert own_address("gs://b/f") == LOOPBACK
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    assert endpoint_of("gs://b/f") == ""


# -- where a bucket lies ---------------------------------------------------------------------

BUCKETS: dict[str, dict[str, str]] = {
    "one": {"location": "US-CENTRAL1", "locationType": "region"},
    "several": {"location": "US", "locationType": "multi-region"},
}


class Told(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = BUCKETS.get(self.path.partition("?")[0].removeprefix("/storage/v1/b/"))
        body = json.dumps(found or {}).encode()
        self.send_response(200 if found else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *words: object) -> None: ...


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Told)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"127.0.0.1:{server.server_address[1]}")
    regions_of_buckets.region_of.cache_clear()
    yield
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("bucket", "region"), [("one", "us-central1"), ("several", ""), ("anothers", "")]
)
def test_the_region_of_a_bucket_is_asked_and_of_several_none_is_said(
    says: None, monkeypatch: pytest.MonkeyPatch, bucket: str, region: str
) -> None:
    credentials: Any = AnonymousCredentials()  # type: ignore[no-untyped-call]

    def found(**words: object) -> tuple[Any, str]:
        return credentials, "project"

    monkeypatch.setattr(google.auth, "default", found)
    assert kind_of("gs").region_of(bucket) == region


def test_without_credentials_nobody_says_where_a_bucket_lies(
    says: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(**words: object) -> None:
        raise DefaultCredentialsError("none")  # type: ignore[no-untyped-call]

    monkeypatch.setattr(google.auth, "default", nobody)
    assert kind_of("gs").region_of("one") == ""
