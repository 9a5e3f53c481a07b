"""What is sent: one notice, or many together, in the forms that targets take."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cloudwhale.clock import iso
from cloudwhale.control.given import as_given_here
from cloudwhale.model.notice import Notice
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.reporting import notices as words

IN_DIGEST = 50  # with their facts; the others are counted, so that a message stays small
SLACK_MOST = 3000  # Slack cuts longer texts itself, and not where a sentence ends


@dataclass(frozen=True, slots=True)
class Message:
    """One message; sent again it has the same id, by which whoever gets it tells that it is."""

    id: str
    kind: str
    """That of its notice; `digest` for many."""
    at: Instant
    title: str
    text: str
    facts: dict[str, Any] = field(default_factory=dict[str, Any])

    def body(self) -> bytes:
        """Return the message as JSON; the same message gives the same bytes."""
        whole = {
            "type": self.kind, "timestamp": iso(self.at), "id": self.id,
            "data": {"title": self.title, "text": self.text, **self.facts},
        }  # fmt: skip
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()

    def slack(self) -> bytes:
        """Return the message as Slack and those who are compatible with it take it."""
        whole = f"*{_escaped(self.title)}*\n{_escaped(self.text)}".strip()[:SLACK_MOST]
        whole = re.sub(r"&[a-z]*$", "", whole)  # an escape that was cut in the middle
        return json.dumps({"text": whole}, ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a try: it has arrived, it is tried again, or it never will arrive."""

    outcome: Literal["told", "again", "never"]
    says: str
    """Holds no secret: neither an address' path, nor what a server has written."""
    after_s: Seconds | None = None
    """The target wants to be left alone for so long."""
    only_this: bool = False
    """It is the message that is not taken; others that go there need not wait."""


def message_of(notice: Notice) -> Message:
    """Return the message of one notice."""
    key = _key(notice.id, str(notice.at))
    title, text = words.title(notice), as_given_here(words.text(notice))
    return Message(key, notice.kind.value, notice.at, title, text, _facts(notice))


def digest_of(name: str, notices: Sequence[Notice]) -> Message:
    """Return the message of many; `name` is that under which they were put together."""
    facts = {
        "count": len(notices),
        "notices": [_facts(one) | {"title": words.title(one)} for one in notices[:IN_DIGEST]],
    }
    at = max(one.at for one in notices)
    title, text = words.digest_title(notices), words.digest_text(notices)
    return Message(name, "digest", at, title, text, facts)


def digest_name(target: str, notices: Sequence[Notice]) -> str:
    """Return under what name notices are put together: of these, to this target."""
    return _key("digest", target, *(f"{one.id}@{one.at}" for one in notices))


def trial(at: Instant) -> Message:
    """Return a message that tells of nothing: whether it arrives is the question."""
    text = as_given_here("It is a trial of `cloudwhale notify test`. Nothing has happened.")
    return Message(_key("test", str(at)), "test", at, "cloudwhale can reach you", text)


def _facts(notice: Notice) -> dict[str, Any]:
    says, change = as_given_here(notice.says), as_given_here(notice.change)
    return words.facts(notice.but(says=says, change=change))


def _key(*parts: str) -> str:
    return f"msg_{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}"


def _escaped(text: str) -> str:
    # Slack reads these three as its own (<!channel> calls everybody); no others are to be escaped.
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # Others call everybody by a bare @all or @everyone; a space of no width makes it none.
    return text.replace("@", "@\u200b")
