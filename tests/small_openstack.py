"""A small cloud that speaks OpenStack's APIs over HTTP: Keystone 3, Nova 2.1, Glance 2, Cinder 3.

As their API references have requests and answers; no more of them than a machine's life takes.
"""

import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USER, PASSWORD, PROJECT, REGION = "ann", "dummy-password", "p-1", "GRA11"
FLAVORS = {"f-1": ("l4-90", 92160, 22, 350), "f-2": ("b3-8", 8192, 2, 50)}
IMAGES = {"im-1": "Ubuntu 24.04", "im-2": "Debian 12"}
MADE_AT = "2026-11-30T10:00:00Z"
PAGE = 2
"""Servers that one answer lists; more are behind a link."""


@dataclass
class SmallOpenStack:
    """What there is, and what goes wrong."""

    servers: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    told: dict[str, str] = field(default_factory=dict[str, str])
    """User data by the name of its server."""
    asked: list[str] = field(default_factory=list[str])
    refuse: tuple[str, int, str] | None = None
    """Beginning of `METHOD path`, status and message of the next answer to it."""
    cut: str = ""
    """Beginning of `METHOD path`: done, and not answered, once."""
    hidden: bool = False
    """Whether servers are left out of lists."""
    url: str = ""
    count: int = 0

    def create(self, said: dict[str, Any]) -> dict[str, Any]:
        """Make a server; its first answer holds little more than its id, as Nova's does."""
        self.count += 1
        name = f"00000000-0000-4000-8000-{self.count:012d}"
        links = [{"rel": "self", "href": f"{self.url}/compute/v2.1/servers/{name}"}]
        self.servers[name] = {
            "id": name, "name": said["name"], "status": "BUILD", "image": {"id": said["imageRef"]},
            "flavor": {"id": said["flavorRef"]}, "addresses": {}, "metadata": {}, "key_name": None,
            "created": MADE_AT, "updated": MADE_AT, "links": links,
            "tenant_id": PROJECT, "user_id": USER, "hostId": "", "accessIPv4": "",
            "OS-DCF:diskConfig": "MANUAL", "config_drive": "",
        }  # fmt: skip
        self.told[said["name"]] = base64.b64decode(said.get("user_data", "")).decode()
        return {"id": name, "links": links, "adminPass": "dummy", "OS-DCF:diskConfig": "MANUAL"}

    def page(self, marker: str) -> dict[str, Any]:
        """Return servers after one, and where there are more."""
        names = [] if self.hidden else sorted(self.servers)
        after = [name for name in names if name > marker]
        found: dict[str, Any] = {"servers": [self.servers[name] for name in after[:PAGE]]}
        if len(after) > PAGE:
            href = f"{self.url}/compute/v2.1/servers/detail?marker={after[PAGE - 1]}"
            found["servers_links"] = [{"rel": "next", "href": href}]
        return found

    def catalog(self) -> list[dict[str, Any]]:
        """Return where each service is."""
        places = {"compute": "compute/v2.1", "image": "image", "volumev3": f"volume/v3/{PROJECT}"}
        places |= {"volumev2": places["volumev3"], "network": "network"}
        names = {
            "compute": "nova",
            "image": "glance",
            "volumev3": "cinderv3",
            "volumev2": "cinderv2",
            "network": "neutron",
        }
        return [
            {"type": kind, "name": names[kind], "id": kind, "endpoints": [
                {"id": kind, "interface": "public", "region": REGION, "region_id": REGION,
                 "url": f"{self.url}/{path}"},
            ]}
            for kind, path in places.items()
        ]  # fmt: skip


