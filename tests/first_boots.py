"""A machine that boots on this host for a test: the real user data and phases, among stand-ins.

Its programs are a folder of links to this host's own and of stand-ins that write down what they
were asked: nothing else is found, `shutdown` and `apt-get` of this host above all. Its files lie in
a folder, its metadata service and its store on loopback.
"""

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import small_s3

from cloudwhale.clock import SystemClock
from cloudwhale.mailbox.box import folder_of
from cloudwhale_providers.aws.user_data import user_data

BOOT = Path(__file__).parents[1] / "cloudwhale" / "agent" / "boot"
NODE, ROLE, MACHINE = "rent-1", "cloudwhale-machine", "i-0123456789abcdef0"
LIMIT_S = 60.0
OURS = (
    "sh", "bash", "base64", "cat", "chmod", "cp", "cut", "date", "df", "dirname", "echo", "env",
    "gzip", "grep", "head", "ldd", "ls", "mkdir", "mktemp", "mv", "rm", "sed", "setsid",
    "sha256sum", "tail", "tar", "test", "timeout", "tr", "wc", "xargs",
)  # fmt: skip
"""Programs of this host that a machine's scripts may use."""
PHASES = "driver", "docker", "toolkit", "gpus", "agent"
LISTENS = "case $1 in lease) echo 1:5400 ;; esac"
APT = """\
case " $* " in *" update "*) exit ;; esac
for word in "$@"; do
    word=${word%%=*}
    if [ -d "$STATE/packages/$word" ]; then
        for one in "$STATE/packages/$word"/*; do
            [ ! -e "$one" ] || cp "$one" "${0%/*}"
        done
        continue
    fi
    case " update install -q -y --no-install-recommends -o " in *" $word "*) continue ;; esac
    case $word in
        DPkg::* | Dpkg::* | Acquire::*) continue ;;
    esac
    echo "E: Unable to locate package $word" >&2
    exit 100
done
"""
"""Installs what `Machine.package` has said that there is."""
SLEEP = f"""\
case $1 in 1800) exit 1 ;; esac
exec {shutil.which("sleep")} 0.02
"""
"""Pauses are short; who waits for half an hour is interrupted."""
SYSTEMCTL = """\
case "$1 $2 $3" in
    *cloudwhale-agent*) [ "$1" != start ] || sh "$CLOUDWHALE_PLACE/agent" >&2 ;;
esac
"""
AGENT = """\
import json, os, sys
words = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
place = os.path.join(words["home"], "nodes", words["node"])
os.makedirs(place, exist_ok=True)
told = {"words": sys.argv[1:], "region": os.environ.get("AWS_REGION"), "path": sys.path}
with open(os.path.join(place, "watchdog.json"), "w") as file:
    json.dump(told, file)
"""
"""Instead of the agent: arms nothing, and says what it was started with."""


