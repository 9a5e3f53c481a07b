"""One message to real receivers on loopback: arrived, put off, or never; and never for long."""

import base64
import hashlib
import hmac
import json
import os
import stat
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from small_receivers import Hook, MailBox, a_closed_port, a_hook, a_mail_box

from cloudwhale import clock
from cloudwhale.clock import SystemClock, wait
from cloudwhale.control.notifying.message import Message, digest_name, digest_of, message_of
from cloudwhale.control.notifying.sending import send
from cloudwhale.control.notifying.targets import Target, own_target, targets
from cloudwhale.model.notice import Notice, NoticeKind

NOW = 1_800_000_000.0
FAILED = Notice(
    id="failed:train-1:7", kind=NoticeKind.FAILED, at=NOW, subject="train-1", name="train <&> co",
    says="its process ended with 3",
)  # fmt: skip
MESSAGE = message_of(FAILED)
SHORT_S = 0.5
steady = SystemClock().steady


@pytest.fixture
def hook() -> Iterator[Hook]:
    with a_hook() as one:
        yield one


@pytest.fixture
def box() -> Iterator[MailBox]:
    with a_mail_box() as one:
        yield one


def a_target(**table: object) -> Target:
    return targets({"ops": table})["ops"]


def a_mail(box: MailBox, **more: object) -> Target:
    table: dict[str, object] = {
        "smtp": f"127.0.0.1:{box.port}",
        "tls": "none",
        "from": "whale@lab.example",
    }
    return a_target(**(table | {"to": ["ada@lab.example"]} | more))


# -- webhooks --------------------------------------------------------------------------------


def test_a_webhook_is_signed_as_standard_webhooks_says(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = b"a key of 24 bytes or more"
    monkeypatch.setenv("HOOK_KEY", f"whsec_{base64.b64encode(key).decode()}")
    answer = send(MESSAGE, a_target(webhook=hook.url, secret_env="HOOK_KEY"), NOW)
    assert answer.outcome == "told"
    ((path, headers, body),) = hook.got
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert path == "/hook" and int(headers["webhook-timestamp"]) == NOW
    document = json.loads(body)
    assert document["type"] == "failed" and document["data"]["subject"] == "train-1"


def test_where_time_is_faster_others_are_told_their_own(
    hook: Hook, box: MailBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(clock.SPEED, f"{NOW - 3600}:60")
    clock.look_again()
    try:
        here = clock.told(NOW)
        assert here > NOW + 3600
        message = message_of(FAILED.but(at=here))
        assert send(message, a_target(webhook=hook.url), here).outcome == "told"
        assert send(message, a_mail(box), here).outcome == "told"
    finally:
        monkeypatch.undo()
        clock.look_again()
    ((_, headers, _),) = hook.got
    assert int(headers["webhook-timestamp"]) == NOW
    assert parsedate_to_datetime(box.mails[0]["Date"]).timestamp() == NOW


def test_a_message_that_is_sent_again_is_the_same(hook: Hook) -> None:
    target = a_target(webhook=hook.url)
    for later in (0.0, 500.0):
        send(message_of(FAILED), target, NOW + later)
    first, second = hook.got
    assert first[1]["webhook-id"] == second[1]["webhook-id"]
    assert first[2] == second[2]
    assert "webhook-signature" not in first[1], "there is nothing to sign with"


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(200, "told"), (299, "told"), (404, "never"), (410, "never"), (400, "again"), (500, "again"),
     (301, "again"), (403, "again")],
)  # fmt: skip
def test_what_an_answer_leads_to(hook: Hook, status: int, outcome: str) -> None:
    hook.status, hook.headers = status, {"Location": hook.url}
    answer = send(MESSAGE, a_target(webhook=hook.url), NOW)
    assert answer.outcome == outcome and str(status) in answer.says
    assert len(hook.got) == 1, "a redirect is not followed"


@pytest.mark.parametrize(
    ("header", "after_s"),
    [("120", 120.0), ("Fri, 15 Jan 2027 08:01:00 GMT", 60.0), ("999999", 3600.0),
     ("-5", None), ("soon", None), ("", None)],
)  # fmt: skip
@pytest.mark.parametrize("status", [429, 503])
def test_a_target_that_wants_to_be_left_alone_is(
    hook: Hook, status: int, header: str, after_s: float | None
) -> None:
    hook.status, hook.headers = status, {"Retry-After": header}
    answer = send(MESSAGE, a_target(webhook=hook.url), NOW)
    assert (answer.outcome, answer.after_s) == ("again", after_s)


@pytest.mark.parametrize("how", ["hangs", "drips"])
def test_who_never_ends_is_cut_off_at_the_limit(hook: Hook, how: str) -> None:
    setattr(hook, how, True)
    began = steady()
    answer = send(MESSAGE, a_target(webhook=hook.url), NOW, SHORT_S)
    assert answer.outcome == "again"
    assert answer.says == "127.0.0.1 does not answer: nothing in time"
    assert steady() - began < 20, "far from for ever, however busy this host is"


def test_whom_nobody_answers_for_is_tried_again_and_its_path_is_not_told() -> None:
    with a_closed_port() as port:
        url = f"http://127.0.0.1:{port}/T0/B0/secret-path"
        answer = send(MESSAGE, a_target(webhook=url), NOW)
    assert answer.outcome == "again" and "secret-path" not in answer.says
    assert "secret-path" not in repr(own_target(url))


