"""Lines of cost for tests, with names that break what does not expect them."""

import random
from pathlib import Path

from sqlalchemy import create_engine, insert

from cloudwhale.control.store import open_store
from cloudwhale.control.store import tables as t
from cloudwhale.control.store.costs import row_of
from cloudwhale.model.cost import CostLine, Items, Purposes
from cloudwhale.model.units import MicroUsd

NOVEMBER = 1_793_491_200.0  # 2026-11-01T00:00Z
NASTY = (
    "=cmd|' /C calc'!A0", 'team, "a"', "🐳 whale", "\u202eevil", "<script>alert(1)</script>",
    "ctl\x1b[31m", "\u0627\u0644\u0639\u0631\u0628\u064a\u0629", "a;b\nc", "@SUM(1+1)",
    "&amp; </style>",
)  # fmt: skip
"""A formula, commas and quotes, an emoji, text from right to left, markup, commands."""


def a_line(number: int, project: str, **changed: object) -> CostLine:
    """Return one of many lines, all of November 2026, whose parts add up."""
    draw = random.Random(number)
    useful, boot, idle, lost, failed, over, moved = (draw.randrange(90_000) for _ in range(7))
    spent = useful + boot + idle + lost + failed + over + moved
    disk, address = spent // 20, spent // 50
    began_at = NOVEMBER + draw.random() * 29 * 86_400
    line = CostLine(
        rental=f"rent-{number // 2}", run=f"run-{number // 10}", user="ada", project=project,
        job=f"job-{number}" if number % 9 else None, family="train", provider="north",
        market="spot" if number % 3 else "on-demand", region="r-1", zone="r-1a", type="large",
        gpu="A100-80GB" if number % 4 else "", began_at=began_at, ended_at=began_at + 3600.5,
        spent=MicroUsd(spent),
        items=Items.model_validate(
            {"machine": spent - disk - address - moved, "disk": disk, "address": address,
             "egress": moved}
        ),
        purposes=Purposes.model_validate(
            {"useful": useful, "boot": boot, "idle": idle, "lost": lost, "failed": failed,
             "over": over, "moved": moved}
        ),
        on_demand=MicroUsd(2 * spent) if number % 7 else None,
        gpu_s=3600.5 if number % 4 else 0.0,
    )  # fmt: skip
    return line.but(**changed) if changed else line


def some_lines(
    many: int = 60, projects: tuple[str, ...] = ("nlp", "vision", *NASTY)
) -> list[CostLine]:
    """Return lines of several projects."""
    return [a_line(number, projects[number % len(projects)]) for number in range(many)]


def a_ledger(home: Path, lines: list[CostLine]) -> None:
    """Make the database of a home with these lines charged."""
    home.mkdir(parents=True, exist_ok=True)
    url = f"sqlite:///{home / 'cloudwhale.db'}"
    open_store(url, may_migrate=True).close()
    engine = create_engine(url)
    with engine.begin() as connection:
        if lines:
            rows = [row_of(1000 + number, line) for number, line in enumerate(lines)]
            connection.execute(insert(t.charges), rows)
    engine.dispose()