def bundle(agent: str = AGENT, boot: Path = BOOT) -> bytes:
    """Return an archive with the real first boot, and a stand-in of the agent."""
    number = f"{sys.version_info[0]}{sys.version_info[1]}"
    files = {f"boot/{path.name}": path.read_bytes() for path in sorted(boot.glob("*.sh"))}
    files |= {
        "lib/cloudwhale/__init__.py": b"",
        "lib/cloudwhale/agent/__init__.py": b"",
        "lib/cloudwhale/agent/__main__.py": agent.encode(),
        f"lib-cp{number}/compiled.py": b"",
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, body in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return packed.getvalue()


@dataclass
class Metadata:
    """What the metadata service says, and how badly."""

    documents: dict[str, str] = field(default_factory=dict[str, str])
    fails: int = 0
    """So many questions more are answered with 500."""
    slow_s: float = 0.0
    asked: list[str] = field(default_factory=list[str])


def _documents(words: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield what a store that only listens was told, as documents."""
    for one in words:
        verb, *said = one.removesuffix("\n").split("\n")
        if verb != "tell":
            continue
        for each in "\n".join(said).split("\n--\n"):
            phase, state, *rest = each.split("\n")
            yield {"phase": phase, "state": state, "says": "".join(rest[1:])}


class _Desk(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, says: Metadata) -> None:
        self.says = says
        super().__init__(("127.0.0.1", 0), _Clerk)


class _Clerk(BaseHTTPRequestHandler):
    server: _Desk

    def log_message(self, format: str, *words: object) -> None:
        pass

    def do_PUT(self) -> None:
        self._answer("token")

    def do_GET(self) -> None:
        path = self.path.removeprefix("/latest/").replace("%3A", ":")
        self.server.says.asked.append(path)
        if self.headers.get("X-aws-ec2-metadata-token") != "token":
            self._answer(None, 401)
        else:
            self._answer(self.server.says.documents.get(path), 404)

    def _answer(self, text: str | None, otherwise: int = 500) -> None:
        says = self.server.says
        if says.slow_s:
            threading.Event().wait(says.slow_s)
        if says.fails > 0:
            says.fails -= 1
            text, otherwise = None, 500
        body = (text or "").encode()
        self.send_response(otherwise if text is None else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Machine:
    """A machine before its first boot; `fake` and `has` are said before `boots`."""

    def __init__(self, folder: Path, store: str, metadata: Metadata, metadata_url: str) -> None:
        self.folder, self.metadata = folder, metadata
        self.root, self.place, self.bin = folder / "root", folder / "place", folder / "bin"
        self.calls_file = folder / "calls"
        for path in (self.root / "dev", self.root / "etc", self.bin):
            path.mkdir(parents=True)
        self.store_url = store
        self.mailbox = "s3://bucket/lab"
        self.archive = bundle()
        self.environment = {
            "PATH": str(self.bin),
            "CLOUDWHALE_ROOT": str(self.root),
            "CLOUDWHALE_PLACE": str(self.place),
            "CLOUDWHALE_PATIENCE_S": "2",
            "AWS_ENDPOINT_URL": store,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata_url,
            "CALLS": str(self.calls_file),
            "STATE": str(folder),
        }
        for name in OURS:
            found = shutil.which(name)
            if found:
                (self.bin / name).symlink_to(found)
        (self.bin / "python3").symlink_to(sys.executable)
        self.fake("sleep", SLEEP, told=False)
        self.fake("shutdown")
        self.tagged(node=NODE, lease="1:5400", installation="lab", gpus="0")

    # -- what it is --------------------------------------------------------------------------

    def fake(self, name: str, does: str = "exit 0", *, told: bool = True) -> None:
        """Put a stand-in among its programs: some lines of shell."""
        path = self.bin / name
        path.unlink(missing_ok=True)
        note = f'echo "{name} $*" >>"$CALLS"\n' if told else ""
        path.write_text(f"#!/bin/sh\n{note}{does}\n")
        path.chmod(0o755)

    def lacks(self, name: str) -> None:
        """Take a program away."""
        (self.bin / name).unlink(missing_ok=True)

    def tagged(self, **tags: str) -> None:
        """Say what its tags are; empty ones are taken away."""
        for name, value in tags.items():
            self.metadata.documents.pop(f"meta-data/tags/instance/cloudwhale:{name}", None)
            if value:
                self.metadata.documents[f"meta-data/tags/instance/cloudwhale:{name}"] = value

    def with_gpus(self, wanted: int, there: int | None = None) -> None:
        """Say how many GPUs it was rented with, and how many device files it has."""
        self.tagged(gpus=str(wanted))
        for number in range(wanted if there is None else there):
            (self.root / "dev" / f"nvidia{number}").touch()

    def package(self, name: str, **programs: str) -> None:
        """Say what the distribution's package brings: programs, as some lines of shell."""
        folder = self.folder / "packages" / name
        folder.mkdir(parents=True)
        for program, does in programs.items():
            path = folder / program.replace("_", "-")
            path.write_text(f'#!/bin/sh\necho "{path.name} $*" >>"$CALLS"\n{does}\n')
            path.chmod(0o755)
        self.fake("apt-get", APT)

    def has_systemd(self) -> None:
        """Let systemd be its first process."""
        (self.root / "run/systemd/system").mkdir(parents=True)
        self.fake("systemctl", SYSTEMCTL)
        self.fake("journalctl", 'cat "$STATE/journal" 2>/dev/null')

    # -- what it does ------------------------------------------------------------------------

    def boots(self, *, key: str = "", limit_s: float = LIMIT_S) -> "Booted":
        """Boot it with the real user data, as cloud-init does; return what became of it."""
        sha256 = hashlib.sha256(self.archive).hexdigest()
        key = key or f"bundles/{sha256}.tar.gz"
        self.put(key, self.archive)
        script = self.folder / "user-data"
        script.write_text(self.told_at_boot(key))
        done = self._run([str(script)], self.environment, limit_s)
        return Booted(self, done.returncode, done.stdout, tuple(self.told()))

    def told_at_boot(self, key: str) -> str:
        """Return its user data."""
        return user_data(self.mailbox, "us-east-1", key)

    def first(self, *phases: str, gpus: int = 0, **more: str) -> "Booted":
        """Run some phases of the first boot alone, among a store that only listens."""
        told = self.folder / "told"
        self.fake("store", f'printf "%s\\n" "$@" == >>"{told}"\n' + LISTENS, told=False)
        self.place.mkdir(exist_ok=True)
        (self.place / "environment").touch()
        without = [name for name in PHASES if name not in phases]
        more = {
            "CLOUDWHALE_BUNDLE": str(self.folder / "bundle"), "CLOUDWHALE_GPUS": str(gpus),
            "CLOUDWHALE_ENVIRONMENT": str(self.place / "environment"),
            "CLOUDWHALE_MAILBOX": self.mailbox, "CLOUDWHALE_NODE": NODE,
            "CLOUDWHALE_NOTICES": "aws", "CLOUDWHALE_STORE": str(self.bin / "store"),
            "CLOUDWHALE_WITHOUT": " ".join(without), **more,
        }  # fmt: skip
        done = self._run([str(BOOT / "first.sh")], self.environment | more, LIMIT_S)
        words = told.read_text().split("==\n")
        return Booted(self, done.returncode, done.stdout, tuple(_documents(words)))

    def _run(
        self, words: list[str], environment: Mapping[str, str], limit_s: float
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["/bin/sh", *words], env=environment, cwd=self.folder, timeout=limit_s,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False,
        )  # fmt: skip

    def put(self, key: str, body: bytes) -> None:
        """Store an object in its mailbox."""
        self._asks("PUT", key, body)

    def told(self) -> list[dict[str, Any]]:
        """Return what it has told of its boot."""
        found: list[dict[str, Any]] = []
        door = self.metadata.documents.get("meta-data/tags/instance/cloudwhale:role", "")
        folder = f"boots/{folder_of(NODE, door and f'{door}:{MACHINE}')}"
        while body := self._asks("GET", f"{folder}/{len(found) + 1:06d}.json"):
            found.append(json.loads(body))
        return found

    def _asks(self, method: str, key: str, body: bytes = b"") -> bytes:
        from urllib.error import HTTPError
        from urllib.request import Request, urlopen

        url = f"{self.store_url}/bucket/lab/{key}"
        try:
            with urlopen(Request(url, body or None, method=method)) as answer:
                found: bytes = answer.read()
                return found
        except HTTPError as error:
            with error:
                return b""

    def calls(self, name: str = "") -> list[str]:
        """Return what stand-ins were asked, in order."""
        lines = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        return [line for line in lines if not name or line.split()[0] == name]


@dataclass(frozen=True)
class Booted:
    """What became of a first boot."""

    machine: Machine
    code: int
    console: str
    told: tuple[dict[str, Any], ...]

    @property
    def phases(self) -> dict[str, str]:
        """Return the last state of each phase that was told."""
        return {one["phase"]: one["state"] for one in self.told}

    def says(self, phase: str) -> str:
        """Return the last words about a phase."""
        return [str(one["says"]) for one in self.told if one["phase"] == phase][-1]

    @property
    def failed(self) -> str:
        """Return `PHASE: WORDS` of what was told as failed; empty where nothing was."""
        told = [one for one in self.told if one["state"] == "failed"]
        return f"{told[0]['phase']}: {told[0]['says']}" if told else ""

    @property
    def was_shut_down(self) -> bool:
        """Say whether the machine has ended itself."""
        return "shutdown -h now" in self.machine.calls("shutdown")

    def agent(self) -> dict[str, Any]:
        """Return what the agent was started with."""
        place = self.machine.root / "var/lib/cloudwhale/nodes" / NODE
        found: dict[str, Any] = json.loads((place / "watchdog.json").read_text())
        return found


def role() -> Mapping[str, str]:
    """Return the documents of a machine's role; its keys are no secret."""
    folder = "meta-data/iam/security-credentials/"
    keys = {"AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "dummy", "Token": "token"}
    launched = datetime.fromtimestamp(SystemClock().now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        folder: ROLE,
        folder + ROLE: json.dumps(keys),
        "meta-data/instance-id": MACHINE,
        "dynamic/instance-identity/document": json.dumps({"pendingTime": launched}),
    }


@contextmanager
def a_machine(folder: Path) -> Iterator[Machine]:
    """Give a machine that is about to boot; its metadata service and store listen meanwhile."""
    says = Metadata(dict(role()))
    desk = _Desk(says)
    thread = threading.Thread(target=desk.serve_forever, daemon=True)
    thread.start()
    try:
        with small_s3.serving() as store:
            url = f"http://127.0.0.1:{desk.server_address[1]}"
            yield Machine(folder, store["AWS_ENDPOINT"], says, url)
    finally:
        desk.shutdown()
        desk.server_close()
        thread.join()
