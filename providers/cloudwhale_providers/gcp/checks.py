"""The rows of `doctor` for a project of GCP: whatever is wrong, and the command that mends it.

Where nobody can be asked, or the project cannot be used, those rows are the only ones.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import CloudwhaleError, Unreachable
from cloudwhale.spi.provider import Check
from cloudwhale_providers import rows
from cloudwhale_providers.gcp import checks_bucket, checks_clock, checks_places, checks_project
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.asking import said_by
from cloudwhale_providers.gcp.images import Images
from cloudwhale_providers.rows import Found, failed

SIDE_BY_SIDE = 8
"""Questions that are asked at once."""
SKEWED = ("Token must be a short-lived token", "iat", "clock")
"""What Google's sign-in says to whose clock is off by minutes."""
row = partial(rows.row, "gcp")
by_region = partial(rows.by_region, "gcp")


class Checks:
    """Looks at a project; each look is new."""

    def __init__(
        self, account: Account, mailbox: str, listed: Callable[[Instant], Sequence[Offer]]
    ) -> None:
        """Take an account whose calls have little patience: who asks a doctor waits for it."""
        self._account = account
        self._mailbox = mailbox
        self._listed = listed

    def rows(self) -> Sequence[Check]:
        """Return all rows; never raises what Google says, and takes seconds."""
        try:
            project = self._account.project
        except CloudwhaleError as error:
            return (row("credentials", failed(error)),)
        try:
            told = self._account.compute("projects.get", fields="name,quotas")
        except CloudwhaleError as error:
            return self._unusable(error)
        found = [row("credentials", Found("ok", f"for the project {project}"))]
        clock = checks_clock.look(self._account.clock.now)
        if clock is not None:
            found.append(row("clock", clock))
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            return (*found, *self._looks(pool, told))

    def _unusable(self, error: CloudwhaleError) -> Sequence[Check]:
        """Return why the project cannot be used, and which APIs are missing if that is known."""
        if said_by(error) is None and not isinstance(error, Unreachable):
            return (row("credentials", _who_is_refused(error)),)
        found = [row("project", failed(error))]
        apis = checks_project.apis(self._account)
        if apis.state == "failed" and said_by(error) is not None:
            found.append(row("APIs", apis))
        return tuple(found)

    def _looks(self, pool: ThreadPoolExecutor, told: Mapping[str, Any]) -> Sequence[Check]:
        account, offers = self._account, self._listed(self._account.clock.now())
        where = pool.submit(checks_places.regions, account, offers)
        once = {
            "APIs": pool.submit(checks_project.apis, account),
            "permissions": pool.submit(checks_project.permitted, account),
            "machine account": pool.submit(checks_project.machines, account),
            "bucket": pool.submit(checks_bucket.look, account, self._mailbox),
        }
        images = Images(account)
        for what, has_gpus in (("image", True), ("plain image", False)):
            once[what] = pool.submit(checks_places.image, images, has_gpus)
        places = where.result()
        networks = {
            region: pool.submit(checks_places.network, account, region) for region in places.usable
        }
        found = [row("regions", one) for one in places.found]
        found += by_region("network", {name: look.result() for name, look in networks.items()})
        quotas = checks_places.quota_rows(account.project, told, places, offers)
        found += [row("quotas", one) for one in quotas]
        return [*found, *(row(name, look.result()) for name, look in once.items())]


def _who_is_refused(error: CloudwhaleError) -> Found:
    """Return why Google does not take our credentials, and the command that mends it."""
    if any(word in error.says for word in SKEWED):
        return Found("failed", f"Google takes this host's clock for wrong: {error.says}",
                     checks_clock.NTP)  # fmt: skip
    return failed(error)
