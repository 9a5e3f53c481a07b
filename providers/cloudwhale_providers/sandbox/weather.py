"""The weather of a sandbox as a YAML file says it: what its cloud has, and what befalls machines.

What each key means stands in docs/sandbox.md.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import SpecError
from cloudwhale_providers.sandbox.endpoint.weather_values import (
    ANY,
    NOTICE_S,
    Capacity,
    Hang,
    Interruption,
    Maintenance,
    MetadataFault,
    PriceFactor,
    Reap,
    Refusal,
    Weather,
)
from cloudwhale_providers.sandbox.names import AWS, GCP
from cloudwhale_providers.sandbox.pace import TimeOfDay
from cloudwhale_providers.sandbox.script import Spot, root
from cloudwhale_providers.sandbox.weather_parts import SPAN, WHICH, nth, seconds, span, which
from cloudwhale_providers.sandbox.weather_stores import outage, pace

FASTEST = 3600.0
"""At more a lease of minutes is over before a process has started."""
MOST_BYTES = 1 << 20
MAINTENANCE = ("instance-stop", "instance-retirement")
"""Scheduled events that end a machine here; one that is rebooted would not run its agent again."""
RUNNING = "running"
TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
CLOUDS = (AWS, GCP)
METRIC = re.compile(r"(?:[a-z]+-[a-z]+[0-9]+/)?[A-Z][A-Z0-9_]+")
"""A quota of Compute Engine, of one region or of all: `us-east4/NVIDIA_L4_GPUS`."""

_OWNED: Mapping[str, bool] = {"none": False, "all": True, "yes": True, "no": False}
_YES: Mapping[str, bool] = {"yes": True, "no": False, "true": True, "false": False}
_SWITCHES = (
    "spot_role", "image", "default_network", "external_addresses", "preemption_notices",
)  # fmt: skip
_WHEN = ("at", "after", *WHICH, "machine", "which")


@dataclass(frozen=True, slots=True)
class Script:
    """What a file says; without one it is fine weather in real time."""

    speed: float = 1.0
    begins: TimeOfDay | None = None
    """What time of day it is there when it starts; None: what it is outside."""
    clouds: tuple[str, ...] = (AWS,)
    """Which clouds there are; the first one's store is the main one."""
    owned: bool = True
    """Whether this host takes jobs beside the cloud."""
    weather: Weather = Weather()
    digest: str = ""
    file: str = ""


def read(path: Path) -> Script:
    """Return what a file says; raise SpecError, naming file, line, value and remedy."""
    try:
        with path.open("rb") as file:
            body = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SpecError(
            f"it cannot be read: {error.strerror}", "Name a YAML file.", file=str(path)
        ) from error
    if len(body) > MOST_BYTES:
        raise SpecError("it is over a MiB", "Is that the right file?", file=str(path))
    script = Script(digest=hashlib.sha256(body).hexdigest()[:16], file=str(path))
    whole = root(str(path), body)
    if whole is None:
        return script
    fields = whole.fields(tuple(_KEYS))
    for key in _KEYS:  # in this order: ages of machines are counted from the end of their boot
        if key in fields:
            script = _KEYS[key](script, fields[key])
    return script


def _speed(script: Script, spot: Spot) -> Script:
    wanted = f"a number from 1 to {FASTEST:g}, like 60: so many seconds in one"
    return replace(script, speed=spot.number(1.0, FASTEST, wanted))


def _begins(script: Script, spot: Spot) -> Script:
    clock, _, zone = spot.text.partition(" ")
    found, name = TIME_OF_DAY.fullmatch(clock), zone.strip()
    if found is None:
        raise spot.wrong("is no time of day", "Write one, 21:55 or 21:55 Europe/Berlin.")
    try:
        name = ZoneInfo(name).key if name else ""
    except (KeyError, ValueError, OSError) as error:
        remedy = "Write the zone's IANA name, like 21:55 Europe/Berlin, or leave it out."
        raise spot.wrong("is in no time zone that is known here", remedy) from error
    return replace(script, begins=TimeOfDay(60 * int(found[1]) + int(found[2]), name))


def _clouds(script: Script, spot: Spot) -> Script:
    def one(spot: Spot) -> str:
        if spot.text not in CLOUDS:
            raise spot.wrong("is no cloud of the sandbox", f"Write {' or '.join(CLOUDS)}.")
        return spot.text

    found = spot.each(one)
    if len(set(found)) != len(found) or not found:
        raise spot.wrong("names a cloud twice, or none", f"Write [{', '.join(CLOUDS)}].")
    return replace(script, clouds=tuple(name for name in CLOUDS if name in found))


def _owned(script: Script, spot: Spot) -> Script:
    return replace(script, owned=spot.truth(_OWNED))


