"""Which jobs may be on a rented machine together: those of different projects in containers only.

A plain process sees the machine as it is: who else runs there, how it is called, what it was given
on its command line. Owned machines belong to somebody who knows who uses them.
"""

from collections.abc import Iterable, Mapping, Sequence

from cloudwhale.model.job import Job


def may_share(job: Job, others: Iterable[Job]) -> bool:
    """Say whether a job may be on a rented machine with all of these."""
    return all(
        one.spec.project == job.spec.project or (one.spec.image and job.spec.image)
        for one in others
    )


def companies(jobs: Sequence[Job]) -> Mapping[str, str]:
    """Return a word for each job, by id: those of one run with the same one may share machines.

    Where a run is of one project, all have the same; else those in containers have, and plain
    processes go by project.
    """
    projects: dict[str, set[str]] = {}
    for job in jobs:
        projects.setdefault(job.run, set()).add(job.spec.project)
    return {
        job.id: job.spec.project if len(projects[job.run]) > 1 and not job.spec.image else ""
        for job in jobs
    }
