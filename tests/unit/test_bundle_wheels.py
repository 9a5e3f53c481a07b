"""What is compiled for another Python comes from a package index, by pip, once."""

import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cloudwhale.control import bundle_wheels
from cloudwhale.control.bundle_distributions import Source, normal, tags_in
from cloudwhale.control.bundle_wheels import fetched
from cloudwhale.spi.errors import Unreachable

WANTED = Source("whale-lib", "1.0", ("cp311-cp311-manylinux_2_17_x86_64",), dict)
TAG = "cp312-cp312-manylinux_2_28_x86_64"
FILES = {
    "whale_lib/__init__.py": "",
    "whale_lib/fast.cpython-312-x86_64-linux-gnu.so": "compiled",
    "whale_lib/fast.pyi": "",
    "whale_lib/tests/test_fast.py": "",
    "whale_lib-1.0.data/purelib/beside.py": "",
    "whale_lib-1.0.data/scripts/whale": "",
}
TRAVELS = {
    "whale_lib/__init__.py", "whale_lib/fast.cpython-312-x86_64-linux-gnu.so", "beside.py",
    "whale_lib-1.0.dist-info/METADATA",
}  # fmt: skip


def a_wheel(folder: Path, tag: str = TAG, version: str = "1.0") -> Path:
    """Write a wheel of whale-lib."""
    info = f"whale_lib-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    file = folder / f"whale_lib-{version}-{tag}.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
        about = f"Metadata-Version: 2.1\nName: whale-lib\nVersion: {version}\n"
        archive.writestr(f"{info}/METADATA", about)
        wheel = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: {tag}\n"
        archive.writestr(f"{info}/WHEEL", wheel)
        archive.writestr(f"{info}/RECORD", "")
    return file


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder the only index that pip knows."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def quietly(says: str) -> None:
    """Tell nobody."""


def test_a_wheel_for_the_other_python_is_fetched_and_what_travels_is_read(
    tmp_path: Path, index: Path
) -> None:
    a_wheel(index)
    a_wheel(index, "cp311-cp311-manylinux_2_28_x86_64")
    (found,) = fetched([WANTED], "3.12", tmp_path / "kept", quietly)
    assert (found.name, found.version, found.runs_on("3.12")) == ("whale-lib", "1.0", True)
    files = found.files()
    assert set(files) == TRAVELS
    assert files["whale_lib/fast.cpython-312-x86_64-linux-gnu.so"]() == b"compiled"
    assert not list((tmp_path / "kept").glob("fetch-*")), "nothing is left of the fetching"


def test_what_was_fetched_once_is_kept(tmp_path: Path, index: Path) -> None:
    kept = tmp_path / "kept"
    wheel = a_wheel(index)
    fetched([WANTED], "3.12", kept, quietly)
    wheel.unlink()
    assert fetched([WANTED], "3.12", kept, quietly)[0].runs_on("3.12")


def cut_short(body: bytes) -> bytes:
    return body[:100]


def with_another_byte(body: bytes) -> bytes:
    return body.replace(b"compiled", b"compile?", 1)


@pytest.mark.parametrize("spoil", [cut_short, with_another_byte])
def test_a_kept_wheel_that_is_damaged_is_fetched_again(
    tmp_path: Path, index: Path, spoil: Callable[[bytes], bytes]
) -> None:
    kept = tmp_path / "kept"
    wheel = a_wheel(index)
    fetched([WANTED], "3.12", kept, quietly)
    (kept / wheel.name).write_bytes(spoil(wheel.read_bytes()))
    (found,) = fetched([WANTED], "3.12", kept, quietly)
    assert set(found.files()) == TRAVELS
    assert [content() for content in found.files().values()], "each can be read"


