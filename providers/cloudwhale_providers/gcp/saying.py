"""What Google says when it refuses: read from the answer to a call, or from a failed operation."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cloudwhale_providers.gcp.asking import Said

METRIC = re.compile(r"Quota '(\w+)' exceeded")
LIMIT = re.compile(r"Limit: ([0-9.]+)")


def told(status: int, body: bytes) -> Said:
    """Return what the answer to a call that was refused says; it may be no JSON at all."""
    try:
        return _read(status, json.loads(body)["error"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return Said(str(status), body[:200].decode(errors="replace") or f"HTTP {status}", status)


def _read(status: int, error: Mapping[str, Any]) -> Said:
    info = _first(one for one in _dicts(error.get("details")) if one.get("reason"))
    reasons = [str(one["reason"]) for one in _dicts(error.get("errors")) if one.get("reason")]
    code = str(info.get("reason") or next(iter(reasons), "") or error.get("status") or status)
    metadata: Mapping[str, Any] = info.get("metadata") or {}
    facts = {str(key): str(value) for key, value in metadata.items()}
    return _with_quota(Said(code, str(error["message"]), status, facts=facts))


def wrong_with(operation: Mapping[str, Any]) -> Sequence[Said]:
    """Return what an operation has failed of; none: it has not failed."""
    found: list[Said] = []
    error: Mapping[str, Any] = operation.get("error") or {}
    for one in _dicts(error.get("errors")):
        details = _dicts(one.get("errorDetails"))
        quota = _first(part["quotaInfo"] for part in details if part.get("quotaInfo"))
        status = int(operation.get("httpErrorStatusCode") or 400)
        said = Said(str(one.get("code", "")), str(one.get("message", "")), status)
        found.append(_with_quota(said, quota))
    return found


def _with_quota(said: Said, info: Mapping[str, Any] | None = None) -> Said:
    """Return what was said with the quota that it names, in words or in parts of its own."""
    info = info or {}
    named, limit = METRIC.search(said.says), LIMIT.search(said.says)
    metric = named[1] if named else _metric(info)
    most = info.get("limit", limit[1].rstrip(".") if limit else None)
    if not metric:
        return said
    return Said(
        said.code, said.says, said.status, metric, None if most is None else float(most), said.facts
    )


def _metric(info: Mapping[str, Any]) -> str:
    """Return the metric of `NVIDIA-L4-GPUS-per-project-region`, as `regions.get` calls it."""
    return str(info.get("limitName", "")).partition("-per-")[0].replace("-", "_")


def _dicts(found: Iterable[Any] | None) -> Sequence[Mapping[str, Any]]:
    """Return the parts of a list that are what they should be."""
    return [one for one in found or () if hasattr(one, "get")]


def _first(some: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the first of some parts; empty where there is none."""
    for one in some:
        return one
    return {}
