"""Rows of `doctor`: made of what was found in each region, so that ten regions are not ten rows."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale.spi.provider import Check

State = Literal["ok", "warning", "failed"]
HERE = "REGION"
"""Stands in a remedy for the region that it is to be done in."""


class Found(NamedTuple):
    """What one look has found."""

    state: State
    says: str
    remedy: str = ""


def row(cloud: str, name: str, found: Found) -> Check:
    """Return a row of its own."""
    return Check(name=f"{cloud} {name}", state=found.state, says=found.says, remedy=found.remedy)


def failed(error: CloudwhaleError, remedy: str = "") -> Found:
    """Return what an error says; `remedy`: where that is better known than the error does."""
    return Found("failed", error.says, remedy or error.remedy)


def by_region(cloud: str, name: str, found: Mapping[str, Found]) -> list[Check]:
    """Return a row for each thing that was found, with all regions where it was; ok ones first."""
    places: dict[Found, list[str]] = {}
    for region, one in sorted(found.items()):
        places.setdefault(one, []).append(region)
    rows: list[Check] = []
    for one, regions in sorted(places.items(), key=lambda entry: _RANK[entry[0].state]):
        remedy = one.remedy.replace(HERE, regions[0])
        if HERE in one.remedy and len(regions) > 1:
            remedy = f"{remedy} Likewise in the others."
        rows.append(row(cloud, name, Found(one.state, f"{', '.join(regions)}: {one.says}", remedy)))
    return rows


_RANK: Mapping[State, int] = {"ok": 0, "warning": 1, "failed": 2}
