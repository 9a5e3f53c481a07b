"""Certificates, redirects, names that are meant to be read as something else: to real receivers."""

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from small_authority import a_certificate, presenting
from small_receivers import MailBox, a_hook, a_mail_box

from cloudwhale.control.checks import check_target
from cloudwhale.control.notifying.addresses import url_fault
from cloudwhale.control.notifying.message import message_of
from cloudwhale.control.notifying.sending import send
from cloudwhale.control.notifying.targets import Target, targets
from cloudwhale.model.notice import Notice, NoticeKind

NOW = 1_800_000_000.0
FAILED = Notice(
    id="failed:train-1:7", kind=NoticeKind.FAILED, at=NOW, subject="train-1", name="train",
    says="its process ended with 3",
)  # fmt: skip
MESSAGE = message_of(FAILED)
DOCS = Path(__file__).parents[2] / "docs" / "notify.md"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return a_certificate(tmp_path)


@pytest.fixture(params=["starttls", "implicit"])
def box(request: pytest.FixtureRequest, certificate: Path) -> Iterator[MailBox]:
    with a_mail_box() as one:
        one.tls, one.is_implicit = presenting(certificate), request.param == "implicit"
        yield one


def a_target(**table: object) -> Target:
    return targets({"ops": table})["ops"]


def a_mail(box: MailBox, **more: object) -> Target:
    tls = "implicit" if box.is_implicit else "starttls"
    table = {"smtp": f"127.0.0.1:{box.port}", "tls": tls, "from": "whale@lab.example"}
    return a_target(**table, to=["ada@lab.example"], **more)


# -- certificates ----------------------------------------------------------------------------


def test_mail_goes_encrypted_to_a_server_whose_signer_is_named(
    box: MailBox, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_WORD", "dummy-word")
    target = a_mail(box, ca_file=str(certificate), user="ada", password_env="MAIL_WORD")
    answer = send(MESSAGE, target, NOW)
    assert answer.outcome == "told", answer
    assert box.was_secure == [True] and len(box.login) == 1
    assert box.mails[0]["Subject"] == "[cloudwhale] train has failed"


def test_a_server_that_nobody_vouches_for_gets_neither_mail_nor_password(
    box: MailBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_WORD", "dummy-word")
    answer = send(MESSAGE, a_mail(box, user="ada", password_env="MAIL_WORD"), NOW)
    assert answer.outcome == "again" and "ca_file" in answer.says
    assert "certificate is not trusted" in answer.says
    assert (box.mails, box.login) == ([], [])


def test_a_certificate_of_another_host_is_refused(tmp_path: Path) -> None:
    other = a_certificate(tmp_path, "127.0.0.9")
    with a_mail_box() as box:
        box.tls = presenting(other)
        answer = send(MESSAGE, a_mail(box, ca_file=str(other)), NOW)
    assert answer.outcome == "again" and box.mails == []
    assert "mismatch" in answer.says


def test_a_webhook_over_https_is_told_only_with_a_certificate_that_is_trusted(
    certificate: Path,
) -> None:
    with a_hook(presenting(certificate)) as hook:
        refused = send(MESSAGE, a_target(webhook=hook.url), NOW)
        told = send(MESSAGE, a_target(webhook=hook.url, ca_file=str(certificate)), NOW)
    assert refused.outcome == "again" and "ca_file" in refused.says
    assert told.outcome == "told" and len(hook.got) == 1


@pytest.mark.parametrize("holds", [None, "no certificate"])
def test_a_file_of_certificates_that_holds_none_is_told_and_the_doctor_says_so(
    tmp_path: Path, holds: str | None
) -> None:
    file = tmp_path / "lab.pem"
    if holds is not None:
        file.write_text(holds)
    target = a_target(webhook="https://hooks.example/x", ca_file=str(file))
    answer = send(MESSAGE, target, NOW)
    assert answer.outcome == "again" and "ca_file" in answer.says and str(file) in answer.says
    assert check_target(target).state == "failed"


# -- whoever is not meant --------------------------------------------------------------------


def test_a_redirect_tells_nothing_to_another_host() -> None:
    with a_hook() as hook, a_hook() as other:
        for status in (301, 302, 303, 307, 308):
            hook.status, hook.headers = status, {"Location": other.url}
            answer = send(MESSAGE, a_target(webhook=hook.url), NOW)
            assert answer.outcome == "again" and "redirects" in answer.says
    assert other.got == [] and len(hook.got) == 5


@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "0.0.0.0", "224.0.0.1", "[::]"])
def test_addresses_that_are_no_receiver_s_are_refused_over_https_too(host: str) -> None:
    assert "nobody is told" in url_fault(f"https://{host}/x")
    assert url_fault("https://10.1.2.3/x") == "", "a chat of one's own"