def _boot(script: Script, spot: Spot) -> Script:
    if spot.is_plain and spot.text.lower() == "hangs":
        return _but(script, hangs=(Hang(),))
    return _but(script, boot_s=spot.seconds())


def _hang(script: Script, spot: Spot) -> Script:
    return _but(script, hangs=(*script.weather.hangs, *spot.each(_one_hang)))


def _one_hang(spot: Spot) -> Hang:
    fields = spot.fields((*WHICH, "machine"))
    return Hang(which(fields), nth(fields))


def _capacity(script: Script, spot: Spot) -> Script:
    return _but(script, capacity=spot.each(_one_capacity))


def _one_capacity(spot: Spot) -> Capacity:
    if spot.is_plain:
        return Capacity(ANY, _machines(spot))
    fields = spot.fields(("machines", "again", *WHICH, *SPAN))
    if "machines" not in fields:
        raise spot.wrong("says no number of machines", "Add `machines: 0`, or more.")
    again = "again" not in fields or fields["again"].truth(_YES)
    return Capacity(which(fields), _machines(fields["machines"]), *span(fields), again)


def _machines(spot: Spot) -> int:
    return spot.whole(0, 1_000_000, "how many machines there are, like 0")


def _refuse(script: Script, spot: Spot) -> Script:
    return _but(script, refusals=spot.each(_one_refusal))


def _one_refusal(spot: Spot) -> Refusal:
    if spot.is_plain:
        return Refusal(ANY, spot.text)
    fields = spot.fields(("code", *WHICH, *SPAN))
    if "code" not in fields:
        raise spot.wrong("names no error", "Add `code: Unsupported`, or another code of EC2.")
    return Refusal(which(fields), fields["code"].text, *span(fields))


def _interrupt(script: Script, spot: Spot) -> Script:
    boot_s = script.weather.boot_s
    return _but(script, interruptions=spot.each(lambda one: _one_interruption(one, boot_s)))


def _one_interruption(spot: Spot, boot_s: Seconds) -> Interruption:
    if spot.is_plain:  # the first spot machine, so long after its boot
        return Interruption(age_s=boot_s + spot.seconds(), nth=1)
    fields = spot.fields((*_WHEN, "notice", "rebalance"))
    meant = which(fields, market="spot")
    if not meant.fits(meant.type, meant.zone, "spot"):
        raise fields["market"].wrong("is not interrupted", "Only spot machines are.")
    return Interruption(
        **_when(spot, fields, boot_s),
        which=meant,
        notice_s=seconds(fields, "notice", NOTICE_S),
        rebalance_s=seconds(fields, "rebalance", 0.0),
    )


def _maintenance(script: Script, spot: Spot) -> Script:
    boot_s = script.weather.boot_s
    return _but(script, maintenance=spot.each(lambda one: _one_maintenance(one, boot_s)))


def _one_maintenance(spot: Spot, boot_s: Seconds) -> Maintenance:
    fields = spot.fields((*_WHEN, "ahead", "code"))
    code = fields["code"].text if "code" in fields else Maintenance().code
    if code not in MAINTENANCE:
        raise fields["code"].wrong("is not possible", f"Write {' or '.join(MAINTENANCE)}.")
    return Maintenance(
        **_when(spot, fields, boot_s),
        which=which(fields),
        ahead_s=seconds(fields, "ahead", Maintenance().ahead_s),
        code=code,
    )


def _when(spot: Spot, fields: Mapping[str, Spot], boot_s: Seconds) -> dict[str, Any]:
    """Return when the cloud begins to end machines, and how many of them."""
    if ("at" in fields) == ("after" in fields):
        raise spot.wrong(
            "does not say when, or says it twice",
            "Write `after: 20s` (since the machine runs) or `at: 5m` (since the cloud does).",
        )
    after, at, only = fields.get("after"), fields.get("at"), fields.get("which")
    if only is not None and only.text != RUNNING:
        raise only.wrong("is not possible", f"Write {RUNNING}, or leave it out.")
    if only is not None and "machine" in fields:
        raise only.wrong("and `machine` say two things", "Remove one of them.")
    return {
        "at_s": None if at is None else at.seconds(),
        "age_s": None if after is None else boot_s + after.seconds(),
        "nth": nth(fields),
        "once": only is not None,
    }


def _fail(script: Script, spot: Spot) -> Script:
    boot_s = script.weather.boot_s
    return _but(script, reaps=spot.each(lambda one: _one_failure(one, boot_s)))


def _one_failure(spot: Spot, boot_s: Seconds) -> Reap:
    if spot.is_plain:
        return Reap(boot_s + spot.seconds(), nth=1)
    fields = spot.fields(("after", "code", *WHICH, "machine"))
    age_s = boot_s + fields["after"].seconds() if "after" in fields else 0.0
    code = fields["code"].text if "code" in fields else Reap().code
    return Reap(age_s, which(fields), nth(fields), code)


