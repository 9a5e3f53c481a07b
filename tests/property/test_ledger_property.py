"""No order of events makes reserved + spent exceed the limit; parts add up; more never hurts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudwhale.model import event as e
from cloudwhale.model.units import MicroUsd, usd
from cloudwhale.model.world import Account
from cloudwhale.planning.ledger import (
    STOP_LAG_S,
    LeaseTerms,
    accrued,
    after,
    cost,
    least_limit,
    left,
    refusal,
    split,
    split_below,
    worst_case,
)

amounts = st.integers(0, 10**9).map(MicroUsd)
moves = st.lists(
    st.tuples(st.sampled_from(["reserve", "charge", "release"]), amounts, amounts), max_size=60
)


def moved(account: Account, verb: str, amount: MicroUsd, forecast: MicroUsd) -> Account:
    """Carry one wish out as the house does: ask first; charge and free only what is reserved."""
    facts = {"at": 0.0, "payer": "run-1", "rental": "r"}
    if verb == "reserve":
        if refusal(account, amount, forecast) is not None:
            return account
        return after(account, e.Reserved(amount=amount, **facts))
    amount = MicroUsd(min(amount, account.reserved))
    kind = e.Charged if verb == "charge" else e.Released
    return after(account, kind(amount=amount, **facts))


@given(limit=amounts, wishes=moves)
def test_no_order_of_wishes_takes_more_than_the_limit(
    limit: MicroUsd, wishes: list[tuple[str, MicroUsd, MicroUsd]]
) -> None:
    account = Account(payer="run-1", limit=limit)
    for verb, amount, forecast in wishes:
        before = account.reserved + account.spent
        account = moved(account, verb, amount, forecast)
        taken = account.reserved + account.spent
        assert 0 <= taken <= limit
        assert account.reserved >= 0
        assert left(account) == limit - taken
        if verb == "charge":
            assert taken == before


@given(limit=st.one_of(st.none(), amounts), wishes=moves)
def test_not_even_who_asks_nobody_takes_more_than_the_limit(
    limit: MicroUsd | None, wishes: list[tuple[str, MicroUsd, MicroUsd]]
) -> None:
    account = Account(payer="run-1", limit=limit)
    kinds = {"reserve": e.Reserved, "charge": e.Charged, "release": e.Released}
    for verb, amount, _ in wishes:
        event = kinds[verb](at=0.0, payer="run-1", rental="r", amount=amount)
        try:
            account = after(account, event)
        except ValueError:
            continue
        assert 0 <= account.reserved + account.spent <= (limit or 0)


@given(limit=amounts, more=amounts, taken=amounts, worst=amounts, forecast=amounts)
def test_more_budget_never_refuses_what_less_admitted(
    limit: MicroUsd, more: MicroUsd, taken: MicroUsd, worst: MicroUsd, forecast: MicroUsd
) -> None:
    poor = Account(payer="run-1", limit=limit, spent=MicroUsd(min(taken, limit)))
    rich = poor.but(limit=MicroUsd(limit + more))
    if refusal(poor, worst, forecast) is None:
        assert refusal(rich, worst, forecast) is None


@given(limit=amounts, spent=amounts, worst=amounts, forecast=amounts, soft=st.floats(0.01, 1.0))
def test_raised_by_what_a_refusal_says_it_admits_and_by_no_micro_dollar_less(
    limit: MicroUsd, spent: MicroUsd, worst: MicroUsd, forecast: MicroUsd, soft: float
) -> None:
    account = Account(payer="run-1", limit=limit, spent=spent, soft=soft)
    no = refusal(account, worst, forecast)
    least = least_limit(account, worst, forecast)
    assert least is not None
    assert (no is None) == (limit >= least)
    assert refusal(account.but(limit=least), worst, forecast) is None
    if no is not None:
        assert f"by {usd(MicroUsd(least - limit))} USD" in no.change
        short = account.but(limit=MicroUsd(least - 1))
        assert refusal(short, worst, forecast) is not None


@given(limit=amounts, spent=amounts, worst=amounts, forecast=amounts)
def test_what_is_admitted_leaves_enough_for_started_work(
    limit: MicroUsd, spent: MicroUsd, worst: MicroUsd, forecast: MicroUsd
) -> None:
    account = Account(payer="run-1", limit=limit, spent=MicroUsd(min(spent, limit)))
    if refusal(account, worst, forecast) is None:
        held = after(account, e.Reserved(at=0.0, payer="run-1", rental="r", amount=worst))
        assert left(held) >= forecast


@given(
    amount=amounts,
    weights=st.dictionaries(
        st.text(min_size=1, max_size=5),
        st.floats(0, 1e6, allow_nan=False, allow_subnormal=False),
        min_size=1,
        max_size=12,
    ),
)
def test_parts_add_up_and_none_is_off_by_more_than_one(
    amount: MicroUsd, weights: dict[str, float]
) -> None:
    parts = split(amount, weights)
    assert sum(parts.values()) == amount
    total = sum(weights.values())
    if total > 0:
        for name, part in parts.items():
            assert abs(part - amount * weights[name] / total) <= 1 + amount * 1e-9


@given(
    amount=amounts,
    shares=st.lists(
        st.tuples(st.floats(0, 1e6, allow_nan=False, allow_subnormal=False), amounts),
        min_size=1,
        max_size=8,
    ),
    free=st.booleans(),
)
def test_parts_below_a_most_add_up_and_who_has_room_takes_what_is_over(
    amount: MicroUsd, shares: list[tuple[float, MicroUsd]], free: bool
) -> None:
    weights = {f"{number}": weight for number, (weight, _) in enumerate(shares)}
    most = {f"{number}": limit for number, (_, limit) in enumerate(shares)}
    if free:
        del most["0"]
    elif sum(most.values()) < amount:
        with pytest.raises(ValueError, match="more than all may pay"):
            split_below(amount, weights, most)
        return
    parts = split_below(amount, weights, most)
    assert sum(parts.values()) == amount
    assert all(0 <= part <= most.get(name, amount) for name, part in parts.items())
    if all(part <= most.get(name, part) for name, part in split(amount, weights).items()):
        assert parts == split(amount, weights)


@given(price=amounts, seconds=st.floats(0, 1e7, allow_nan=False))
def test_cost_is_never_below_the_exact_price_and_a_bill_never_below_the_cost(
    price: MicroUsd, seconds: float
) -> None:
    assert cost(price, seconds) * 3600 >= price * seconds * (1 - 1e-12)
    assert accrued(price, seconds) >= cost(price, seconds)


lengths = st.floats(0, 1e6, allow_nan=False)


@given(
    cap=amounts,
    part=st.floats(0, 1),
    lease_s=lengths,
    used=st.floats(0, 1),
    step_s=st.one_of(st.just(0.0), st.floats(1.0, 3600.0)),
    least_s=st.floats(0, 3600.0),
)
def test_no_bill_of_a_machine_that_stops_when_it_must_is_above_the_worst_case(
    cap: MicroUsd, part: float, lease_s: float, used: float, step_s: float, least_s: float
) -> None:
    terms = LeaseTerms(
        cap_usd_h=cap, begins_at=0.0, stop_at=lease_s,
        billing_step_s=step_s, billing_least_s=least_s,
    )  # fmt: skip
    bill = accrued(
        MicroUsd(int(cap * part)), used * (lease_s + STOP_LAG_S), step_s=step_s, least_s=least_s
    )
    assert bill <= worst_case(terms)
