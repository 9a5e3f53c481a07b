"""A dry run's answer as the document that `plan --json` prints."""

from typing import Any

from cloudwhale.cli.plan_view import by_name
from cloudwhale.clock import iso
from cloudwhale.control.previewed import (
    Binding,
    Later,
    More,
    Preview,
    PreviewJob,
    PreviewMachine,
    Rival,
)
from cloudwhale.model.units import MicroUsd, usd


def plan_keys(preview: Preview) -> dict[str, Any]:
    """Return the document; money in dollars, shares and gaps fractions of 1."""
    return {
        "jobs": [_job(job) for job in preview.jobs],
        "machines": [_machine(machine) for machine in preview.machines],
        "cost_usd": usd(preview.cost_usd),
        "bound_usd": _usd(preview.bound_usd),
        "gap": preview.gap,
        "one_each_usd": _usd(preview.one_each_usd),
        "worst_case_usd": usd(preview.worst_case_usd),
        "budget_usd": _usd(preview.budget_usd),
        "left_usd": _usd(left(preview)),
        "least_budget_usd": _usd(preview.least_budget_usd),
        "more": None if preview.more is None else _more(preview.more),
        "later": None if preview.later is None else _later(preview.later),
        "can_launch": preview.can_launch,
        "notes": list(preview.prices),
    }


def left(preview: Preview) -> MicroUsd | None:
    """Return what no machine sets aside of the budget; None without one."""
    if preview.budget_usd is None:
        return None
    return MicroUsd(max(0, preview.budget_usd - preview.worst_case_usd))


def _usd(amount: MicroUsd | None) -> Any:
    return None if amount is None else usd(amount)


def _job(job: PreviewJob) -> dict[str, Any]:
    expected = job.expected
    return {
        "name": job.name,
        "project": job.project,
        "state": job.state,
        "node": job.node,
        "devices": job.devices,
        "machine": job.machine,
        "offer": job.offer,
        "starts_at": iso(job.starts_at),
        "ends_at": iso(job.ends_at),
        "after": job.after,
        "beside": list(job.beside),
        "cost_usd": _usd(job.cost),
        "worst_case_usd": _usd(job.worst),
        "runner_up": None if job.runner_up is None else _rival(job.runner_up),
        "binding": None if job.binding is None else _binding(job.binding),
        "expected_s": expected.length_s,
        "guessed": expected.is_guessed,
        "guessed_from": expected.source if expected.is_guessed else None,
        "sized": job.sized or None,
        "guessed_from_runs": expected.samples,
        "held_until": iso(job.held_until),
        "switches_at": iso(job.switches_at),
        "switch_worst_case_usd": _usd(job.switch_worst),
        "reason": {"code": job.reason.code, "says": by_name(job.reason.says)},
    }


def _rival(rival: Rival) -> dict[str, Any]:
    return {
        "where": rival.where,
        "says": rival.says,
        "offer": rival.offer,
        "cost_usd": _usd(rival.cost),
        "ends_at": iso(rival.ends_at),
    }


def _binding(binding: Binding) -> dict[str, Any]:
    return {"code": binding.code, "says": binding.says, "saves_usd": _usd(binding.saves)}


def _machine(machine: PreviewMachine) -> dict[str, Any]:
    return {
        "name": machine.name,
        "offer": machine.offer,
        "type": machine.type,
        "provider": machine.provider,
        "region": machine.region,
        "zone": machine.zone,
        "market": machine.market,
        "devices": machine.devices,
        "price_usd_h": usd(machine.price_usd_h),
        "cap_usd_h": usd(machine.cap_usd_h),
        "cost_usd": usd(machine.cost),
        "worst_case_usd": usd(machine.worst),
        "egress_usd": usd(machine.moved),
        "data_from": machine.moved_from,
        "launched_at": iso(machine.launched_at),
        "ready_at": iso(machine.ready_at),
        "ends_at": iso(machine.ends_at),
        "jobs": [
            {
                "name": job.name,
                "position": job.number,
                "starts_at": iso(job.starts_at),
                "ends_at": iso(job.ends_at),
            }
            for job in machine.jobs
        ],
        "estimated": machine.estimated,
        "priced_at": iso(machine.priced_at),
        "source": machine.source,
    }


def _later(later: Later) -> dict[str, Any]:
    return {"jobs": later.jobs, "cost_usd": usd(later.cost)}


def _more(more: More) -> dict[str, Any]:
    return {
        "added_usd": usd(more.added),
        "jobs": more.jobs,
        "sooner_s": more.sooner_s,
        "cost_usd": usd(more.cost),
    }
