"""What an account may run at once: its vCPU quotas, what it uses of them, and what is left."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale.spi.prices import Market
from cloudwhale_providers.aws.asking import Calls, code_of, listed
from cloudwhale_providers.prices.aws import quota_group

SERVICE = "ec2"
LIMIT_HOLDS_S: Seconds = 3600.0  # a quota changes when somebody asks for it, days before
COUNTED = ("pending", "running")
"""States in which an instance counts (EC2 User Guide, ec2-on-demand-instances)."""


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota as AWS names it."""

    code: str
    name: str


QUOTAS: Mapping[tuple[Market, str], Quota] = {
    ("on-demand", "G"): Quota("L-DB2E81BA", "Running On-Demand G and VT instances"),
    ("on-demand", "P"): Quota("L-417A185B", "Running On-Demand P instances"),
    ("on-demand", "standard"): Quota(
        "L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"
    ),
    ("on-demand", "dl"): Quota("L-6E869C2A", "Running On-Demand DL instances"),
    ("on-demand", "f"): Quota("L-74FC7D96", "Running On-Demand F instances"),
    ("on-demand", "inf"): Quota("L-1945791B", "Running On-Demand Inf instances"),
    ("on-demand", "trn"): Quota("L-2C3B7624", "Running On-Demand Trn instances"),
    ("on-demand", "x"): Quota("L-7295265B", "Running On-Demand X instances"),
    ("spot", "G"): Quota("L-3819A6DF", "All G and VT Spot Instance Requests"),
    ("spot", "P"): Quota("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests"),
    ("spot", "P5"): Quota("L-C4BD4855", "All P5 Spot Instance Requests"),
    ("spot", "standard"): Quota(
        "L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests"
    ),
    ("spot", "dl"): Quota("L-85EED4F7", "All DL Spot Instance Requests"),
    ("spot", "f"): Quota("L-88CF9481", "All F Spot Instance Requests"),
    ("spot", "inf"): Quota("L-B5D1601B", "All Inf Spot Instance Requests"),
    ("spot", "trn"): Quota("L-6B0D517C", "All Trn Spot Instance Requests"),
    ("spot", "x"): Quota("L-E3A00192", "All X Spot Instance Requests"),
}
"""By market and group of `prices/aws.quota_group`; counted in vCPUs, for each region.

EC2 User Guide, "Spot Instance limits" and "On-Demand Instance quotas". No page that we know tells
the code of P6 spot: that quota is not read, and learned when it refuses us.
"""


def raise_command(quota: Quota, region: str, vcpus: float) -> str:
    """Return the command that asks AWS for a larger quota; an answer takes hours to days."""
    return (
        f"aws service-quotas request-service-quota-increase --service-code {SERVICE} "
        f"--quota-code {quota.code} --desired-value {max(1, round(vcpus))} --region {region}"
    )


@dataclass(frozen=True, slots=True)
class Used:
    """vCPUs that pending and running instances of an account take, by market and group."""

    vcpus: Mapping[tuple[Market, str], float] = field(
        default_factory=dict[tuple[Market, str], float]
    )
    unknown: frozenset[tuple[Market, str]] = frozenset()
    """Where an instance stands whose vCPUs nobody says."""

    def of(self, market: Market, group: str) -> float | None:
        """Return what is used of a quota; None when that is not known."""
        key = (market, group)
        return None if key in self.unknown else self.vcpus.get(key, 0.0)


def used(instances: Iterable[Mapping[str, Any]], vcpus: Mapping[str, float]) -> Used:
    """Return what instances use, as DescribeInstances describes them; `vcpus`: by type."""
    sums: dict[tuple[Market, str], float] = {}
    unknown: set[tuple[Market, str]] = set()
    for one in instances:
        lifecycle = one.get("InstanceLifecycle", "")
        if one["State"]["Name"] not in COUNTED or lifecycle not in ("", "spot"):
            continue  # capacity blocks and scheduled ones were paid for, and count elsewhere
        market: Market = "spot" if lifecycle == "spot" else "on-demand"
        key = (market, quota_group(one["InstanceType"], market))
        takes = vcpus.get(one["InstanceType"]) or _cpu_options(one)
        if takes is None:
            unknown.add(key)
        else:
            sums[key] = sums.get(key, 0.0) + takes
    return Used(sums, frozenset(unknown))


