"""Sends a message as mail."""

import smtplib
from contextlib import closing
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

from cloudwhale.clock import dated
from cloudwhale.control.notifying.limits import cut_after
from cloudwhale.control.notifying.message import Answer, Message
from cloudwhale.control.notifying.reaching import trusting, why
from cloudwhale.control.notifying.targets import Target
from cloudwhale.model.units import Seconds

SUBJECT_MOST = 200
HELLO = "[127.0.0.1]"  # what smtplib says where a host has no name of its own
GREETED = 220
_PERMANENT = frozenset({550, 551, 553, 554})
"""There is no such mailbox, or it takes nothing of us (RFC 5321, 4.2.3)."""


def sent(message: Message, target: Target, limit_s: Seconds) -> Answer:
    """Send it and return the answer; it takes `limit_s` at most, but for a name's look-up."""
    password = target.secret.read() if target.secret.is_given else ""
    where = f"{target.host}:{target.port}"
    try:
        _post(target, password, mail_of(message, target), limit_s)
    except smtplib.SMTPAuthenticationError as error:
        return Answer("again", f"{where} does not take the user and password ({error.smtp_code})")
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        is_over = all(code in _PERMANENT for code in codes)
        says = f"{where} does not take mail to those in `to` ({', '.join(map(str, codes))})"
        return Answer("never" if is_over else "again", says)
    except smtplib.SMTPResponseException as error:
        return Answer("again", f"{where} answers {error.smtp_code}")
    except smtplib.SMTPNotSupportedError:
        wants = f"tls = {target.tls!r}{' with a user' if password else ''}"
        return Answer("again", f"{where} does not offer what {wants} asks for")
    except (OSError, ValueError) as error:
        return Answer("again", f"{where} does not answer: {why(error)}")
    return Answer("told", f"{where} has taken it")


def mail_of(message: Message, target: Target) -> EmailMessage:
    """Return a whole mail; sent again it has the same Message-ID."""
    mail = EmailMessage()
    mail["Subject"] = f"[cloudwhale] {message.title}"[:SUBJECT_MOST]
    mail["From"] = target.sender
    mail["To"] = ", ".join(target.to)
    mail["Date"] = format_datetime(datetime.fromtimestamp(dated(message.at), tz=UTC))
    mail["Message-ID"] = f"<{message.id}@{target.sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's holiday answers it
    mail.set_content(f"{message.title}\n\n{message.text}\n")
    return mail


class _Plain(smtplib.SMTP):
    """Made before it is connected, so that it can be cut while it connects."""

    def begin(self, host: str, port: int) -> None:
        self._host = host  # by which a certificate is checked
        _greeted(self.connect(host, port))


class _Secure(smtplib.SMTP_SSL):
    """The same, encrypted from the first byte on."""

    def begin(self, host: str, port: int) -> None:
        self._host = host
        _greeted(self.connect(host, port))


def _greeted(answer: tuple[int, bytes]) -> None:
    if answer[0] != GREETED:
        raise smtplib.SMTPConnectError(*answer)


def _connection(target: Target, limit_s: Seconds) -> _Plain | _Secure:
    """Return a connection that is not open yet."""
    # Its own name would be asked of the resolver, which may take long.
    if target.tls == "implicit":
        return _Secure(local_hostname=HELLO, timeout=limit_s, context=trusting(target))
    return _Plain(local_hostname=HELLO, timeout=limit_s)


def _post(target: Target, password: str, mail: EmailMessage, limit_s: Seconds) -> None:
    """Log in if there is a password, and send."""
    server = _connection(target, limit_s)
    with cut_after(limit_s, lambda: server.sock), closing(server):
        server.begin(target.host, target.port)
        if target.tls == "starttls":
            server.starttls(context=trusting(target))
        if password:
            server.login(target.user, password)
        server.send_message(mail)
