"""The first process of a machine in the box: runs cloud-init, collects who ends, powers off.

It stands where systemd would: `shutdown`, whose stand-in writes to a pipe, is obeyed here. It needs
nothing but the standard library of the machine's Python, and is run as `python3 -I -S`.
"""

import contextlib
import os
import select
import signal
import sys

PIPE, CONSOLE = "/run/cloudwhale-power", "/dev/console"
"""Pipes: who opens a console may empty it first, and it is a file of this host."""
DOCKER = "/usr/sbin/dockerd"
LOAD = """
for file in /var/lib/cloudwhale-images/*.tar; do
    [ -e "$file" ] || exit 0
    until docker version; do sleep 0.2; done
    docker load -i "$file"
done
"""
"""Images that no registry has: whoever has the sandbox puts them into its folder."""
ENDS_WITHIN_S = 1.0
"""What still runs then has no time left: its disk is about to be deleted."""
LEAVES_WITHIN_S = 90.0
"""How long systemd waits for what it has told to stop, when a power button asks for that."""
NAMES = "CLOUDWHALE_BOX_NAMESERVERS"
"""Servers of names, for after cloud-init has looked for its own: it would wait for these."""
STAGES = (("init", "--local"), ("init",), ("modules", "--mode=config"), ("modules", "--mode=final"))

STAGES_OF_CLOUD_INIT = """
import os, sys
from cloudinit.cmd.main import main
for stage in {stages!r}:
    child = os.fork()
    if child == 0:
        sys.argv = ["cloud-init", *stage]
        code = 1
        try:
            code = main(sys.argv)
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1 if code else 0)
    _, status = os.waitpid(child, 0)
    if status:
        print("cloud-init", *stage, "failed:", status, flush=True)
    if stage == ("init",):
        names = os.environ.pop({names!r}, "").split()
        with open("/etc/resolv.conf", "w") as file:
            file.writelines("nameserver " + name + "\\n" for name in names)
"""
"""All four in one program, which is loaded once: each in a process of its own, as ever."""

DUE = {signal.SIGALRM, signal.SIGTERM, signal.SIGINT}


def main() -> int:
    """Be the first process until the machine powers off."""
    pipe, console = _pipe(PIPE), _pipe(CONSOLE)
    woken, waker = os.pipe()
    for end in (woken, waker):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGCHLD, signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGPWR):
        signal.signal(number, _wake)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _start_docker()
    words = STAGES_OF_CLOUD_INIT.format(stages=STAGES, names=NAMES)
    os.posix_spawn("/usr/bin/python3", ["python3", "-I", "-c", words], os.environ, setsid=True)
    while True:
        ready, _, _ = select.select([pipe, console, woken], [], [])
        if console in ready:
            os.write(1, os.read(console, 65_536))
        heard: set[int] = set(os.read(woken, 1024)) if woken in ready else set()
        if heard & DUE:
            return _off("its time is over")
        if signal.SIGPWR in heard:
            return _off("its power button was pressed", LEAVES_WITHIN_S)
        _collect()
        if pipe in ready:
            for line in os.read(pipe, 4096).decode(errors="replace").splitlines():
                if _obey(line):
                    return _off(line.partition(" ")[2])


def _start_docker() -> None:
    """Start the one service that an image for jobs has; its log lies where `service` puts it."""
    if os.path.exists(DOCKER):
        log = (os.POSIX_SPAWN_OPEN, 1, "/var/log/docker.log", os.O_WRONLY | os.O_CREAT, 0o644)
        both = [log, (os.POSIX_SPAWN_DUP2, 1, 2)]
        os.posix_spawn(DOCKER, ["dockerd"], os.environ, file_actions=both, setsid=True)
        os.posix_spawn("/bin/sh", ["sh", "-c", LOAD], os.environ, file_actions=both, setsid=True)


def _pipe(path: str) -> int:
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def _obey(line: str) -> bool:
    """Do what `shutdown` was told: `SECONDS WHO`, or `cancel WHO`; say whether to end now."""
    word, _, who = line.partition(" ")
    if word == "cancel":
        signal.setitimer(signal.ITIMER_REAL, 0)
        _say(f"the shutdown that was planned is off ({who})")
        return False
    if float(word) <= 0:
        return True
    signal.setitimer(signal.ITIMER_REAL, float(word))
    _say(f"the machine powers off in {word} s ({who})")
    return False


def _off(why: str, within_s: float = ENDS_WITHIN_S) -> int:
    """End all processes, with a moment for each, and so the machine."""
    _say(f"the machine powers off: {why}")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGTERM)
    signal.setitimer(signal.ITIMER_REAL, within_s)
    signal.signal(signal.SIGALRM, _too_late)
    with contextlib.suppress(ChildProcessError, TimeoutError):
        while True:
            os.waitpid(-1, 0)
    return 0


def _collect() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _say(text: str) -> None:
    print(text, flush=True)


def _wake(number: int, frame: object) -> None:
    """Let the pipe wake whoever selects."""


def _too_late(number: int, frame: object) -> None:
    raise TimeoutError


if __name__ == "__main__":
    sys.exit(main())
