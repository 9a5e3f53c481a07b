"""The sandbox's Cloud Storage, asked through the store that mailboxes use, and by hand."""

import threading
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.error import HTTPError

import obstore
import pytest
from obstore.exceptions import (
    AlreadyExistsError,
    GenericError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import GCSStore

from cloudwhale.simulation.clock import SteppedClock
from cloudwhale_providers.sandbox.endpoint import Weather
from cloudwhale_providers.sandbox.endpoint.weather_values import Outage
from cloudwhale_providers.sandbox.names import GCP_BUCKET
from cloudwhale_providers.sandbox.storage import Storage

NOON = 1_800_000_000.0
MIB = 1024 * 1024
LARGE = bytes(range(256)) * (6 * 4 * 1024)  # 6 MiB, two parts
TOKEN = {"Authorization": "Bearer token"}


def a_store(storage: Storage, bucket: str = GCP_BUCKET, token: str = "token") -> GCSStore:
    return GCSStore(
        bucket,
        config={"base_url": storage.url, "bearer_token": token},
        client_options={"allow_http": True},
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=5)},
    )


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    storage = Storage(SteppedClock(NOON), folder=tmp_path_factory.mktemp("gcs"))
    storage.start()
    yield storage
    storage.close()


@pytest.fixture(scope="module")
def store(storage: Storage) -> GCSStore:
    return a_store(storage)


