"""The rows of `doctor` for an AWS account: whatever is wrong, and the command that mends it.

When the credentials are wrong, everything else would be too: then that row is the only one.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale.spi.prices import Market
from cloudwhale.spi.provider import Check
from cloudwhale_providers.aws import checks_bucket, checks_places, checks_roles, quotas
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.asking import code_of
from cloudwhale_providers.aws.images import Images
from cloudwhale_providers.aws.offers import FIRST_REGION, NO_PERMISSION, enabled_regions
from cloudwhale_providers.aws.rows import Found, by_region, failed, row
from cloudwhale_providers.prices.aws import REGION, quota_group
from cloudwhale_providers.prices.regions import meant

SIDE_BY_SIDE = 16
"""Questions that are asked at once: ten regions take as long as one."""
SKEW_WARNS_S: Seconds = 30.0  # as agents do: leases and stops are counted in seconds
SKEW_MOST_S: Seconds = 300.0  # AWS refuses requests that are signed further off (SigV4 reference)
SKEWED = frozenset({"RequestTimeTooSkewed", "RequestExpired"})
SKEWED_WORDS = ("Signature expired", "Signature not yet current")
NTP = "Set this host's clock: `timedatectl set-ntp true`."

_WHO: Mapping[str, tuple[str, str]] = {
    "InvalidClientTokenId": (
        "AWS does not know this access key, or it is switched off",
        "`aws configure` takes another; `aws iam list-access-keys` shows those there are.",
    ),
    "UnrecognizedClientException": (
        "AWS does not know this access key, or it is switched off",
        "`aws configure` takes another; `aws iam list-access-keys` shows those there are.",
    ),
    "SignatureDoesNotMatch": (
        "the secret key does not belong to the access key",
        "`aws configure` takes both anew.",
    ),
    "ExpiredToken": (
        "the session's credentials have run out",
        "`aws sso login`, or take new ones from whoever gave them.",
    ),
    "ExpiredTokenException": (
        "the session's credentials have run out",
        "`aws sso login`, or take new ones from whoever gave them.",
    ),
}
"""By STS's code: what it means, and how it is mended."""