@pytest.mark.parametrize(
    ("tag", "version"),
    [
        pytest.param("cp312-cp312-macosx_11_0_arm64", "1.0", id="for another system"),
        pytest.param("cp311-cp311-manylinux_2_28_x86_64", "1.0", id="for another Python"),
        pytest.param("cp312-cp312-manylinux_2_39_x86_64", "1.0", id="for a newer glibc"),
        pytest.param(TAG, "1.1", id="of another version"),
    ],
)
def test_nothing_else_is_taken(tmp_path: Path, index: Path, tag: str, version: str) -> None:
    a_wheel(index, tag, version)
    with pytest.raises(Unreachable, match="packages for Python 3.12 cannot be fetched:") as told:
        fetched([WANTED], "3.12", tmp_path / "kept", quietly)
    assert "whale-lib==1.0" in told.value.says
    assert "pip download" in told.value.remedy


def test_without_pip_it_says_how_to_make_one(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unreachable, match="there is no pip here") as told:
        fetched([WANTED], "3.12", tmp_path / "kept", quietly)
    assert "ensurepip" in told.value.remedy


def test_a_pip_beside_it_will_do(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_wheel(index)
    other = tmp_path / "bin" / "pip3"
    other.parent.mkdir()
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip "$@"\n')
    other.chmod(0o755)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", f"{other.parent}:/usr/bin:/bin")
    assert fetched([WANTED], "3.12", tmp_path / "kept", quietly)


def test_whoever_waits_for_a_slow_index_is_told(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_wheel(index)
    monkeypatch.setattr(bundle_wheels, "QUIET_S", 0.01)
    said: list[str] = []
    fetched([WANTED], "3.12", tmp_path / "kept", said.append)
    assert said == ["fetching packages for Python 3.12 …"]


def test_an_index_that_never_answers_is_given_up(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_wheels, "QUIET_S", 0.01)
    monkeypatch.setattr(bundle_wheels, "FETCHES_WITHIN_S", 0.01)
    monkeypatch.setattr(bundle_wheels, "_pip", lambda: ["/bin/sh", "-c", "exec sleep 60"])
    with pytest.raises(Unreachable, match=r"pip was not done within 0\.01 s"):
        fetched([WANTED], "3.12", tmp_path / "kept", quietly)


# -- where a distribution runs ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("tag", "pythons"),
    [
        ("py3-none-any", ("3.11", "3.12")),
        ("py2-none-any", ()),
        ("py312-none-any", ("3.12",)),
        ("cp311-cp311-manylinux2014_x86_64", ("3.11",)),
        ("cp312-cp312-manylinux_2_17_x86_64", ("3.12",)),
        ("cp38-abi3-manylinux_2_34_x86_64", ("3.11", "3.12")),
        ("cp312-abi3-manylinux_2_17_x86_64", ("3.12",)),
        ("cp313-abi3-manylinux_2_17_x86_64", ()),
        ("py3-none-manylinux1_x86_64", ("3.11", "3.12")),
        ("cp312-cp312-manylinux_2_36_x86_64", ()),
        ("cp312-cp312-linux_x86_64", ()),
        ("cp312-cp312-musllinux_1_2_x86_64", ()),
        ("cp312-cp312-manylinux2014_aarch64", ()),
        ("cp312-cp312-macosx_11_0_arm64", ()),
        ("cp312-cp312t-manylinux2014_x86_64", ()),
        ("pp311-pypy311_pp73-manylinux2014_x86_64", ()),
    ],
)
def test_a_tag_says_which_machines_can_use_it(tag: str, pythons: tuple[str, ...]) -> None:
    source = Source("whale-lib", "1.0", (tag,), dict)
    assert tuple(python for python in ("3.11", "3.12") if source.runs_on(python)) == pythons


def test_tags_are_read_one_by_one() -> None:
    text = "Wheel-Version: 1.0\nTag: py2-none-any\nTag: py3-none-any\n"
    assert tags_in(text) == ("py2-none-any", "py3-none-any")
    assert tags_in("") == ()


def test_names_are_compared_as_indexes_do() -> None:
    assert {normal(name) for name in ("Nvidia_ML.py", "nvidia-ml-py", "nvidia__ml-py")} == {
        "nvidia-ml-py"
    }
