"""What a shim keeps of a job's output: no secret, the first and the last part, never more."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudwhale.agent.shim_log import SAYS_BYTES, Masks, Segments

SECRET = b"hf_abcabd"


def shown(masks: Masks, pieces: list[bytes]) -> bytes:
    """Return what a stream shows in all."""
    return b"".join([*(masks.masked(piece) for piece in pieces), masks.rest()])


@given(st.lists(st.integers(0, 60)), st.binary(max_size=20), st.binary(max_size=20))
def test_a_secret_is_masked_wherever_the_stream_is_cut(
    cuts: list[int], before: bytes, after: bytes
) -> None:
    text = before.replace(b"h", b"x") + SECRET + after.replace(b"h", b"x")
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    pieces = [text[start:end] for start, end in zip(edges, edges[1:], strict=False)]
    expected = before.replace(b"h", b"x") + b"***" + after.replace(b"h", b"x")
    assert shown(Masks([SECRET]), pieces) == expected


@given(st.lists(st.binary(max_size=8)))
def test_what_holds_no_secret_comes_through_unchanged(pieces: list[bytes]) -> None:
    text = b"".join(pieces)
    if SECRET not in text:
        assert shown(Masks([SECRET]), pieces) == text


def test_a_secret_that_begins_another_hides_both() -> None:
    masks = Masks([b"abcd", b"abcdefgh"])
    assert shown(masks, [b"x abcd", b"efgh y abcd z"]) == b"x *** y *** z"


def test_secrets_that_overlap_are_hidden_as_one() -> None:
    assert shown(Masks([b"xyab", b"abcd"]), [b"1 xyabc", b"d 2"]) == b"1 *** 2"


def test_each_line_of_a_secret_is_one() -> None:
    masks = Masks([b"BEGIN\nMIIE\nEND\n"])
    assert shown(masks, [b"a MIIE b\nBEGIN\n"]) == b"a *** b\n***\n"


@pytest.mark.parametrize("size", [5, 64 << 10])
def test_the_blanks_around_a_secret_need_not_be_there(size: int) -> None:
    secret = b"  \t" + b"s3cr" * (size // 4) + b" \n"
    assert shown(Masks([secret]), [b"<" + secret + b">"]) == b"<***>"
    assert shown(Masks([secret]), [b"<" + secret.strip() + b">"]) == b"<***>"


@given(st.binary(max_size=12), st.sampled_from([b"aaaa", b"abab", b"aabaab", b"abcdabcd"]))
def test_what_may_begin_a_secret_is_held_back_and_no_more(text: bytes, secret: bytes) -> None:
    text = bytes(b"abcd"[one % 4] for one in text)
    masks = Masks([secret])
    seen = masks.masked(text)
    held = [text[at:] for at in range(len(text)) if secret.startswith(text[at:])]
    if secret not in text:
        assert seen + max([*held, b""], key=len) == text


def test_a_secret_too_short_to_hide_is_left_alone() -> None:
    assert shown(Masks([b"abc", b""]), [b"abc abc"]) == b"abc abc"


def test_what_cannot_become_a_secret_is_shown_at_once() -> None:
    masks = Masks([SECRET])
    assert masks.masked(b"loss 0.3 hf_") == b"loss 0.3 "
    assert masks.masked(b"x") == b"hf_x"


def kept(folder: Path) -> dict[int, bytes]:
    """Return the files of a log by number."""
    return {int(path.name): path.read_bytes() for path in folder.iterdir()}


def test_a_log_is_cut_into_full_files(tmp_path: Path) -> None:
    log = Segments(str(tmp_path), 4, 100, 100)
    for piece in (b"abc", b"defg", b"", b"hi"):
        log.write(piece)
    assert kept(tmp_path) == {1: b"abcd", 2: b"efgh", 3: b"i"}
    assert log.unwritten == 0


@pytest.mark.parametrize("size", [1, 3, 7, 50])
def test_past_the_head_only_the_newest_files_stay(tmp_path: Path, size: int) -> None:
    text = bytes(range(200))
    log = Segments(str(tmp_path), 10, 30, 20)
    for at in range(0, len(text), size):
        log.write(text[at : at + size])
    files = kept(tmp_path)
    assert [files[number] for number in (1, 2, 3)] == [text[:10], text[10:20], text[20:30]]
    newest = b"".join(files[number] for number in sorted(files)[3:])
    assert text.endswith(newest)
    assert 20 <= len(newest) <= 30


def test_the_newest_output_is_remembered_for_the_last_words(tmp_path: Path) -> None:
    log = Segments(str(tmp_path), 1 << 20, 1 << 20, 1 << 20)
    log.write(b"x" * (2 * SAYS_BYTES))
    log.write(b"the end")
    assert log.newest.endswith(b"xxthe end")
    assert len(log.newest) == SAYS_BYTES


def test_a_disk_that_takes_nothing_loses_output_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Segments(str(tmp_path), 100, 1000, 1000)
    log.write(b"before ")

    def full(file: int, piece: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        log.write(b"lost")
    log.write(b"after")
    assert kept(tmp_path) == {1: b"before after"}
    assert log.unwritten == 4


def test_the_newest_file_gives_way_to_the_exit_record(tmp_path: Path) -> None:
    log = Segments(str(tmp_path), 4, 100, 100)
    log.write(b"abcdefghi")
    assert log.give_way()
    assert kept(tmp_path) == {1: b"abcd", 2: b"efgh"}
    assert log.unwritten == 1
    assert [log.give_way() for _ in range(3)] == [True, True, False]