def test_slack_gets_text_with_three_characters_escaped(hook: Hook) -> None:
    assert send(MESSAGE, a_target(slack=hook.url), NOW).outcome == "told"
    text = json.loads(hook.got[0][2])["text"]
    assert "train &lt;&amp;&gt; co has failed" in text and "<" not in text


# -- mail ------------------------------------------------------------------------------------


def test_a_mail_is_whole(box: MailBox) -> None:
    target = a_mail(box, to=["ada@lab.example", "bob@lab.example"])
    answer = send(MESSAGE, target, NOW)
    assert answer.outcome == "told"
    (mail,) = box.mails
    assert mail["Subject"] == "[cloudwhale] train <&> co has failed"
    assert mail["To"] == "ada@lab.example, bob@lab.example"
    assert mail["Message-ID"] == f"<{MESSAGE.id}@lab.example>"
    assert "its process ended with 3" in str(mail.get_payload()).lower()


def test_a_password_comes_from_a_file_that_is_ones_own(box: MailBox, tmp_path: Path) -> None:
    kept = tmp_path / "password"
    kept.write_text("dummy-word\n")
    kept.chmod(0o644)
    target = a_mail(box, user="ada", password_file=str(kept))
    refused = send(MESSAGE, target, NOW)
    assert refused.outcome == "again" and "can be read by others" in refused.says
    kept.chmod(0o600)
    assert send(MESSAGE, target, NOW).outcome == "told"
    said = base64.b64decode(box.login[0].split()[-1]).decode()
    assert said == "\0ada\0dummy-word"


@pytest.mark.parametrize(
    ("key", "value", "outcome"),
    [("to_rcpt", "550 no such user", "never"), ("to_rcpt", "450 busy", "again"),
     ("to_data", "452 full", "again")],
)  # fmt: skip
def test_what_a_server_of_mail_answers(box: MailBox, key: str, value: str, outcome: str) -> None:
    setattr(box, key, value)
    answer = send(MESSAGE, a_mail(box), NOW)
    assert answer.outcome == outcome and value[:3] in answer.says


def test_mail_is_not_sent_in_the_open_where_it_was_to_be_encrypted(box: MailBox) -> None:
    answer = send(MESSAGE, a_mail(box, tls="starttls"), NOW)
    assert answer.outcome == "again" and box.mails == []


def test_a_server_of_mail_that_refuses_or_never_greets_is_tried_again(box: MailBox) -> None:
    box.hangs = True
    began = steady()
    assert send(MESSAGE, a_mail(box), NOW, SHORT_S).outcome == "again"
    assert steady() - began < 20
    with a_closed_port() as port:
        box.port = port
        assert "refused" in send(MESSAGE, a_mail(box), NOW).says


# -- commands --------------------------------------------------------------------------------


def a_script(folder: Path, text: str) -> Target:
    path = folder / "tell"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return a_target(command=[str(path)])


def test_a_command_gets_the_message_on_its_standard_input(tmp_path: Path) -> None:
    target = a_script(
        tmp_path, f"cat > {tmp_path}/body; env | grep ^CLOUDWHALE_NOTICE > {tmp_path}/env"
    )
    assert send(MESSAGE, target, NOW).outcome == "told"
    assert json.loads((tmp_path / "body").read_text())["id"] == MESSAGE.id
    told = (tmp_path / "env").read_text()
    assert "CLOUDWHALE_NOTICE_KIND=failed" in told and f"NOTICE_ID={MESSAGE.id}" in told


def test_a_command_that_fails_or_is_not_there_is_tried_again(tmp_path: Path) -> None:
    assert send(MESSAGE, a_script(tmp_path, "exit 3"), NOW).says == "tell ended with 3"
    gone = send(MESSAGE, a_target(command=[str(tmp_path / "gone")]), NOW)
    assert gone.outcome == "again" and "cannot be started" in gone.says


def test_a_command_that_never_ends_is_ended_with_all_that_it_has_started(tmp_path: Path) -> None:
    target = a_script(tmp_path, f"sleep 300 & echo $! > {tmp_path}/child; wait")
    answer = send(MESSAGE, target, NOW, 1.0)
    assert answer.outcome == "again" and "was stopped" in answer.says
    child = int((tmp_path / "child").read_text())
    limit = steady() + 20
    while _lives(child) and steady() < limit:
        wait(0.01)
    assert not _lives(child)


def _lives(process: int) -> bool:
    try:
        return "(sleep) Z" not in Path(f"/proc/{process}/stat").read_text() and _is_there(process)
    except FileNotFoundError:
        return False


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_command_that_reads_nothing_of_a_large_message_is_told_all_the_same(
    tmp_path: Path,
) -> None:
    many = [FAILED.but(id=f"failed:{n}", says="x" * 4000) for n in range(1000)]
    message = digest_of(digest_name("ops", many), many)
    assert 65536 < len(message.body()) < 300_000, "larger than a pipe, and not without bound"
    assert send(message, a_script(tmp_path, "exit 0"), NOW).outcome == "told"


# -- what stands in messages -----------------------------------------------------------------


def test_a_title_is_one_line_whatever_a_job_is_called() -> None:
    odd = message_of(FAILED.but(name="a\r\nBcc: all@lab.example\x1b[2J"))
    assert "\n" not in odd.title and "\x1b" not in odd.title


def test_a_digest_tells_how_many_and_lists_the_first() -> None:
    many = [FAILED.but(id=f"failed:{n}") for n in range(30)]
    message: Message = digest_of("msg_x", many)
    assert message.title == "30 notices: 30 failed"
    assert message.text.endswith("and 10 more") and message.facts["count"] == 30
