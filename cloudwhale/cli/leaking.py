"""The command `leaks`: what is left over at providers, and its removal."""

from cloudwhale.cli.exits import Exit
from cloudwhale.cli.leaks_view import leak_keys, leaks_sheet
from cloudwhale.cli.looking import desk_here
from cloudwhale.cli.output import document_or
from cloudwhale.control.desk import providers
from cloudwhale.control.installation import installation
from cloudwhale.control.leaks import Leaks
from cloudwhale.control.leaks import leaks as found_leaks


def leaks(*, fix: bool, as_json: bool) -> int:
    """Show what is left over; `fix`: remove what is ours."""
    with desk_here() as desk:
        found = Leaks()
        if desk.settings.clouds:
            found = found_leaks(desk, providers(desk.settings, installation(desk)), fix=fix)
        now = desk.clock.now()
    document_or(
        as_json,
        lambda: {
            "leaks": [leak_keys(one) for one in found.found],
            "unanswered": list(found.unanswered),
        },
        lambda paper: paper.sheet(leaks_sheet(found, now)),
    )
    return Exit.DONE if found.is_clean else Exit.TROUBLE
