"""A cloud that lets us have few machines at once: learned by asking, and never asked in vain."""

from collections import Counter

from clouding import a_cloudy_stage, adds_up, an_offer, cloud_of, settles
from makers import wants
from staging import jobs_of

from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud
from cloudwhale.simulation.stage import Stage
from cloudwhale.spi.errors import QuotaExceeded
from cloudwhale.spi.provider import LaunchRequest, Machine

NAMES = ("quick", "saving", "quick", "saving")


class Stingy(SimulatedCloud):
    """A cloud that lets us have one machine of each quota group."""

    def launch(self, request: LaunchRequest) -> Machine:
        group = "" if request.offer is None else request.offer.quota
        has = Counter(one.shelf.offer.quota for one in self.hired.values() if one.ended_at is None)
        if group and has[group] and request.request_id not in self.hired:
            raise QuotaExceeded(f"{group} holds one machine")
        return super().launch(request)


def grouped(name: str, usd_h: str, quota: str = "g") -> Shelf:
    price = micro_usd(usd_h)
    offer: Offer = an_offer(
        name, price_usd_h=price, cap_usd_h=price, quota=quota, quota_units=8.0
    )  # fmt: skip
    return Shelf(offer)


def played(*shelves: Shelf) -> Stage:
    stage = a_cloudy_stage(NAMES, shelves, "50", cloud=Stingy, resources=wants(cpu=6))
    stage.raise_controller()
    assert settles(stage, 6000.0), [(job.id, job.reason) for job in jobs_of(stage).values()]
    adds_up(stage)
    assert {job.state for job in jobs_of(stage).values()} == {JobState.COMPLETED}
    return stage


def refused(stage: Stage) -> list[str]:
    events = [one.event for one in stage.scenery.store.since(0, 100_000)]
    return [
        one.subject for one in events if isinstance(one, e.Noted) and one.reason.code is Code.QUOTA
    ]


def test_what_a_quota_does_not_hold_is_had_one_after_another() -> None:
    stage = played(grouped("a", "3.6"), grouped("b", "3.7"))
    spans = sorted((one.launched_at, one.ended_at) for one in cloud_of(stage).hired.values())
    assert len(spans) == len(NAMES)
    for one, two in zip(spans, spans[1:], strict=False):
        assert one[1] is not None and one[1] <= two[0]
    assert len(refused(stage)) == len(NAMES) - 1, "each asks once; then the end is known"


def test_beyond_a_quota_another_group_is_taken_at_once() -> None:
    stage = played(grouped("a", "3.6"), grouped("dear", "20", quota=""))
    offers = Counter(one.shelf.offer.id for one in cloud_of(stage).hired.values())
    assert offers == {"a": 1, "dear": len(NAMES) - 1}


def test_who_is_refused_a_machine_is_told_what_the_cloud_said() -> None:
    stage = played(grouped("a", "3.6"))
    told = [
        one.event.reason
        for one in stage.scenery.store.events("saving-3")
        if isinstance(one.event, e.Waits)
    ]
    codes = [reason.code for reason in told]
    assert codes[:2] == [Code.RENTED, Code.QUOTA]
    assert "g holds one machine" in told[1].says
