"""The command `suggest`: what jobs should ask for, by what they used."""

from cloudwhale.cli.exits import Exit
from cloudwhale.cli.looking import desk_here
from cloudwhale.cli.output import document_or
from cloudwhale.model.cost import CostSum
from cloudwhale.reporting.suggestions import (
    device_prices,
    suggestion,
    suggestion_keys,
    suggestions_sheet,
)
from cloudwhale.spi.store import CostQuery


def suggest(project: str | None, as_json: bool) -> int:
    """Show for each family what it asks for, what it used and what that would have saved."""
    from cloudwhale.control.supply import supply

    with desk_here() as desk:
        now = desk.clock.now()
        peaks = desk.store.world(now).peaks
        by = CostQuery(by=("project", "family", "gpu"), project=project, counts_jobs=False)
        spent: dict[tuple[str, str], list[CostSum]] = {}
        for one in desk.store.costs(by):
            spent.setdefault((one.key[0], one.key[1]), []).append(one)
        offers = supply(desk.settings, now).offers if peaks else ()
        prices = device_prices(offers)
    found = [
        suggestion(family, seen, spent.get(family, ()), prices)
        for family, seen in sorted(peaks.items())
        if seen and project in (None, family[0])
    ]
    document_or(
        as_json,
        lambda: {"families": [suggestion_keys(one) for one in found]},
        lambda paper: paper.sheet(suggestions_sheet(found)),
    )
    return Exit.DONE
