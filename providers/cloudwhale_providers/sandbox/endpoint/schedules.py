"""EventBridge Scheduler: schedules that fire by the sandbox's clock, and end instances."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cloudwhale.model.units import Instant, Seconds
from cloudwhale_providers.sandbox.endpoint.fields import each, inner
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.endpoint.tokens import Tokens
from cloudwhale_providers.sandbox.names import ACCOUNT

ENDS = "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances"
"""The one target that the sandbox carries out."""
ONCE = re.compile(r"at\(([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})\)")
NAME = re.compile(r"[0-9a-zA-Z_.-]{1,64}")
DEFAULT = "default"
PAGE = 100

Words = dict[str, Any]
Ending = Callable[[str, str, Instant], None]
"""Ends an instance of a region, at a time; one that is not there is left alone."""
GIVEN = (
    "Description", "EndDate", "StartDate", "FlexibleTimeWindow", "KmsKeyArn", "ScheduleExpression",
    "ScheduleExpressionTimezone", "State", "Target", "ActionAfterCompletion",
)  # fmt: skip
OTHERWISE: Mapping[str, Any] = {
    "ScheduleExpressionTimezone": "UTC",
    "State": "ENABLED",
    "ActionAfterCompletion": "NONE",
}
RETRIED = {"MaximumEventAgeInSeconds": 86400, "MaximumRetryAttempts": 185}


VERBS = {"POST": "Create", "PUT": "Update", "GET": "Get", "DELETE": "Delete"}


def action_of(asked: Asked) -> str:
    """Return what the service calls a request: `CreateSchedule`, `ListScheduleGroups`."""
    kind, _, name = asked.target.partition("?")[0].lstrip("/").partition("/")
    if kind == "tags":
        return "ListTagsForResource"
    what = "ScheduleGroup" if kind == "schedule-groups" else "Schedule"
    return f"{VERBS.get(asked.method, asked.method)}{what}" if name else f"List{what}s"


@dataclass(slots=True)
class Schedule:
    """One schedule."""

    words: Words
    fires_at: Instant
    made_at: Instant
    changed_at: Instant
    has_fired: bool = False


@dataclass(slots=True)
class Group:
    """Some schedules by name."""

    made_at: Instant
    tags: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    schedules: dict[str, Schedule] = field(default_factory=dict[str, Schedule])


class Schedules:
    """Answers one request at a time; whoever calls it holds the endpoint's turn."""

    def __init__(self, has_role: Callable[[str], bool], late_s: Seconds) -> None:
        self._has_role = has_role
        self._late_s = late_s
        self._groups: dict[str, dict[str, Group]] = {}
        self._tokens = Tokens("ConflictException")

    # -- firing ------------------------------------------------------------------------------

    def next_at(self) -> Instant | None:
        """Return when the next one fires; None: none does."""
        return min((one.fires_at for *_, one in self._waiting()), default=None)

    def advance(self, now: Instant, end: Ending) -> None:
        """Fire what is due, in the order of its time."""
        due = [one for one in self._waiting() if one[2].fires_at <= now]
        for region, name, schedule in sorted(due, key=lambda one: (one[2].fires_at, one[1])):
            schedule.has_fired = True
            for machine in json.loads(schedule.words["Target"].get("Input") or "{}")["InstanceIds"]:
                end(region, machine, schedule.fires_at)
            if schedule.words["ActionAfterCompletion"] == "DELETE":
                for group in self._groups[region].values():
                    if group.schedules.get(name) is schedule:
                        del group.schedules[name]

    def _waiting(self) -> list[tuple[str, str, Schedule]]:
        return [
            (region, name, schedule)
            for region, groups in self._groups.items()
            for group in groups.values()
            for name, schedule in group.schedules.items()
            if not schedule.has_fired and schedule.words["State"] == "ENABLED"
        ]

    # -- answering ---------------------------------------------------------------------------

    def answer(self, asked: Asked, region: str, now: Instant) -> Answer:
        """Return an answer; raise Refused."""
        kind, _, name = asked.target.partition("?")[0].lstrip("/").partition("/")
        name = unquote(name)
        words: Words = json.loads(asked.body) if asked.body else {}
        token = str(words.pop("ClientToken", "") or asked.query.get("clientToken", ""))
        groups = self._groups.setdefault(region, {DEFAULT: Group(now)})
        verbs: Mapping[tuple[str, str, bool], Callable[[], Words]] = {
            ("POST", "schedules", True): lambda: self._create(groups, region, (name, words), now),
            ("PUT", "schedules", True): lambda: self._update(groups, region, (name, words), now),
            ("GET", "schedules", True): lambda: _told(
                _schedule(groups, asked.query.get("groupName"), name), region, name
            ),
            ("DELETE", "schedules", True): lambda: _delete(groups, asked.query, name),
            ("GET", "schedules", False): lambda: _list(groups, asked.query, region),
            ("POST", "schedule-groups", True): lambda: _make(groups, region, (name, words), now),
            ("GET", "schedule-groups", True): lambda: _told_group(groups, region, name),
            ("DELETE", "schedule-groups", True): lambda: _unmake(groups, name),
            ("GET", "schedule-groups", False): lambda: {
                "ScheduleGroups": [_told_group(groups, region, one) for one in sorted(groups)]
            },
            ("GET", "tags", True): lambda: {"Tags": _group(groups, name.rpartition("/")[2]).tags},
        }
        verb = verbs.get((asked.method, kind, bool(name)))
        if verb is None:
            raise Refused("ValidationException", "the sandbox does not know this request")
        key = (region, asked.method, kind, name)
        return self._tokens.once(key, token, words, lambda: _json(verb()))

    def _create(
        self, groups: dict[str, Group], region: str, named: tuple[str, Words], now: Instant
    ) -> Words:
        name, words = named
        group = _group(groups, words.get("GroupName"))
        if name in group.schedules:
            raise Refused("ConflictException", f"Schedule {name} already exists.", 409)
        schedule = Schedule(self._checked(name, words), self._fires_at(words), now, now)
        group.schedules[name] = schedule
        return {"ScheduleArn": _told(schedule, region, name)["Arn"]}

    def _update(
        self, groups: dict[str, Group], region: str, named: tuple[str, Words], now: Instant
    ) -> Words:
        """Replace all fields: what is not said is as if it had never been (API Reference)."""
        name, words = named
        there = _schedule(groups, words.get("GroupName"), name)
        fires_at = self._fires_at(words)
        there.words, there.changed_at = self._checked(name, words), now
        there.has_fired = there.has_fired and fires_at == there.fires_at
        there.fires_at = fires_at
        return {"ScheduleArn": _told(there, region, name)["Arn"]}

    def _checked(self, name: str, words: Words) -> Words:
        target = inner(words, "Target")
        if NAME.fullmatch(name) is None:
            raise _invalid("Value at 'name' failed to satisfy constraint")
        if target.get("Arn") != ENDS:
            raise _invalid(f"{target.get('Arn')} is not a target that the sandbox knows")
        try:
            machines = json.loads(target.get("Input") or "")["InstanceIds"]
        except (ValueError, KeyError, TypeError) as error:
            raise _invalid("Target.Input names no InstanceIds") from error
        if not isinstance(machines, list):
            raise _invalid("Target.Input names no InstanceIds")
        if not self._has_role(str(target.get("RoleArn"))):
            raise _invalid(
                "The execution role you provide must allow AWS EventBridge Scheduler to assume "
                "the role."
            )
        if inner(words, "FlexibleTimeWindow").get("Mode") not in ("OFF", "FLEXIBLE"):
            raise _invalid("FlexibleTimeWindow has no Mode")
        kept = {key: words[key] for key in GIVEN if words.get(key) is not None}
        kept["Target"] = {"RetryPolicy": RETRIED, **target}
        return {**OTHERWISE, **kept, "GroupName": words.get("GroupName") or DEFAULT}

    def _fires_at(self, words: Words) -> Instant:
        said = ONCE.fullmatch(str(words.get("ScheduleExpression")))
        if said is None:
            raise _invalid("Invalid Schedule Expression: the sandbox knows at(yyyy-mm-ddThh:mm:ss)")
        name = words.get("ScheduleExpressionTimezone") or "UTC"
        try:
            zone = UTC if name == "UTC" else ZoneInfo(name)
            at = datetime.fromisoformat(said[1]).replace(tzinfo=zone)
        except (ValueError, ZoneInfoNotFoundError) as error:
            raise _invalid("Invalid Schedule Expression, or its time zone") from error
        return at.timestamp() + self._late_s


