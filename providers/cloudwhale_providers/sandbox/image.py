"""The root file system of the box's machines: made once for this user, and shared by all of them.

Debian by debootstrap, with what an image of a cloud has: cloud-init and Docker. It is there whole
or not at all, under a name made of its recipe. `layer` is what lies over it.
"""

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from cloudwhale.spi.errors import Unreachable

PACKAGES = (
    "python3", "cloud-init", "python3-cffi-backend", "iproute2", "curl", "ca-certificates",
    "iptables", "nftables", "docker.io", "procps", "libfaketime", "kmod", "gpg",
    "python3-numpy", "libopenblas0-pthread",
)  # fmt: skip
"""NumPy is for the examples: a job of theirs has no right to install anything there."""
SUITE, MIRROR = "bookworm", "http://deb.debian.org/debian"
NEEDS = ("debootstrap", "chroot")
ROOM_BYTES = 2 * 2**30
"""While it is made; it takes 0.7 GB afterwards."""
SAID_AT_MOST = 200
EMPTIED = ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man",
           "usr/share/locale")  # fmt: skip
"""What no machine reads."""
NOT_HERE = ("etc/cloud/cloud.cfg.d/05_logging.cfg", "etc/cloud/cloud.cfg.d/90_dpkg.cfg",
            "usr/sbin/dhclient")  # fmt: skip
"""A machine's network is there already: nobody would answer who asks for an address."""

MAKES = "making the image of the sandbox's machines, once"
FETCHES = "Retrieving"
STEPS = {FETCHES: "fetching packages", "Unpacking": "unpacking", "Configuring": "setting up"}
"""What debootstrap does with every package, in its own words and in ours."""
_LINE = re.compile(rf"I: ({'|'.join(STEPS)}) ")

Told = Callable[[str], None]
"""Takes a sentence on how far it is."""


def cache() -> Path:
    """Return the folder of all images."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("cloudwhale")) / "sandbox"


def version() -> str:
    """Return what tells this recipe from others."""
    told = repr((SUITE, MIRROR, PACKAGES, EMPTIED, NOT_HERE))
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def place() -> Path:
    """Return where the image is, once it is there."""
    return cache() / f"machine-{version()}"


def is_there() -> bool:
    """Say whether it is."""
    return place().is_dir()


def lacks() -> str:
    """Say why it cannot be made here; empty when it can be tried."""
    missing = [name for name in NEEDS if shutil.which(name) is None]
    if missing:
        return f"{' and '.join(missing)} is not installed"
    cache().mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache()).free
    if free < ROOM_BYTES:
        return f"{cache()} has room for {free >> 20} MiB, and it needs {ROOM_BYTES >> 20} MiB"
    return ""


def ready(told: Told) -> Path:
    """Return the image, made now if it is not there, which takes minutes.

    Raise Unreachable when it cannot be made; other processes that need it wait, and find it.
    """
    if is_there():
        return place()
    cache().mkdir(parents=True, exist_ok=True)
    with _alone(told):
        if not is_there():
            why = lacks()
            if why:
                raise Unreachable(f"the image of the sandbox's machines cannot be made: {why}")
            _forget_others()
            _make(place().with_name(f"{place().name}.new"), told)
    return place()


@contextmanager
def _alone(told: Told) -> Generator[None]:
    with (cache() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            told("another process makes the image of the sandbox's machines")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _forget_others() -> None:
    """Delete what was made by halves; images of other versions may be in use."""
    for draft in cache().glob("machine-*.new"):
        shutil.rmtree(draft, ignore_errors=True)


def _make(draft: Path, told: Told) -> None:
    words = [
        "debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}",
        SUITE, str(draft), MIRROR,
    ]  # fmt: skip
    told(MAKES)
    try:
        _debootstrap(words, told)
        for name in NOT_HERE:
            (draft / name).unlink(missing_ok=True)
        for name in EMPTIED:
            shutil.rmtree(draft / name, ignore_errors=True)
            (draft / name).mkdir(parents=True)
        compiled = ["chroot", str(draft), "python3", "-m", "compileall", "-q", "/usr/lib/python3"]
        subprocess.run(compiled, capture_output=True, check=False)
        os.rename(draft, place())
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise Unreachable(
            f"the image of the sandbox's machines cannot be made: {error}",
            "CLOUDWHALE_SANDBOX_MACHINES=processes does without.",
        ) from error


def _debootstrap(words: list[str], told: Told) -> None:
    """Run it, and tell how far it is; raise OSError with its last words."""
    said: list[str] = []
    progress = _Progress()
    with subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", *words], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**os.environ, "LC_ALL": "C"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            for line in process.stdout:
                said.append(line.strip())
                says = progress.after(line)
                if says:
                    told(f"{MAKES}: {says}")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
    if process.returncode:
        raise OSError(f"debootstrap: {' '.join(said[-2:])[-SAID_AT_MOST:] or 'it says nothing'}")


class _Progress:
    """How far debootstrap is, by the packages that it has named; told in coarse steps."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(STEPS, 0)
        self._told = ""

    def after(self, line: str) -> str:
        """Return how far it is; empty when that was told already."""
        match = _LINE.match(line)
        if match is None:
            return ""
        verb, count = match[1], self._counts[match[1]] + 1
        self._counts[verb] = count
        packages = max(1, self._counts[FETCHES])
        far = f"{count // 50 * 50} and more" if verb == FETCHES else f"{_tens(count / packages)} %"
        says = f"{STEPS[verb]}, {far}"
        if says == self._told:
            return ""
        self._told = says
        return says


def _tens(share: float) -> int:
    return min(90, int(share * 10) * 10)
