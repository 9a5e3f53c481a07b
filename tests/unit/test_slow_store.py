"""Stores behind a slow line: large bodies get through, and a store that hangs is noticed."""

import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_s3 import environment, serving

from cloudwhale.mailbox import objects as mailbox
from cloudwhale.mailbox import sources
from cloudwhale.mailbox.limits import DOCUMENT, DOWNLOAD, UPLOAD, Limits, opened
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.mailbox.sources import Source
from cloudwhale.spi.errors import StoreUnusable

BODY = bytes(range(256)) * (6 << 12)  # 6 MiB take 1.2 s
SHORT = Limits(0.6)
"""Stands for the half minute that a document gets."""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    with serving(mib_takes_s=0.2) as told:
        for name, value in told.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(mailbox, "DOCUMENT", SHORT)
        yield monkeypatch


@pytest.fixture
def objects(slow: pytest.MonkeyPatch) -> StoreObjects:
    return open_objects("s3://team/mailbox")


def test_a_file_takes_as_long_as_the_line_is_slow(objects: StoreObjects, tmp_path: Path) -> None:
    (tmp_path / "up").write_bytes(BODY)
    assert objects.put_file("large", tmp_path / "up") == hashlib.sha256(BODY).hexdigest()
    assert objects.get_file("large", tmp_path / "down") == hashlib.sha256(BODY).hexdigest()


def test_a_document_of_unusual_length_gets_more_time(objects: StoreObjects) -> None:
    assert objects.create("large", BODY)
    assert objects.size_bytes("large") == len(BODY)


@pytest.mark.parametrize("verb", ["create", "get", "get_file", "put_file"])
def test_a_store_that_hangs_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: str
) -> None:
    (tmp_path / "file").write_bytes(b"1")
    limits = Limits(60.0, silent_s=0.3) if verb == "get_file" else Limits(0.3)
    for name in ("DOCUMENT", "UPLOAD", "DOWNLOAD"):
        monkeypatch.setattr(mailbox, name, limits)
    words: dict[str, tuple[bytes | Path, ...]] = {
        "create": (b"1",),
        "get": (),
        "get_file": (tmp_path / "to",),
        "put_file": (tmp_path / "file",),
    }
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for name, value in environment("127.0.0.1", silent.getsockname()[1]).items():
            monkeypatch.setenv(name, value)
        ask = getattr(open_objects("s3://team/mailbox"), verb)
        with pytest.raises(StoreUnusable, match="in the mailbox"):
            ask("a", *words[verb])


def test_inputs_come_as_long_as_something_comes(
    slow: pytest.MonkeyPatch, objects: StoreObjects
) -> None:
    objects.create("data.bin", BODY)
    slow.setattr(sources, "DOWNLOAD", Limits(60.0, silent_s=0.6))
    source = Source("s3://team/mailbox/data.bin")
    (found,) = source.listed()
    came = b"".join(bytes(one) for one in source.read(found, 0, len(BODY)))
    assert came == BODY


def test_limits_fit_a_line_of_half_a_megabit() -> None:
    at_once_bits = 4 * mailbox.PART_BYTES * 8
    assert at_once_bits / UPLOAD.whole_s < 500_000
    assert DOCUMENT.whole_s <= 30.0
    assert (DOWNLOAD.silent_s or 0.0) <= 30.0 < DOWNLOAD.whole_s


def test_what_the_environment_says_of_a_client_holds_beside_its_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (
        ("AWS_ALLOW_HTTP", "true"), ("AWS_USER_AGENT", "one"), ("AWS_REGION", "us-east-1"),
        ("GOOGLE_ALLOW_HTTP", "false"), ("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    told = getattr(opened("s3://team/x", UPLOAD), "client_options")  # noqa: B009
    assert (told["allow_http"], told["user_agent"]) == ("true", "one")
    assert "read_timeout" not in told