def _group(groups: dict[str, Group], name: str | None) -> Group:
    found = groups.get(name or DEFAULT)
    if found is None:
        raise Refused("ResourceNotFoundException", f"Schedule group {name} does not exist.", 404)
    return found


def _schedule(groups: dict[str, Group], group: str | None, name: str) -> Schedule:
    found = _group(groups, group).schedules.get(name)
    if found is None:
        raise Refused("ResourceNotFoundException", f"Schedule {name} does not exist.", 404)
    return found


def _delete(groups: dict[str, Group], query: Mapping[str, str], name: str) -> Words:
    _schedule(groups, query.get("groupName"), name)
    del _group(groups, query.get("groupName")).schedules[name]
    return {}


def _list(groups: dict[str, Group], query: Mapping[str, str], region: str) -> Words:
    only, prefix = query.get("ScheduleGroup"), query.get("NamePrefix", "")
    if only is not None:
        _group(groups, only)
    rows = [
        {**told, "Target": {"Arn": told["Target"]["Arn"]}}
        for group_name, group in sorted(groups.items())
        for name, one in sorted(group.schedules.items())
        for told in [_told(one, region, name)]
        if only in (None, group_name)
        and name.startswith(prefix)
        and query.get("State", told["State"]) == told["State"]
    ]
    shown = ("Arn", "CreationDate", "GroupName", "LastModificationDate", "Name", "State", "Target")
    first, most = int(query.get("NextToken", 0)), int(query.get("MaxResults", PAGE))
    page = [{key: row[key] for key in shown} for row in rows[first : first + most]]
    more = {"NextToken": str(first + most)} if len(rows) > first + most else {}
    return {"Schedules": page, **more}


