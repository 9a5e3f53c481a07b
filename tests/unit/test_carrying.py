"""What an order names is copied to where it is read: whole, once, and gone on with when cut off."""

import hashlib
from functools import partial
from pathlib import Path

import pytest
import small_gs
import small_s3
from clouding import an_offer
from makers import a_job
from two_stores import Ailing

from cloudwhale.control.carrying import Carried, Carrying, brought
from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.mailbox.box import checkpoint_prefix
from cloudwhale.mailbox.documents import Manifest, ManifestFile
from cloudwhale.mailbox.objects import Objects, StoreObjects, open_objects
from cloudwhale.model.job import Checkpoint, Job
from cloudwhale.model.rental import Lease, Rental
from cloudwhale.model.units import micro_usd
from cloudwhale.model.where import Where
from cloudwhale.planning.bringing import is_of
from cloudwhale.spi.errors import StoreUnusable

PREFIX = checkpoint_prefix("j", 1, 1)
FILES = {"model": bytes(3 << 20), "optimizer": b"state"}
SAVED = Checkpoint(
    attempt=1, seq=1, name="step-7", size_bytes=sum(map(len, FILES.values())), saved_at=5.0,
    manifest=f"{PREFIX}/manifest.json",
)  # fmt: skip
NEAR = Where(provider="near", region="r")


class Scene:
    def __init__(self) -> None:
        self.main, self.near, self.far = (open_objects("memory://") for _ in range(3))
        self.ailing = Ailing(self.near)
        stores: dict[str, Objects] = {"near": self.ailing, "far": self.far}
        self.carrying = Carrying(
            Mailboxes(self.main, {"near": lambda: stores["near"], "far": lambda: stores["far"]})
        )
        job = a_job("j")
        self.job: Job = job.but(attempt=2, checkpoint=SAVED, saved_from=NEAR)

    def saved(self) -> None:
        """Publish the checkpoint in the store of its cloud, as an agent does."""
        listed: list[ManifestFile] = []
        for name, body in FILES.items():
            key = f"{PREFIX}/{name}"
            self.near.put_chunks(key, [body])
            sha256 = hashlib.sha256(body).hexdigest()
            listed.append(ManifestFile(path=name, key=key, size_bytes=len(body), sha256=sha256))
        manifest = Manifest(at=5.0, job="j", attempt=1, seq=1, name="step-7", files=tuple(listed))
        self.near.create(SAVED.manifest, manifest.model_dump_json().encode())

    def carry(self, provider: str = "far", node: str = "rent-1-1") -> Carried | None:
        self.carrying.carry(self.job, node, provider, SAVED)
        return self.carrying.carried(SAVED)


def a_carried(size_bytes: int, left: Where | None = NEAR, node: str = "rent-1-1") -> Carried:
    return Carried("j", node, left, SAVED, size_bytes)


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.saved()
    return made


def everything(objects: Objects) -> dict[str, bytes | None]:
    return {key: objects.get(key) for key in objects.keys(PREFIX)}


def test_a_checkpoint_is_copied_whole_and_counted(scene: Scene) -> None:
    carried = scene.carry()
    assert everything(scene.far) == everything(scene.near)
    manifest = len(scene.near.get(SAVED.manifest) or b"")
    assert carried == a_carried(SAVED.size_bytes + manifest)


def test_what_was_copied_by_a_try_that_came_to_nothing_is_told_once(scene: Scene) -> None:
    scene.carrying.carry(scene.job, "rent-1-1", "far", SAVED)  # the store fails after it, say
    again = scene.job.but(attempt=3, saved_from=Where(provider="far", region="r"))
    scene.carrying.carry(again, "rent-1-2", "far", SAVED)
    carried = scene.carrying.carried(SAVED)
    assert carried is not None
    assert (carried.node, carried.left) == ("rent-1-1", NEAR)
    assert scene.carrying.carried(SAVED) is None


def test_from_one_kind_of_store_into_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with small_s3.serving() as told, small_gs.serving(monkeypatch):
        for name, value in told.items():
            monkeypatch.setenv(name, value)
        scene = Scene()
        scene.near, scene.far = open_objects("s3://team/mailbox"), open_objects(small_gs.URL)
        scene.ailing.objects, stores = scene.near, {"near": scene.near, "far": scene.far}
        scene.carrying = Carrying(
            Mailboxes(scene.main, {name: partial(stores.__getitem__, name) for name in stores})
        )
        scene.saved()
        assert scene.carry() is not None
        assert everything(scene.far) == everything(scene.near) != {}


