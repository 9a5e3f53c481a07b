"""Rows of `doctor` that are called after AWS."""

from collections.abc import Mapping

from cloudwhale.spi.provider import Check
from cloudwhale_providers import rows
from cloudwhale_providers.rows import HERE, Found, State, failed

__all__ = ["HERE", "Found", "State", "by_region", "failed", "row"]


def row(name: str, found: Found) -> Check:
    """Return a row of its own."""
    return rows.row("aws", name, found)


def by_region(name: str, found: Mapping[str, Found]) -> list[Check]:
    """Return a row for each thing that was found, with all regions where it was."""
    return rows.by_region("aws", name, found)
