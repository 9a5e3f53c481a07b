"""Goes into the sandbox that the settings ask for: its home, its mailbox, its clouds, its time."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cloudwhale import clock, plugins
from cloudwhale.control.saying import Say, to_nobody
from cloudwhale.model.units import Seconds
from cloudwhale.settings import Settings, load
from cloudwhale.spi.errors import SettingsError, Unreachable
from cloudwhale.spi.sandbox import Sandbox, Surroundings

NAME = "sandbox"
CLOUD = "cloud"
LOG = "sandbox.log"
LOOK_EVERY_S: Seconds = 0.05  # of real time: nobody is inside yet
QUIET_S: Seconds = 2.0
COMPLAINS = "cloudwhale: "
"""So begins what a command says last when it fails; its remedy stands below."""
UP_WITHIN_S: Seconds = 60.0  # it loads a whole cloud, on a busy host too

"""Takes a sentence for whoever waits."""


@dataclass(frozen=True, slots=True)
class Box:
    """The sandbox of a home: its folder, and whoever knows it."""

    home: Path
    """Of the database and the nodes inside."""
    folder: Path
    """Of the cloud itself."""
    sandbox: Sandbox


def settled(folder: Path, *, starts: bool = False, told: Say = to_nobody) -> Settings:
    """Return the settings that hold in a folder, inside the sandbox when they ask for one.

    `starts`: a sandbox that does not answer is started, which takes seconds. Otherwise a command
    does with the database alone. Raise SettingsError, SpecError, Unreachable.
    """
    settings = load(folder)
    return entered(settings, starts=starts, told=told) if settings.sandbox else settings


def entered(settings: Settings, *, starts: bool, told: Say = to_nobody) -> Settings:
    """Go into the sandbox: set this process' environment, and return the settings there."""
    box = box_of(settings)
    inside = settings.but(home=box.home, database="", mailbox="")
    found = box.sandbox.surroundings(box.folder)
    if starts:
        digest = _digest(box, settings.sandbox_script)
        if found is None:
            found = _started(box, settings, told)
        if digest and digest != found.script:
            raise SettingsError(
                f"the sandbox that runs here has another script than {settings.sandbox_script}",
                "`cloudwhale sandbox stop` ends it with its machines; then run this again.",
            )
    if found is None:
        return inside
    _surround(found)
    return inside.but(
        mailbox=found.mailbox,
        clouds={name: dict(told) for name, told in found.clouds.items()},
        takes_jobs=settings.takes_jobs and found.owned,
    )


def box_of(settings: Settings) -> Box:
    """Return the sandbox of a home, running or not; raise SettingsError when none is installed."""
    home = settings.home / NAME
    sandbox: Callable[[], Sandbox] = plugins.load(plugins.SANDBOXES, NAME)
    return Box(home, home / CLOUD, sandbox())


def boots(settings: Settings) -> bool:
    """Say whether rented machines boot from an image, so that they need the agent's archive.

    `settings`: those inside, where they ask for the sandbox.
    """
    if not settings.sandbox:
        return bool(settings.clouds)
    sandbox: Callable[[], Sandbox] = plugins.load(plugins.SANDBOXES, NAME)
    found = sandbox().surroundings(settings.home / CLOUD)
    return found is not None and found.boots


def still_there(inside: Settings) -> Callable[[], bool]:
    """Return what says whether the sandbox of some settings lives; for those inside alone.

    It looks at a lock on this host, so a sandbox that is gone is told from one that is slow.
    """
    sandbox: Callable[[], Sandbox] = plugins.load(plugins.SANDBOXES, NAME)
    box, folder = sandbox(), inside.home / CLOUD
    return lambda: box.standing(folder) is not None


def last_words(box: Box) -> tuple[str, str]:
    """Return the last sentence that a sandbox has said, and the remedy that it named."""
    try:
        lines = (box.folder / LOG).read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    begins = [at for at, line in enumerate(lines) if line.startswith(COMPLAINS)]
    if not begins:
        return (lines[-1] if lines else "it said nothing"), ""
    remedy = " ".join(line.strip() for line in lines[begins[-1] + 1 :])
    return lines[begins[-1]].removeprefix(COMPLAINS), remedy


def _surround(found: Surroundings) -> None:
    for name, value in found.environment.items():
        if value:
            os.environ[name] = value
        else:
            os.environ.pop(name, None)
    clock.look_again()


def _digest(box: Box, script: str) -> str:
    """Return what tells a script from others; empty for none. Raise SpecError for a wrong one."""
    return box.sandbox.check(Path(script).expanduser()) if script else ""


def _started(box: Box, settings: Settings, told: Say) -> Surroundings:
    """Start a sandbox and wait until it answers; raise Unreachable with its last words."""
    process, waited_s, said = _spawned(box, settings), 0.0, ""
    while (found := box.sandbox.surroundings(box.folder)) is None:
        try:
            code: int | None = process.wait(LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            code = None
        if code is not None:
            # Another command may have started one at the same moment: that one is waited for.
            clock.wait(LOOK_EVERY_S)
        if code or waited_s > UP_WITHIN_S:
            process.terminate()
            says, remedy = last_words(box)
            where = f"All that it said is in {box.folder / LOG}."
            raise Unreachable(f"the sandbox did not come up: {says}", f"{remedy}\n{where}".strip())
        waited_s += LOOK_EVERY_S
        says = box.sandbox.progress(box.folder)
        if says:
            waited_s = 0.0  # it takes minutes, and says how far it is
        if says not in ("", said):
            told(says)
        said = says
        if waited_s - LOOK_EVERY_S < QUIET_S <= waited_s:
            told("starting the sandbox …")
    for note in found.notes:
        told(note)
    return found


def _spawned(box: Box, settings: Settings) -> "subprocess.Popen[bytes]":
    box.folder.mkdir(parents=True, exist_ok=True)
    script = settings.sandbox_script
    words = [sys.executable, "-P", "-m", "cloudwhale", NAME, "serve", "--folder", str(box.folder)]
    words += ["--machines", settings.sandbox_machines]
    if script:
        words += ["--script", str(Path(script).expanduser().absolute())]
    outside = {name: value for name, value in os.environ.items() if name != clock.SPEED}
    with (box.folder / LOG).open("wb") as log:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=outside,
            cwd=box.folder,
            start_new_session=True,
        )
