"""An attempt's log: read as it grows, after it was merged, and cut into lines."""

from pathlib import Path

import pytest

from cloudwhale.mailbox.box import log_of, whole_log_key
from cloudwhale.mailbox.gaps import left_out
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.reporting.tail import Lines, Tail, look_every_s
from cloudwhale.spi.errors import StoreUnusable


def written(objects: StoreObjects, *chunks: bytes) -> None:
    for number, chunk in enumerate(chunks):
        log_of(objects, "a", 1).post(chunk, number)


def merged(objects: StoreObjects, *chunks: bytes) -> None:
    objects.create(whole_log_key("a", 1), b"".join(chunks))
    log_of(objects, "a", 1).forget(1, len(chunks))


def test_a_tail_gives_each_chunk_once() -> None:
    objects = open_objects("memory://")
    tail = Tail(objects, "a", 1)
    assert tail.more() == b""
    written(objects, b"one\n", b"two\n")
    assert tail.more() == b"one\ntwo\n"
    assert tail.more() == b""


def test_what_was_merged_meanwhile_is_read_on_from_where_the_reader_was() -> None:
    objects = open_objects("memory://")
    written(objects, b"one\n")
    tail = Tail(objects, "a", 1)
    assert tail.more() == b"one\n"
    merged(objects, b"one\n", b"two\n", b"three\n")
    assert tail.rest() == b"two\nthree\n"
    assert tail.rest() == b""


def test_the_rest_of_an_attempt_whose_log_was_not_merged_is_its_chunks() -> None:
    objects = open_objects("memory://")
    written(objects, b"one\n", b"two\n")
    assert Tail(objects, "a", 1).rest() == b"one\ntwo\n"


def test_what_was_read_before_the_store_failed_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    objects = open_objects("memory://")
    written(objects, b"one\n", b"two\n")
    tail = Tail(objects, "a", 1)
    get, asked = objects.get, list[str]()

    def once_cut(key: str) -> bytes | None:
        asked.append(key)
        if len(asked) == 2:
            raise StoreUnusable("the line is cut")
        return get(key)

    monkeypatch.setattr(objects, "get", once_cut)
    with pytest.raises(StoreUnusable):
        tail.more()
    assert tail.rest() == b"one\ntwo\n"


class Long:
    """A log of ten bytes after the other: its whole keeps the first 40 and the last 30 of 100."""

    output = b"".join(b"line %4d\n" % number for number in range(10))
    whole = output[:40] + left_out(30) + output[70:]


@pytest.mark.parametrize(
    ("chunks", "rest"),
    [
        ([Long.output[:30]], Long.output[30:40] + left_out(30) + Long.output[70:]),
        ([Long.output[:40]], left_out(30) + Long.output[70:]),
        ([Long.output[:40], Long.output[40:60]], left_out(10) + Long.output[70:]),
        ([Long.output[:40], left_out(30) + Long.output[70:80]], Long.output[80:]),
        ([Long.output[:40], left_out(40) + Long.output[80:90]], Long.output[90:]),
        ([Long.output[:40], left_out(50) + Long.output[90:]], b""),
    ],
)
def test_past_the_head_of_a_log_nothing_is_shown_twice_and_nothing_kept_is_missed(
    chunks: list[bytes], rest: bytes
) -> None:
    objects = open_objects("memory://")
    written(objects, *chunks)
    tail = Tail(objects, "a", 1)
    assert tail.more() == b"".join(chunks)
    objects.create(whole_log_key("a", 1), Long.whole)
    log_of(objects, "a", 1).forget(1, len(chunks))
    assert tail.rest() == rest


def test_a_log_of_a_store_far_away_is_looked_at_less_often(tmp_path: Path) -> None:
    assert look_every_s(open_objects(tmp_path.as_uri()), 0.1) == 0.1
    assert look_every_s(open_objects("s3://bucket"), 0.1) == 2.0


def test_a_log_that_was_never_written_is_empty() -> None:
    assert Tail(open_objects("memory://"), "a", 1).rest() == b""


def test_a_line_is_told_when_it_is_whole() -> None:
    lines = Lines()
    assert lines.feed(b"lo") == []
    assert lines.partial == "lo"
    assert lines.feed(b"ss 1\nloss 2\nlo") == ["loss 1", "loss 2"]
    assert lines.end() == ["lo"]
    assert lines.end() == []


def test_a_character_cut_in_two_is_read_whole() -> None:
    lines = Lines()
    assert lines.feed("é".encode()[:1]) == []
    assert lines.feed("é\n".encode()[1:]) == ["é"]


def test_a_progress_bar_shows_its_newest_state() -> None:
    lines = Lines()
    assert lines.feed(b" 10 %\r 20 %\r") == []
    assert lines.partial == " 20 %"
    assert lines.feed(b"100 %\r\n") == ["100 %"]


def test_bytes_that_are_no_text_do_not_stop_the_reader() -> None:
    assert Lines().feed(b"\xff\xfe\n") == ["\ufffd\ufffd"]
