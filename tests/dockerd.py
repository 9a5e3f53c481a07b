"""A real dockerd for tests, with a fake NVIDIA beside it: one for all workers, gone with them.

Run as `python dockerd.py FOLDER ENDED WORDS…` it keeps one dockerd until nobody uses it any more:
it reaps what the daemons leave, and ends them when the last test process is gone, however it went.
"""

import fcntl
import hashlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from cloudwhale.agent.containers.client import docker_client
from cloudwhale.agent.shim_processes import adopt_orphans
from cloudwhale.clock import SystemClock, wait
from cloudwhale.host.containers import images_here

IMAGE = "cloudwhale-test/busybox:1"
READY_S = 40.0
LOOK_S = 0.05
USERS_EVERY_S = 0.2
LAST_LOOKS = 20
CLOCK = SystemClock()
PREFIX = "cloudwhale-dockerd-"
QUIET = ("--bridge=none", "--iptables=false", "--ip-forward=false")
"""No network is needed, and none is left behind."""

HOOK = "#!/bin/sh\nexec cat >/dev/null\n"
RUNTIME = """#!/bin/sh
# Before a container with GPUs is made, its device files are added, as NVIDIA's runtime does.
before=
for word; do
    case $before in --bundle) config=$word/config.json ;; esac
    before=$word
done
case " $* " in
    *" create "*)
        if grep -q NVIDIA_VISIBLE_DEVICES=GPU "$config"; then {python} -I -S {devices} "$config"; fi
        ;;
esac
exec runc "$@"
"""
DEVICES = """
import json, sys
MINORS = {"GPU-aaaa": 0, "GPU-bbbb": 1, "GPU-cccc": 2}
with open(sys.argv[1]) as file:
    config = json.load(file)
env = dict(word.split("=", 1) for word in config["process"]["env"])
wanted = [MINORS[one] for one in env["NVIDIA_VISIBLE_DEVICES"].split(",")]
wanted = {"ignore": [], "all": [0, 1, 2]}.get(env.get("FAKE_NVIDIA"), wanted)
for minor in wanted:
    node = {"type": "c", "major": 195, "minor": minor}
    device = {**node, "path": f"/dev/nvidia{minor}", "fileMode": 0o666, "uid": 0, "gid": 0}
    config["linux"].setdefault("devices", []).append(device)
    config["linux"]["resources"]["devices"].append({**node, "allow": True, "access": "rw"})
with open(sys.argv[1], "w") as file:
    json.dump(config, file)
"""


class CannotStart(AssertionError):
    """It ended at once, or never answered; the last of what it said."""


IN_CI = ("CI",)
"""Variables that say that nothing may be left out."""


def lacks() -> str:
    """Say why dockerd cannot be started here; empty when it can."""
    if os.geteuid() != 0:
        return "dockerd needs root"
    missing = [name for name in ("dockerd", "runc", "busybox") if shutil.which(name) is None]
    return f"{', '.join(missing)} is not installed" if missing else ""


@dataclass(frozen=True)
class Dockerd:
    """A dockerd in a folder of its own."""

    folder: Path
    before: tuple[str, ...] = ()
    """Words before its command, as of a program that enters a namespace."""

    @property
    def host(self) -> str:
        """What DOCKER_HOST must say."""
        return f"unix://{self.folder}/docker.sock"

    @property
    def pid(self) -> int:
        """The daemon's process id."""
        return int((self.folder / "pid").read_text())

    def answers(self) -> bool:
        """Say whether it does."""
        with at(self.host):
            return images_here() is not None

    def start(self, *words: str, gpus: bool = True, quiet: bool = True) -> None:
        """Start it and wait until it answers; `gpus`: with the fake NVIDIA; `quiet`: no network."""
        (self.folder / "pid").unlink(missing_ok=True)
        ended = self.folder / f"ended-{os.urandom(4).hex()}"
        told = [*(QUIET if quiet else ()), *words]
        if gpus:
            told += [f"--add-runtime=fake={_fake_nvidia(self.folder)}", "--default-runtime=fake"]
        keeper = [sys.executable, __file__, str(self.folder), ended.name, *told]
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}" if gpus else os.environ["PATH"]
        with (self.folder / "log").open("ab") as log:
            subprocess.run(
                [*self.before, "setsid", "--fork", *keeper],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "PATH": path}, check=True,
            )  # fmt: skip
        self._wait(self.answers, True, ended)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it by a signal, and wait until it is gone."""
        pid = self.pid
        os.kill(pid, number)
        self._wait(lambda: Path(f"/proc/{pid}").exists(), False)

    def add_image(self) -> None:
        """Make an image of busybox alone, without a registry."""
        with at(self.host):
            import docker

            client = docker.from_env()
            changes = ["ENV PATH=/bin", 'ENTRYPOINT ["/bin/echo", "never"]']
            name, _, tag = IMAGE.partition(":")
            client.api.import_image_from_data(busybox_image(), name, tag, changes)
            client.close()

    def names(self) -> list[str]:
        """Return the names of all its containers."""
        with at(self.host), docker_client(READY_S) as client:
            found = client.containers(all=True, filters={})
        return [name.removeprefix("/") for one in found for name in one["Names"]]

    def _wait(self, found: Callable[[], bool], wanted: bool, ended: Path | None = None) -> None:
        give_up_at = CLOCK.steady() + READY_S
        while found() is not wanted:
            has_ended = ended is not None and ended.exists()
            if has_ended or CLOCK.steady() > give_up_at:
                raise CannotStart(f"dockerd: {(self.folder / 'log').read_text()[-2000:]}")
            wait(LOOK_S)


@contextmanager
def at(host: str) -> Iterator[None]:
    """Let DOCKER_HOST say something for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", host)
        yield


