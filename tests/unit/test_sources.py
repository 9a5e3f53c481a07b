"""What jobs read from web servers: in pieces or not, with and without a length."""

import hashlib
from collections.abc import Iterator

import pytest
from small_web import Web, serving

from cloudwhale.mailbox.lost import Replaced
from cloudwhale.mailbox.sources import Found, NothingThere, Source
from cloudwhale.mailbox.sums import Sum, sum_of_tag
from cloudwhale.spi.errors import Denied, StoreUnusable

BODY = bytes(range(256)) * 40


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as served:
        yield served


def looked_at(web: Web, path: str = "/data.bin") -> tuple[Source, Found]:
    source = Source(f"{web.url}{path}")
    (found,) = source.listed()
    return source, found


def test_a_server_that_gives_pieces_is_asked_for_them(web: Web) -> None:
    web.serve("/data.bin", BODY, ranges=True)
    web.headers_of["/data.bin"] = {"ETag": '"one"'}
    source, found = looked_at(web)
    assert (found.path, found.size_bytes, found.mark) == ("data.bin", len(BODY), '"one"')
    assert found.has_pieces
    assert b"".join(source.read(found, 300, 700)) == BODY[300:700]


def test_a_server_without_pieces_gives_the_whole(web: Web) -> None:
    web.serve("/data.bin", BODY)
    source, found = looked_at(web)
    assert (found.size_bytes, found.has_pieces) == (len(BODY), False)
    assert b"".join(source.read(found, 0, len(BODY))) == BODY


def test_a_server_that_says_no_length_gives_what_comes_until_its_end(web: Web) -> None:
    web.serve("/data.bin", BODY, unsized=True)
    source, found = looked_at(web)
    assert found.size_bytes is None
    assert b"".join(source.read(found, 0, None)) == BODY


def test_nothing_has_no_first_byte_and_is_an_object_all_the_same(web: Web) -> None:
    web.serve("/data.bin", b"", ranges=True)
    source, found = looked_at(web)
    assert found.size_bytes == 0
    assert b"".join(source.read(found, 0, 0)) == b""


def test_a_redirect_is_followed(web: Web) -> None:
    web.serve("/old.bin", b"", status=302)
    web.headers_of["/old.bin"] = {"Location": f"{web.url}/data.bin"}
    web.serve("/data.bin", BODY, ranges=True)
    source, found = looked_at(web, "/old.bin")
    assert found.path == "old.bin"
    assert b"".join(source.read(found, 5, 9)) == BODY[5:9]


def test_a_redirect_to_the_machine_itself_is_refused(web: Web) -> None:
    web.serve("/old.bin", b"", status=302)
    web.headers_of["/old.bin"] = {"Location": "http://[::ffff:169.254.169.254]/latest/"}
    with pytest.raises((Denied, StoreUnusable)):
        looked_at(web, "/old.bin")


def test_a_document_that_changes_is_not_mixed_with_the_old_one(web: Web) -> None:
    web.serve("/data.bin", BODY, ranges=True)
    web.headers_of["/data.bin"] = {"ETag": '"one"'}
    source, found = looked_at(web)
    web.headers_of["/data.bin"] = {"ETag": '"two"'}
    with pytest.raises(Replaced, match="has changed while it was fetched"):
        list(source.read(found, 0, 10))


@pytest.mark.parametrize(("status", "refused"), [(404, NothingThere), (403, Denied)])
def test_what_a_server_does_not_give_is_said(
    web: Web, status: int, refused: type[Exception]
) -> None:
    web.serve("/data.bin", b"", status=status)
    with pytest.raises(refused, match=f"{web.url}/data.bin"):
        looked_at(web)


def test_a_server_that_fails_may_be_asked_again(web: Web) -> None:
    web.serve("/data.bin", b"", status=503)
    with pytest.raises(StoreUnusable, match="the server answers 503"):
        looked_at(web)


def test_a_signature_in_an_address_is_shown_nowhere(web: Web) -> None:
    web.serve("/data.bin", b"", status=403)
    with pytest.raises(Denied) as refused:
        looked_at(web, "/data.bin?X-Amz-Signature=abcdef")
    assert "abcdef" not in str(refused.value)


def test_a_sum_behind_an_address_is_what_it_must_be(web: Web) -> None:
    sha256 = hashlib.sha256(BODY).hexdigest()
    web.serve("/data.bin", BODY)
    _, found = looked_at(web, f"/data.bin#sha256={sha256}")
    assert found.sum == Sum("sha256", sha256, is_sure=True)
    assert found.is_content


MD5 = "0123456789abcdef" * 2
MIB = 1 << 20


@pytest.mark.parametrize(
    ("tag", "size", "told"),
    [
        (f'"{MD5}"', 10, Sum("md5", MD5)),
        (f'"{MD5}-1"', 10, Sum("parts", MD5, 10)),
        (f'"{MD5}-3"', 20 * MIB, Sum("parts", MD5, 8 * MIB)),
        (f'"{MD5}-99"', 20 * MIB, None),
        (f'"{MD5}-2"', 9 * MIB, Sum("parts", MD5, 8 * MIB)),
        ('"CJ2_abc="', 10, None),
        (f'"{MD5}"', None, None),
    ],
)
def test_a_tag_is_a_sum_where_that_can_be_told(
    tag: str, size: int | None, told: Sum | None
) -> None:
    assert sum_of_tag(tag, size) == told
