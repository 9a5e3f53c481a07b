"""Add up numbers on several machines in a ring, save often, and resume where all of them were.

Runs by itself (`python3 ring.py`, a ring of one) as well as as a gang under cloudwhale, which says
who is who: CLOUDWHALE_NODE_RANK of CLOUDWHALE_NUM_NODES, and MASTER_ADDR and MASTER_PORT, where
rank 0 listens. Standard library alone.

In each step every rank adds its own number to what comes round, as all-reduce does. A rank that is
told to stop says so in the same round, so all of them save the same step and end together. A rank
saves its own part, under the same name as the others: that is what makes it one checkpoint.
"""

import argparse
import json
import os
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from types import FrameType

STOPPED = 128 + signal.SIGTERM  # what a shell reports for a program that SIGTERM ended
KEEP = 3  # newest parts that stay, so that one being read elsewhere is not deleted
FORM = struct.Struct("!qq")  # the sum so far, and how many want to stop
CONNECTS_WITHIN_S = 60.0
ANSWERS_WITHIN_S = 60.0


class Ring:
    """Connections to the rank before and the rank behind, made with the help of rank 0."""

    def __init__(self, rank: int, many: int, host: str, port: int) -> None:
        self.rank, self.many = rank, many
        if many == 1:
            return
        met = None if rank == 0 else connected(host, port)
        own = socket.create_server((host if met is None else met.getsockname()[0], 0))
        mine = own.getsockname()[:2]
        behind = introduced(host, port, many, mine) if met is None else asked(met, rank, mine)
        self.behind = connected(*behind)
        self.before, _ = own.accept()
        own.close()
        for one in (self.behind, self.before):
            one.settimeout(ANSWERS_WITHIN_S)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def summed(self, number: int, *, stops: bool) -> tuple[int, bool]:
        """Return the sum of all ranks' numbers, and whether any of them wants to stop."""
        total, wishes = number, int(stops)
        if self.many > 1:
            for adds in (True, False):  # once round to add up, once more to tell all
                total, wishes = self._round(total, wishes, adds=adds)
        return total, wishes > 0

    def _round(self, number: int, wishes: int, *, adds: bool) -> tuple[int, int]:
        if self.rank == 0:
            self.behind.sendall(FORM.pack(number, wishes))
            return received(self.before)
        total, all_wishes = received(self.before)
        if adds:
            total, all_wishes = total + number, all_wishes + wishes
        self.behind.sendall(FORM.pack(total, all_wishes))
        return total, all_wishes


def received(one: socket.socket) -> tuple[int, int]:
    """Return what the rank before has sent; raise ConnectionError when it is gone."""
    body = b""
    while len(body) < FORM.size:
        more = one.recv(FORM.size - len(body))
        if not more:
            raise ConnectionError("the rank before is gone")
        body += more
    total, wishes = FORM.unpack(body)
    return int(total), int(wishes)


def connected(host: str, port: int) -> socket.socket:
    """Connect to a rank that may not listen yet."""
    gives_up_at = time.monotonic() + CONNECTS_WITHIN_S
    while True:
        try:
            return socket.create_connection((host, port), timeout=ANSWERS_WITHIN_S)
        except OSError:
            if time.monotonic() > gives_up_at:
                raise
            time.sleep(0.1)


def introduced(host: str, port: int, many: int, mine: tuple[str, int]) -> tuple[str, int]:
    """As rank 0: tell each rank who is behind it; return who is behind us."""
    places, lines = {0: mine}, {}
    with socket.create_server((host, port), reuse_port=False) as door:
        door.settimeout(CONNECTS_WITHIN_S)
        while len(places) < many:
            line, _ = door.accept()
            told = json.loads(line.makefile().readline())
            places[told["rank"]] = (told["host"], told["port"])
            lines[told["rank"]] = line
    for rank, line in lines.items():
        line.sendall(json.dumps(places[(rank + 1) % many]).encode() + b"\n")
        line.close()
    return places[1]


def asked(line: socket.socket, rank: int, mine: tuple[str, int]) -> tuple[str, int]:
    """As any other rank: say where we are, and return who is behind us."""
    told = {"rank": rank, "host": mine[0], "port": mine[1]}
    line.sendall(json.dumps(told).encode() + b"\n")
    host, port = json.loads(line.makefile().readline())
    return str(host), int(port)


def resumed(folder: Path, rank: int) -> tuple[int, int]:
    """Return the step that was saved last, and the sum until then."""
    found = sorted(folder.glob("step-*.json"))
    if not found:
        return 0, 0
    part = json.loads(found[-1].read_text())
    if part["rank"] != rank:
        raise SystemExit(f"rank {rank} was given the part of rank {part['rank']}")
    return int(part["step"]), int(part["total"])


def save(folder: Path, rank: int, step: int, total: int) -> None:
    """Save this rank's part of a step, whole or not at all."""
    draft = folder / ".part.tmp"
    draft.write_text(json.dumps({"rank": rank, "step": step, "total": total}))
    draft.rename(folder / f"step-{step:06d}.json")
    for old in sorted(folder.glob("step-*.json"))[:-KEEP]:
        old.unlink()


def main() -> int:
    """Add up, save, resume; 0 when the sum is right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--pause", type=float, default=0.1, help="seconds that a step takes")
    parser.add_argument("--every", type=int, default=5, help="steps between two saves")
    told = parser.parse_args()
    rank = int(os.environ.get("CLOUDWHALE_NODE_RANK", "0"))
    many = int(os.environ.get("CLOUDWHALE_NUM_NODES", "1"))
    folder = Path(os.environ.get("CLOUDWHALE_CHECKPOINT_DIR", "ring"))
    folder.mkdir(parents=True, exist_ok=True)
    asked_to_stop: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        asked_to_stop.append(number)

    signal.signal(signal.SIGTERM, stop)
    step, total = resumed(folder, rank)
    print(f"rank {rank} of {many} begins after step {step}", flush=True)
    address = os.environ.get("MASTER_ADDR", "127.0.0.1")
    ring = Ring(rank, many, address, int(os.environ.get("MASTER_PORT", "29500")))
    try:
        while step < told.steps:
            time.sleep(told.pause)
            more, ends = ring.summed(many * step + rank + 1, stops=bool(asked_to_stop))
            step, total = step + 1, total + more
            if step % told.every == 0 or ends or step == told.steps:
                save(folder, rank, step, total)
            if ends and step < told.steps:
                print(f"rank {rank} stops after step {step}", flush=True)
                return STOPPED
    except OSError as error:
        print(f"rank {rank} has lost the others after step {step}: {error}", flush=True)
        return 1
    numbers = many * told.steps
    print(f"rank {rank}: the sum of {numbers} numbers is {total}", flush=True)
    return 0 if total == numbers * (numbers + 1) // 2 else 1


if __name__ == "__main__":
    sys.exit(main())