class Clerk(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    cloud: SmallOpenStack

    def log_message(self, format: str, *words: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    def _serve(self, method: str) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        said = json.loads(self.rfile.read(size) or b"{}")
        path, _, query = self.path.partition("?")
        line = f"{method} {path}"
        self.cloud.asked.append(line)
        refuse = self.cloud.refuse
        if refuse is not None and line.startswith(refuse[0]):
            self.cloud.refuse = None
            fault = {"forbidden": {"code": refuse[1], "message": refuse[2]}}
            return self._answer(refuse[1], fault)
        status, body, headers = self._done(method, path, query, said)
        if self.cloud.cut and line.startswith(self.cloud.cut):
            self.cloud.cut = ""
            self.close_connection = True
            self.connection.close()
            return None
        return self._answer(status, body, headers)

    def _done(
        self, method: str, path: str, query: str, said: dict[str, Any]
    ) -> tuple[int, Any, dict[str, str]]:
        if path == "/v3/auth/tokens":
            return self._token(said)
        if self.headers.get("X-Auth-Token") != "token-1":
            return 401, {"error": {"code": 401, "message": "Unauthorized"}}, {}
        one = re.fullmatch(r"/compute/v2\.1/servers/([0-9a-f-]{36})", path)
        if one is not None:
            return self._server(method, one[1])
        return self._listed(method, path, query, said)

    def _token(self, said: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        user = said["auth"]["identity"]["password"]["user"]
        if (user["name"], user["password"]) != (USER, PASSWORD):
            return 401, {"error": {"code": 401, "message": "Unauthorized"}}, {}
        token = {
            "catalog": self.cloud.catalog(), "expires_at": "2126-11-30T10:00:00.000000Z",
            "issued_at": "2026-11-30T10:00:00.000000Z", "methods": ["password"], "roles": [],
            "user": {"id": USER, "name": USER, "domain": {"id": "default", "name": "Default"}},
            "project": {"id": PROJECT, "name": PROJECT},
        }  # fmt: skip
        return 201, {"token": token}, {"X-Subject-Token": "token-1"}

    def _server(self, method: str, name: str) -> tuple[int, Any, dict[str, str]]:
        if name not in self.cloud.servers:
            fault = {"code": 404, "message": f"Instance {name} could not be found."}
            return 404, {"itemNotFound": fault}, {}
        if method == "DELETE":
            del self.cloud.servers[name]
            return 204, None, {}
        return 200, {"server": self.cloud.servers[name]}, {}

    def _listed(
        self, method: str, path: str, query: str, said: dict[str, Any]
    ) -> tuple[int, Any, dict[str, str]]:
        if path == "/compute/v2.1/servers" and method == "POST":
            return 202, {"server": self.cloud.create(said["server"])}, {}
        if path == "/compute/v2.1/servers/detail":
            return 200, self.cloud.page(query.partition("marker=")[2]), {}
        if path == "/compute/v2.1/flavors/detail":
            rows = [
                {"id": name, "name": title, "ram": ram, "vcpus": cpus, "disk": disk, "links": [],
                 "OS-FLV-EXT-DATA:ephemeral": 0, "swap": ""}
                for name, (title, ram, cpus, disk) in FLAVORS.items()
            ]  # fmt: skip
            return 200, {"flavors": rows}, {}
        if path.endswith("/images"):
            images = [
                {"id": name, "name": title, "status": "active", "created_at": MADE_AT,
                 "updated_at": MADE_AT, "min_ram": 0, "min_disk": 0, "size": 1,
                 "container_format": "bare"}
                for name, title in IMAGES.items()
            ]  # fmt: skip
            return 200, {"images": images}, {}
        if path.endswith("/volumes/detail"):
            return 200, {"volumes": []}, {}
        return 404, {"itemNotFound": {"code": 404, "message": path}}, {}

    def _answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)


class _Desk(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet of connections that were cut on purpose."""


@contextmanager
def opened() -> Iterator[SmallOpenStack]:
    """Serve a cloud on loopback."""
    cloud = SmallOpenStack()
    server = _Desk(("127.0.0.1", 0), type("Mine", (Clerk,), {"cloud": cloud}))
    cloud.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield cloud
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