def test_a_proxy_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as proxy:
        port = proxy.getsockname()[1]
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "")

        def refuse() -> None:
            guest, _ = proxy.accept()
            guest.recv(4096)
            guest.sendall(b"HTTP/1.1 407 Say who you are\r\n\r\n")
            guest.close()

        thread = threading.Thread(target=refuse)
        thread.start()
        answer = send(MESSAGE, a_target(webhook="https://hooks.example/x"), NOW)
        thread.join()
    assert (answer.outcome, "the proxy answers 407" in answer.says) == ("again", True), answer


# -- names that are read as something else ---------------------------------------------------

CALLS = "@channel @here @everyone @all <!channel> <!here|x> <@U1> a&b"


def test_the_name_of_a_job_calls_nobody_in_a_chat() -> None:
    text = json.loads(message_of(FAILED.but(name=CALLS, says=CALLS)).slack())["text"]
    assert "<" not in text and ">" not in text
    assert not re.search(r"@\w", text), "Mattermost, Rocket.Chat and Discord ring at a bare @all"
    assert "a&amp;b" in text


@pytest.mark.parametrize("much", range(3000, 3006))
def test_a_text_that_is_cut_is_cut_between_two_characters(much: int) -> None:
    text = json.loads(message_of(FAILED.but(says="&" * much)).slack())["text"]
    assert text.endswith("&amp;") and len(text) <= 3000


@pytest.mark.parametrize(
    "name", ["a\r\nBcc: all@lab.example", "a\n.\r\nMAIL FROM:<x@y.example>", "a\x00\u2028b", "ä🐳"]
)
def test_the_name_of_a_job_adds_no_header_and_no_mail(name: str) -> None:
    with a_mail_box() as box:
        table = {"smtp": f"127.0.0.1:{box.port}", "tls": "none", "from": "whale@lab.example"}
        target = a_target(**table, to=["ada@lab.example"])
        answer = send(message_of(FAILED.but(name=name, says=name)), target, NOW)
    assert answer.outcome == "told"
    (mail,) = box.mails
    assert set(mail.keys()) <= {
        "Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted", "Content-Type",
        "Content-Transfer-Encoding", "MIME-Version",
    }  # fmt: skip


# -- the docs --------------------------------------------------------------------------------


def test_the_few_lines_of_the_docs_tell_a_message_of_ours_from_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    there: dict[str, object] = {}
    exec(code, there)
    verified = there["verified"]
    assert callable(verified)
    for secret in ("a dummy of a secret", "whsec_YSBkdW1teSBvZiBhIHNlY3JldA=="):
        monkeypatch.setenv("HOOK_KEY", secret)
        with a_hook() as hook:
            send(MESSAGE, a_target(webhook=hook.url, secret_env="HOOK_KEY"), NOW)
        ((_, headers, body),) = hook.got
        assert verified(headers, body, secret, NOW + 10)
        assert not verified(headers, body.replace(b"train", b"trail"), secret, NOW)
        assert not verified(headers | {"webhook-id": "msg_other"}, body, secret, NOW)
        assert not verified(headers, body, "another secret", NOW)
        assert not verified(headers, body, secret, NOW + 3600), "somebody sends it again"
