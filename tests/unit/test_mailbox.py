"""The mailbox: documents are created once, read by number, and heard of at once."""

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import small_gs
import small_s3
from pydantic import ValidationError

from cloudwhale.clock import SystemClock
from cloudwhale.mailbox.bell import Bell
from cloudwhale.mailbox.box import Box, inbox_from, log_of, orders_to, workdir_key
from cloudwhale.mailbox.documents import ORDERS, REPORTS, Heartbeat, LeaveOrder, StartOrder
from cloudwhale.mailbox.objects import StoreObjects, Unreadable, open_objects
from cloudwhale.mailbox.sealing import SealBroken, new_key_pair, seal, unseal
from cloudwhale.spi.errors import SettingsError, StoreUnusable


@pytest.fixture(params=["folder", "memory", "s3", "gs"])
def objects(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StoreObjects]:
    """Give an empty store of each kind; the bucket is our own, on loopback."""
    if request.param == "s3":
        with small_s3.serving() as told:
            for name, value in told.items():
                monkeypatch.setenv(name, value)
            yield open_objects("s3://bucket/folder")
    elif request.param == "gs":
        with small_gs.serving(monkeypatch):
            yield open_objects(small_gs.URL)
    else:
        yield open_objects("memory:///" if request.param == "memory" else tmp_path.as_uri())


# -- objects ---------------------------------------------------------------------------------


def test_an_object_is_created_once(objects: StoreObjects) -> None:
    assert objects.create("a/b", b"first")
    assert not objects.create("a/b", b"second")
    assert objects.get("a/b") == b"first"


def test_what_lies_there_already_just_so_counts_as_written(objects: StoreObjects) -> None:
    assert objects.create("a/b", b"first")
    assert objects.create("a/b", b"first")
    assert not objects.create("a/b", b"third")


def test_of_many_writers_of_one_name_one_succeeds(objects: StoreObjects) -> None:
    wins: list[int] = []

    def write(number: int) -> None:
        if objects.create("a/claim", b"%d" % number):
            wins.append(number)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert objects.get("a/claim") == b"%d" % wins[0]
    assert len(wins) == 1


def test_what_is_not_there_is_nothing_and_can_be_deleted(objects: StoreObjects) -> None:
    objects.delete(["a/b", "c"])
    assert objects.get("a/b") is None
    assert objects.keys("a") == []


def test_keys_are_those_below_a_folder_sorted(objects: StoreObjects) -> None:
    for key in ("a/2", "a/1", "a/b/3", "ab/4"):
        objects.create(key, b"")
    assert objects.keys("a") == ["a/1", "a/2", "a/b/3"]


def test_folders_are_those_right_below_a_folder_sorted(objects: StoreObjects) -> None:
    for key in ("inbox/b/1", "inbox/a/1", "inbox/a/c/2", "inbox/x", "other/d/1"):
        objects.create(key, b"")
    assert objects.folders("inbox") == ["a", "b"]
    assert objects.folders("nothing") == []


def test_an_object_says_when_it_was_written_by_the_stores_clock(objects: StoreObjects) -> None:
    before = SystemClock().now()
    objects.create("a", b"")
    at = objects.modified_at("a")
    assert at is not None and before - 1.0 <= at <= SystemClock().now()
    assert objects.modified_at("b") is None


@pytest.mark.parametrize("size", [0, 1, 9 << 20])
def test_a_file_goes_up_and_comes_down_as_it_was(
    objects: StoreObjects, tmp_path: Path, size: int
) -> None:
    body = bytes(size)
    (tmp_path / "up").write_bytes(body)
    digest = hashlib.sha256(body).hexdigest()
    assert objects.put_file("big/file", tmp_path / "up") == digest
    assert objects.get_file("big/file", tmp_path / "down") == digest
    assert (tmp_path / "down").read_bytes() == body
    assert objects.get_file("big/other", tmp_path / "down") is None