def _make(groups: dict[str, Group], region: str, named: tuple[str, Words], now: Instant) -> Words:
    name, words = named
    if name in groups:
        raise Refused("ConflictException", f"Schedule group {name} already exists.", 409)
    if NAME.fullmatch(name) is None:
        raise _invalid("Value at 'name' failed to satisfy constraint")
    groups[name] = Group(now, list(each(words, "Tags")))
    return {"ScheduleGroupArn": _told_group(groups, region, name)["Arn"]}


def _unmake(groups: dict[str, Group], name: str) -> Words:
    _group(groups, name)
    if name == DEFAULT:
        raise _invalid("The default schedule group cannot be deleted")
    del groups[name]
    return {}


def _told(one: Schedule, region: str, name: str) -> Words:
    group = one.words["GroupName"]
    return {
        **one.words,
        "Arn": f"arn:aws:scheduler:{region}:{ACCOUNT}:schedule/{group}/{name}",
        "Name": name,
        "CreationDate": one.made_at,
        "LastModificationDate": one.changed_at,
    }


def _told_group(groups: dict[str, Group], region: str, name: str) -> Words:
    group = _group(groups, name)
    return {
        "Arn": f"arn:aws:scheduler:{region}:{ACCOUNT}:schedule-group/{name}",
        "Name": name,
        "State": "ACTIVE",
        "CreationDate": group.made_at,
        "LastModificationDate": group.made_at,
    }


def _invalid(says: str) -> Refused:
    return Refused("ValidationException", says)


def _json(told: Words) -> Answer:
    return Answer(200, {"Content-Type": "application/json"}, json.dumps(told).encode())
