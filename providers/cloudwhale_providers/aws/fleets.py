"""The words that EC2 is asked for one machine with, and what it answers.

A fleet of type `instant` tries several zones in one call and leaves nothing behind but its
instances. HTTP 200 without any is its normal way to say no: why stands in `Errors`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.model.offer import Offer
from cloudwhale_providers.aws.listing import Seen, part

VERSION = "1"
"""Of a template: its name tells its content, so it has no other."""


@dataclass(frozen=True, slots=True)
class Made:
    """An instance that EC2 says it has made, or that was found."""

    id: str
    zone: str
    """Empty where the answer does not say."""
    seen: Seen | None = None
    """As it is listed, where it was there before."""
    door: str = ""
    """Who it is to the mailbox's bucket; empty: nobody, or that stands in `seen`."""


def words_of_fleet(
    offer: Offer,
    choices: Sequence[Mapping[str, str]],
    template: str,
    disks: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the words of CreateFleet for one machine in one of several zones.

    Spot without a highest price, which would bring interruptions; EC2 charges no more than the
    on-demand price.
    """
    overrides = [
        {"InstanceType": offer.type, "BlockDeviceMappings": list(disks), **choice}
        for choice in choices
    ]
    if offer.market == "spot":
        options: dict[str, Any] = {
            "SpotOptions": {
                "AllocationStrategy": "price-capacity-optimized",
                "InstanceInterruptionBehavior": "terminate",
            }
        }
    else:
        options = {"OnDemandOptions": {"AllocationStrategy": "lowest-price"}}
    return options | {
        "Type": "instant",
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {
                    "LaunchTemplateName": template,
                    "Version": VERSION,
                },
                "Overrides": overrides,
            }
        ],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": 1,
            "DefaultTargetCapacityType": offer.market,
        },
    }


def words_of_instance(
    offer: Offer,
    choices: Sequence[Mapping[str, str]],
    template: str,
    disks: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the words of RunInstances for one machine in the first of some zones."""
    words: dict[str, Any] = {
        "MinCount": 1,
        "MaxCount": 1,
        "InstanceType": offer.type,
        "LaunchTemplate": {"LaunchTemplateName": template, "Version": VERSION},
        "BlockDeviceMappings": list(disks),
    }
    first = choices[0]
    if "SubnetId" in first:
        words["SubnetId"] = first["SubnetId"]
    else:
        words["Placement"] = {"AvailabilityZone": first["AvailabilityZone"]}
    if offer.market == "spot":
        words["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": {
                "SpotInstanceType": "one-time",
                "InstanceInterruptionBehavior": "terminate",
            },
        }
    return words


def had(answer: Mapping[str, Any]) -> Made | None:
    """Return the instance of an answer; None when there is none."""
    for one in answer.get("Instances") or ():
        ids = one.get("InstanceIds") or [one.get("InstanceId")]
        where = part(part(one, "LaunchTemplateAndOverrides"), "Overrides")
        placed = part(one, "Placement")
        zone = (
            one.get("AvailabilityZone")
            or placed.get("AvailabilityZone")
            or where.get("AvailabilityZone")
        )
        if ids and ids[0]:
            return Made(str(ids[0]), str(zone or ""))
    return None
