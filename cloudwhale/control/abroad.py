"""Whether machines that are rented could meet their controller, as the settings stand."""

import difflib
from collections.abc import Iterable
from urllib.parse import urlparse

from cloudwhale import plugins
from cloudwhale.control.desk import mailbox_url, providers
from cloudwhale.settings import Settings
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
    url = mailbox_url(settings)
    scheme = urlparse(url).scheme
    if scheme in ("file", "memory"):
        clouds = ", ".join(sorted(settings.clouds))
        raise SettingsError(
            f"machines are to be rented ({clouds}), and they cannot reach the mailbox {url}: it "
            f"is on this host",
            "Set `mailbox` to a bucket, like s3://my-bucket/cloudwhale, or remove [clouds].",
        )
    providers(settings)  # each says what is wrong with its own table


def _must_be_provided(clouds: Iterable[str]) -> None:
    known = [name for name in plugins.names(plugins.PROVIDERS) if name != OWN]
    for name in sorted(clouds):
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"Did you mean [clouds.{close[0]}]? " if close else ""
            raise SettingsError(
                f"[clouds.{name}]: no provider is called {name!r}",
                f"{hint}Installed: {', '.join(known) or 'none'}",
            )