def test_an_upload_that_breaks_off_leaves_what_was_there(objects: StoreObjects) -> None:
    objects.create("a", b"whole")

    def broken() -> Iterator[bytes]:
        yield bytes(9 << 20)
        raise RuntimeError("the source broke off")

    with pytest.raises(RuntimeError, match="broke off"):
        objects.put_chunks("a", broken())
    assert objects.get("a") == b"whole"


def test_a_file_of_ours_that_cannot_be_read_is_not_the_stores_fault(
    objects: StoreObjects, tmp_path: Path
) -> None:
    with pytest.raises(Unreadable, match="gone"):
        objects.put_file("a", tmp_path / "gone")


def test_a_disk_of_ours_that_cannot_be_written_is_not_the_stores_fault(
    objects: StoreObjects, tmp_path: Path
) -> None:
    objects.create("a", b"1")
    with pytest.raises(FileNotFoundError):
        objects.get_file("a", tmp_path / "gone" / "a")


def test_a_store_that_cannot_be_written_says_so_and_what_to_do(tmp_path: Path) -> None:
    objects = open_objects((tmp_path / "store").as_uri())
    (tmp_path / "store" / "a").write_text("a file where a folder should be")
    with pytest.raises(StoreUnusable) as raised:
        objects.create("a/b", b"1")
    assert raised.value.says.startswith("cannot write a/b in the mailbox")
    assert raised.value.remedy


def test_a_folder_with_odd_letters_is_a_store_too(tmp_path: Path) -> None:
    folder = tmp_path / "my löng #name? 100%"
    objects = open_objects(folder.as_uri())
    objects.create("a", b"1")
    assert objects.folder == folder
    assert (folder / "a").read_bytes() == b"1"


# -- boxes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["", "nonsense", "/tmp/box", "ftp://x/y", "s3:bucket", "s3://", "file://host/x", "file:x",
     "http://x", "s3://[", "az://account/x"],
)  # fmt: skip
def test_a_url_of_no_store_is_a_wrong_setting_with_a_remedy(url: str) -> None:
    with pytest.raises(SettingsError) as refused:
        open_objects(url)
    assert repr(url) in refused.value.says
    assert "Debug" not in refused.value.says
    assert "file:///" in refused.value.remedy


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/folder", "gs://bucket/folder"])
def test_buckets_are_opened_without_asking_anybody(url: str) -> None:
    assert open_objects(url).folder is None


def test_documents_are_numbered_from_one(objects: StoreObjects) -> None:
    box = orders_to(objects, "host")
    assert [box.post(b"a", 0), box.post(b"b", 1)] == [1, 2]
    assert [box.read(number) for number in (1, 2, 3)] == [b"a", b"b", None]
    assert box.newest() == 2


def test_a_writer_that_has_forgotten_where_it_was_finds_the_next_number(
    objects: StoreObjects,
) -> None:
    box = inbox_from(objects, "host")
    for number in range(5):
        box.post(b"%d" % number, 0)
    assert box.newest() == 5
    assert inbox_from(objects, "host-2").newest() == 0


def test_forgotten_documents_do_not_free_their_numbers(objects: StoreObjects) -> None:
    box = Box(objects, "box")
    for number in range(4):
        box.post(b"a", number)
    box.forget(1, 3)
    assert [box.read(number) for number in (3, 4)] == [None, b"a"]
    assert box.newest() == 4


def test_a_million_documents_keep_their_order(objects: StoreObjects) -> None:
    box = Box(objects, "box")
    box.post(b"a", 999_999)
    assert box.newest() == 1_000_000


def test_chunks_of_a_log_are_bytes(objects: StoreObjects) -> None:
    box = log_of(objects, "job", 1)
    box.post(b"\xff\x00", 0)
    assert box.read(1) == b"\xff\x00"
    assert workdir_key("abc") == "workdirs/abc.tar.gz"


# -- documents -------------------------------------------------------------------------------


def test_a_document_comes_back_as_it_was() -> None:
    order = LeaveOrder(at=1.5, fence=3, request_id="leave-1")
    assert ORDERS.validate_json(order.model_dump_json()) == order