@contextmanager
def used(folder: Path) -> Iterator[Dockerd]:
    """Use the dockerd of a folder, started by whoever comes first; it ends with its last user."""
    folder.mkdir(parents=True, exist_ok=True)
    one = Dockerd(folder)
    with (folder / "users").open("w") as users, (folder / "first").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)
        if not one.answers():
            one.start()
            one.add_image()
        fcntl.flock(first, fcntl.LOCK_UN)
        yield one


@pytest.fixture(scope="session")
def dockerd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dockerd]:
    """Give a dockerd with fake NVIDIA and the image; all workers share it."""
    why = lacks()
    if why:
        _not_here(why)
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    name = hashlib.sha256(os.fsencode(common)).hexdigest()[:8]
    with ExitStack() as stack:
        try:
            one = stack.enter_context(used(Path(tempfile.gettempdir()) / f"{PREFIX}{name}"))
        except CannotStart as trouble:
            _not_here(f"it is installed and cannot start: {str(trouble)[-300:]}")
        yield one


@pytest.fixture
def own_dockerd(dockerd: Dockerd) -> Iterator[Dockerd]:
    """Give a folder for a dockerd of one test, which starts and kills it.

    Where the shared one cannot start, neither can this one.
    """
    one = Dockerd(Path(tempfile.mkdtemp(prefix=PREFIX)))
    with (one.folder / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        yield one
    if one.answers():
        one.end()
    cleaned(one.folder)
    assert not mounts_below(one.folder), "a mount that stays cannot be removed by the next run"


def _not_here(why: str) -> NoReturn:
    """Skip with the reason; in CI, which installs all that is needed, fail with it."""
    if any(os.environ.get(name) for name in IN_CI):
        pytest.fail(f"no dockerd here, and CI must have one: {why}", pytrace=False)
    pytest.skip(f"no dockerd here: {why}")


def _fake_nvidia(folder: Path) -> Path:
    """Write hook and runtime; return the runtime. Dockerd takes GPUs with the hook in its PATH."""
    bin = folder / "bin"
    bin.mkdir(exist_ok=True)
    devices = bin / "devices.py"
    devices.write_text(DEVICES)
    texts = {
        "nvidia-container-runtime-hook": HOOK,
        "fake-nvidia": RUNTIME.format(python=sys.executable, devices=devices),
    }
    for name, text in texts.items():
        (bin / name).write_text(text)
        (bin / name).chmod(0o755)
    return bin / "fake-nvidia"


def busybox_image(more: bytes = b"") -> bytes:
    """Return an archive with busybox, a link for each of its programs, and a file of no use."""
    program = shutil.which("busybox") or "busybox"
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(program, "bin/busybox")
        for name in listed.stdout.split():
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname, link.mode = tarfile.SYMTYPE, "busybox", 0o777
            if name != "busybox":
                tar.addfile(link)
        file = tarfile.TarInfo("more")
        file.size = len(more)
        tar.addfile(file, io.BytesIO(more))
        for folder in ("tmp", "etc"):
            made = tarfile.TarInfo(folder)
            made.type, made.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(made)
    return archive.getvalue()


# -- the keeper ------------------------------------------------------------------------------


def keep(folder: Path, ended: str, words: list[str]) -> None:
    """Run dockerd until it ends, or nobody uses it any more; note its end in a file."""
    adopt_orphans()  # what init should reap, containerd would be taken for alive
    places = [f"--data-root={folder / 'root'}", f"--exec-root={folder / 'exec'}"]
    places += [f"--pidfile={folder / 'pid'}", f"--host=unix://{folder / 'docker.sock'}"]
    daemon = subprocess.Popen(["dockerd", *places, *words])
    with (folder / "users").open("w") as users:
        while not _reaped(daemon.pid):
            wait(USERS_EVERY_S)
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            os.kill(daemon.pid, signal.SIGTERM)
        (folder / ended).touch()
        for _ in range(LAST_LOOKS):
            _reaped(daemon.pid)
            wait(LOOK_S)
        with suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            cleaned(folder)


def cleaned(folder: Path) -> None:
    """Remove a folder with all that daemons have mounted there."""
    for mount in sorted(mounts_below(folder), reverse=True):
        subprocess.run(["umount", "-l", mount], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def mounts_below(folder: Path) -> list[str]:
    """Return what is mounted somewhere in a folder."""
    mounts = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return [one for one in mounts if one.startswith(f"{folder}/")]


def _reaped(pid: int) -> bool:
    """Collect whatever has ended; say whether this process is among it, or nothing is left."""
    while True:
        try:
            found, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if found == pid:
            return True
        if found == 0:
            return False


if __name__ == "__main__":
    keep(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