def _price(script: Script, spot: Spot) -> Script:
    return _but(script, price_factors=spot.each(_one_price))


def _one_price(spot: Spot) -> PriceFactor:
    if spot.is_plain:
        return PriceFactor(0.0, _times(spot))
    fields = spot.fields(("times", "from", *WHICH))
    if "times" not in fields:
        raise spot.wrong("does not say by how much", "Add `times: 2`.")
    return PriceFactor(seconds(fields, "from", 0.0), _times(fields["times"]), which(fields))


def _times(spot: Spot) -> float:
    if spot.text.lower() == "doubled":
        return 2.0
    return spot.number(0.01, 100.0, "a factor from 0.01 to 100, like 2")


def _s3(script: Script, spot: Spot) -> Script:
    slow_s, mib_s = pace(spot)
    return _but(script, s3_slow_s=slow_s, s3_mib_s=mib_s)


def _gs(script: Script, spot: Spot) -> Script:
    slow_s, mib_s = pace(spot)
    return _but(script, gs_slow_s=slow_s, gs_mib_s=mib_s)


def _outage(script: Script, spot: Spot) -> Script:
    return _but(script, outages=spot.each(outage))


def _throttle(script: Script, spot: Spot) -> Script:
    return _but(script, throttle_share=_share(spot))


def _faults(script: Script, spot: Spot) -> Script:
    return _but(script, fault_share=_share(spot))


def _share(spot: Spot) -> float:
    return spot.number(0.0, 0.95, "a share of the calls from 0 to 0.95, like 0.2")


def _metadata(script: Script, spot: Spot) -> Script:
    return _but(script, metadata_faults=spot.each(_one_metadata_fault))


def _one_metadata_fault(spot: Spot) -> MetadataFault:
    fields = spot.fields(("delay", "code", *SPAN))
    code = fields.get("code")
    delay_s = seconds(fields, "delay", 0.0)
    status = None if code is None else code.whole(400, 599, "an HTTP status, like 500")
    return MetadataFault(delay_s, status, *span(fields))


def _clock(script: Script, spot: Spot) -> Script:
    return _but(script, clock_ahead_s=spot.ahead())


def _quota(script: Script, spot: Spot) -> Script:
    codes = [key.value for key, _ in spot.node.value] if not spot.is_plain else []
    wanted = "a number of vCPUs or GPUs, like 8"
    quotas = {code: units.number(0.0, 1e6, wanted) for code, units in spot.fields(codes).items()}
    for code in quotas:
        if not code.startswith("L-") and METRIC.fullmatch(code) is None:
            raise spot.wrong(
                f"has {code}, which is no quota", "Write L-3819A6DF: 8, or NVIDIA_L4_GPUS: 1."
            )
    return _but(script, quotas=quotas)


def _unseen(script: Script, spot: Spot) -> Script:
    return _but(script, unseen_s=spot.seconds())


def _account(script: Script, spot: Spot) -> Script:
    fields = spot.fields((*_SWITCHES, "policies", "closed_apis"))
    policies, closed = fields.pop("policies", None), fields.pop("closed_apis", None)
    said: dict[str, Any] = {key: value.truth(_YES) for key, value in fields.items()}
    if closed is not None:
        said["closed_apis"] = frozenset(closed.each(lambda one: one.text))
    if policies is not None:
        said["strict_policies"] = policies.truth({"strict": True, "none": False})
    return _but(script, **said)


def _operation(script: Script, spot: Spot) -> Script:
    return _but(script, operation_s=spot.seconds())


def _seed(script: Script, spot: Spot) -> Script:
    return _but(script, seed=spot.whole(0, 2**31, "a whole number, like 7"))


_KEYS: Mapping[str, Callable[[Script, Spot], Script]] = {
    "clouds": _clouds, "speed": _speed, "begins": _begins, "owned": _owned,
    "boot": _boot, "hang": _hang,
    "capacity": _capacity, "refuse": _refuse, "interrupt": _interrupt, "maintenance": _maintenance,
    "fail": _fail, "price": _price, "s3": _s3, "gs": _gs, "outage": _outage,
    "throttle": _throttle, "faults": _faults, "metadata": _metadata, "clock": _clock,
    "quota": _quota, "unseen": _unseen, "account": _account, "operation": _operation,
    "seed": _seed,
}  # fmt: skip
KEYS = tuple(_KEYS)
"""All that a script may say."""


# -- parts of several ------------------------------------------------------------------------


def _but(script: Script, **changed: Any) -> Script:
    return replace(script, weather=replace(script.weather, **changed))
