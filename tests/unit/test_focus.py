"""FOCUS 1.2: what is written conforms, adds up, and the validator that says so can say no."""

import csv
import io
import json
import re
from decimal import Decimal

import pytest
from cost_lines import NASTY, NOVEMBER, a_line, some_lines
from focus_checks import RULES, faults

from cloudwhale.model.cost import CostLine, Items, Purposes
from cloudwhale.model.units import MicroUsd, usd
from cloudwhale.reporting.cost_sheet import field
from cloudwhale.reporting.focus import focus_csv, money
from cloudwhale.reporting.focus_columns import COLUMNS, OWN, WRITTEN

LINES = some_lines()
TEXT = "".join(focus_csv(LINES))
ROWS = list(csv.DictReader(io.StringIO(TEXT)))


def test_what_is_written_conforms() -> None:
    assert faults(TEXT) == []
    assert len(ROWS) > 3 * len(LINES)


def test_costs_add_up_to_what_was_spent_and_list_costs_to_what_it_would_have_been() -> None:
    for line in LINES:
        mine = [row for row in ROWS if row["ChargeDescription"].endswith(f"job {line.job}")]
        if line.job is None:
            continue
        assert sum(Decimal(row["BilledCost"]) for row in mine) == usd(line.spent)
        would = line.spent if line.on_demand is None else line.on_demand
        assert sum(Decimal(row["ListCost"]) for row in mine) == usd(would)
    own = sum(Decimal(row[name] or 0) for row in ROWS for name in OWN if name.endswith("Cost"))
    assert own == sum(Decimal(row["BilledCost"]) for row in ROWS)
    assert own == usd(MicroUsd(sum(line.spent for line in LINES)))


def test_a_line_of_an_older_program_and_one_of_no_time_conform_too() -> None:
    bare = CostLine(
        rental="r", run="run-1", user="", project="p", job=None, family="", provider="", market="",
        region="", zone="", type="", gpu="", began_at=NOVEMBER, ended_at=NOVEMBER,
        spent=MicroUsd(5), items=Items(machine=MicroUsd(5)), purposes=Purposes(useful=MicroUsd(5)),
        on_demand=None, gpu_s=0.0,
    )  # fmt: skip
    december = a_line(1, "p", began_at=NOVEMBER + 30 * 86_400 - 1, ended_at=NOVEMBER + 31 * 86_400)
    assert faults("".join(focus_csv([bare, december]))) == []


def test_amounts_are_exact_and_quantities_of_usage_above_nothing() -> None:
    some = [0, 1, 10, 999_999, 1_000_000, 12_345_678_901, -1, -2_500_000]
    assert all(Decimal(money(MicroUsd(one))) == usd(MicroUsd(one)) for one in some)
    brief = a_line(1, "p").but(gpu_s=0.0004)
    quantities = [row["ConsumedQuantity"] for row in rows_of([brief]) if row["x_GpuModel"]]
    assert quantities[0] == "0.000001"


def test_texts_are_what_they_were_and_command_no_spreadsheet() -> None:
    for name in NASTY:
        shown = {row["SubAccountId"] for row in rows_of([a_line(1, name)])}
        assert shown == {field(name)}
    tags = json.loads(rows_of([a_line(1, 'team, "a"')])[0]["Tags"])
    assert tags["cloudwhale/project"] == 'team, "a"'


def rows_of(lines: list[CostLine]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(focus_csv(lines)))))


def test_a_ledger_without_charges_is_a_head_alone() -> None:
    assert "".join(focus_csv([])) == ",".join(WRITTEN) + "\n"
    assert faults("".join(focus_csv([]))) == []


def test_each_rule_names_the_text_that_it_is_from() -> None:
    assert all(re.fullmatch(r"(columns|attributes)/[a-z_]+\.md", rule.source) for rule in RULES)


def test_the_columns_are_those_of_the_specification() -> None:
    names = [column.name for column in COLUMNS]
    assert len(names) == len(set(names)) == 57 and names == sorted(names)
    mandatory = [column for column in COLUMNS if column.level == "mandatory"]
    assert len(mandatory) == 21 and not [one.name for one in mandatory if one.left_out]
    assert list(WRITTEN[-len(OWN) :]) == list(OWN)


@pytest.mark.parametrize(
    ("spoiled", "says"),
    [
        (("BilledCost", "1,000.5"), "is no number"), (("BilledCost", ""), "BilledCost is null"),
        (("BilledCost", "+1"), "is no number"), (("BilledCost", "-1"), "is below 0"),
        (("BillingCurrency", "EUR"), "'EUR' is not allowed"),
        (("ChargePeriodStart", "2026-11-01 10:00"), "is no time in UTC"),
        (("ChargePeriodEnd", "2020-01-01T00:00:00Z"), "ends before it begins"),
        (("BillingPeriodEnd", "2026-11-01T00:00:00Z"), "not begin in its billing period"),
        (("BillingPeriodStart", "2026-10-31T00:00:00Z"), "is no month"),
        (("ServiceCategory", "Computing"), "'Computing' is not allowed"),
        (("ServiceSubcategory", "Relational"), "is not of its category"),
        (("ServiceSubcategory", "Data Transfer"), "is not of its category"),
        (("Tags", "project=nlp"), "is no object"), (("PricingQuantity", ""), "is null for usage"),
        (("PricingUnit", "per hour"), "is no unit"), (("ProviderName", ""), "ProviderName is null"),
        (("BilledCost", "1E-6"), "is no number"), (("ConsumedQuantity", "0.000000"), "above 0"),
        (("PricingCategory", ""), "is null for usage"), (("ResourceName", "rent-0"), "says Re"),
        (("ResourceType", ""), "ResourceType is null where"), (("RegionId", ""), "is of no region"),
        (("SubAccountName", ""), "is null where"), (("Tags", '{"a": "b"}'), "have a prefix"),
        (("BillingAccountName", "N/A"), "stands for nothing"),
        (("ChargeClass", "Refund"), "is not allowed"), (("ServiceName", "  "), "for nothing"),
    ],
)  # fmt: skip
def test_the_validator_names_what_is_wrong(spoiled: tuple[str, str], says: str) -> None:
    row = ROWS[0] | dict([spoiled])
    paper = io.StringIO()
    writer = csv.DictWriter(paper, WRITTEN, lineterminator="\n")
    writer.writeheader()
    writer.writerow(row)
    assert any(says in fault for fault in faults(paper.getvalue()))


def test_the_validator_names_columns_that_lack_or_are_nobodys() -> None:
    without = ",".join(name for name in WRITTEN if name != "ListCost")
    assert "ListCost is mandatory" in faults(without)
    assert "Price is no column of 1.2" in faults(f"{','.join(WRITTEN)},Price")
    assert "own columns stand among the others" in faults(f"x_Run,{','.join(WRITTEN[:-1])}")
    assert any("fields of" in fault for fault in faults(f"{','.join(WRITTEN)}\na,b"))
