"""Tells a command of the user's own: the message as JSON on its standard input."""

import os
import signal
import subprocess

from cloudwhale.control.notifying.message import Answer, Message
from cloudwhale.control.notifying.targets import Target
from cloudwhale.model.units import Seconds
from cloudwhale.settings import PREFIX

_VALUE_MOST = 2000  # an environment has its limits; the whole is on standard input


def sent(message: Message, target: Target, limit_s: Seconds) -> Answer:
    """Run it and return what came of it; at the limit it ends with all that it has started."""
    name = os.path.basename(target.command[0])
    try:
        process = subprocess.Popen(
            target.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | environment(message),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or type(error).__name__
        return Answer("again", f"{name} cannot be started: {why}")
    try:
        process.communicate(message.body(), timeout=limit_s)
    except subprocess.TimeoutExpired:
        return Answer("again", f"{name} had not ended after {limit_s:g} s, and was stopped")
    finally:
        _end(process)
    code = process.returncode
    return Answer("told" if code == 0 else "again", f"{name} ended with {code}")


def environment(message: Message) -> dict[str, str]:
    """Return what the command finds in its environment."""
    found = {
        "ID": message.id, "KIND": message.kind, "TITLE": message.title, "TEXT": message.text,
        **{key.upper(): str(message.facts.get(key, "")) for key in ("subject", "project", "run")},
    }  # fmt: skip
    cleaned = {key: value.replace("\0", "")[:_VALUE_MOST] for key, value in found.items()}
    return {f"{PREFIX}NOTICE_{key}": value for key, value in cleaned.items()}


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the whole group: it is the command's own, so nobody else is in it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # all have ended
    process.wait()
    if process.stdin is not None:
        try:
            process.stdin.close()
        except OSError:
            pass  # what it has not read is lost with it
