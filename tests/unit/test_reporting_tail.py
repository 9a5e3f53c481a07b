"""An attempt's log: read as it grows, after it was merged, and cut into lines."""

from cloudwhale.mailbox.box import log_of, whole_log_key
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.reporting.tail import Lines, Tail


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