def test_what_a_newer_version_adds_is_ignored() -> None:
    text = '{"kind": "heartbeat", "v": 2, "at": 1.0, "agent": "a", "mood": "fine"}'
    assert REPORTS.validate_json(text) == Heartbeat(v=2, at=1.0, agent="a")


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "dance"}', '{"kind": "start", "at": 1}'])
def test_what_is_no_order_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        ORDERS.validate_json(text)


def test_an_order_can_be_read_without_what_has_a_default() -> None:
    text = (
        '{"kind": "start", "at": 1, "fence": 1, "request_id": "r", "job": "j", "attempt": 1,'
        ' "project": "p", "name": "n", "command": "true", "cpu": 1}'
    )
    assert isinstance(ORDERS.validate_json(text), StartOrder)


# -- the bell --------------------------------------------------------------------------------


def test_a_ring_from_another_thread_wakes_the_waiter() -> None:
    with Bell() as bell:
        thread = threading.Thread(target=bell.ring)
        thread.start()
        assert bell.wait(20.0).anything
        thread.join()
        assert not bell.wait(0.0).anything, "it rings once"


def test_many_rings_wake_once() -> None:
    with Bell() as bell:
        for _ in range(100_000):
            bell.ring()
        assert bell.wait(20.0).anything
        assert not bell.wait(0.0).anything


def test_a_new_file_rings_and_a_folder_that_is_let_go_does_not(tmp_path: Path) -> None:
    with Bell() as bell:
        assert bell.watch(tmp_path / "orders")
        assert bell.watch(tmp_path / "orders")
        (tmp_path / "orders" / "1").touch()
        assert bell.wait(20.0).anything
        bell.unwatch(tmp_path / "orders")
        bell.wait(0.0)
        (tmp_path / "orders" / "2").touch()
        assert not bell.wait(0.0).anything


def test_a_rename_is_told_by_name_where_that_was_asked_for(tmp_path: Path) -> None:
    with Bell() as bell:
        bell.watch(tmp_path / "saved", moves=True)
        bell.watch(tmp_path / "orders")
        (tmp_path / "saved" / "draft").touch()
        assert not bell.wait(0.0).anything, "only renames ring"
        (tmp_path / "saved" / "draft").rename(tmp_path / "saved" / "step-1")
        (tmp_path / "orders" / "draft").touch()
        (tmp_path / "orders" / "draft").rename(tmp_path / "orders" / "1")
        assert bell.wait(20.0).anything
        assert bell.moved() == [(tmp_path / "saved", "step-1")]
        assert bell.moved() == []


def test_a_folder_that_is_gone_can_be_let_go(tmp_path: Path) -> None:
    with Bell() as bell:
        bell.watch(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        bell.unwatch(tmp_path / "gone")
        bell.unwatch(tmp_path / "never")


# -- sealing ---------------------------------------------------------------------------------


def test_a_sealed_value_is_opened_by_its_key_alone() -> None:
    private, public = new_key_pair()
    other, _ = new_key_pair()
    sealed = seal("geheim ünï", public)
    assert unseal(sealed, private) == "geheim ünï"
    assert "geheim" not in sealed
    with pytest.raises(SealBroken):
        unseal(sealed, other)


def test_a_value_with_bytes_that_are_no_text_comes_back_as_it_was() -> None:
    private, public = new_key_pair()
    assert unseal(seal("a\udcff", public), private) == "a\udcff"


@pytest.mark.parametrize("sealed", ["", "not base64!", "AAAA"])
def test_what_is_not_sealed_cannot_be_opened(sealed: str) -> None:
    private, _ = new_key_pair()
    with pytest.raises(SealBroken):
        unseal(sealed, private)


@pytest.mark.parametrize("key", ["", "AAAA", "not base64!"])
def test_what_is_no_key_seals_nothing(key: str) -> None:
    with pytest.raises(SealBroken):
        seal("value", key)
