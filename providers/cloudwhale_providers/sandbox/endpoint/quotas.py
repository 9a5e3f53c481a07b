"""How many vCPUs may run at once, by quota; asked by Service Quotas, held to by launches."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from cloudwhale.spi.prices import Market
from cloudwhale_providers.prices.aws import quota_group
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.names import ACCOUNT

ENOUGH = 1152.0
"""vCPUs of each quota that the weather does not name: enough for a hundred machines."""

NAMES: Mapping[str, tuple[str, float]] = {
    "L-1216C47A": ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 5.0),
    "L-DB2E81BA": ("Running On-Demand G and VT instances", 0.0),
    "L-417A185B": ("Running On-Demand P instances", 0.0),
    "L-34B43A08": ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 5.0),
    "L-3819A6DF": ("All G and VT Spot Instance Requests", 0.0),
    "L-7212CCBC": ("All P4, P3 and P2 Spot Instance Requests", 0.0),
    "L-C4BD4855": ("All P5 Spot Instance Requests", 0.0),
}
"""Names and what a new account has: AWS General Reference, "Amazon EC2 endpoints and quotas"."""

CODES: Mapping[tuple[Market, str], str] = {
    ("on-demand", "standard"): "L-1216C47A",
    ("on-demand", "G"): "L-DB2E81BA",
    ("on-demand", "P"): "L-417A185B",
    ("spot", "standard"): "L-34B43A08",
    ("spot", "G"): "L-3819A6DF",
    ("spot", "P"): "L-7212CCBC",
    ("spot", "P5"): "L-C4BD4855",
}


class Quotas:
    """Answers Service Quotas."""

    def __init__(self, said: Mapping[str, float]) -> None:
        self._said = said

    def left(self, code: str | None, used: float) -> float:
        """Return how many vCPUs may still be had; a quota without a code knows no end."""
        return float("inf") if code is None else self._value(code) - used

    def answer(self, asked: Asked, region: str) -> Answer:
        """Return an answer; raise Refused."""
        words: dict[str, Any] = json.loads(asked.body or b"{}")
        if words.get("ServiceCode") != "ec2":
            raise _missing()
        action = asked.action
        if action in ("GetServiceQuota", "GetAWSDefaultServiceQuota"):
            code = words.get("QuotaCode", "")
            if code not in NAMES and code not in self._said:
                raise _missing()
            told: dict[str, Any] = {"Quota": self._row(code, region, "Default" in action)}
        elif action in ("ListServiceQuotas", "ListAWSDefaultServiceQuotas"):
            rows = [self._row(code, region, "Default" in action) for code in sorted(NAMES)]
            told = {"Quotas": rows}
        else:
            raise Refused("UnknownOperationException", f"the sandbox does not know {action}")
        body = json.dumps(told).encode()
        return Answer(200, {"Content-Type": "application/x-amz-json-1.1"}, body)

    def _value(self, code: str) -> float:
        return self._said.get(code, ENOUGH)

    def _row(self, code: str, region: str, is_default: bool) -> dict[str, Any]:
        name, new = NAMES.get(code, (code, 0.0))
        return {
            "ServiceCode": "ec2",
            "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
            "QuotaArn": f"arn:aws:servicequotas:{region}:{ACCOUNT}:ec2/{code}",
            "QuotaCode": code,
            "QuotaName": name,
            "Value": new if is_default else self._value(code),
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": False,
        }


@cache
def quota_code(type_name: str, market: Market) -> str | None:
    """Return the quota that a type counts against; None where nobody has said its code."""
    return CODES.get((market, quota_group(type_name, market)))


def _missing() -> Refused:
    says = "The request failed because the specified service quota does not exist."
    return Refused("NoSuchResourceException", says)
