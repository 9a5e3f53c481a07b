"""Documents from the web: their bounds, and what is said when there is none."""

from collections.abc import Iterator

import pytest
from small_web import Web, serving

from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale_providers.prices import web as documents

MOST = 2**20


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as web:
        yield web


def text(web: Web, path: str = "/a", most: int = MOST) -> str:
    return documents.text(web.url + path, most, lambda words: None)


@pytest.mark.parametrize("packed", [False, True])
def test_a_document_comes_whole_packed_or_not(web: Web, packed: bool) -> None:
    body = "price,of\n" * 100_000
    web.serve("/a", body, packed=packed)
    assert text(web) == body
    lines = list(documents.lines(f"{web.url}/a", MOST, lambda words: None))
    assert (len(lines), set(lines)) == (100_000, {"price,of\n"})


def test_the_last_line_needs_no_end_and_letters_are_kept_whole(web: Web) -> None:
    web.serve("/a", "é" * 300_000 + "\nlast")
    lines = list(documents.lines(f"{web.url}/a", MOST, lambda words: None))
    assert lines == ["é" * 300_000 + "\n", "last"]


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_larger_than_it_may_be_is_not_read(web: Web, packed: bool) -> None:
    web.serve("/a", b"0" * (3 * MOST), packed=packed)
    with pytest.raises(Unreachable, match="is larger than 1 MiB"):
        text(web)


def test_a_line_without_end_is_no_text(web: Web) -> None:
    web.serve("/a", b"0" * (6 * MOST))
    with pytest.raises(Unreachable, match="is no text of lines"):
        list(documents.lines(f"{web.url}/a", 8 * MOST, lambda words: None))


@pytest.mark.parametrize("packed", [False, True])
def test_what_breaks_off_is_not_taken_for_whole(web: Web, packed: bool) -> None:
    web.serve("/a", "half of it", breaks_off=True, packed=packed)
    with pytest.raises(Unreachable, match="broke off"):
        text(web)


def test_packed_rubbish_is_told(web: Web) -> None:
    web.serve("/a", "nothing that was ever packed")
    web.headers_of["/a"] = {"Content-Encoding": "gzip"}
    with pytest.raises(Unreachable, match="does not answer: Error -3"):
        text(web)


@pytest.mark.parametrize(("status", "kind"), [(401, Denied), (403, Denied), (404, Unreachable),
                                              (500, Unreachable), (429, Unreachable)])  # fmt: skip
def test_a_status_says_what_is_done_next(web: Web, status: int, kind: type[Exception]) -> None:
    web.serve("/a", "no", status=status)
    with pytest.raises(kind, match=str(status)):
        text(web)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/a", "http://no-such-host.invalid/a"])
def test_who_does_not_answer_is_named(url: str) -> None:
    with pytest.raises(Unreachable, match=r"(127.0.0.1:9|no-such-host.invalid)/a does not answer"):
        documents.text(url, MOST, lambda words: None)


def test_what_could_be_secret_in_an_address_is_not_told(web: Web) -> None:
    with pytest.raises(Unreachable) as caught:
        text(web, "/a?key=secret")
    assert "secret" not in str(caught.value)


def test_somebody_who_waits_is_told_how_far_it_is(web: Web) -> None:
    web.serve("/a", b"0\n" * (2 * MOST))
    told: list[str] = []
    assert sum(map(len, documents.lines(f"{web.url}/a", 8 * MOST, told.append))) == 4 * MOST
    sizes = [words.rpartition(": ")[2] for words in told]
    assert list(dict.fromkeys(sizes)) == ["0 MiB", "1 MiB", "2 MiB", "3 MiB", "4 MiB"]


def test_who_sends_a_little_and_then_nothing_does_not_hold_up_who_has_waited_enough(
    web: Web,
) -> None:
    def enough(words: str) -> None:
        raise Unreachable("it takes too long")

    web.serve("/a", "a\n", stalls=True)
    with pytest.raises(Unreachable, match="it takes too long"):
        documents.text(f"{web.url}/a", MOST, enough)


def test_who_is_silent_is_given_up(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "SILENCE_S", 0.05)
    web.serve("/a", "a\n", stalls=True)
    with pytest.raises(Unreachable, match="does not answer: timed out"):
        text(web)


@pytest.mark.parametrize("body", ["", "{", "[1]", "null", "[" * 100_000])
def test_json_that_is_no_object_is_told(web: Web, body: str) -> None:
    web.serve("/a", body)
    with pytest.raises(Unreachable, match="JSON"):
        documents.document(f"{web.url}/a", MOST, lambda words: None)
