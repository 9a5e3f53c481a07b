"""What words mean, and what an interrupt means to somebody who may not be there."""

import io
import signal

import pytest
from makers import a_job

from cloudwhale.cli import asking, presence
from cloudwhale.cli.asking import Goodbye
from cloudwhale.cli.exits import NotFound, WrongUsage
from cloudwhale.cli.finding import named_jobs, one_job, one_run, work_is_left
from cloudwhale.cli.following import Told
from cloudwhale.cli.interrupts import Interrupts
from cloudwhale.cli.presence import must_be_sure
from cloudwhale.cli.view import PlainView
from cloudwhale.control.store import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model.night import Night, Unfinished
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.run import Run

REASON = Reason(code=Code.USER_ASKED, says="cancelled, as asked")


def a_store() -> MemoryStore:
    """Two runs: the older has ended, the newer has two jobs of one name."""
    store = MemoryStore()
    for number, names in enumerate([["old-aaaaaa"], ["new-bbbbbb", "new-cccccc"]]):
        run = Run(id=f"run-{number}", opened_at=float(number), user="", folder="/")
        jobs = [
            a_job(name, name=name[:3], submitted_at=float(number)).but(run=run.id) for name in names
        ]
        submitted = [e.Submitted(at=0.0, job=job.id, first=job) for job in jobs]
        store.append([e.RunOpened(at=0.0, run=run), *submitted])
    store.append([e.Cancelled(at=2.0, job="old-aaaaaa", reason=REASON)])
    return store


@pytest.mark.parametrize("word", ["old-aaaaaa", "old-a", "old"])
def test_a_job_is_found_by_id_beginning_or_name(word: str) -> None:
    assert one_job(a_store(), word).id == "old-aaaaaa"


def test_a_name_means_the_newest_job_or_all_of_them() -> None:
    store = a_store()
    assert one_job(store, "new").id in ("new-bbbbbb", "new-cccccc")
    assert {job.id for job in named_jobs(store, ["new"]).living} == {"new-bbbbbb", "new-cccccc"}


def test_a_run_means_all_its_jobs() -> None:
    assert len(named_jobs(a_store(), ["run-1"]).living) == 2


def test_a_job_named_twice_is_asked_once() -> None:
    assert len(named_jobs(a_store(), ["new-bbbbbb", "new", "run-1"]).living) == 2


def test_a_job_that_has_ended_cannot_be_steered() -> None:
    with pytest.raises(NotFound) as wrong:
        named_jobs(a_store(), ["old"])
    assert "old-aaaaaa has ended already: it was cancelled" in wrong.value.says


def test_a_job_that_has_ended_does_not_keep_others_from_being_steered() -> None:
    named = named_jobs(a_store(), ["old", "new-bbbbbb"])
    assert [job.id for job in named.living] == ["new-bbbbbb"]
    assert [job.id for job in named.ended] == ["old-aaaaaa"]


def test_what_is_not_found_comes_with_what_there_is() -> None:
    with pytest.raises(NotFound) as wrong:
        one_job(a_store(), "nobody")
    assert "new-cccccc" in wrong.value.remedy


def test_a_run_is_found_by_itself_by_a_job_and_by_being_the_newest() -> None:
    store = a_store()
    assert [one_run(store, word).id for word in ("run-0", "old", None)] == [
        "run-0", "run-0", "run-1",
    ]  # fmt: skip


def test_without_a_live_run_there_is_nothing_to_attach_to() -> None:
    with pytest.raises(NotFound):
        one_run(MemoryStore(), None)


def test_work_is_left_while_a_job_could_run() -> None:
    store = a_store()
    assert work_is_left(store)
    late = Reason(code=Code.DEADLINE_PASSED, says="late")
    store.append(
        [
            e.Parked(at=3.0, job="new-bbbbbb", reason=late),
            e.Cancelled(at=3.0, job="new-cccccc", reason=REASON),
        ]
    )
    assert not work_is_left(store)


@pytest.mark.parametrize(("unfinished", "is_work"), [("carry-over", False), ("continue", True)])
def test_what_a_night_leaves_to_the_next_is_no_work(unfinished: Unfinished, is_work: bool) -> None:
    store, says = MemoryStore(), Reason(code=Code.LEFT_OVER, says="its night has closed")
    night = Night(
        name="night", date="2026-11-30", zone="UTC", opens_at=0.0, closes_at=1.0,
        unfinished=unfinished,
    )  # fmt: skip
    run = Run(id="run-9", opened_at=0.0, user="eve", folder="/w", night=night)
    first = a_job("job-1", run="run-9")
    store.append([e.RunOpened(at=0.0, run=run), e.Submitted(at=0.0, job="job-1", first=first)])
    assert work_is_left(store), "it may run before its night closes"
    store.append([e.Waits(at=2.0, job="job-1", reason=says)])
    assert work_is_left(store) is is_work


def a_goodbye(monkeypatch: pytest.MonkeyPatch, there: bool, key: str | None = None) -> Goodbye:
    monkeypatch.setattr(asking, "someone_is_there", lambda: there)
    monkeypatch.setattr(asking, "key_pressed", lambda keys, interrupts: key)
    return Goodbye(Interrupts(), PlainView(io.StringIO(), several=False))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_where_nobody_is_a_signal_detaches(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    goodbye = a_goodbye(monkeypatch, there=False)
    assert goodbye(number, False) is Told.DETACH
    assert goodbye.told_to_go is number


@pytest.mark.parametrize(
    ("key", "told"),
    [("d", Told.DETACH), ("s", Told.STOP_JOBS), ("c", Told.GO_ON), (None, Told.DETACH)],
)
def test_a_person_chooses(monkeypatch: pytest.MonkeyPatch, key: str | None, told: Told) -> None:
    goodbye = a_goodbye(monkeypatch, there=True, key=key)
    assert goodbye(signal.SIGINT, False) is told
    assert goodbye.told_to_go is None


def test_a_person_who_interrupts_the_stopping_detaches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert a_goodbye(monkeypatch, there=True, key="c")(signal.SIGINT, True) is Told.DETACH


def test_a_closed_window_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert a_goodbye(monkeypatch, there=True, key="c")(signal.SIGHUP, False) is Told.DETACH


def test_only_who_can_be_asked_may_leave_out_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "someone_is_there", lambda: False)
    must_be_sure(True)
    with pytest.raises(WrongUsage):
        must_be_sure(False)
