"""One job in its container, under its shim: from its description to its exit record."""

import json
import os
import select
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cloudwhale.agent import shim_files as files
from cloudwhale.agent.containers.box import Box
from cloudwhale.agent.containers.client import DockerTrouble, docker_client
from cloudwhale.agent.containers.end import End, Traces, judged, unborn
from cloudwhale.agent.containers.process import FirstProcess, first_process
from cloudwhale.agent.containers.settings import container, name_of
from cloudwhale.agent.shim_json import encoded
from cloudwhale.agent.shim_lease import LOOK_EVERY_S as LEASE_EVERY_S
from cloudwhale.agent.shim_lease import Lease
from cloudwhale.agent.shim_log import Masks, Segments
from cloudwhale.agent.shim_oom import KILLED, KernelKills
from cloudwhale.agent.shim_processes import boot_id, started_at
from cloudwhale.clock import wait
from cloudwhale.model.units import Seconds
from cloudwhale.spi.clock import Clock

RUNTIME_BACK_S: Seconds = 60.0  # a Docker that is restarted is back in a few seconds
ASK_AGAIN_S: Seconds = 0.5
LOOK_EVERY_S: Seconds = 0.5  # where the kernel does not tell of a process's end
SECRETS_EVERY_S: Seconds = 0.01  # the container opens the pipe as its first deed
REMOVE_WITHIN_S: Seconds = 10.0  # what is left then, the agent removes later


