"""Large inputs come in pieces, go on where they were, are held against sums, and lie once."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from live_agent import CLOCK, a_start
from small_web import Web, serving, span_of

from cloudwhale.agent import fetching, halves
from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.inputs import Inputs, Unwanted, Wanted
from cloudwhale.agent.place import Place
from cloudwhale.mailbox import sums
from cloudwhale.mailbox import web as web_pieces
from cloudwhale.mailbox.sums import Damaged
from cloudwhale.spi.errors import StoreUnusable

BODY = hashlib.shake_128(b"weights").digest(100_000)
SHA256 = hashlib.sha256(BODY).hexdigest()


class Lab:
    """A node whose pieces are small, and a web server."""

    def __init__(self, folder: Path, web: Web) -> None:
        self.web = web
        self.place = Place(folder / "home", "n")
        self.place.attempts.mkdir(parents=True)
        self.cache = self.place.path / "inputs"

    def give(
        self, job: str, *paths: str, is_wanted: Callable[[], bool] = lambda: True
    ) -> tuple[str, bytes]:
        """Give a job its inputs as an agent does that has just started; return words and bytes."""
        folder = AttemptFolder(self.place.attempts, (job, 1))
        folder.path.mkdir(parents=True, exist_ok=True)
        urls = tuple(f"{self.web.url}{path}" for path in paths)
        wanted = Wanted(folder, a_start(job, inputs=urls), CLOCK, lambda says: None, is_wanted)
        says = Inputs(self.place).give(wanted)
        (data,) = (folder.path / "inputs").glob("*/*")
        return says, data.read_bytes()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setattr(halves, "NOTED_FROM_BYTES", 1000)
    monkeypatch.setattr(halves, "TRY_AGAIN_S", 0.0)
    monkeypatch.setattr(sums, "PIECE_BYTES", 16_000)
    monkeypatch.setattr(web_pieces, "READ_BYTES", 4_000)
    with serving() as web:
        web.serve("/model.bin", BODY, ranges=True)
        web.headers_of["/model.bin"] = {"ETag": '"one"'}
        yield Lab(tmp_path, web)


def stopped_after(chunks: int) -> Callable[[], bool]:
    left = iter(range(chunks))
    return lambda: next(left, None) is not None


def asked_bytes(web: Web) -> int:
    """Return how much was asked for in pieces."""
    spans = [span_of(asked["Range"], len(BODY)) for asked in web.headers if "Range" in asked]
    return sum(end - first for first, end in spans if (first, end) != (0, 1))


def test_pieces_are_put_together(lab: Lab) -> None:
    says, data = lab.give("job", "/model.bin")
    assert data == BODY
    assert "verified by size alone" in says
    assert len(lab.web.headers) == 1 + 7


def test_who_begins_again_goes_on_where_it_was(lab: Lab) -> None:
    with pytest.raises(Unwanted):
        lab.give("job", "/model.bin", is_wanted=stopped_after(10))
    lab.web.headers.clear()
    _, data = lab.give("job", "/model.bin")
    assert data == BODY
    assert len(BODY) / 4 < asked_bytes(lab.web) <= len(BODY) - 9 * 4_000


def test_what_has_changed_meanwhile_begins_anew(lab: Lab) -> None:
    with pytest.raises(Unwanted):
        lab.give("job", "/model.bin", is_wanted=stopped_after(10))
    lab.web.serve("/model.bin", BODY[::-1], ranges=True)
    lab.web.headers_of["/model.bin"] = {"ETag": '"two"'}
    _, data = lab.give("job", "/model.bin")
    assert data == BODY[::-1]


def test_after_another_boot_nothing_is_trusted_that_was_half_there(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(Unwanted):
        lab.give("job", "/model.bin", is_wanted=stopped_after(10))
    for half in (lab.cache / ".halves").iterdir():
        if half.suffix != ".far":
            half.write_bytes(bytes(half.stat().st_size))  # as a power cut may leave it
    (tmp_path / "boot").write_text("another\n")
    monkeypatch.setattr(halves, "BOOT", tmp_path / "boot")
    assert lab.give("job", "/model.bin")[1] == BODY


def test_a_connection_that_breaks_again_and_again_is_gone_on_with(lab: Lab) -> None:
    lab.web.pages["/model.bin"].breaks_after = 3_000
    _, data = lab.give("job", "/model.bin")
    assert data == BODY
    assert lab.web.sent_bytes <= len(BODY) + 1  # and the first byte, to look at it


def test_a_server_that_gives_nothing_more_is_given_up(lab: Lab) -> None:
    lab.web.serve("/model.bin", BODY, breaks_off=True)
    with pytest.raises(StoreUnusable, match="broke off 100 bytes before its end"):
        lab.give("job", "/model.bin")


def test_a_document_without_a_length_comes_and_nobody_vouches_for_it(lab: Lab) -> None:
    lab.web.serve("/model.bin", BODY, unsized=True)
    says, data = lab.give("job", "/model.bin")
    assert data == BODY
    assert "verified not at all: its server says no size" in says


def test_a_sum_that_the_job_file_says_is_verified(lab: Lab) -> None:
    says, data = lab.give("job", f"/model.bin#sha256={SHA256}")
    assert data == BODY
    assert "verified by checksum" in says
    assert "sha256" not in says.split(":", 1)[0]


def test_what_is_not_what_the_job_file_says_is_refused(lab: Lab) -> None:
    with pytest.raises(Damaged, match="is not what the job file says: its sha256 is " + SHA256):
        lab.give("job", f"/model.bin#sha256={'0' * 64}")
    assert not list((lab.cache / ".halves").iterdir())


def test_two_addresses_of_one_content_are_fetched_once_and_held_once(lab: Lab) -> None:
    lab.web.serve("/mirror/model.bin", BODY)
    lab.give("one", f"/model.bin#sha256={SHA256}")
    sent = lab.web.sent_bytes
    _, data = lab.give("two", f"/mirror/model.bin#sha256={SHA256}")
    assert data == BODY
    assert lab.web.sent_bytes - sent <= len(BODY)  # of the look: a server without pieces begins
    one, two = (next((lab.place.attempts / job / "1/inputs").glob("*/*")) for job in ("one", "two"))
    assert one.stat().st_ino == two.stat().st_ino


def test_two_jobs_at_once_fetch_an_object_once(lab: Lab) -> None:
    inputs, meeting = Inputs(lab.place), threading.Barrier(2)

    def give(job: str) -> bytes:
        folder = AttemptFolder(lab.place.attempts, (job, 1))
        folder.path.mkdir(parents=True)
        order = a_start(job, inputs=(f"{lab.web.url}/model.bin",))
        meeting.wait()
        inputs.give(Wanted(folder, order, CLOCK, lambda says: None, lambda: True))
        return (folder.path / "inputs/model.bin/model.bin").read_bytes()

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(give, ("one", "two"))) == {BODY}
    assert lab.web.sent_bytes <= len(BODY) + 2


def test_a_tag_that_is_no_checksum_is_found_out_by_a_second_reading(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a bucket that a key service encrypts."""
    from cloudwhale.mailbox.sources import Found, Source
    from cloudwhale.mailbox.sums import Sum

    source = Source(f"{lab.web.url}/model.bin")
    (found,) = source.listed()
    tagged = Found(found.path, found.size_bytes, found.mark, Sum("md5", "0" * 32))
    checked = fetching.Checked()
    place = lab.cache
    place.mkdir(parents=True)
    half = halves.Half(source, tagged, place / "half", lambda: True, lambda count: None)
    fetching.fetch_all([(half, place / "whole")], checked, lambda half, where: None)
    assert (place / "whole").read_bytes() == BODY
    assert checked.tags_are_none
    assert checked.says() == "verified by size alone"