def _cpu_options(instance: Mapping[str, Any]) -> float | None:
    said: Mapping[str, Any] = instance.get("CpuOptions") or {}
    cores, threads = said.get("CoreCount"), said.get("ThreadsPerCore")
    return float(cores * threads) if cores and threads else None


@dataclass(frozen=True, slots=True)
class Limit:
    """What a quota is, or why that is not known."""

    vcpus: float | None
    says: str = ""
    """Why it is not known; empty when it is."""
    code: str = ""
    """AWS's code of the refusal to say."""


class Limits:
    """Reads quotas and keeps them for an hour; safe for several threads."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._known: dict[tuple[str, str], tuple[Instant, Limit]] = {}
        self._lock = Lock()

    def of(
        self, region: str, groups: Collection[tuple[Market, str]], now: Instant
    ) -> Mapping[tuple[Market, str], Limit]:
        """Return the limits of quotas; of what AWS does not say the last that it said, or unknown.

        At most two requests for each that is not known. When AWS does not answer, refuses for want
        of permission, or was asked too often, the others are not asked for this time.
        """
        found: dict[tuple[Market, str], Limit] = {}
        stopped: Limit | None = None
        for key in sorted(groups):
            quota = QUOTAS.get(key)
            if quota is None:
                found[key] = Limit(None, "nobody has said which quota that is")
                continue
            found[key] = limit = self._limit(region, quota, now, stopped)
            if limit.says and limit.code not in SAID_OF_ONE:
                stopped = limit
        return found

    def _limit(self, region: str, quota: Quota, now: Instant, stopped: Limit | None) -> Limit:
        with self._lock:
            at, known = self._known.get((region, quota.code), (float("-inf"), Limit(None)))
        if now - at < LIMIT_HOLDS_S:
            return known
        limit = stopped or self._read(region, quota)
        if limit.vcpus is None and known.vcpus is not None:
            return known
        # That we may not know is kept too; silence and haste mend themselves.
        if not limit.says or limit.code in KEPT:
            with self._lock:
                self._known[(region, quota.code)] = (now, limit)
        return limit

    def _read(self, region: str, quota: Quota) -> Limit:
        """Return the applied quota; where there is none, AWS's default."""
        words = {"ServiceCode": SERVICE, "QuotaCode": quota.code}
        try:
            return _value(self._calls.call(region, "service-quotas", "get_service_quota", **words))
        except CloudwhaleError as error:
            if code_of(error) != "NoSuchResourceException":
                return Limit(None, error.says, code_of(error))
        try:
            return _value(
                self._calls.call(region, "service-quotas", "get_aws_default_service_quota", **words)
            )
        except CloudwhaleError as error:
            return Limit(None, error.says, code_of(error))


SAID_OF_ONE = frozenset({"NoSuchResourceException", "IllegalArgumentException"})
"""Codes that say something of one quota alone."""
KEPT = SAID_OF_ONE | {"AccessDeniedException", "AccessDenied"}
"""Codes that would be the same if we asked again soon."""


def _value(answer: Mapping[str, Any]) -> Limit:
    value = answer.get("Quota", {}).get("Value")
    if value is None:
        return Limit(None, "AWS has sent a quota without a value")
    return Limit(float(value))


def running(calls: Calls, region: str) -> list[Mapping[str, Any]]:
    """Return the instances of the whole account that count; raise Denied or Unreachable."""
    reservations = listed(
        calls, region, "ec2", "describe_instances", "Reservations",
        Filters=[{"Name": "instance-state-name", "Values": list(COUNTED)}], MaxResults=1000,
    )  # fmt: skip
    return [one for reservation in reservations for one in reservation["Instances"]]


def left(limit: Limit, taken: float | None) -> float | None:
    """Return what is left of a quota; None when limit or use are unknown."""
    if limit.vcpus is None or taken is None:
        return None
    return max(0.0, limit.vcpus - taken)
