"""A small object store over HTTP that speaks as much of S3 as a mailbox needs; unsigned, in memory.

Run as `python small_s3.py ADDRESS PORT_FILE`, it serves every bucket until it is ended. Time for
documents comes from this machine's clock, in whole seconds, as with the real one.
"""

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from cloudwhale.clock import SystemClock, iso

CLOCK = SystemClock()
MIB = 1 << 20


class Shelf:
    """What is stored: bodies and times, by path."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.objects: dict[str, tuple[bytes, float]] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}


class Server(ThreadingHTTPServer):
    """The server with its shelf."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], mib_takes_s: float = 0.0) -> None:
        self.shelf = Shelf()
        self.mib_takes_s = mib_takes_s
        super().__init__(address, Clerk)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Let a client that went away go; everything else is shown."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Clerk(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *words: object) -> None:
        """Say nothing."""

    def _asked(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        fields = parse_qs(parts.query, keep_blank_values=True)
        return unquote(parts.path).strip("/"), {name: found[0] for name, found in fields.items()}

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length")
        return b"".join(map(self._heard, _mib_by_mib(int(length)))) if length else b""

    def _heard(self, size: int) -> bytes:
        self._drag(size)
        return self.rfile.read(size)

    def _drag(self, size: int) -> None:
        """Take as long as a slow line does."""
        if self.server.mib_takes_s:
            threading.Event().wait(self.server.mib_takes_s * size / MIB)

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if status != 204 and "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            at = 0
            for size in _mib_by_mib(len(body)):
                self._drag(size)
                self.wfile.write(body[at : at + size])
                at += size

    def _only_new(self) -> bool:
        """Say whether nothing may be replaced, in S3's words or in those of Google's XML API."""
        said = self.headers.get("If-None-Match"), self.headers.get("x-goog-if-generation-match")
        return said[0] == "*" or said[1] == "0"

    def _error(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code></Error>".encode())

    # -- verbs -------------------------------------------------------------------------------

    def do_PUT(self) -> None:
        """Store an object, or a part of one."""
        key, fields = self._asked()
        body, shelf = self._body(), self.server.shelf
        with shelf.turn:
            if "partNumber" in fields:
                shelf.uploads[fields["uploadId"]][int(fields["partNumber"])] = body
            elif key in shelf.objects and self._only_new():
                return self._error(412, "PreconditionFailed")
            else:
                shelf.objects[key] = (body, float(int(CLOCK.now())))
        self._answer(200, ETag='"0"')
        return None

    def do_POST(self) -> None:
        """Begin or complete an upload in parts, or delete several objects."""
        key, fields = self._asked()
        body, shelf = self._body(), self.server.shelf
        with shelf.turn:
            if "delete" in fields:
                bucket = key.split("/", 1)[0]
                names = re.findall(r"<Key>(.*?)</Key>", body.decode())
                for name in names:
                    shelf.objects.pop(f"{bucket}/{name}", None)
                gone = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
                said = f"<DeleteResult>{gone}</DeleteResult>"
            elif "uploads" in fields:
                name = f"upload-{len(shelf.uploads)}"
                shelf.uploads[name] = {}
                said = (
                    "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key>"
                    f"<UploadId>{name}</UploadId></InitiateMultipartUploadResult>"
                )
            else:
                parts = shelf.uploads.pop(fields["uploadId"])
                whole = b"".join(part for _, part in sorted(parts.items()))
                shelf.objects[key] = (whole, float(int(CLOCK.now())))
                said = (
                    "<CompleteMultipartUploadResult><Location>l</Location><Bucket>b</Bucket>"
                    '<Key>k</Key><ETag>"0"</ETag></CompleteMultipartUploadResult>'
                )
        self._answer(200, said.encode(), Content_Type="application/xml")

    def do_DELETE(self) -> None:
        """Remove an object, or give up an upload."""
        key, fields = self._asked()
        with self.server.shelf.turn:
            if "uploadId" in fields:
                self.server.shelf.uploads.pop(fields["uploadId"], None)
            else:
                self.server.shelf.objects.pop(key, None)
        self._answer(204)

    def do_HEAD(self) -> None:
        """Say how an object is."""
        self.do_GET()

    def do_GET(self) -> None:
        """Return an object, or a list."""
        key, fields = self._asked()
        if "list-type" in fields:
            return self._answer(200, self._list(key, fields), Content_Type="application/xml")
        with self.server.shelf.turn:
            found = self.server.shelf.objects.get(key)
        if found is None:
            return self._error(404, "NoSuchKey")
        body, at = found
        told = {"Last_Modified": formatdate(at, usegmt=True), "ETag": '"0"'}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            return self._answer(200, body, Content_Length=str(len(body)), **told)
        first, last = int(wanted[1]), min(int(wanted[2] or len(body)), len(body) - 1)
        piece = body[first : last + 1]
        told["Content_Range"] = f"bytes {first}-{last}/{len(body)}"
        return self._answer(206, piece, Content_Length=str(len(piece)), **told)

    def _list(self, bucket: str, fields: dict[str, str]) -> bytes:
        prefix, by = fields.get("prefix", ""), fields.get("delimiter", "")
        with self.server.shelf.turn:
            rows = sorted(self.server.shelf.objects.items())
        contents, folders = "", set[str]()
        for path, (body, at) in rows:
            name = path.removeprefix(f"{bucket}/")
            if not path.startswith(f"{bucket}/{prefix}"):
                continue
            rest = name[len(prefix) :]
            if by and by in rest:
                folders.add(prefix + rest.split(by)[0] + by)
                continue
            contents += (
                f"<Contents><Key>{escape(name)}</Key><LastModified>{iso(at)}</LastModified>"
                f'<ETag>"0"</ETag><Size>{len(body)}</Size></Contents>'
            )
        common = "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in sorted(folders)
        )
        return (
            f"<ListBucketResult><Name>{quote(bucket)}</Name><IsTruncated>false</IsTruncated>"
            f"{contents}{common}</ListBucketResult>"
        ).encode()


def _mib_by_mib(size: int) -> Iterator[int]:
    for at in range(0, size, MIB):
        yield min(MIB, size - at)


@contextmanager
def serving(mib_takes_s: float = 0.0) -> Iterator[dict[str, str]]:
    """Serve on loopback meanwhile; give the environment of its clients."""
    server = Server(("127.0.0.1", 0), mib_takes_s)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield environment("127.0.0.1", server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def environment(address: str, port: int) -> dict[str, str]:
    """Return what makes an S3 client use this store."""
    return {
        "AWS_ENDPOINT": f"http://{address}:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_REGION": "us-east-1",
    }


if __name__ == "__main__":
    server = Server((sys.argv[1], 0))
    note = Path(sys.argv[2])
    note.with_suffix(".new").write_text(str(server.server_address[1]))
    note.with_suffix(".new").rename(note)
    server.serve_forever()