def test_what_is_there_is_not_copied_again(scene: Scene) -> None:
    scene.carry()
    before = scene.far.counts.use
    assert scene.carry() is None
    assert scene.far.counts.use.puts == before.puts


def test_a_copy_that_was_cut_off_is_gone_on_with(scene: Scene) -> None:
    scene.far.put_chunks(f"{PREFIX}/model", [FILES["model"]])
    sent = scene.far.counts.use.sent_bytes
    assert scene.carry() is not None
    assert scene.far.counts.use.sent_bytes - sent < 1 << 20
    assert everything(scene.far) == everything(scene.near)


def test_the_manifest_comes_last(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: StoreObjects, key: str, path: Path) -> str:
        raise StoreUnusable("away")

    monkeypatch.setattr(StoreObjects, "put_file", fails)
    with pytest.raises(StoreUnusable):
        scene.carry()
    assert scene.far.get(SAVED.manifest) is None


def test_a_checkpoint_is_found_wherever_it_is(scene: Scene) -> None:
    scene.job = scene.job.but(saved_from=None)
    assert scene.carry() is not None
    assert everything(scene.far) == everything(scene.near)


def test_one_that_may_lie_where_nobody_answers_is_waited_for(scene: Scene) -> None:
    scene.ailing.is_away = True
    with pytest.raises(StoreUnusable):
        scene.carry()
    scene.ailing.is_away = False
    assert scene.carry() is not None


def test_one_that_is_nowhere_any_more_is_left_to_the_agent() -> None:
    assert Scene().carry() is None


def test_a_working_directory_is_brought_to_the_cloud_once(scene: Scene) -> None:
    scene.main.put_chunks("workdirs/a.tar.gz", [b"packed"])
    scene.job = scene.job.but(workdir_key="workdirs/a.tar.gz")
    scene.carrying.carry(scene.job, "rent-1-1", "far", None)
    scene.carrying.carry(scene.job, "rent-1-1", "far", None)
    assert scene.far.get("workdirs/a.tar.gz") == b"packed"
    assert scene.far.counts.use.puts == 1


def test_where_everybody_meets_in_one_nothing_is_looked_for(scene: Scene) -> None:
    alone = Carrying(Mailboxes(scene.main))
    job = scene.job.but(workdir_key="workdirs/a.tar.gz")
    assert not alone.is_needed(job, "far", SAVED)
    assert not alone.is_elsewhere(job, "far")
    assert scene.carrying.is_needed(job, "far", None)
    assert not scene.carrying.is_needed(job, "local", None)
    assert scene.carrying.is_elsewhere(job, "far")


# -- what it costs ---------------------------------------------------------------------------

RENTAL = Rental(
    id="rent-1-1", node="rent-1-1", payer="run-1", offer="big", reserved=micro_usd(2),
    taken=an_offer(provider="far"), jobs={"j": "p"}, brings={"j": 0.12},
    lease=Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0),
)  # fmt: skip


def test_what_leaves_a_cloud_is_charged_with_the_machine_that_it_goes_to() -> None:
    (event,) = brought(a_carried(500_000_000), {RENTAL.id: RENTAL}, 9.0)
    assert (event.rental, event.left.provider, event.checkpoint) == ("rent-1-1", "near", "step-7")
    assert event.cost == micro_usd("0.06")


def test_what_leaves_our_own_mailbox_costs_nothing() -> None:
    assert list(brought(a_carried(500, left=None), {RENTAL.id: RENTAL}, 9.0)) == []
    assert list(brought(None, {RENTAL.id: RENTAL}, 9.0)) == []


def test_a_machine_of_ours_sets_nothing_aside() -> None:
    (event,) = brought(a_carried(500, node="ours"), {RENTAL.id: RENTAL}, 9.0)
    assert (event.rental, event.cost, event.size_bytes) == ("", 0, 500)


def test_what_is_brought_late_does_not_say_where_newer_things_lie(scene: Scene) -> None:
    (event,) = brought(a_carried(500), {RENTAL.id: RENTAL}, 9.0)
    assert is_of(scene.job, event)
    assert not is_of(scene.job.but(saved_from=Where(provider="other", region="r")), event)
    assert not is_of(scene.job.but(checkpoint=SAVED.but(name="step-8")), event)
