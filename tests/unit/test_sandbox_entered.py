"""How a process goes into a sandbox, and what a sandbox keeps of itself."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudwhale import clock
from cloudwhale.control import surrounding
from cloudwhale.control.desk import providers
from cloudwhale.control.surrounding import box_of, entered, last_words, settled
from cloudwhale.settings import Settings, load
from cloudwhale.spi.errors import SettingsError, SpecError, Unreachable
from cloudwhale_providers.sandbox import Sandbox, record
from cloudwhale_providers.sandbox.fittings import fittings, shapes
from cloudwhale_providers.sandbox.pace import PacedClock, pace_from

HERE = 1_800_000_000.0


class Fixed:
    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def steady(self) -> float:
        return self.at - HERE


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing that is entered here is entered for other tests."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
    clock.look_again()


def a_record(**fields: object) -> record.Record:
    given = {
        "pid": os.getpid(), "url": "http://127.0.0.1:4", "clock": "", "speed": 1.0, "script": "",
        "digest": "", "owned": True, "urls": {"aws": "http://127.0.0.1:4"}, **fields,
    }  # fmt: skip
    return record.Record(**given)  # type: ignore[arg-type]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", sandbox=True, database="postgresql://me@db/whale")


@pytest.fixture
def folder(settings: Settings) -> Iterator[Path]:
    """A folder that looks as if a sandbox lived there."""
    found = box_of(settings).folder
    found.mkdir(parents=True)
    lock = record.Lock(found)
    assert lock.take()
    yield found
    lock.leave()


def test_who_only_reads_finds_the_database_of_the_box_without_it(settings: Settings) -> None:
    inside = entered(settings, starts=False)
    assert inside.home == settings.home / "sandbox"
    assert (inside.database, inside.mailbox, inside.clouds) == ("", "", {})
    assert "AWS_ENDPOINT_URL" not in os.environ


def test_who_goes_in_finds_endpoint_mailbox_and_cloud(settings: Settings, folder: Path) -> None:
    os.environ["AWS_ENDPOINT_URL_S3"] = os.environ["AWS_PROFILE"] = "of my account"
    record.keep(folder, a_record(owned=False))
    inside = entered(settings, starts=False)
    assert os.environ["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4"
    assert not {"AWS_ENDPOINT_URL_S3", "AWS_PROFILE"} & set(os.environ)
    assert inside.mailbox.startswith("s3://")
    assert list(inside.clouds) == ["aws"]
    assert not inside.takes_jobs
    assert "local" not in providers(inside.but(clouds={}))


def test_time_goes_faster_for_who_is_inside(settings: Settings, folder: Path) -> None:
    pace = pace_from(clock.SystemClock().now(), 60.0, 0.0)
    record.keep(folder, a_record(clock=pace.words, speed=60.0))
    entered(settings, starts=False)
    assert clock.real(60.0) == 1.0 and clock.lasted(1.0) == 60.0
    began = clock.SystemClock().now()
    clock.pause(0.05)
    assert clock.SystemClock().now() - began >= 3.0
    assert clock.told(pace.begin + 1.0) == pytest.approx(pace.start + 60.0)


def test_no_time_is_told_twice_by_boxes_of_one_folder(tmp_path: Path) -> None:
    record.keep_last(tmp_path, record.Last(HERE + 9000.0, {"aws": 4321}))
    last = record.last_of(tmp_path)
    outside = Fixed(HERE)
    inside = PacedClock(outside, pace_from(HERE, 60.0, last.at))
    assert inside.now() == HERE + 9000.0
    outside.at += 1.0
    assert inside.now() == HERE + 9060.0
    assert inside.real(60.0) == 1.0
    begin, speed, start = map(float, inside.pace.words.split(":"))
    assert (begin, speed, start) == (HERE, 60.0, HERE + 9000.0)
    assert last.ports == {"aws": 4321}


def test_real_time_needs_no_words() -> None:
    assert pace_from(HERE, 1.0, HERE - 5.0).words == ""
    assert pace_from(HERE, 1.0, HERE + 5.0).words != ""


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": 1}'])
def test_a_record_that_cannot_be_read_is_none(folder: Path, text: str) -> None:
    (folder / record.RECORD).write_text(text)
    assert Sandbox().surroundings(folder) is None
    assert record.last_of(folder) == record.Last()


def test_a_record_whose_process_is_gone_is_none(tmp_path: Path) -> None:
    record.keep(tmp_path, a_record())
    assert Sandbox().standing(tmp_path) is None
    lock = record.Lock(tmp_path)
    assert lock.take() and not record.Lock(tmp_path).take()
    assert Sandbox().standing(tmp_path) is not None
    lock.leave()
    assert Sandbox().standing(tmp_path) is None


def test_a_box_with_another_script_is_not_gone_into(
    settings: Settings, folder: Path, tmp_path: Path
) -> None:
    script = tmp_path / "w.yaml"
    script.write_text("boot: 5s\n")
    record.keep(folder, a_record(digest="of another one"))
    with pytest.raises(SettingsError, match="another script"):
        entered(settings.but(sandbox_script=str(script)), starts=True)
    record.keep(folder, a_record(digest=Sandbox().check(script)))
    assert entered(settings.but(sandbox_script=str(script)), starts=True).clouds


def test_a_wrong_script_starts_nothing(settings: Settings, tmp_path: Path) -> None:
    script = tmp_path / "w.yaml"
    script.write_text("boot: [\n")
    with pytest.raises(SpecError):
        entered(settings.but(sandbox_script=str(script)), starts=True)
    assert not box_of(settings).folder.exists()


def test_a_box_that_does_not_come_up_is_told_with_its_last_words(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/sh")  # which takes none of the words
    with pytest.raises(Unreachable, match="did not come up: .*llegal option") as raised:
        entered(settings, starts=True)
    assert "sandbox.log" in raised.value.remedy


MAKES = """#!/bin/sh
for word; do
    case $before in --folder) folder=$word ;; esac
    before=$word