class ContainerJob:
    """A job that runs in a container; not used twice."""

    def __init__(self, folder: str, wanted: Mapping[str, Any], clock: Clock) -> None:
        self._folder = Path(folder)
        self._wanted = wanted
        self._clock = clock
        self._masks = Masks([os.fsencode(secret) for secret in wanted["secrets"].values()])
        sizes = wanted["log"]
        self._log = Segments(f"{folder}/log", sizes["segment"], sizes["head"], sizes["tail"])
        self._lease = Lease(folder, wanted.get("lease"))
        self._control = files.control_pipe(folder)
        self._box = Box(Path(wanted["box"]), wanted["secrets"], wanted.get("user"))
        self._id = ""
        self._first: FirstProcess | None = None
        self._stop_at: float | None = None
        """When what is left is killed, once a stop was asked for."""
        self._stopping = False
        self._killed = False
        self._kernel = KernelKills(clock.steady())
        self._by_itself = True
        """No order of the agent came before the job's process had ended."""
        self._began_at, self._began = clock.now(), clock.steady()

    def run(self) -> None:
        """Start the container, wait for its end, write the exit record, remove the container."""
        files.keep_room(str(self._folder))
        end = self._life()
        while self._read():
            pass
        self._log.write(self._masks.rest())
        self._log.close()
        self._record(end)
        self._box.close()
        self._remove()

    def _life(self) -> End:
        try:
            self._start()
        except DockerTrouble as trouble:
            return End(trouble.how, trouble.says)
        except OSError as error:
            return End("start-failed", str(error))
        self._write_pids()
        while self._first is not None and self._first.lives:
            self._turn(self._first)
        return self._judged()

    # -- the container -----------------------------------------------------------------------

    def _start(self) -> None:
        """Make the container and start it; the mark in the folder comes before both."""
        mark = str(self._folder / "container.json")
        files.write_whole(mark, json.dumps({"id": ""}))
        with docker_client() as client:
            made = client.create_container(**container(self._folder, self._wanted, client))
            self._id = str(made["Id"])
            files.write_whole(mark, json.dumps({"id": self._id}))
            self._began_at, self._began = self._clock.now(), self._clock.steady()
            client.start(self._id)
            state = client.inspect_container(self._id)["State"]
        if state["Running"]:
            self._first = first_process(int(state["Pid"]), self._id)
            if self._first is None:
                self._must_be_seen()

    def _must_be_seen(self) -> None:
        """Raise DockerTrouble when it runs, and not as a process that can be seen here."""
        state = self._state()
        if state is not None and state["Running"]:
            raise DockerTrouble(
                "start-failed",
                "the processes of its container cannot be seen from here: the agent and Docker"
                " must run on one machine and share its process ids",
            )

    def _state(self) -> dict[str, Any] | None:
        """Return the container's state; None when Docker does not answer or knows no such one."""
        try:
            with docker_client(REMOVE_WITHIN_S) as client:
                return dict(client.inspect_container(self._id)["State"])
        except DockerTrouble:
            return None

    def _last_state(self) -> dict[str, Any] | None:
        """Return the state after its end; Docker may be away for a while, and learns of it late."""
        give_up_at = self._clock.steady() + RUNTIME_BACK_S
        while True:
            state = self._state()
            if state is not None and not state["Running"]:
                return state
            if self._clock.steady() > give_up_at:
                return None
            wait(ASK_AGAIN_S)

    def _remove(self) -> None:
        """Remove the container; one that stays although it was asked, the agent removes later."""
        try:
            with docker_client(REMOVE_WITHIN_S) as client:
                client.remove_container(name_of(self._folder), force=True, v=True)
        except DockerTrouble:
            return

    # -- one turn ----------------------------------------------------------------------------

    def _turn(self, first: FirstProcess) -> None:
        """Wait for output, an order of the agent, the end, or a time; do what it asks for."""
        at_most_s = LEASE_EVERY_S if first.ended is not None else LOOK_EVERY_S
        if self._box.waits:
            at_most_s = SECRETS_EVERY_S
        if self._stop_at is not None:
            at_most_s = min(at_most_s, max(0.0, self._stop_at - self._clock.steady()))
        sources = [self._box.output, self._control]
        sources += [first.ended] if first.ended is not None else []
        ready, _, _ = select.select(sources, [], [], at_most_s)
        if self._box.output in ready:
            self._read()
        if self._control in ready:
            self._obey(first)
        self._give_secrets(first)
        self._kernel.look(self._clock.steady())
        self._lease.look(self._clock.steady(), self._clock.now())
        if self._stop_at is not None and self._clock.steady() >= self._stop_at:
            self._stop_at = None
            self._kill(first)

    def _read(self) -> bool:
        piece = self._box.read()
        self._log.write(self._masks.masked(piece))
        return bool(piece)

    def _obey(self, first: FirstProcess) -> None:
        # What has ended is not stopped.
        self._by_itself = self._by_itself and "over" in self._box.notes()
        for words in files.orders(self._control):
            match words:
                case ["stop", number, grace_s] if not self._stopping:
                    self._stopping = True
                    self._stop_at = self._clock.steady() + float(grace_s)
                    first.signal(int(number))
                case ["kill"]:
                    self._kill(first)
                case _:
                    continue

    def _kill(self, first: FirstProcess) -> None:
        self._killed = True
        first.kill()

    def _give_secrets(self, first: FirstProcess) -> None:
        try:
            self._box.hand_over()
        except OSError as error:
            self._log.write(f"cloudwhale: {error}\n".encode())
            self._kill(first)

    # -- records -----------------------------------------------------------------------------

    def _judged(self) -> End:
        while self._read():
            pass
        notes = self._box.notes()
        ours = self._stopping or self._killed
        state = self._state() if "over" in notes or ours else self._last_state()
        if "gpus" not in notes and state is not None and not ours:
            return unborn(self._wanted["image"], state, self._said_by_docker())
        traces = Traces(notes, state, self._log.newest, ours, self._kernel.explain(KILLED))
        return judged(traces, self._wanted)

    def _said_by_docker(self) -> str:
        """Return what the container's own programs said before the job began."""
        try:
            with docker_client(REMOVE_WITHIN_S) as client:
                text = client.logs(self._id, tail=5)
        except DockerTrouble:
            return ""
        return text.decode(errors="replace").strip()

    def _write_pids(self) -> None:
        own = os.getpid()
        # Nobody's number would be taken for the first process of this whole machine.
        main = own if self._first is None else self._first.pid
        text = encoded(
            {
                "shim": own,
                "shim_started": started_at(own),
                "job": main,
                "job_started": started_at(main),
                "boot": boot_id(),
                "began_at": self._began_at,
                "groups": [],
            }
        )
        try:
            files.write_whole(str(self._folder / "pids.json"), text)
        except OSError:
            pass  # the disk is full; the container can be found by its labels too

    def _record(self, end: End) -> None:
        stopped_before = self._stopping and "began" not in self._box.notes()
        record = encoded(
            {
                "how": end.how,
                "code": end.code,
                "says": end.says,
                "by_itself": self._by_itself and not stopped_before,
                "ended_at": self._clock.now(),
                "ran_s": self._clock.steady() - self._began,
                "log_unwritten_bytes": self._log.unwritten,
            }
        )
        files.fill_room(str(self._folder), record, self._log)
