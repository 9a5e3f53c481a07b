"""What `doctor --fix` does: shows what an account lacks, asks, makes it, offers the settings."""

import difflib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloudwhale.cli.exits import Exit, WrongUsage
from cloudwhale.cli.looking import settings_here
from cloudwhale.cli.output import Paper, emit, say, stdout_paper
from cloudwhale.cli.presence import agrees, someone_is_there
from cloudwhale.control.mending import FILE, Patient, Unwritten, patient
from cloudwhale.reporting.tables import checks_sheet
from cloudwhale.spi.provider import Amends, Check


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of `doctor` that concern mending."""

    provider: str
    allow: str
    yes: bool
    as_json: bool


def policy(wanted: Wanted) -> int:
    """Print what whoever runs cloudwhale must be allowed, in the cloud's own language."""
    amends = patient(settings_here(starts=True), wanted.provider).amends()
    if not amends.policy:
        stdout_paper().sheet(checks_sheet(amends.rows))
        return Exit.TROUBLE
    sys.stdout.write(f"{amends.policy}\n")
    return Exit.DONE


def fix(wanted: Wanted) -> int:
    """Make what an account lacks, after asking; print a row for each step, and how it is then."""
    cloud = patient(settings_here(starts=True), wanted.provider)
    amends = cloud.amends(wanted.allow)
    paper = Paper(sys.stderr if wanted.as_json else sys.stdout)
    if amends.rows:
        paper.sheet(checks_sheet(amends.rows))
    if not _is_wanted(wanted, amends):
        return Exit.DONE
    rows = _made(amends, wanted.as_json)
    refused = any(row.state == "failed" for row in (*amends.rows, *rows))
    lacks = cloud.unwritten(amends) if amends.settings else None
    text = _settled(wanted, lacks, paper) if lacks else ""
    checks = _seen(cloud, amends, paper, wanted.as_json)
    if wanted.as_json:
        emit(_document(amends, rows, checks, text))
    return Exit.TROUBLE if refused or any(one.state == "failed" for one in checks) else Exit.DONE


def _is_wanted(wanted: Wanted, amends: Amends) -> bool:
    """Say what would be made; return whether it is to be. Raise WrongUsage: nobody can say."""
    if wanted.yes or not amends.mendings:
        return True
    say("This would change the account:", sys.stderr)
    for one in amends.mendings:
        say(f"  {one.says}", sys.stderr)
    if not someone_is_there():
        raise WrongUsage(
            "This is not a terminal, so nobody can be asked before the account is changed.",
            "Say -y to change it without being asked.",
        )
    return agrees("Do so?")


def _made(amends: Amends, as_json: bool) -> Sequence[Check]:
    """Do all that is to be done, each with its row as soon as it is known."""
    rows: list[Check] = []
    for one in amends.mendings:
        row = one.mend()
        rows.append(row)
        remedy = f"\n    {row.remedy}" if row.remedy and row.state != "ok" else ""
        stream = sys.stderr if as_json else sys.stdout
        say(f"{row.name}: {row.says}{remedy}" if row.state == "ok"
            else f"{row.name}: {row.state}: {row.says}{remedy}", stream)  # fmt: skip
    return rows


def _settled(wanted: Wanted, lacks: Unwritten, paper: Paper) -> str:
    """Write the settings where there is no file of them; else show what is to be written.

    Return the lines that the settings lacked.
    """
    file = Path.cwd() / FILE
    if not file.exists():
        paper.say(f"\n{FILE} is to say:\n\n{lacks.lines()}")
        if wanted.yes or agrees(f"Write ./{FILE}?"):
            file.write_text(lacks.lines(), encoding="utf-8")
            paper.say(f"./{FILE} is written.")
        return lacks.lines()
    before = file.read_text(encoding="utf-8")
    if not lacks.fits(before):
        paper.say(f"\n{FILE} is to say, beside what it says:\n\n{lacks.lines()}")
        return lacks.lines()
    after = lacks.added_to(before)
    diff = difflib.unified_diff(
        before.splitlines(), after.splitlines(), FILE, f"{FILE}, as it is to be", lineterm=""
    )
    paper.say(f"\nYour {FILE} is left as it is. It lacks:\n\n" + "\n".join(diff))
    return lacks.lines()


def _seen(cloud: Patient, amends: Amends, paper: Paper, as_json: bool) -> Sequence[Check]:
    """Look at the cloud as it is now, under the settings that were lacking."""
    if not amends.settings:
        return amends.rows
    checks = cloud.cured(amends).check()
    if not as_json:
        paper.say("")
        paper.sheet(checks_sheet(checks))
    return checks


def _document(
    amends: Amends, rows: Sequence[Check], checks: Sequence[Check], text: str
) -> dict[str, Any]:
    return {
        "there": [one.model_dump() for one in amends.rows],
        "mended": [one.model_dump() for one in rows],
        "settings": text,
        "checks": [one.model_dump() for one in checks],
    }
