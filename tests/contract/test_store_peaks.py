"""What every store remembers of what the attempts of a family have used."""

import pytest
from makers import a_device, a_job, a_node, wants
from stories import WHY, submitted

from cloudwhale.model import event as e
from cloudwhale.model.job import Peaks, Placement
from cloudwhale.planning.sizing import PEAKS_KEPT
from cloudwhale.spi.store import Store

HERE = Placement(node="host", devices=("gpu-0",))
FAMILY = ("default", "fit")


def ran(store: Store, job: str, end: e.Finished | e.Failed) -> None:
    store.append(
        [
            *submitted(a_job(job, name="fit", resources=wants(gpus=1))),
            e.Placed(at=1.0, job=job, attempt=1, placement=HERE, reason=WHY),
            e.Started(at=1.0, job=job, attempt=1),
            end,
        ]
    )


def a_finish(job: str, gib: float | None) -> e.Finished:
    return e.Finished(at=9.0, job=job, attempt=1, ran_s=8.0, peaks=Peaks(gpu_gib=gib))


@pytest.fixture
def hosted(store: Store) -> Store:
    store.append([e.NodeJoined(at=0.0, node=a_node("host", devices=(a_device("gpu-0"),)))])
    return store


def test_peaks_of_ended_attempts_are_kept_by_family_newest_last(hosted: Store) -> None:
    for number in range(PEAKS_KEPT + 2):
        ran(hosted, f"j{number}", a_finish(f"j{number}", float(number)))
    world = hosted.world(20.0)
    kept = [peak.used_gib for peak in world.peaks[FAMILY]]
    assert kept == [float(number) for number in range(2, PEAKS_KEPT + 2)]
    assert hosted.world_at(hosted.version(), 20.0) == world


def test_an_attempt_that_failed_tells_what_it_used_and_nothing_of_how_long(hosted: Store) -> None:
    failed = e.Failed(
        at=9.0, job="j", attempt=1, exit_code=1, reason=WHY, ran_s=8.0, peaks=Peaks(gpu_gib=3.0)
    )
    ran(hosted, "j", failed)
    world = hosted.world(20.0)
    assert [(peak.end, peak.used_gib) for peak in world.peaks[FAMILY]] == [("other", 3.0)]
    assert FAMILY not in world.durations


def test_what_nobody_measured_is_no_evidence(hosted: Store) -> None:
    ran(hosted, "j", a_finish("j", None))
    world = hosted.world(20.0)
    assert FAMILY not in world.peaks and world.durations[FAMILY] == (8.0,)


def test_a_job_that_is_sized_asks_for_that_until_it_outgrows_it(hosted: Store) -> None:
    hosted.append(submitted(a_job("j", resources=wants(memory_gib=8.0))))
    less, more = wants(memory_gib=2.0), wants(memory_gib=4.0)
    hosted.append([e.Sized(at=2.0, job="j", wants=less, reason=WHY)])
    assert hosted.world(3.0).jobs["j"].wants == less
    hosted.append(
        [
            e.Placed(at=3.0, job="j", attempt=1, placement=Placement(node="host"), reason=WHY),
            e.Started(at=3.0, job="j", attempt=1),
            e.Retried(
                at=4.0, job="j", attempt=1, exit_code=137, reason=WHY, not_before=4.0, grown=more
            ),
        ]
    )
    assert hosted.world(5.0).jobs["j"].wants == more
