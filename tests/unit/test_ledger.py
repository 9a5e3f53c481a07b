from decimal import Decimal

import pytest

from cloudwhale.model import event as e
from cloudwhale.model.reason import Code
from cloudwhale.model.units import MicroUsd, micro_usd, usd
from cloudwhale.model.world import Account
from cloudwhale.planning.ledger import (
    LeaseTerms,
    accrued,
    after,
    cost,
    left,
    refusal,
    split,
    worst_case,
)

HOUR = 3600.0


def account(limit: int | str | None = 50, reserved: int = 0, spent: int = 0) -> Account:
    return Account(
        payer="run-1",
        limit=None if limit is None else micro_usd(limit),
        reserved=micro_usd(reserved),
        spent=micro_usd(spent),
    )


def test_an_hour_costs_the_hourly_price_and_a_part_rounds_up() -> None:
    assert cost(micro_usd(3), HOUR) == micro_usd(3)
    assert cost(MicroUsd(1), 1.0) == 1
    assert cost(micro_usd(3), 0.0) == 0


def test_a_minute_is_charged_at_least_and_whole_steps_after() -> None:
    assert accrued(micro_usd(36), 1.0) == cost(micro_usd(36), 60.0)
    assert accrued(micro_usd(36), 61.5) == cost(micro_usd(36), 62.0)
    assert accrued(micro_usd(36), 61.5, step_s=60.0) == cost(micro_usd(36), 120.0)


def test_the_worst_case_counts_everything_that_can_go_wrong() -> None:
    bare = LeaseTerms(cap_usd_h=micro_usd(3600), begins_at=0.0, stop_at=HOUR)
    assert worst_case(bare) == micro_usd(3600 + 60 + 90)
    full = bare.but(
        disk_usd_h=micro_usd(360),
        address_usd_h=micro_usd(36),
        egress_allowance=micro_usd(5),
        failed_boot_s=250.0,
    )
    assert usd(worst_case(full)) == Decimal("4445.00")


def test_a_reservation_that_fits_is_admitted_and_one_that_does_not_says_by_how_much() -> None:
    assert refusal(account(50), micro_usd(44)) is None
    no = refusal(account(50, reserved=20, spent=10), micro_usd(25))
    assert no is not None
    assert no.code is Code.OVER_BUDGET
    assert "25.00 USD" in no.says
    assert "20.00 of 50.00" in no.says
    assert "by 5.00 USD" in no.change


def test_raising_the_budget_as_the_refusal_says_admits_it() -> None:
    assert refusal(account(55, reserved=20, spent=10), micro_usd(25)) is None


def test_nothing_new_is_rented_past_the_soft_line() -> None:
    no = refusal(account(100, spent=90), micro_usd(1))
    assert no is not None
    assert no.code is Code.SOFT_LINE
    assert refusal(account(100, spent=89), micro_usd(1)) is None


def test_started_work_keeps_the_money_that_finishing_it_needs() -> None:
    no = refusal(account(50, spent=10), micro_usd(20), started_forecast=micro_usd(21))
    assert no is not None
    assert no.code is Code.WOULD_STRAND_STARTED_WORK
    assert refusal(account(50, spent=10), micro_usd(20), started_forecast=micro_usd(20)) is None


def test_without_a_budget_nothing_is_rented() -> None:
    no = refusal(account(None), micro_usd(1))
    assert no is not None
    assert no.code is Code.OVER_BUDGET
    assert left(account(None)) == 0


def test_money_moves_from_reserved_to_spent_and_back() -> None:
    lease = {"at": 0.0, "payer": "run-1", "rental": "r-1"}
    held = after(account(50), e.Reserved(amount=micro_usd(30), **lease))
    assert left(held) == micro_usd(20)
    paid = after(held, e.Charged(amount=micro_usd(12), **lease))
    freed = after(paid, e.Released(amount=micro_usd(18), **lease))
    assert (freed.reserved, freed.spent, left(freed)) == (0, micro_usd(12), micro_usd(38))


@pytest.mark.parametrize(
    "kind", [e.Charged, e.Released], ids=["more is charged", "more is released"]
)
def test_more_than_was_reserved_is_neither_charged_nor_released(
    kind: type[e.Charged] | type[e.Released],
) -> None:
    event = kind(at=0.0, payer="run-1", rental="r-1", amount=MicroUsd(2))
    with pytest.raises(ValueError, match="reserved"):
        after(account(50).but(reserved=MicroUsd(1)), event)


@pytest.mark.parametrize(
    "poor", [account(50, reserved=20, spent=10), account(None)], ids=["20 are left", "no budget"]
)
def test_nothing_is_set_aside_beyond_the_limit(poor: Account) -> None:
    lease = {"at": 0.0, "payer": "run-1", "rental": "r-1"}
    most = left(poor)
    assert left(after(poor, e.Reserved(amount=most, **lease))) == 0
    with pytest.raises(ValueError, match=f"run-1 has {most} left"):
        after(poor, e.Reserved(amount=MicroUsd(most + 1), **lease))


def test_a_negative_amount_is_refused() -> None:
    event = e.Reserved(at=0.0, payer="run-1", rental="r-1", amount=MicroUsd(-1))
    with pytest.raises(ValueError, match="negative"):
        after(account(50), event)


def test_parts_of_a_machine_add_up_to_it() -> None:
    parts = split(MicroUsd(100), {"a": 1.0, "b": 1.0, "c": 1.0})
    assert sorted(parts.values()) == [33, 33, 34]
    assert split(MicroUsd(7), {"a": 0.0, "b": 0.0}) == {"a": 7, "b": 0}
    with pytest.raises(ValueError, match="nobody"):
        split(MicroUsd(7), {})


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "-Infinity"])
def test_what_is_not_a_number_is_not_money(amount: str) -> None:
    with pytest.raises(ValueError, match="not an amount"):
        micro_usd(amount)


def test_dollars_are_shown_exactly() -> None:
    assert str(usd(micro_usd("31.2"))) == "31.20"
    assert str(usd(MicroUsd(1))) == "0.000001"
