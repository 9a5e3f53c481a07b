"""What the shell offers after Tab: jobs, runs, projects; nothing rather than an error."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from cloudwhale.model.job import Job

OFFERED = 200


def job_words(incomplete: str) -> list[tuple[str, str]]:
    """Return ids that begin so, newest first, each with its state."""
    return _from_jobs(incomplete, lambda job: [(job.id, f"{job.state} {job.spec.name}")])


def run_words(incomplete: str) -> list[tuple[str, str]]:
    """Return runs and jobs that begin so."""
    return _from_jobs(
        incomplete, lambda job: [(job.run, "run"), (job.id, f"{job.state} {job.spec.name}")]
    )


def project_words(incomplete: str) -> list[tuple[str, str]]:
    """Return projects that begin so."""
    return _from_jobs(incomplete, lambda job: [(job.spec.project, "project")])


def payer_words(incomplete: str) -> list[tuple[str, str]]:
    """Return projects and runs that begin so: who may have a budget."""
    return _from_jobs(incomplete, lambda job: [(job.spec.project, "project"), (job.run, "run")])


def night_words(incomplete: str) -> list[tuple[str, str]]:
    """Return nights that begin so, by date, name and run, the newest first."""
    from cloudwhale.cli.looking import store_here
    from cloudwhale.spi.errors import CloudwhaleError

    found: dict[str, str] = {}
    try:
        with store_here() as store:
            for run in store.nights():
                if run.night is not None:
                    words = (run.night.date, run.night.name, run.id)
                    told = f"night {run.night.name} of {run.night.date}"
                    found |= {one: told for one in words if one not in found}
    except CloudwhaleError:
        return []
    return [(word, says) for word, says in found.items() if word.startswith(incomplete)]


def target_words(incomplete: str) -> list[tuple[str, str]]:
    """Return whom the settings tell, those that begin so."""
    from cloudwhale.cli.looking import settings_here
    from cloudwhale.control.notifying.targets import targets
    from cloudwhale.spi.errors import CloudwhaleError

    try:
        found = targets(settings_here().notify)
    except CloudwhaleError:
        return []
    return [(name, one.way) for name, one in found.items() if name.startswith(incomplete)]


def node_words(incomplete: str) -> list[tuple[str, str]]:
    """Return nodes that begin so, each with its state."""
    from cloudwhale.cli.looking import store_here
    from cloudwhale.spi.errors import CloudwhaleError

    try:
        with store_here() as store:
            nodes = [node for node in store.nodes() if node.state != "removed"]
    except CloudwhaleError:
        return []
    return [(node.id, str(node.state)) for node in nodes if node.id.startswith(incomplete)]


def names_in_file(ctx: "typer.Context", incomplete: str) -> list[str]:
    """Return the names of the jobs in the file that was typed before, as far as it can be read."""
    from cloudwhale.clock import SystemClock
    from cloudwhale.control.intake import read_jobs
    from cloudwhale.spi.errors import CloudwhaleError

    typed = ctx.params.get("file")
    try:
        specs = read_jobs(Path(str(typed)), now=SystemClock().now()).specs if typed else ()
    except CloudwhaleError:
        return []
    return [
        name for name in dict.fromkeys(one.name for one in specs) if name.startswith(incomplete)
    ]


def policy_words(incomplete: str) -> list[str]:
    """Return names that a list of policies, some of them typed already, may go on with."""
    from cloudwhale.simulation.lineup import names

    typed, comma, begun = incomplete.rpartition(",")
    taken = typed.split(",")
    return [
        f"{typed}{comma}{name}" for name in names() if name.startswith(begun) and name not in taken
    ]


def trace_words(incomplete: str) -> list[tuple[str, str]]:
    """Return named traces that begin so; nothing lets the shell offer files."""
    from cloudwhale.simulation.traces.named import KNOWN

    found = [("synthetic", "made up, ships"), *((one.name, one.says) for one in KNOWN.values())]
    return [(name, says) for name, says in found if name.startswith(incomplete)]


def dimension_words(incomplete: str) -> list[str]:
    """Return what a list of dimensions of costs, some of them typed already, may go on with."""
    from cloudwhale.reporting.costs import DIMENSIONS

    typed, comma, begun = incomplete.rpartition(",")
    taken = typed.split(",")
    return [
        f"{typed}{comma}{name}"
        for name in DIMENSIONS
        if name.startswith(begun) and name not in taken
    ]


def period_words(incomplete: str) -> list[str]:
    """Return periods with a name that begin so."""
    from cloudwhale.reporting.periods import NAMES

    return [name for name in (*NAMES, "7d", "30d", "all") if name.startswith(incomplete.lower())]


def zone_words(incomplete: str) -> list[str]:
    """Return time zones that begin so, or whose city does."""
    from zoneinfo import available_timezones

    begun = incomplete.lower()
    names = sorted(available_timezones())
    first = [name for name in names if name.lower().startswith(begun)]
    return first or [name for name in names if name.lower().rpartition("/")[2].startswith(begun)]


def gpu_words(incomplete: str) -> list[str]:
    """Return GPU models that begin so."""
    from cloudwhale.model.gpus import FAMILIES, MODELS

    begun = incomplete.upper()
    return [name for name in sorted({*FAMILIES, *MODELS}) if name.startswith(begun)]


def region_words(incomplete: str) -> list[tuple[str, str]]:
    """Return regions that begin so, each with who has it."""
    return [(region, provider) for provider, region in _regions() if region.startswith(incomplete)]


def provider_words(incomplete: str) -> list[str]:
    """Return providers that begin so."""
    names = dict.fromkeys(provider for provider, _ in _regions())
    return [name for name in names if name.startswith(incomplete)]


def _regions() -> list[tuple[str, str]]:
    from cloudwhale.cli.looking import settings_here
    from cloudwhale.clock import SystemClock
    from cloudwhale.control.catalogue import catalogue
    from cloudwhale.spi.errors import CloudwhaleError

    try:
        known = catalogue(settings_here(), SystemClock().now())
    except CloudwhaleError:
        return []
    return sorted({(offer.provider, offer.region) for offer in known.offers})


def _from_jobs(
    incomplete: str, words: Callable[["Job"], Iterable[tuple[str, str]]]
) -> list[tuple[str, str]]:
    from cloudwhale.cli.looking import store_here
    from cloudwhale.spi.errors import CloudwhaleError
    from cloudwhale.spi.store import JobQuery

    found: dict[str, str] = {}
    try:
        with store_here() as store:
            for job in store.jobs(JobQuery(limit=OFFERED)):
                found |= {word: says for word, says in words(job) if word.startswith(incomplete)}
    except CloudwhaleError:
        return []
    return list(found.items())