class Checks:
    """Looks at an account; each look is new."""

    def __init__(
        self,
        account: Account,
        mailbox: str,
        listed: Callable[[Instant], Sequence[Offer]],
        environment: Mapping[str, str],
    ) -> None:
        """Take an account whose calls have little patience: who asks a doctor waits for it."""
        self._account = account
        self._mailbox = mailbox
        self._listed = listed
        self._environment = environment
        self._now = account.clock.now

    def rows(self) -> Sequence[Check]:
        """Return all rows; never raises what AWS says, and takes seconds."""
        try:
            answer = self._account.calls.call(FIRST_REGION, "sts", "get_caller_identity")
        except CloudwhaleError as error:
            return (row("credentials", who_is_refused(error)),)
        who = Found("ok", f"{answer['Arn']} in account {answer['Account']}")
        clock = skew(answer, self._now())
        rows = [row("credentials", who)]
        if clock is not None:
            rows.append(row("clock", clock))
        unfound = checks_bucket.credentials(str(answer["Arn"]), self._environment)
        if unfound is not None:
            rows.append(row("mailbox's credentials", unfound))
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            once = self._once(pool, str(answer["Account"]))
            rows += self._in_regions(pool)
            rows += [row(name, look.result()) for name, look in once.items()]
        return tuple(rows)

    def _once(self, pool: ThreadPoolExecutor, number: str) -> Mapping[str, Future[Found]]:
        """Return the looks at what an account has once, under way."""
        calls, options = self._account.calls, self._account.options
        bucket = pool.submit(
            checks_bucket.look, calls, self._mailbox, number, self._now(),
            self._environment,
        )  # fmt: skip
        return {
            "spot role": pool.submit(checks_roles.spot, calls),
            "machine role": pool.submit(checks_roles.machines, calls, options.instance_profile),
            "stop role": pool.submit(checks_roles.stops, calls, options.scheduler_role, number),
            "bucket": bucket,
        }

    def _in_regions(self, pool: ThreadPoolExecutor) -> list[Check]:
        offers = self._listed(self._now())
        regions, rows = self._regions({offer.region for offer in offers})
        images = Images(self._account.calls, self._account.clock, self._account.options.image)
        limits = quotas.Limits(self._account.calls)
        wanted = smallest(offers)
        networks = {
            region: pool.submit(checks_places.network, self._account, region) for region in regions
        }
        booted = {region: pool.submit(checks_places.image, images, region) for region in regions}
        held = {
            region: pool.submit(limits.of, region, sorted(wanted), self._now())
            for region in regions
        }
        allowed = {
            region: pool.submit(self._launches, images, region)
            for region, look in booted.items()
            if look.result().state == "ok"
        }
        rows += by_region("network", _results(networks))
        rows += by_region("image", _results(booted))
        told = {region: look.result() for region, look in held.items()}
        if told:
            rows += [row("quotas", one) for one in checks_places.quota_rows(told, wanted)]
        return rows + by_region("launches", _results(allowed))

    def _launches(self, images: Images, region: str) -> Found:
        try:
            ami = images.image(region).id
        except CloudwhaleError as error:
            return failed(error)
        return checks_places.launches(self._account, region, ami)

    def _regions(self, listed: set[str]) -> tuple[list[str], list[Check]]:
        """Return the regions to look at, and the row that says which of them are there."""
        patterns = self._account.options.regions
        wanted = sorted(set(meant(patterns, "aws", listed, REGION)))
        try:
            enabled = enabled_regions(self._account.calls)
        except CloudwhaleError as error:
            remedy = "Allow ec2:DescribeRegions." if code_of(error) in NO_PERMISSION else ""
            return wanted, [row("regions", failed(error, remedy))]
        found = [region for region in wanted if region in enabled]
        # Only who names a region wants it enabled.
        missing = [region for region in wanted if region in patterns and region not in enabled]
        rows = [row("regions", not_enabled(region)) for region in missing]
        if found:
            rows.insert(0, row("regions", Found("ok", ", ".join(found))))
        elif not missing:
            says = "none of the regions that are listed is enabled and named in `regions`"
            remedy = "Name others in `regions` of [clouds.aws], or `cloudwhale catalog update`."
            rows.append(row("regions", Found("failed", says, remedy)))
        return found, rows


def not_enabled(region: str) -> Found:
    """Return what is to be done about a region that `regions` names and the account has not."""
    return Found(
        "failed",
        f"{region} is named in `regions` and not enabled for this account",
        f"`aws account enable-region --region-name {region}`, which takes minutes; or remove it "
        "from `regions` of [clouds.aws].",
    )


def who_is_refused(error: CloudwhaleError) -> Found:
    """Return why AWS does not take our credentials, and the command that mends it."""
    code = code_of(error)
    if code in SKEWED or any(word in error.says for word in SKEWED_WORDS):
        return Found("failed", f"AWS takes this host's clock for wrong: {error.says}", NTP)
    says, remedy = _WHO.get(code, (error.says, error.remedy))
    return Found("failed", f"{says} ({code})" if code in _WHO else says, remedy)


def skew(answer: Mapping[str, Any], now: Instant) -> Found | None:
    """Return how far our clock is from AWS's, by the answer's date; None when it has none."""
    date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date", "")
    try:
        theirs = parsedate_to_datetime(date)
    except ValueError:
        return None
    off_s = now - theirs.replace(tzinfo=theirs.tzinfo or UTC).timestamp()
    if abs(off_s) <= SKEW_WARNS_S:
        return Found("ok", "within seconds of AWS's")
    way = "ahead of" if off_s > 0 else "behind"
    says = f"this host is {abs(off_s):.0f} s {way} AWS"
    return Found("failed" if abs(off_s) > SKEW_MOST_S else "warning", says, NTP)


def smallest(offers: Sequence[Offer]) -> Mapping[tuple[Market, str], float]:
    """Return how many vCPUs the smallest machine takes of each quota."""
    found: dict[tuple[Market, str], float] = {}
    for offer in offers:
        key = (offer.market, quota_group(offer.type, offer.market))
        found[key] = min(found.get(key, float("inf")), offer.quota_units)
    return found


def _results(looks: Mapping[str, Future[Found]]) -> Mapping[str, Found]:
    return {region: look.result() for region, look in looks.items()}
