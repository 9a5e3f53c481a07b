"""The image of machines that boot is made once, whole or not at all, and how far it is is told."""

import ast
import os
import sys
import threading
from pathlib import Path

import pytest

from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale_providers.sandbox import choosing, image

DEBOOTSTRAP = """#!/bin/sh
for word; do
    case $word in /*) root=$word ;; esac
done
echo made >>"$MADE"
for verb in Retrieving Unpacking Configuring; do
    for package in one two three; do echo "I: $verb $package..."; done
done
mkdir -p "$root/usr/sbin" "$root/usr/share/doc/one"
[ -z "$FAILS" ] || { echo "E: no mirror answers"; exit 1; }
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for debootstrap; return the file in which it notes each call."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("debootstrap", DEBOOTSTRAP), ("chroot", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MADE", str(tmp_path / "made"))
    monkeypatch.setenv("FAILS", "")
    return tmp_path / "made"


def test_the_image_is_made_once_and_says_how_far_it_is(made: Path) -> None:
    told: list[str] = []
    place = image.ready(told.append)
    assert image.ready(told.append) == place and image.is_there()
    assert made.read_text().split() == ["made"]
    assert told[0] == image.MAKES
    assert any("fetching packages" in says for says in told)
    assert any("setting up, 90 %" in says for says in told)
    assert not list((place / "usr/share/doc").iterdir())


@pytest.mark.parametrize("program", ["train/train.py", "gang/ring.py", "burst/fit.py"])
def test_the_image_has_what_the_programs_of_the_examples_import(program: str) -> None:
    text = (Path(__file__).parents[2] / "examples" / program).read_text()
    tree = ast.walk(ast.parse(text))
    names = [alias.name for node in tree if isinstance(node, ast.Import) for alias in node.names]
    assert names
    others = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)
    assert {f"python3-{name}" for name in others} <= set(image.PACKAGES)


def test_two_who_need_it_at_once_wait_for_the_one_that_makes_it(made: Path) -> None:
    found: list[Path] = []
    told: list[str] = []

    def need() -> None:
        found.append(image.ready(told.append))

    threads = [threading.Thread(target=need) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert made.read_text().split() == ["made"]


def test_an_image_that_cannot_be_made_leaves_nothing_and_says_why(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS", "yes")
    with pytest.raises(Unreachable, match="no mirror answers"):
        image.ready(lambda says: None)
    assert not image.is_there()
    assert [path.name for path in image.cache().iterdir()] == ["lock"]


def test_what_a_killed_maker_has_left_is_no_image(made: Path) -> None:
    half = image.place().with_name(f"{image.place().name}.new")
    (half / "usr").mkdir(parents=True)
    image.ready(lambda says: None)
    assert not half.exists()


def test_a_disk_without_room_is_said_before_anything_is_fetched(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "ROOM_BYTES", 1 << 60)
    with pytest.raises(Unreachable, match="has room for"):
        image.ready(lambda says: None)
    assert not made.exists()


def test_a_host_without_debootstrap_is_told_so(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert image.lacks() == "debootstrap and chroot is not installed"


def nobody(says: str) -> None:
    raise AssertionError(says)


def test_machines_that_are_to_be_processes_are(tmp_path: Path) -> None:
    assert choosing.chosen("processes", tmp_path, 1.0, nobody) == choosing.Choice(None, "")


def test_who_is_not_root_has_processes_and_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = choosing.chosen("auto", tmp_path, 1.0, nobody)
    assert found.image is None and found.note.endswith("that needs root")


def test_machines_that_must_boot_where_time_goes_faster_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(Denied, match="60 times as fast"):
        choosing.chosen("boots", tmp_path, 60.0, nobody)
