"""From what a job file says to queued jobs: directories packed, secrets sealed, names resolved."""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cloudwhale.control.secrets import collected, seal
from cloudwhale.control.workdir import pack
from cloudwhale.mailbox.box import workdir_key
from cloudwhale.mailbox.objects import Objects, Unreadable
from cloudwhale.model.event import RunOpened, Submitted
from cloudwhale.model.job import Job, JobSpec
from cloudwhale.model.night import Night
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.spi.errors import IllegalTransition, NotThere, SpecError, StoreUnusable
from cloudwhale.spi.store import JobQuery, Store

REDRAWS = 3  # three clashes in a row are not chance


@dataclass(frozen=True, slots=True)
class Origin:
    """Where jobs come from, when, and who pays for them."""

    at: Instant
    """When they were submitted."""
    folder: Path
    """Absolute folder the command was given in."""
    files: tuple[str, ...]
    digest: str
    budget: MicroUsd | None
    """The smaller of the file's and the command line's, as `read_jobs` gives it."""
    soft_share: float
    """Share of the budget at which nothing new is rented."""
    user: str
    environment: Mapping[str, str] = field(repr=False)
    """Where secrets are taken from."""
    key: bytes = field(repr=False)
    """What they are sealed with until a machine is known."""
    leave_out: tuple[Path, ...] = ()
    """Folders that are never packed, such as our own state."""
    night: Night | None = None
    """Its hours, where it is one."""
    carried: tuple[Job, ...] = ()
    """What earlier nights have left over for it, as it is; the night names the same."""


def submit(
    store: Store,
    objects: Objects,
    origin: Origin,
    specs: Sequence[JobSpec],
    ids: Callable[[], str],
) -> Run:
    """Queue jobs as one run, in one append, and return the run; nothing is queued on an error.

    `ids` gives six base32 characters that were most likely never given before. Raise NotThere for
    a secret that is not set and a name in `after` that no job has, SpecError for a working
    directory that cannot be packed, StoreUnusable when the store or the mailbox fails.
    """
    if not specs and not origin.carried:
        raise SpecError("there is no job to submit", "Add one to the job file.")
    names = dict.fromkeys(name for spec in specs for name in spec.secrets)
    secrets = collected(names, origin.environment)
    run, jobs = _drawn(store, origin, specs, ids)
    keys = _sent(objects, specs, origin.leave_out)
    sealed = _kept_secrets(store, origin.carried)
    sealed |= {name: seal(origin.key, value) for name, value in secrets.items()}
    for _ in range(REDRAWS):
        try:
            _append(store, run, _with_workdirs(jobs, keys), sealed)
        except IllegalTransition:
            # One of the ids is taken. Of 10,000 jobs of one name and 1,000 new ones, one
            # submission in a hundred meets that.
            run, jobs = _drawn(store, origin, specs, ids)
        else:
            return run
    _append(store, run, _with_workdirs(jobs, keys), sealed)
    return run


def _kept_secrets(store: Store, carried: Sequence[Job]) -> dict[str, bytes]:
    """Return the secrets of jobs that another run has sealed before, as they are."""
    runs = dict.fromkeys(job.run for job in carried if job.spec.secrets)
    return {name: value for run in runs for name, value in store.sealed(run).items()}


def _append(store: Store, run: Run, jobs: Iterable[Job], sealed: Mapping[str, bytes]) -> None:
    if sealed:
        # Before the jobs: a controller that sees one must find what it needs.
        store.seal(run.id, sealed)
    submitted = [Submitted(at=run.opened_at, job=job.id, first=job) for job in jobs]
    store.append([RunOpened(at=run.opened_at, run=run), *submitted])


# -- jobs and what they wait for -------------------------------------------------------------


def _drawn(
    store: Store, origin: Origin, specs: Sequence[JobSpec], ids: Callable[[], str]
) -> tuple[Run, list[Job]]:
    """Return the run and its jobs under new ids."""
    run = Run(
        id=f"run-{ids()}",
        opened_at=origin.at,
        user=origin.user,
        folder=str(origin.folder),
        files=origin.files,
        digest=origin.digest,
        budget=origin.budget,
        soft_share=origin.soft_share,
        night=origin.night,
    )
    return run, _jobs(store, run, specs, ids, origin.carried)


FILE_ORDER_S = 1e-6  # jobs of one file queue in its order; a float of today still tells them apart


