"""cloudwhale as a process that is killed around a thing that its controller does to a cloud.

python mortal_cloud.py SOCKET
Loads all that a controller needs, once, and answers on a socket: each who connects sends what is to
be run, as a line of JSON (`Errand`), and hears the process' id and then how it ended, a line each.
What runs is a fork of this process, so it begins at once, and dies of a real SIGKILL.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import urlsplit

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads cannot be forked

import boto3  # noqa: F401
import highspy  # noqa: F401
import obstore  # noqa: F401

from cloudwhale import clock
from cloudwhale.cli import main
from cloudwhale.cli.app import whole_app
from cloudwhale.control.host import ControllerHost  # noqa: F401
from cloudwhale.control.store.sql import SqlStore
from cloudwhale.mailbox.objects import StoreObjects
from cloudwhale.model import event as e
from cloudwhale.planning import booting
from cloudwhale_providers.aws.clients import Clients
from cloudwhale_providers.aws.provider import AwsProvider  # noqa: F401
from cloudwhale_providers.sandbox import box

READS = ("describe_", "get_", "list_")
"""Calls that change nothing begin so: to die around one is to die between its neighbours."""
TELLING = (
    e.Placed, e.OrderPosted, e.Started, e.StopWished, e.StopPosted, e.Finished, e.Cancelled,
    e.Reserved, e.Charged, e.NodeJoined,
)  # fmt: skip
"""Events of which an append is worth dying around, beside those of machines."""


class Errand(TypedDict):
    """What is to be run."""

    words: list[str]
    folder: str
    environment: dict[str, str]
    mailbox: str
    """Prefix in the bucket of the box; each home has one of its own."""
    deeds: str
    """File that gets a line for each deed, before it is done."""
    point: str
    """Deed to die around, `ec2:create_fleet 1`; empty: none."""
    when: str
    """`before` or `after`."""
    boots_within_s: float
    """How long an agent may take beyond what its offer says; 0: as long as ever."""


class Fuse:
    """Writes down each deed, and kills this process before or after one."""

    def __init__(self, file: str, point: str, when: str) -> None:
        self._file, self._point, self._when = file, point, when
        self._counts: dict[str, int] = {}

    def around(self, names: Iterable[str], do: Callable[[], Any]) -> Any:
        points = {f"{name} {self._counted(name)}": None for name in names}
        with open(self._file, "a") as file:
            file.write(json.dumps(list(points)) + "\n")
        mine = self._point in points
        if mine and self._when == "before":
            die()
        answer = do()
        if mine and self._when == "after":
            die()
        return answer

    def _counted(self, name: str) -> int:
        self._counts[name] = self._counts.get(name, 0) + 1
        return self._counts[name]


def die() -> None:
    """End this process as nothing can prevent."""
    os.kill(os.getpid(), signal.SIGKILL)


def lay(fuse: Fuse) -> None:
    """Put the fuse around every change at the cloud, in the mailbox, and of machines and money."""
    call, create, delete = Clients.call, StoreObjects.create, StoreObjects.delete
    append, record = SqlStore.append, SqlStore.record

    def mortal_call(self: Clients, region: str, service: str, verb: str, **words: Any) -> Any:
        if verb.startswith(READS):
            return call(self, region, service, verb, **words)
        names = [f"{service}:{verb}"]
        return fuse.around(names, lambda: call(self, region, service, verb, **words))

    def mortal_create(self: StoreObjects, key: str, body: bytes) -> bool:
        return bool(fuse.around([_document(key, body)], lambda: create(self, key, body)))

    def mortal_delete(self: StoreObjects, keys: Any) -> None:
        folders = sorted({f"removed:{key.partition('/')[0]}" for key in keys})
        fuse.around(folders, lambda: delete(self, keys))

    def mortal_append(self: SqlStore, events: Any, *, epoch: int | None = None) -> int:
        names = _kinds(events)
        if epoch is None or not names:  # a person's wish: the submit itself is not the controller's
            return append(self, events, epoch=epoch)
        return int(fuse.around(names, lambda: append(self, events, epoch=epoch)))

    def mortal_record(
        self: SqlStore, round: Any, events: Any, *, epoch: int, offers: str = ""
    ) -> int:
        def do() -> int:
            return record(self, round, events, epoch=epoch, offers=offers)

        names = _kinds(events)
        return int(fuse.around(names, do) if names else do())

    Clients.call = mortal_call  # type: ignore[method-assign]
    StoreObjects.create = mortal_create  # type: ignore[method-assign]
    StoreObjects.delete = mortal_delete  # type: ignore[method-assign]
    SqlStore.append = mortal_append  # type: ignore[method-assign]
    SqlStore.record = mortal_record  # type: ignore[method-assign]


def _document(key: str, body: bytes) -> str:
    """Return what a document is: an order by its kind, a lease by its number too."""
    folder = key.partition("/")[0]
    if folder != "orders":
        return f"created:{folder}"
    order = json.loads(body)
    return (
        f"order:{order['kind']}:{order['number']}"
        if "number" in order
        else f"order:{order['kind']}"
    )


def _kinds(events: Iterable[e.Event]) -> list[str]:
    """Return the names of those events that are of machines, money, or a job's way."""
    found = [
        f"stored:{one.rental.state}" if isinstance(one, e.RentalChanged)
        else f"stored:{type(one).__name__}"
        for one in events
        if isinstance(one, (e.RentalChanged, *TELLING))
    ]  # fmt: skip
    return sorted(set(found))


# -- serving -------------------------------------------------------------------------------------


def serve(address: str) -> None:
    """Answer until whoever started this has gone."""
    whole_app()
    assert len(os.listdir("/proc/self/task")) == 1
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks here how they ended
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen(64)
        print("ready", flush=True)
        while True:
            guest, _ = door.accept()
            if os.fork() == 0:
                door.close()
                answer(guest)
                os._exit(0)
            guest.close()


def answer(guest: socket.socket) -> None:
    """Run what is asked for, say its process id, wait for it, say its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    file = guest.makefile("rw")
    errand: Errand = json.loads(file.readline())
    pid = os.fork()
    if pid == 0:
        guest.detach()
        run(errand)
    print(pid, file=file, flush=True)
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), file=file, flush=True)


def run(errand: Errand) -> None:
    """Be cloudwhale, as if its words had been typed in that folder; does not return."""
    os.setsid()
    os.chdir(errand["folder"])
    os.environ.clear()
    os.environ.update(errand["environment"])
    clock.look_again()
    home = Path(errand["environment"]["CLOUDWHALE_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    said = os.open(home / "said.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(said, number)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    parts = urlsplit(box.MAILBOX)
    box.MAILBOX = f"{parts.scheme}://{parts.netloc}/{errand['mailbox']}"
    if errand["boots_within_s"]:
        booting.BOOTS_WITHIN_S = errand["boots_within_s"]
    lay(Fuse(errand["deeds"], errand["point"], errand["when"]))
    sys.argv[1:] = errand["words"]
    code = 0
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
