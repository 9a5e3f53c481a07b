"""What is seen of GPUs through a driver that we write, and what is told of it."""

import pytest
from fake_gpus import FakeGpus

from cloudwhale.agent.gpu_sight import OPEN_EVERY_S, GpuSight
from cloudwhale.agent.seen import Devices, Noted, Seen
from cloudwhale.host import check_gpus
from cloudwhale.host.gpus import Driver, Gone, NoDriver, gpus_here
from cloudwhale.model.node import Facts

FACTS = Facts(cpu=2.0, memory_gib=8.0, disk_gib=50.0)


class Seeing:
    """A sight with its own time, and all that it told."""

    def __init__(self) -> None:
        self.told: list[Seen] = []
        self.sight = GpuSight(self.told.append)
        self.now = 0.0
        self.sight.begin(FACTS.but(devices=gpus_here().devices))

    def look(self, after_s: float = 1.0) -> dict[str, float]:
        """Look a while later; return the used memory by GPU."""
        self.now += after_s
        found = self.sight.look(self.now)
        return {name: round(use.used_gib, 1) for name, use in found.items()}

    def news(self) -> list[Seen]:
        """Return what was told since the last time."""
        told, self.told[:] = list(self.told), []
        return told


def ids(news: Seen) -> list[str]:
    assert isinstance(news, Devices)
    return [one.id for one in news.devices]


def test_used_memory_is_seen_by_gpu_and_process(driver_here: FakeGpus) -> None:
    driver_here.gpus[1].used_gib = 1.0
    driver_here.hold(1, 77, 3.0)
    seeing = Seeing()
    assert seeing.look() == {"GPU-aaaa": 0.0, "GPU-bbbb": 4.0, "GPU-cccc": 0.0}
    assert seeing.sight.look(2.0)["GPU-bbbb"].processes == {77: 3.0}
    assert seeing.news() == []


def test_what_a_driver_cannot_say_is_left_out(driver_here: FakeGpus) -> None:
    driver_here.gpus[0].flags = "nosm"
    driver_here.write()
    assert Seeing().sight.look(1.0)["GPU-aaaa"].sm is None


@pytest.mark.parametrize("gone", ["lost", "unlisted"])
def test_a_gpu_that_goes_is_told_once_and_again_when_it_is_back(
    driver_here: FakeGpus, gone: str
) -> None:
    seeing = Seeing()
    seeing.look()
    kept = driver_here.gpus[1]
    kept.flags = "lost" if gone == "lost" else "-"
    if gone == "unlisted":
        del driver_here.gpus[1]
    driver_here.write()
    assert set(seeing.look()) == {"GPU-aaaa", "GPU-cccc"}
    assert [ids(one) for one in seeing.news()] == [["GPU-aaaa", "GPU-cccc"]]
    seeing.look()
    assert seeing.news() == []
    kept.flags, driver_here.gpus[1] = "-", kept
    driver_here.write()
    seeing.look(OPEN_EVERY_S)
    [back] = seeing.news()
    assert sorted(ids(back)) == ["GPU-aaaa", "GPU-bbbb", "GPU-cccc"]


def test_a_blind_driver_is_told_once_and_what_was_seen_last_stands(driver_here: FakeGpus) -> None:
    driver_here.hold(0, 77, 3.0)
    seeing = Seeing()
    before = seeing.look()
    driver_here.error = 999
    driver_here.write()
    for _ in range(3):
        assert seeing.look() == before
        assert seeing.sight.is_blind
    [noted] = seeing.news()
    assert isinstance(noted, Noted)
    assert "cannot be seen" in noted.says
    driver_here.error = 0
    driver_here.hold(0, 77, 5.0)
    assert seeing.look()["GPU-aaaa"] == 5.0
    assert not seeing.sight.is_blind
    [again] = seeing.news()
    assert isinstance(again, Noted), "no device was ever gone"


def test_a_driver_that_is_unloaded_under_us_is_blind_and_not_without_gpus(
    driver_here: FakeGpus,
) -> None:
    seeing = Seeing()
    seeing.look()
    driver_here.state.rename(driver_here.state.with_suffix(".away"))
    seeing.look()
    assert seeing.sight.is_blind


def test_a_driver_that_comes_later_is_found(driver_here: FakeGpus) -> None:
    away = driver_here.state.with_suffix(".away")
    driver_here.state.rename(away)
    seeing = Seeing()
    assert seeing.look() == {}
    away.rename(driver_here.state)
    assert seeing.look() == {}, "it is not looked for every second"
    assert len(seeing.look(OPEN_EVERY_S)) == 3
    [news] = seeing.news()
    assert len(ids(news)) == 3


def test_a_gpu_that_was_never_named_does_not_answer(driver_here: FakeGpus) -> None:
    driver = Driver()
    driver.open()
    driver.gpus()
    with pytest.raises(Gone):
        driver.use("GPU-zzzz")
    driver.close()
    driver_here.state.unlink()
    with pytest.raises(NoDriver):
        driver.open()


def test_doctor_counts_gpus_by_model_and_says_what_is_declared(driver_here: FakeGpus) -> None:
    driver_here.gpus[2].name = "NVIDIA A100-SXM4-80GB"
    driver_here.gpus[2].total_gib = 80.0
    driver_here.write()
    row = check_gpus(["1x L4 24GB"])
    assert row.state == "ok"
    assert row.says == (
        "2 x A100-80GB, 1 x RTX4090, driver 550.00.fake; declared stand-ins: 1x L4 24GB"
    )
    driver_here.gpus[0].flags = "lost"
    driver_here.write()
    row = check_gpus([])
    assert (row.state, "GPU 0 does not answer" in row.says) == ("warning", True)
