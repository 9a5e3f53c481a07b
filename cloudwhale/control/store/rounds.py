"""Which jobs a planning round said something of, and what."""

from cloudwhale.model.plan import Decision, DeclareLost, Plan, Rent


def jobs_of(plan: Plan) -> frozenset[str]:
    """Return the jobs that a plan has a step or a decision for."""
    jobs = {decision.job for decision in plan.decisions}
    for step in plan.steps:
        if isinstance(step, DeclareLost):
            jobs.update(job for job, _ in step.attempts)
        elif isinstance(step, Rent):
            jobs.update(step.rental.jobs)
        elif (job := getattr(step, "job", None)) is not None:
            jobs.add(job)
    return frozenset(jobs)


def decision_of(plan: Plan, job: str) -> Decision | None:
    """Return what was weighed for a job, or None when only a step names it."""
    return next((decision for decision in plan.decisions if decision.job == job), None)
