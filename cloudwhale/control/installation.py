"""The name of this installation, by which its machines are told from others' in one account.

It is kept in the database and in the mailbox. Two databases at one mailbox would order each other's
machines about, so a mailbox of another installation is refused.
"""

import json
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from cloudwhale.control.desk import Desk, mailbox_url, own_mailboxes
from cloudwhale.control.store.address import is_postgres, masked
from cloudwhale.control.store.opening import database_url, path_of
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model import event as e
from cloudwhale.model.reason import Code, Reason
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import Denied, SettingsError, StoreUnusable, Unreachable

KEY = "installation.json"
SUBJECT = "installation"


def _drawn() -> str:
    return uuid.uuid4().hex[:12]


def installation(desk: Desk, draw: Callable[[], str] = _drawn) -> str:
    """Return the name of this installation; the first time it is made.

    Raise SettingsError where the mailbox is another's, StoreUnusable where it cannot be read and
    there is no other.
    """
    ours, where = _kept(desk), _whereabouts(desk.settings)
    main = _Found(desk.objects, mailbox_url(desk.settings))
    try:
        name, whose = _in_mailbox(main, ours or draw(), where)
    except StoreUnusable:
        if ours is None or desk.mailboxes.is_one:
            raise
        return ours  # who meets us in the mailbox of a cloud is seen to meanwhile
    if ours == name:
        return name
    if ours is not None or whose != where:
        raise SettingsError(*_anothers(desk.settings, main.url, name, whose))
    reason = Reason(code=Code.INSTALLATION, says=name)
    desk.store.append([e.Noted(at=desk.clock.now(), subject=SUBJECT, reason=reason)])
    return name


class Proofs:
    """Proves before a launch, once for each, that the mailbox of a cloud's own is ours, too."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._name = _kept(desk) or installation(desk)
        self._proved: set[str] = set()

    def prove(self, provider: str) -> None:
        """Raise Denied where it is another installation's, Unreachable where nobody can look."""
        desk, urls = self._desk, own_mailboxes(self._desk.settings)
        if provider in self._proved or provider not in urls:
            return
        where = _whereabouts(desk.settings)
        found = _Found(desk.mailboxes.of(provider), urls[provider])
        try:
            name, whose = _in_mailbox(found, self._name, where)
        except StoreUnusable as error:
            raise Unreachable(error.says, error.remedy) from error
        if name != self._name:
            raise Denied(*_anothers(desk.settings, found.url, name, whose))
        self._proved.add(provider)


@dataclass(frozen=True, slots=True)
class _Found:
    """A mailbox, and where it is."""

    objects: Objects
    url: str


def _kept(desk: Desk) -> str | None:
    """Return the name that the database has; None: it has never rented anything."""
    told = [one.event for one in desk.store.events(SUBJECT)]
    names = [one.reason.says for one in told if isinstance(one, e.Noted)]
    return names[0] if names else None


def _in_mailbox(mailbox: _Found, name: str, where: str) -> tuple[str, str]:
    """Return whose a mailbox is, by name and database; ours, when it was nobody's."""
    body = json.dumps({"id": name, "database": where}).encode()
    if mailbox.objects.create(KEY, body):
        return name, where
    found = mailbox.objects.get(KEY)
    try:
        said = json.loads(found or b"")
        return str(said["id"]), str(said["database"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreUnusable(
            f"{KEY} of the mailbox {mailbox.url} cannot be read",
            "Is the mailbox cloudwhale's? Remove that file, or set another prefix as `mailbox`.",
        ) from error


def _whereabouts(settings: Settings) -> str:
    """Return where the database is, for a person who looks for it; holds no password."""
    url = database_url(settings)
    if is_postgres(url):
        parts = urlsplit(masked(url))
        return f"{parts.hostname or 'localhost'}{parts.path}"
    return f"{socket.gethostname()}:{path_of(url)}"


def _anothers(settings: Settings, url: str, name: str, whose: str) -> tuple[str, str]:
    """Return what is wrong with a mailbox of another installation, and the remedy."""
    return (
        f"the mailbox {url} belongs to installation {name}, whose database is "
        f"{whose}; ours is {_whereabouts(settings)}",
        "Set a prefix of its own as `mailbox`, or use that database. If that is gone for good, "
        f"remove {KEY} from the mailbox: what it rented is then shown by `cloudwhale leaks` as "
        "another's.",
    )
