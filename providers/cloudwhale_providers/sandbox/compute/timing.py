"""How long a machine may run, and what becomes of it then: `scheduling` of an insert."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.prices import Market
from cloudwhale_providers.sandbox.compute.records import Then
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused, invalid
from cloudwhale_providers.sandbox.compute.wording import read_at
from cloudwhale_providers.sandbox.endpoint.weather_values import Weather

LEAST_S, MOST_S = 30.0, 120 * 86_400.0
"""Compute Engine docs, "Limit the run time of a VM"."""
NOTICES_S = (0.0, 120.0)
"""Compute Engine release notes, 2026-09-30: preemptionNoticeDuration."""
FIELD = "resource.scheduling"
NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Timing:
    """What `scheduling` says."""

    market: Market
    then: Then
    runs_for_s: Seconds | None
    ends_at: Instant | None
    notice_s: Seconds
    words: Mapping[str, Any]
    """As it is listed, with what was left out."""


def timing(said: Mapping[str, Any], has_gpus: bool, weather: Weather, now: Instant) -> Timing:
    """Return what is asked for; raise Refused."""
    model = str(said.get("provisioningModel") or "STANDARD")
    is_legacy = bool(said.get("preemptible")) and model != "SPOT"
    is_spot = model == "SPOT" or is_legacy
    if model not in ("STANDARD", "SPOT"):
        raise invalid(f"{FIELD}.provisioningModel", model, "It is not known to the sandbox.")
    restarts = bool(said.get("automaticRestart", not is_spot))
    if is_spot and restarts:
        says = "Scheduling must have preemptible be false when AutomaticRestart is true."
        raise invalid(f"{FIELD}.preemptible", "true", says)
    moved = str(said.get("onHostMaintenance") or ("TERMINATE" if is_spot else "MIGRATE"))
    if moved == "MIGRATE" and has_gpus:
        says = "Instances with guest accelerators do not support live migration."
        raise invalid(f"{FIELD}.onHostMaintenance", moved, says)
    if moved == "MIGRATE" and is_spot:
        raise invalid(f"{FIELD}.onHostMaintenance", moved, "Spot VMs do not migrate.")
    runs_for_s, ends_at = _limits(said, now)
    _check_action(said, is_spot, runs_for_s is not None or ends_at is not None)
    if is_legacy and runs_for_s is not None:
        raise invalid(f"{FIELD}.maxRunDuration", runs_for_s, "Not for preemptible VMs.")
    words = {
        **said, "onHostMaintenance": moved, "automaticRestart": restarts, "preemptible": is_spot,
        "provisioningModel": "SPOT" if model == "SPOT" else "STANDARD",
    }  # fmt: skip
    then: Then = "DELETE" if said.get("instanceTerminationAction") == "DELETE" else "STOP"
    notice_s = _notice(said, is_spot, weather)
    market: Market = "spot" if is_spot else "on-demand"
    return Timing(market, then, runs_for_s, ends_at, notice_s, words)


def _limits(said: Mapping[str, Any], now: Instant) -> tuple[Seconds | None, Instant | None]:
    runs_for_s = _seconds(said.get("maxRunDuration"))
    text = said.get("terminationTime")
    if runs_for_s is not None and text:
        says = "maxRunDuration and terminationTime cannot both be given."
        raise invalid(FIELD, "", says)
    if runs_for_s is not None and not LEAST_S <= runs_for_s <= MOST_S:
        says = "Must be between 30 seconds and 120 days."
        raise invalid(f"{FIELD}.maxRunDuration", f"{runs_for_s:g}s", says)
    if not text:
        return runs_for_s, None
    ends_at = read_at(str(text))
    if ends_at is None or not now + LEAST_S <= ends_at <= now + MOST_S:
        says = "Must be between 30 seconds and 120 days from now."
        raise invalid(f"{FIELD}.terminationTime", text, says)
    return None, ends_at


def _check_action(said: Mapping[str, Any], is_spot: bool, is_limited: bool) -> None:
    action = said.get("instanceTerminationAction")
    if action and not (is_spot or is_limited):
        says = "Only for Spot VMs and for VMs whose run time is limited."
        raise invalid(f"{FIELD}.instanceTerminationAction", action, says)
    if is_limited and not action:
        says = "You must set instanceTerminationAction with maxRunDuration or terminationTime."
        raise GoogleRefused("invalid", says)


def _notice(said: Mapping[str, Any], is_spot: bool, weather: Weather) -> Seconds:
    notice_s = _seconds(said.get("preemptionNoticeDuration"))
    if notice_s is None:
        return 0.0
    if not weather.preemption_notices or not is_spot or notice_s not in NOTICES_S:
        says = "Must be 0 or 120 seconds, and of a Spot VM."
        raise invalid(f"{FIELD}.preemptionNoticeDuration", f"{notice_s:g}s", says)
    return notice_s


def _seconds(said: Any) -> Seconds | None:
    if not said:
        return None
    return int(said.get("seconds", 0)) + int(said.get("nanos", 0)) / NANO
