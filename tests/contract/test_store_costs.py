"""What every store says of costs: lines as they were charged, and their sums by any dimension."""

import random
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import get_args
from zoneinfo import ZoneInfo

import pytest
from makers import a_run

from cloudwhale.model import event as e
from cloudwhale.model.cost import CostLine, Dimension, Items, Purposes
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.planning import cost_sums
from cloudwhale.spi.store import CostQuery, Store

BEGUN = 1_700_000_000.0
WHOLE = MicroUsd(10**12)


def a_line(rental: str, spent: int, began_at: Instant = BEGUN, **other: object) -> CostLine:
    fields: dict[str, object] = {
        "run": "run-1", "user": "me", "project": "nlp", "job": "a", "family": "train",
        "provider": "cloud", "market": "spot", "region": "r", "zone": "r-a", "type": "big",
        "gpu": "T4", "ended_at": began_at + 60.0, "gpu_s": 1.5, "on_demand": spent * 3,
        "items": Items(machine=MicroUsd(spent)), "purposes": Purposes(useful=MicroUsd(spent)),
    }  # fmt: skip
    return CostLine.model_validate(
        fields | {"rental": rental, "spent": spent, "began_at": began_at} | other
    )


def charged(store: Store, lines: Iterable[CostLine]) -> None:
    reserved = e.Reserved(at=1.0, payer="run-1", rental="m", amount=WHOLE)
    store.append([e.RunOpened(at=0.0, run=a_run("run-1", budget=WHOLE)), reserved])
    store.append(
        e.Charged(
            at=line.ended_at, payer="run-1", rental=line.rental, amount=line.spent, job=line.job,
            project=line.project, line=line,
        )
        for line in lines
    )  # fmt: skip


def drawn(many: int) -> list[CostLine]:
    dice = random.Random("costs")
    found: list[CostLine] = []
    for number in range(many):
        disk, boot, lost, moved = (dice.randrange(1000) for _ in range(4))
        spent = 5000 + dice.randrange(10**6)
        found.append(
            a_line(
                f"rent-{number}", spent, BEGUN + dice.uniform(0.0, 200 * 86_400.0),
                job=dice.choice(("a", "b", "c", None)), project=dice.choice(("nlp", "é, \"x\"")),
                user=dice.choice(("me", "you")), provider=dice.choice(("north", "south")),
                market=dice.choice(("spot", "on-demand")), gpu=dice.choice(("T4", "")),
                on_demand=dice.choice((None, spent, spent * 2)), gpu_s=dice.randrange(10**6) / 1000,
                items=Items(
                    machine=MicroUsd(spent - disk - moved), disk=MicroUsd(disk),
                    egress=MicroUsd(moved),
                ),
                purposes=Purposes(
                    useful=MicroUsd(spent - boot - lost - moved), boot=MicroUsd(boot),
                    lost=MicroUsd(lost), moved=MicroUsd(moved),
                ),
            )
        )  # fmt: skip
    return found


def test_lines_come_as_they_were_charged_those_that_began_first_first(store: Store) -> None:
    later, first = a_line("m-1", 7, BEGUN + 5.0), a_line("m-2", 9, job=None, gpu="", on_demand=None)
    charged(store, [later, first])
    assert list(store.cost_lines(CostQuery())) == [first, later]
    assert list(store.cost_lines(CostQuery(rental="m-1"))) == [later]
    assert list(store.cost_lines(CostQuery(until=BEGUN + 5.0))) == [first]
    assert list(store.cost_lines(CostQuery(since=BEGUN + 5.0))) == [later]
    assert store.spent("run-1") == {"a": 7, None: 9}


def test_an_empty_ledger_has_no_sums(store: Store) -> None:
    ways: list[tuple[Dimension, ...]] = [(), ("project",), ("day", "user")]
    for by in ways:
        assert list(store.costs(CostQuery(by=by))) == []
    assert list(store.cost_lines(CostQuery())) == []


def test_sums_are_those_of_the_lines_by_every_dimension_and_filter(store: Store) -> None:
    lines = drawn(60)
    charged(store, lines)
    queries: Sequence[CostQuery] = [
        *(CostQuery(by=(one,)) for one in get_args(Dimension)),
        CostQuery(), CostQuery(by=("project", "day"), zone="Asia/Kolkata"),
        CostQuery(by=("user", "gpu", "market"), since=BEGUN + 1e6, until=BEGUN + 9e6),
        CostQuery(by=("job",), project='é, "x"'), CostQuery(by=("project",), gpu=""),
        CostQuery(run="nobody"), CostQuery(by=("project",), counts_jobs=False),
    ]  # fmt: skip
    for query in queries:
        assert list(store.costs(query)) == cost_sums.sums(lines, query), query


ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe",
    "Pacific/Apia", "America/Sao_Paulo",
)  # fmt: skip


@pytest.mark.parametrize("zone", ZONES)
def test_a_line_belongs_to_the_day_of_its_zone_over_changes_of_the_clock(
    zone: str, store: Store
) -> None:
    there, lines = ZoneInfo(zone), list[CostLine]()
    for year, month, day in ((2011, 12, 29), (2024, 3, 10), (2024, 3, 31), (2024, 10, 27)):
        midnight = datetime(year, month, day, tzinfo=there).timestamp()
        for hours in (-1, 0, 1, 2, 3, 23, 24, 25, 47):
            for beside_s in (-1.0, 0.0, 901.0):
                at = midnight + hours * 3600.0 + beside_s
                lines.append(a_line(f"m-{len(lines)}", 1 + len(lines), at))
    charged(store, lines)
    query = CostQuery(by=("day",), zone=zone)
    found = {one.key[0]: one.spent for one in store.costs(query)}
    for line in lines:
        date = datetime.fromtimestamp(line.began_at, there).date().isoformat()
        found[date] = MicroUsd(found[date] - line.spent)
    assert set(found.values()) == {0}


def test_a_zone_that_nobody_knows_is_named(store: Store) -> None:
    with pytest.raises(ValueError, match="'Mars/Olympus' is no time zone"):
        store.costs(CostQuery(by=("day",), zone="Mars/Olympus"))


def test_a_charge_of_an_older_program_has_a_line_too(store: Store) -> None:
    charged(store, [])
    store.append([e.Charged(at=9.0, payer="run-1", rental="m", amount=MicroUsd(5), project="nlp")])
    (line,) = store.cost_lines(CostQuery())
    assert (line.run, line.project, line.spent, line.items.machine) == ("run-1", "nlp", 5, 5)
    assert line.on_demand is None
