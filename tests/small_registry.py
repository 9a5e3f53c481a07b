"""A registry of container images on loopback: one image, a login, and the errors of real ones."""

import base64
import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
USER, PASSWORD = "ann", "whale song"


@dataclass
class Registry:
    """What it holds and how it answers."""

    address: str
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    manifest: bytes = b""
    flows: threading.Event = field(default_factory=threading.Event)
    """While it is not set, no layer is given out."""
    asked: list[str] = field(default_factory=list[str])
    private: bool = False
    """Whether it wants a login for all that it has."""
    broken: int = 0
    """So many of the next requests for a manifest are answered with 503."""

    def hold(self, layer: bytes) -> None:
        """Hold one image of one layer, a tar archive."""
        packed = gzip.compress(layer, 1)
        config = {
            "architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }  # fmt: skip
        body = json.dumps(config).encode()
        self.blobs = {_digest(body): body, _digest(packed): packed}
        kind = "application/vnd.docker.container.image.v1+json"
        manifest = {
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": kind, "size": len(body), "digest": _digest(body)},
            "layers": [{
                "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
                "size": len(packed), "digest": _digest(packed),
            }],
        }  # fmt: skip
        self.manifest = json.dumps(manifest).encode()

    def answer(self, path: str, login: str | None) -> tuple[int, str, bytes]:
        """Return status, kind and body."""
        self.asked.append(path)
        if self.broken and "/manifests/" in path:
            self.broken -= 1
            return 503, "text/plain", b"busy"
        if self.private and login != _basic():
            return 401, "application/json", _error("UNAUTHORIZED", "authentication required")
        name, _, rest = path.removeprefix("/v2/").partition("/manifests/")
        if path == "/v2/":
            return 200, "application/json", b"{}"
        if rest and name == "sea/busybox":
            return 200, MANIFEST, self.manifest
        blob = self.blobs.get(path.rpartition("/blobs/")[2])
        if blob is not None:
            self.flows.wait()
            return 200, "application/octet-stream", blob
        return 404, "application/json", _error("MANIFEST_UNKNOWN", "manifest unknown")


@contextmanager
def small_registry() -> Iterator[Registry]:
    """Serve on a free port for a while."""

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, kind, body = registry.answer(self.path, self.headers.get("Authorization"))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if kind == MANIFEST:
                self.send_header("Docker-Content-Digest", _digest(body))
            if status == 401:
                self.send_header("WWW-Authenticate", 'Basic realm="whales"')
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *words: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    registry = Registry(f"127.0.0.1:{server.server_address[1]}")
    registry.flows.set()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield registry
    finally:
        registry.flows.set()
        server.shutdown()
        thread.join()
        server.server_close()


def docker_config(registry: Registry) -> str:
    """Return what `docker login` would have written."""
    return json.dumps({"auths": {registry.address: {"auth": _basic().removeprefix("Basic ")}}})


def _basic() -> str:
    return "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def _digest(body: bytes) -> str:
    return "sha256:" + hashlib.sha256(body).hexdigest()


def _error(code: str, says: str) -> bytes:
    return json.dumps({"errors": [{"code": code, "message": says}]}).encode()
