"""Whether machines that are rented could meet their controller, as the settings stand."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlparse

from cloudwhale import plugins
from cloudwhale.control.desk import mailbox_url, own_mailboxes, providers
from cloudwhale.settings import Settings, provider_of
from cloudwhale.spi.errors import SettingsError

OWN = "local"
"""The provider of this host, which is no cloud."""


def must_reach(settings: Settings) -> None:
    """Raise SettingsError for a cloud that nobody provides, and a mailbox that none can reach.

    Also for a cloud's own settings that are wrong, like a region that it does not have.
    """
    if not settings.clouds:
        return
    _must_be_provided(settings.clouds)
    for url, clouds in _meetings(settings).items():
        if urlparse(url).scheme in ("file", "memory"):
            names = ", ".join(sorted(clouds))
            raise SettingsError(
                f"machines are to be rented ({names}), and they cannot reach the mailbox {url}: "
                f"it is on this host",
                "Set `mailbox` to a bucket, like s3://my-bucket/cloudwhale, or give each cloud one "
                "of its own, or remove [clouds].",
            )
    providers(settings)  # each says what is wrong with its own table


def _meetings(settings: Settings) -> Mapping[str, Sequence[str]]:
    """Return the URLs of mailboxes, and the clouds whose machines meet us in each."""
    own, found = own_mailboxes(settings), dict[str, list[str]]()
    for name in settings.clouds:
        found.setdefault(own.get(name, mailbox_url(settings)), []).append(name)
    return found


def _must_be_provided(clouds: Mapping[str, Mapping[str, Any]]) -> None:
    known = [name for name in plugins.names(plugins.PROVIDERS) if name != OWN]
    for name, table in sorted(clouds.items()):
        provider = provider_of(name, table)
        if provider not in known:
            close = difflib.get_close_matches(provider, known, 1)
            mine = "through = {!r}" if "through" in table else "[clouds.{}]"
            hint = f"Did you mean {mine.format(close[0])}? " if close else ""
            raise SettingsError(
                f"[clouds.{name}]: no provider is called {provider!r}",
                f"{hint}Installed: {', '.join(known) or 'none'}. A cloud with a name of your own "
                f"says in `through` which of them reaches it.",
            )