done
echo 'making an image, 10 %' >"$folder/progress"
exec flock "$folder/sandbox.lock" sh -c 'sleep 1; exit 3'
"""


def test_how_far_a_box_is_that_takes_long_is_told(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "makes"
    program.write_text(MAKES)
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(program))
    monkeypatch.setattr(surrounding, "QUIET_S", 0.3)
    told: list[str] = []
    with pytest.raises(Unreachable):
        entered(settings, starts=True, told=told.append)
    # On a busy host it may be silent at first; what is said then is said once.
    assert told[-1] == "making an image, 10 %" and len(told) <= 2


def test_the_remedy_that_it_named_is_told(settings: Settings) -> None:
    box = box_of(settings)
    box.folder.mkdir(parents=True)
    (box.folder / "sandbox.log").write_text("noise\ncloudwhale: it needs moto\n  Run: pip\n")
    assert last_words(box) == ("it needs moto", "Run: pip")


def test_settings_without_a_sandbox_stay_as_they_are(tmp_path: Path) -> None:
    assert settled(tmp_path) == load(tmp_path)


def test_a_script_of_the_settings_file_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "cloudwhale.toml").write_text('sandbox_script = "w.yaml"\ntakes_jobs = false\n')
    found = load(tmp_path, {})
    assert found.sandbox_script == str(tmp_path / "w.yaml")
    assert not found.takes_jobs


@pytest.mark.parametrize(("cloud", "region"), [("aws", "us-east-1"), ("gcp", "us-central1")])
def test_every_type_that_ships_can_be_declared(cloud: str, region: str) -> None:
    from cloudwhale.host import HostOptions
    from cloudwhale.host.options import declared

    for shape in shapes(cloud).values():
        found = fittings(shape, region)
        devices = declared(HostOptions(devices=(found.device,)).devices) if found.device else ()
        assert [device.model for device in devices] == [shape.gpu] * shape.gpus, shape.type
        assert 0 < found.memory_gib < shape.memory_gib
        assert found.cpu == shape.cpu
