"""What a dry run says of money: cost, bound, worst case, what is left, what more would buy."""

from collections.abc import Iterator

from cloudwhale.control.previewed import Later, More, Preview
from cloudwhale.model.units import MicroUsd
from cloudwhale.reporting.figures import cents, counted, money, span

NEEDS_AN_ACCOUNT = (
    "No cloud account is set up that cloudwhale could rent with: `run` rents none of this. With "
    "--sandbox all of it is done on this host, with pretended machines and money; the README says "
    "how to set an account up. The prices are real."
)


NAMED_MOST = 12
"""So many machines whose price is an estimate are named."""


def money_notes(preview: Preview) -> list[str]:
    """Return sentences about the money of a plan, the sum first."""
    notes = [_sum(preview)]
    if preview.machines:
        notes += [*_goodness(preview), *_left(preview)]
    if preview.later is not None:
        notes.append(_later(preview.later))
    if preview.more is not None:
        notes.append(_more(preview.more))
    if preview.least_budget_usd is not None:
        notes.append(
            f"a budget of {short(preview.least_budget_usd)} would be enough: "
            f"--budget {cents(preview.least_budget_usd).replace(',', '')}"
        )
    notes += _prices(preview)
    if preview.machines and not preview.can_launch:
        notes.append(NEEDS_AN_ACCOUNT)
    return notes


def short(amount: MicroUsd) -> str:
    """Return an amount in cents, with its unit."""
    return f"{cents(amount)} USD"


def _sum(preview: Preview) -> str:
    bound = f" of a budget of {money(preview.budget_usd)}" if preview.budget_usd is not None else ""
    if preview.machines:
        return (
            f"rents {counted(len(preview.machines), 'machine')} for {short(preview.cost_usd)}, "
            f"{short(preview.worst_case_usd)} at worst{bound}"
        )
    own = ""
    if preview.jobs and all(job.state == "runs-now" for job in preview.jobs):
        own = ", your own machines run it all" if bound else ""
    return f"nothing is rented: 0.00 USD{bound}{own}"


def _goodness(preview: Preview) -> Iterator[str]:
    """Yield how good the plan is, in the words of the promise."""
    bound, gap = preview.bound_usd, preview.gap
    if bound is None or gap is None:
        how = "no lower bound is known for this choice of machines"
    elif gap < 0.0005:
        how = f"no plan for these jobs is cheaper (lower bound {short(bound)})"
    else:
        how = f"at most {gap * 100:.1f} % above the cheapest possible (lower bound {short(bound)})"
    simpler = "; the solver's effort ended early, a simpler choice had to do"
    yield how + (simpler if preview.is_simpler else "")
    alone = preview.one_each_usd
    if alone:
        less = 1 - preview.cost_usd / alone
        saved = f": this is {less * 100:.0f} % less" if less >= 0.005 else ""
        if less <= -0.005 and preview.budget_usd is not None:
            saved = ", if the budget held what they may cost at worst"
        yield f"the cheapest machine for each job alone would cost {short(alone)}{saved}"


def _left(preview: Preview) -> Iterator[str]:
    if preview.budget_usd is None:
        return
    left = MicroUsd(max(0, preview.budget_usd - preview.worst_case_usd))
    yield f"{short(left)} of the budget are left when all machines cost the most they can"


def _later(later: Later) -> str:
    one = later.jobs == 1
    return (
        f"{counted(later.jobs, 'job')} that {'waits' if one else 'wait'} for others "
        f"{'is' if one else 'are'} not in these sums: the cheapest "
        f"{'machine for it' if one else 'machines for them'} would cost {short(later.cost)}"
    )


def _more(more: More) -> str:
    added = f"another {money(more.added)}"
    cost = f"for {short(more.cost)}"
    if more.cost < 0:
        cost = f"and cost {short(MicroUsd(-more.cost))} less in all"
    if more.jobs > 0:
        return f"{added} would let {counted(more.jobs, 'more job')} run, {cost}"
    if more.sooner_s >= 60:
        return f"{added} would finish {span(more.sooner_s)} sooner, {cost}"
    if more.cost < 0:
        return f"{added} would cost {short(MicroUsd(-more.cost))} less in all"
    return f"{added} would {'let no more jobs run' if more.cost else 'change nothing'}"


def _prices(preview: Preview) -> Iterator[str]:
    """Yield from when the prices of the plan's machines are, and which of them are estimates."""
    dates = sorted(
        machine.priced_at for machine in preview.machines if machine.priced_at is not None
    )
    if dates:
        first, last = day(dates[0]), day(dates[-1])
        when = first if first == last else f"{first} to {last}"
        guessed = [machine.name for machine in preview.machines if machine.estimated]
        named = f" ({', '.join(guessed)})" if len(guessed) <= NAMED_MOST else ""
        which = f"; {len(guessed)} of them estimated{named}" if guessed else ""
        yield f"prices of {when}{which}"
    yield from preview.prices


def day(at: float) -> str:
    """Return a date in UTC, as price lists have it."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC).date().isoformat()
