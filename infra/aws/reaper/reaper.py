"""A function of AWS Lambda that ends machines of cloudwhale which have outlived their stop.

For whoever wants a third way beside the machine's own watchdog and its schedule. EventBridge calls
it with the time, every few minutes; what carries `cloudwhale:installation` and a
`cloudwhale:stop-at` that is past by some minutes is ended, and nothing else is touched. Its log
names what it ended.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

INSTALLATION, STOP_AT, NODE = "cloudwhale:installation", "cloudwhale:stop-at", "cloudwhale:node"
LATE_S = 300.0
"""Schedules fire within a minute as a rule; who comes first after that is welcome."""
PATIENCE: Any = Config(connect_timeout=3, read_timeout=10, retries={"total_max_attempts": 2})
"""A region that does not answer takes half a minute of the function's two, and not all of them."""
ALIVE = ("pending", "running", "stopping", "stopped")
"""A stopped machine has a disk that is billed."""


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """End what is late in all regions that are meant; raise when some could not be ended.

    `event`: of EventBridge, whose `time` is when it was to happen. Environment: `REGIONS`, names
    with commas, else all that are enabled; `INSTALLATION`, else all of the account's; `LATE_S`.
    """
    now = datetime.fromisoformat(str(event["time"]).replace("Z", "+00:00")).timestamp()
    late_s = float(os.environ.get("LATE_S") or LATE_S)
    whose = os.environ.get("INSTALLATION", "")
    ended: list[dict[str, str]] = []
    failed: list[dict[str, str]] = []
    for region in _regions():
        try:
            late = list(_late(region, whose, now - late_s))
        except (BotoCoreError, ClientError) as error:
            # The other regions are looked at all the same.
            failed.append({"region": region, "says": str(error)})
            continue
        for one in late:
            (failed if _is_refused(region, one) else ended).append(one)
    told = {"ended": ended, "failed": failed}
    print(json.dumps(told))
    if failed:
        raise RuntimeError(f"not all was ended: {json.dumps(failed)}")  # Lambda counts it as error
    return told


def _regions() -> Sequence[str]:
    named = [one.strip() for one in os.environ.get("REGIONS", "").split(",") if one.strip()]
    if named:
        return named
    answer = _ec2(os.environ.get("AWS_REGION") or "us-east-1").describe_regions()
    return [str(one["RegionName"]) for one in answer["Regions"]]


def _late(region: str, whose: str, before: float) -> Iterator[dict[str, str]]:
    """Yield our machines whose stop was before a time; one that names none has no stop by us."""
    tag = {"Name": f"tag:{INSTALLATION}", "Values": [whose]}
    filters = [
        tag if whose else {"Name": "tag-key", "Values": [INSTALLATION]},
        {"Name": "instance-state-name", "Values": list(ALIVE)},
    ]
    for page in _ec2(region).get_paginator("describe_instances").paginate(Filters=filters):
        for one in (each for row in page["Reservations"] for each in row["Instances"]):
            said = {tag["Key"]: tag["Value"] for tag in one.get("Tags", ())}
            stop_at = _seconds(said.get(STOP_AT, ""))
            if INSTALLATION in said and stop_at is not None and stop_at < before:
                yield {
                    "region": region, "id": str(one["InstanceId"]),
                    "installation": said[INSTALLATION], "node": said.get(NODE, ""),
                    "stop_at": said[STOP_AT],
                }  # fmt: skip


def _seconds(text: str) -> float | None:
    """Return a time since 1970; None for what is none."""
    return float(text) if text.isdigit() else None


def _is_refused(region: str, one: dict[str, str]) -> bool:
    """End a machine; note why not, where it could not be."""
    try:
        _ec2(region).terminate_instances(InstanceIds=[one["id"]])
    except (BotoCoreError, ClientError) as error:
        one["says"] = str(error)
        return True
    return False


def _ec2(region: str) -> Any:
    sdk: Any = boto3
    return sdk.client("ec2", region_name=region, config=PATIENCE)