def asked(
    storage: Storage, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Ask once, with what clients do not say; `if_generation`: the condition."""
    said = dict(TOKEN)
    if "if_generation" in headers:
        said["x-goog-if-generation-match"] = headers["if_generation"]
    request = urllib.request.Request(f"{storage.url}{path}", body, said, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


# -- as mailboxes use it ---------------------------------------------------------------------


def test_what_is_put_is_got(store: GCSStore) -> None:
    obstore.put(store, "a/b c+d é", b"body", attributes={"Content-Type": "text/plain"})
    found = obstore.get(store, "a/b c+d é")
    assert found.bytes() == b"body"
    assert found.attributes["Content-Type"] == "text/plain"
    assert obstore.get_range(store, "a/b c+d é", start=1, end=3) == b"od"
    assert obstore.head(store, "a/b c+d é")["size"] == 4


def test_an_object_is_made_once(store: GCSStore) -> None:
    obstore.put(store, "once", b"1", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(store, "once", b"2", mode="create")
    assert obstore.get(store, "once").bytes() == b"1"


def test_of_many_who_make_an_object_at_once_one_does(storage: Storage) -> None:
    made: list[int] = []
    begun = threading.Barrier(8)

    def make(number: int) -> None:
        begun.wait()
        path = f"/{GCP_BUCKET}/contended"
        status, _, _ = asked(storage, "PUT", path, str(number).encode(), if_generation="0")
        assert status in (200, 412)
        if status == 200:
            made.append(number)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _, _, body = asked(storage, "GET", f"/{GCP_BUCKET}/contended")
    assert [str(number).encode() for number in made] == [body]


def test_an_object_is_replaced_while_it_is_the_one_that_was_read(store: GCSStore) -> None:
    first = obstore.put(store, "swap", b"1")
    second = obstore.put(store, "swap", b"2", mode={**first})
    assert int(second["version"] or 0) > int(first["version"] or 0)
    with pytest.raises(PreconditionError):
        obstore.put(store, "swap", b"3", mode={**first})
    assert obstore.get(store, "swap").bytes() == b"2"


def test_equal_bytes_are_another_generation(store: GCSStore) -> None:
    first = obstore.put(store, "equal", b"1")
    obstore.put(store, "equal", b"1")
    with pytest.raises(PreconditionError):
        obstore.put(store, "equal", b"1", mode={**first})


def test_a_list_goes_through_all_pages_in_order(store: GCSStore) -> None:
    names = [f"list/{number:04d}" for number in range(1203)]
    for name in names:
        obstore.put(store, name, b"")
    found = [one["path"] for batch in store.list("list") for one in batch]
    assert found == names
    after = [one["path"] for batch in store.list("list", offset="list/1200") for one in batch]
    assert after == names[1201:]


def test_folders_are_listed_apart(store: GCSStore) -> None:
    for name in ("tree/a/1", "tree/a/2", "tree/b/1", "tree/leaf"):
        obstore.put(store, name, b"")
    found = store.list_with_delimiter("tree")
    assert found["common_prefixes"] == ["tree/a", "tree/b"]
    assert [one["path"] for one in found["objects"]] == ["tree/leaf"]


def test_a_large_object_is_sent_in_parts(store: GCSStore) -> None:
    obstore.put(store, "large", LARGE, use_multipart=True, chunk_size=5 * MIB)
    assert obstore.get(store, "large").bytes() == LARGE
    first = obstore.head(store, "large")
    assert first["e_tag"] is not None and first["e_tag"].endswith('-2"')
    obstore.put(store, "large", b"new", mode={"e_tag": first["e_tag"], "version": first["version"]})


def test_parts_but_the_last_have_five_mebibytes(store: GCSStore) -> None:
    with pytest.raises(GenericError, match="EntityTooSmall"):
        obstore.put(store, "small-parts", LARGE, use_multipart=True, chunk_size=4 * MIB)


def test_an_object_is_copied_and_moved(store: GCSStore) -> None:
    obstore.put(store, "from", b"body")
    obstore.copy(store, "from", "to")
    with pytest.raises(AlreadyExistsError):
        obstore.copy(store, "from", "to", overwrite=False)
    obstore.rename(store, "to", "there")
    assert obstore.get(store, "there").bytes() == b"body"
    with pytest.raises(FileNotFoundError):
        obstore.head(store, "to")


def test_what_is_not_there_is_missed_also_when_it_is_deleted(store: GCSStore) -> None:
    with pytest.raises(FileNotFoundError):
        obstore.get(store, "nothing")
    with pytest.raises(FileNotFoundError):
        obstore.delete(store, "nothing")


def test_a_bucket_that_is_not_there_is_said(storage: Storage) -> None:
    with pytest.raises(FileNotFoundError):
        obstore.put(a_store(storage, "of-nobody"), "a", b"")
    assert b"NoSuchBucket" in asked(storage, "GET", "/of-nobody?list-type=2")[2]


# -- by hand ---------------------------------------------------------------------------------


def test_whoever_shows_no_token_is_not_let_in(storage: Storage) -> None:
    with pytest.raises(HTTPError, match="401"):
        urllib.request.urlopen(f"{storage.url}/{GCP_BUCKET}?list-type=2", timeout=20)


def test_a_token_that_nobody_gave_opens_nothing() -> None:
    storage = Storage(SteppedClock(NOON))
    storage.knows = lambda token: token == "given"
    storage.start()
    try:
        obstore.put(a_store(storage, token="given"), "a", b"1")
        with pytest.raises(UnauthenticatedError):
            obstore.get(a_store(storage, token="other"), "a")
    finally:
        storage.close()


def test_a_condition_on_a_read_and_on_a_deletion_holds(storage: Storage, store: GCSStore) -> None:
    generation = str(obstore.put(store, "kept", b"1")["version"])
    path = f"/{GCP_BUCKET}/kept"
    status, headers, body = asked(storage, "GET", path, if_generation=generation)
    assert (status, headers["x-goog-generation"], body) == (200, generation, b"1")
    assert asked(storage, "GET", path, if_generation="7")[0] == 412
    assert asked(storage, "DELETE", path, if_generation="7")[0] == 412
    assert asked(storage, "DELETE", path, if_generation=generation)[0] == 204


def test_a_condition_that_is_no_number_is_refused(storage: Storage) -> None:
    status, _, body = asked(storage, "PUT", f"/{GCP_BUCKET}/x", b"", if_generation="one")
    assert status == 400 and b"InvalidArgument" in body


def test_it_says_what_time_it_is_there(storage: Storage) -> None:
    headers = asked(storage, "GET", f"/{GCP_BUCKET}/nothing")[1]
    assert parsedate_to_datetime(headers["Date"]).timestamp() == NOON


def test_its_requests_are_counted_by_folder() -> None:
    storage = Storage(SteppedClock(NOON))
    storage.start()
    try:
        store = a_store(storage)
        obstore.put(store, "a/b/c", b"")
        store.list("a").collect()
    finally:
        storage.close()
    assert storage.store_requests() == {
        ("PUT", f"{GCP_BUCKET}/a/b"): 1, ("LIST", f"{GCP_BUCKET}/a"): 1,
    }  # fmt: skip


# -- trouble ---------------------------------------------------------------------------------


def test_a_write_whose_answer_is_lost_has_been_done(storage: Storage) -> None:
    storage.fault("PutObject", "error-after-success")
    path = f"/{GCP_BUCKET}/lost-answer"
    assert asked(storage, "PUT", path, b"1", if_generation="0")[0] == 500
    assert asked(storage, "PUT", path, b"1", if_generation="0")[0] == 412
    assert asked(storage, "GET", path)[2] == b"1"


def test_a_slow_store_takes_its_time() -> None:
    waited: list[float] = []

    def real(for_s: float) -> float:
        waited.append(for_s)
        return 0.0

    storage = Storage(SteppedClock(NOON), Weather(gs_slow_s=0.5, gs_mib_s=2.0), real=real)
    storage.start()
    try:
        obstore.put(a_store(storage), "a", bytes(MIB))
    finally:
        storage.close()
    assert waited == [1.0]


def test_a_store_that_is_out_refuses_everything_until_it_is_back() -> None:
    clock = SteppedClock(NOON)
    storage = Storage(clock, Weather(outages=(Outage("s3"), Outage("gs", 10.0, 20.0))))
    storage.start()
    try:
        path = f"/{GCP_BUCKET}/a"
        assert asked(storage, "PUT", path, b"1")[0] == 200
        clock.advance_to(clock.now() + 10.0)
        assert asked(storage, "GET", path)[0] == 503
        clock.advance_to(clock.now() + 10.0)
        assert asked(storage, "GET", path)[0] == 200
    finally:
        storage.close()


def test_its_objects_outlive_it_and_generations_go_on(tmp_path: Path) -> None:
    clock = SteppedClock(NOON)
    first = Storage(clock, folder=tmp_path)
    first.start()
    before = obstore.put(a_store(first), "a/b", b"1")
    first.close()
    second = Storage(clock, folder=tmp_path)
    second.start()
    try:
        store = a_store(second)
        assert obstore.get(store, "a/b").bytes() == b"1"
        assert obstore.head(store, "a/b")["version"] == before["version"]
        after = obstore.put(store, "a/c", b"2")
        assert int(after["version"] or 0) > int(before["version"] or 0)
    finally:
        second.close()