def _jobs(
    store: Store,
    run: Run,
    specs: Sequence[JobSpec],
    ids: Callable[[], str],
    carried: Sequence[Job] = (),
) -> list[Job]:
    given: set[str] = set()
    members: dict[str, list[str]] = {}
    for job in carried:
        members.setdefault(job.spec.name, []).append(job.id)
    numbered: list[tuple[str, JobSpec]] = []
    for spec in specs:
        job_id = _new_id(spec.name, ids, given)
        members.setdefault(spec.name, []).append(job_id)
        numbered.append((job_id, spec))
    named = {name: tuple(found) for name, found in members.items()}
    afters = _Afters(store, run, named)
    return [
        Job(
            id=job_id,
            run=run.id,
            spec=spec,
            submitted_at=run.opened_at + number * FILE_ORDER_S,
            after=afters.of(spec),
        )
        for number, (job_id, spec) in enumerate(numbered)
    ]


def _new_id(name: str, ids: Callable[[], str], given: set[str]) -> str:
    """Return an id that this run has not given yet: of 1,000 jobs two may draw the same."""
    job_id = f"{name}-{ids()}"
    while job_id in given:
        job_id = f"{name}-{ids()}"
    given.add(job_id)
    return job_id


class _Afters:
    """Finds the jobs that names in `after` mean: those of this run, else the newest queued."""

    def __init__(self, store: Store, run: Run, named: Mapping[str, tuple[str, ...]]) -> None:
        self._store = store
        self._run = run
        self._named = named
        self._queued: dict[tuple[str, str], tuple[str, ...]] = {}
        """Ids by project and name; each is looked up once."""

    def of(self, spec: JobSpec) -> tuple[str, ...]:
        if len(spec.after) == 1:
            return self._meant(spec.project, spec.after[0])  # shared by all that wait for it
        found = (job for name in spec.after for job in self._meant(spec.project, name))
        return tuple(dict.fromkeys(found))

    def _meant(self, project: str, name: str) -> tuple[str, ...]:
        if name in self._named:
            return self._named[name]
        if (project, name) not in self._queued:
            self._queued[project, name] = self._look_up(project, name)
        return self._queued[project, name]

    def _look_up(self, project: str, name: str) -> tuple[str, ...]:
        query = JobQuery(project=project, names_or_ids=(name,), limit=1)
        newest = _called(name, self._store.jobs(query))
        if not newest:
            raise NotThere(
                f"after: no job of project {project!r} is called {name!r}",
                "Look at `cloudwhale ps --all`, or add the job to the file.",
                key="after",
                word=name,
            )
        if newest[0].id == name:
            return (name,)
        # An array's members came together and are waited for together.
        together = JobQuery(project=project, names_or_ids=(name,), run=newest[0].run)
        return tuple(job.id for job in reversed(_called(name, self._store.jobs(together))))


def _called(name: str, jobs: Iterable[Job]) -> list[Job]:
    """Drop jobs whose id merely begins so: a name that is half a name is a slip."""
    return [job for job in jobs if name in (job.spec.name, job.id)]


# -- working directories ---------------------------------------------------------------------


def _sent(
    objects: Objects, specs: Sequence[JobSpec], leave_out: Sequence[Path]
) -> dict[str | None, str]:
    """Pack each working directory once, upload what is not there yet, and return the keys."""
    folders = dict.fromkeys(spec.workdir for spec in specs if spec.workdir is not None)
    if not folders:
        return {}
    there = set(objects.keys("workdirs"))
    ours = (*leave_out, *([objects.folder] if objects.folder else []))
    keys: dict[str | None, str] = {}
    with tempfile.TemporaryDirectory(prefix="cloudwhale-") as drafts:
        for folder in folders:
            archive = Path(drafts, "workdir.tar.gz")
            keys[folder] = key = workdir_key(pack(Path(folder), archive, ours).sha256)
            if key not in there:
                _upload(objects, key, archive)
                there.add(key)
    return keys


def _with_workdirs(jobs: Iterable[Job], keys: Mapping[str | None, str]) -> list[Job]:
    return [job.but(workdir_key=keys.get(job.spec.workdir)) for job in jobs]


def _upload(objects: Objects, key: str, archive: Path) -> None:
    try:
        objects.put_file(key, archive)
    except Unreadable as error:
        raise StoreUnusable(
            f"the archive {archive} vanished while it was uploaded: {error}",
            "Set TMPDIR to a folder that nothing cleans.",
        ) from error
