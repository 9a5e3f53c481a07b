"""EventBridge Scheduler in memory, as far as stops need it; nothing fires by itself."""

from importlib import import_module
from typing import Any

_exceptions: Any = import_module("botocore.exceptions")

Words = dict[str, Any]


def refused(code: str, says: str = "no", status: int = 400) -> Exception:
    """Make AWS's refusal, as boto3 raises it."""
    answer = {
        "Error": {"Code": code, "Message": says},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    error: Exception = _exceptions.ClientError(answer, "Asked")
    return error


class SmallSchedules:
    """Schedules by region, group and name."""

    def __init__(self) -> None:
        self.schedules: dict[tuple[str, str, str], Words] = {}
        self.schedule_groups: set[tuple[str, str]] = set()

    def create_schedule_group(self, region: str, words: Words) -> Words:
        key = (region, words["Name"])
        if key in self.schedule_groups:
            raise refused("ConflictException")
        self.schedule_groups.add(key)
        return {"ScheduleGroupArn": "arn:aws:scheduler:group"}

    def create_schedule(self, region: str, words: Words) -> Words:
        if (region, words["GroupName"]) not in self.schedule_groups:
            raise refused("ResourceNotFoundException", status=404)
        key = (region, words["GroupName"], words["Name"])
        if key in self.schedules:
            raise refused("ConflictException", status=409)
        self.schedules[key] = words
        return {"ScheduleArn": "arn:aws:scheduler:schedule"}

    def update_schedule(self, region: str, words: Words) -> Words:
        key = (region, words["GroupName"], words["Name"])
        if key not in self.schedules:
            raise refused("ResourceNotFoundException", status=404)
        self.schedules[key] = words
        return {"ScheduleArn": "arn:aws:scheduler:schedule"}

    def delete_schedule(self, region: str, words: Words) -> Words:
        key = (region, words["GroupName"], words["Name"])
        if self.schedules.pop(key, None) is None:
            raise refused("ResourceNotFoundException", status=404)
        return {}

    def list_schedules(self, region: str, words: Words) -> Words:
        return {
            "Schedules": [
                {"GroupName": group, "Name": name}
                for where, group, name in self.schedules
                if where == region
            ]
        }
