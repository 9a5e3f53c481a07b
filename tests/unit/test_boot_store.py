"""What a machine asks its mailbox with while it boots: signatures, numbers, patience, time."""

import json
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cloudwhale import clock
from cloudwhale.mailbox.documents import BootTold
from cloudwhale_providers import machine_asking, machine_s3
from cloudwhale_providers.aws import machine_store

ROLE = {"AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "dummy", "Token": "a token"}


@pytest.fixture(autouse=True)
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in {
        "CLOUDWHALE_MAILBOX": "s3://bucket/lab", "CLOUDWHALE_REGION": "eu-west-1",
        "CLOUDWHALE_NODE": "rent-1", "CLOUDWHALE_PATIENCE_S": "0.1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setattr(machine_store, "keys", lambda: ROLE)
    yield
    machine_asking.OFF[0] = 0.0


class Store(ThreadingHTTPServer):
    """A store that answers as it was told to, one answer after another."""

    daemon_threads = True

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes, dict[str, str]]] = []
        self.asked: list[tuple[str, str, bytes, dict[str, str]]] = []
        super().__init__(("127.0.0.1", 0), Clerk)


class Clerk(BaseHTTPRequestHandler):
    server: Store

    def log_message(self, format: str, *words: object) -> None:
        pass

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path, body, dict(self.headers)))
        status, body, headers = self.server.answers.pop(0)
        self.send_response_only(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = _answer


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    made = Store()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{made.server_address[1]}")
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:9000"])
@pytest.mark.parametrize("role", [ROLE, {**ROLE, "Token": ""}])
@pytest.mark.parametrize(("method", "body"), [("GET", b""), ("PUT", b'{"v": 1}')])
def test_a_signature_is_what_aws_itself_would_write(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, role: dict[str, str], method: str, body: bytes
) -> None:
    auth = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    url = machine_s3.url_of("boots/a node+(1)~é/000001.json")
    headers = {"if-none-match": "*"} if method == "PUT" else {}
    theirs = AWSRequest(method=method, url=url, data=body, headers=headers)
    keys = Credentials(role["AccessKeyId"], role["SecretAccessKey"], role["Token"] or None)
    auth.S3SigV4Auth(keys, "s3", "eu-west-1").add_auth(theirs)
    date = datetime.strptime(theirs.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    at = date.timestamp()
    monkeypatch.setattr(machine_s3, "now", lambda: at)
    ours = machine_s3.signed(method, url, headers, body, role)
    assert ours["authorization"] == theirs.headers["Authorization"]


@pytest.mark.parametrize(
    ("mailbox", "endpoint", "url"),
    [
        ("s3://lab/a/b/", "", "https://lab.s3.eu-west-1.amazonaws.com/a/b/k"),
        ("s3://lab", "", "https://lab.s3.eu-west-1.amazonaws.com/k"),
        ("s3://lab.of.ann/a", "", "https://s3.eu-west-1.amazonaws.com/lab.of.ann/a/k"),
        ("s3://lab/a", "http://box:1/", "http://box:1/lab/a/k"),
    ],
)
def test_an_object_has_the_address_that_s3_gives_it(
    monkeypatch: pytest.MonkeyPatch, mailbox: str, endpoint: str, url: str
) -> None:
    monkeypatch.setenv("CLOUDWHALE_MAILBOX", mailbox)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert machine_s3.url_of("k") == url


def test_what_is_told_is_a_document_that_the_controller_reads(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_asking, "__file__", str(tmp_path / "store"))
    store.answers = [(200, b"", {})] * 3
    machine_store.DESK.tell("driver", "begun")
    machine_store.DESK.tell("driver", "done", "", "two\nlines", "--", "docker", "begun")
    told = [BootTold.model_validate_json(body) for _, _, body, _ in store.asked]
    assert [(one.phase, one.state, one.says) for one in told] == [
        ("driver", "begun", ""), ("driver", "done", "two lines"), ("docker", "begun", ""),
    ]  # fmt: skip
    assert told[1].took_s is not None and 0 <= told[1].took_s < 60
    assert [path for _, path, _, _ in store.asked] == [
        f"/bucket/lab/boots/rent-1/{number:06d}.json" for number in (1, 2, 3)
    ]
    assert all(headers["if-none-match"] == "*" for _, _, _, headers in store.asked)


def test_a_number_that_is_taken_is_passed_over(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_asking, "__file__", str(tmp_path / "store"))
    store.answers = [(412, b"", {}), (200, b"", {})]
    machine_store.DESK.tell("driver", "begun")
    assert json.loads((tmp_path / "told").read_text())["number"] == 2


def test_a_store_that_is_busy_is_asked_again(store: Store, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("CLOUDWHALE_PATIENCE_S", "20")
    busy = b"<Error><Code>SlowDown</Code></Error>"
    store.answers = [(503, busy, {}), (200, b"whole", {})]
    machine_store.DESK.get("bundles/b", str(tmp_path / "b"))
    assert (tmp_path / "b").read_bytes() == b"whole"


def test_a_transfer_that_breaks_off_is_not_taken_for_whole(store: Store, tmp_path: Path) -> None:
    store.answers = [(200, b"half", {"Content-Length": "8", "Connection": "close"})]
    with pytest.raises(machine_asking.Trouble, match="4 bytes came of 8"):
        machine_store.DESK.get("bundles/b", str(tmp_path / "b"))


def test_what_is_not_there_is_not_asked_for_again(store: Store, tmp_path: Path) -> None:
    store.answers = [(404, b"", {})]
    with pytest.raises(machine_asking.Trouble, match="there is no bundles/b in s3://bucket/lab"):
        machine_store.DESK.get("bundles/b", str(tmp_path / "b"))


def test_a_store_that_refuses_says_by_which_code(store: Store, tmp_path: Path) -> None:
    store.answers = [(403, b"<Error><Code>AccessDenied</Code></Error>", {})]
    with pytest.raises(machine_asking.Trouble, match="answers 403 AccessDenied to GET bundles/b"):
        machine_store.DESK.get("bundles/b", str(tmp_path / "b"))


def test_a_clock_hours_off_can_still_tell_what_is_wrong(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUDWHALE_PATIENCE_S", "20")
    monkeypatch.setattr(machine_asking, "__file__", str(tmp_path / "store"))
    skewed = b"<Error><Code>RequestTimeTooSkewed</Code></Error>"
    store.answers = [
        (403, skewed, {"Date": "Mon, 01 Jan 2035 00:00:00 GMT"}), (200, b"", {})
    ]  # fmt: skip
    machine_store.DESK.tell("watchdog", "failed", "", "the clock is off")
    assert store.asked[1][3]["x-amz-date"].startswith("20350101T0000")


def test_time_is_what_the_agent_takes_it_for(monkeypatch: pytest.MonkeyPatch) -> None:
    real = clock.SystemClock().now()
    for said_to_be in ("", f"{real}:60", f"{real}:60:1800000000"):
        monkeypatch.setenv(clock.SPEED, said_to_be)
        clock.look_again()
        assert machine_asking.now() == pytest.approx(clock.SystemClock().now(), abs=60 * 2.0)
        assert machine_asking.steady() == pytest.approx(clock.SystemClock().steady(), abs=60 * 2.0)
    monkeypatch.delenv(clock.SPEED)
    clock.look_again()


def test_a_mistake_is_one_line_for_a_person(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store.answers = [(404, b"", {})]
    assert machine_store.DESK.main(["get", "bundles/b", str(tmp_path / "b")]) == 1
    assert capsys.readouterr().err == "there is no bundles/b in s3://bucket/lab\n"


def test_a_clock_to_which_no_certificate_holds_is_compared_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def answers(method: str, url: str, headers: dict[str, str]) -> machine_asking.Answer:
        asked.append(url)
        if url.startswith("https:"):
            raise ssl.SSLCertVerificationError("certificate is not yet valid")
        return machine_asking.Answer(403, "Mon, 01 Jan 2035 00:00:00 GMT", b"")

    monkeypatch.setattr(machine_asking, "ask", answers)
    ahead, there = machine_store.DESK.clocks()
    assert there == 2051222400 and ahead < -86_400
    assert asked[1] == "http://bucket.s3.eu-west-1.amazonaws.com/lab"
