"""Which GPUs a machine has: those of its type, or those that are attached to N1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale_providers.sandbox.compute.catalogue import ATTACHED, Kind, catalogue
from cloudwhale_providers.sandbox.compute.places import PROJECT
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused, invalid, not_found
from cloudwhale_providers.sandbox.compute.wording import last

FIELD = "resource.guestAccelerators"


@dataclass(frozen=True, slots=True)
class Accelerators:
    """GPUs of a machine."""

    type: str = ""
    """`nvidia-l4`; empty: none."""
    count: int = 0


def accelerators(body: Mapping[str, Any], kind: Kind, zone: str) -> Accelerators:
    """Return the GPUs of a machine; raise Refused for what cannot be attached."""
    own = Accelerators(kind.accelerator, kind.gpus)
    said: Sequence[Mapping[str, Any]] = body.get("guestAccelerators") or ()
    if not said:
        return own
    if len(said) > 1:
        raise invalid(FIELD, len(said), "At most one accelerator type per instance.")
    found = Accelerators(
        last(str(said[0].get("acceleratorType", ""))), int(said[0].get("acceleratorCount", 0))
    )
    if found.type not in catalogue().accelerators(zone):
        raise not_found(f"projects/{PROJECT}/zones/{zone}/acceleratorTypes/{found.type}")
    if found == own:
        return own
    if found.type not in ATTACHED or not kind.name.startswith("n1-"):
        says = f"[{found.type}] features are not compatible for creating instance: {kind.name}."
        raise GoogleRefused("invalid", says)
    _check_count(found, kind)
    return found


def _check_count(found: Accelerators, kind: Kind) -> None:
    each, most, counts = ATTACHED[found.type]
    if found.count not in counts:
        says = f"Number of accelerators must be one of {', '.join(map(str, counts))}."
        raise invalid(f"{FIELD}[0].acceleratorCount", found.count, says)
    if kind.cpu > min(most, each * found.count):
        says = f"{found.count} of {found.type} take fewer than {kind.cpu} vCPUs."
        raise invalid(f"{FIELD}[0].acceleratorCount", found.count, says)
