"""How fast a machine's agent fetches what jobs read, beside a well-tuned client of the same store.

    python tests/benchmarks/inputs.py [--gb 2] [--checkpoint-gb 1] [--rounds 3] [--json]

The store is the sandbox's S3 in a process of its own. The same bytes lie there as one object and as
200; each way fetches them into files, in a process of its own, in turn, and the median counts. A
tuned client is obstore with ranges, or boto3's transfer manager, at the best of several widths: one
that trusts what it gets, and one with the agent's duty, which sums up every part as it comes. Where
nothing but this host's cores is in the way, as here, MD5 is the bound, and CPU seconds tell more
than the clock. Bar: the agent's way, its duty included, is at least 70 % as fast as the best that
trusts; publishing and restoring a checkpoint of 1 GB holds at most 64 MB beyond what the process
held when idle.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloudwhale_providers.sandbox.names import ACCESS_KEY, SECRET_KEY

BUCKET = "team-data"
MANY = 200
BAR = 0.7
HOLDS_MOST_MB = 64.0
TRUSTING = ("obstore x4", "obstore x8", "boto3 x10")
SUMMING = ("obstore x4 md5", "obstore x8 md5")

SERVER = """
import sys
from pathlib import Path
from cloudwhale.clock import SystemClock
from cloudwhale_providers.sandbox.endpoint import Endpoint
endpoint = Endpoint(SystemClock(), folder=Path(sys.argv[1]))
print(endpoint.start(), flush=True)
endpoint.warmed.wait()
print("warm", flush=True)
sys.stdin.read()
endpoint.close()
"""

TIMED = """
import hashlib, json, os, sys, time
def kib(what):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(what))
def watched(do):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # from here on the peak counts
    idle = kib("VmRSS")
    began, used = time.perf_counter(), time.process_time()
    did = do()
    took_s, cpu_s = time.perf_counter() - began, time.process_time() - used
    mb = (kib("VmHWM") - idle) * 1024 / 1e6
    rate = 0.0
    if sys.argv[-1:] == ["rate"]:
        block, began = os.urandom(1 << 20), time.process_time()
        for _ in range(100):
            hashlib.md5(block, usedforsecurity=False)
        rate = 100 * len(block) / (time.process_time() - began)
    told = {"s": took_s, "cpu_s": cpu_s, "mb": mb, "did": did, "md5": rate}
    print(json.dumps(told))
"""

AGENT = (
    TIMED
    + """
from pathlib import Path
from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.inputs import Inputs, Wanted
from cloudwhale.agent.place import Place
from cloudwhale.clock import SystemClock
from cloudwhale.mailbox.documents import StartOrder
import cloudwhale.mailbox.sources
prefix, into = sys.argv[1], Path(sys.argv[2])
place = Place(into, "node")
folder = AttemptFolder(place.attempts, ("job", 1))
folder.path.mkdir(parents=True)
order = StartOrder.model_construct(job="job", attempt=1, inputs=(f"s3://team-data/{prefix}",))
inputs = Inputs(place)
wanted = Wanted(folder, order, SystemClock(), lambda says: None, lambda: True)
watched(lambda: inputs.give(wanted))
"""
)

OBSTORE = (
    TIMED
    + """
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from obstore.store import from_url
prefix, into, width = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
store = from_url("s3://team-data/" + prefix)
STEP = 8 << 20
def fetch(path, first, end):
    body = store.get_range(path, start=first, end=end)
    file = os.open(into / path, os.O_RDWR | os.O_CREAT)
    os.pwrite(file, body, first)
    os.close(file)
    if sys.argv[4:] == ["md5"]:
        hashlib.md5(body, usedforsecurity=False).digest()
def fetch_all():
    found = [meta for page in store.list() for meta in page]
    with ThreadPoolExecutor(width) as pool:
        doing = [
            pool.submit(fetch, one["path"], first, min(one["size"], first + STEP))
            for one in found for first in range(0, one["size"], STEP)
        ]
        [one.result() for one in doing]
watched(fetch_all)
"""
)

BOTO3 = (
    TIMED
    + """
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import boto3
from boto3.s3.transfer import TransferConfig, create_transfer_manager
prefix, into, width = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
client = boto3.client("s3")
config = TransferConfig(max_concurrency=width, multipart_chunksize=8 << 20)
def fetch_all():
    found = client.list_objects_v2(Bucket="team-data", Prefix=prefix)["Contents"]
    with create_transfer_manager(client, config) as manager:
        for one in found:
            manager.download("team-data", one["Key"], str(into / one["Key"].rpartition("/")[2]))
watched(fetch_all)
"""
)

PUBLISH = (
    TIMED
    + """
from pathlib import Path
from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.publisher import Publisher
from cloudwhale.agent.entries import End
from cloudwhale.clock import SystemClock
from cloudwhale.mailbox.objects import open_objects
saves, home = Path(sys.argv[1]), Path(sys.argv[2])
folder = AttemptFolder(home, ("job", 1))
folder.path.mkdir(parents=True)
objects, clock = open_objects("s3://team-data/mailbox"), SystemClock()
objects.create("hello", b"")
publisher = Publisher(folder, saves, objects)
def publish():
    told = publisher.publish(1, clock.now(), clock.now(), End(None, finished=True))
    return told.checkpoint.model_dump_json()
watched(publish)
"""
)

RESTORE = (
    TIMED
    + """
from pathlib import Path
from cloudwhale.agent.restoring import restore
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.model.job import Checkpoint
checkpoint, home = Checkpoint.model_validate_json(sys.argv[1]), Path(sys.argv[2])
objects = open_objects("s3://team-data/mailbox")
objects.get("hello")
(home / "saves").mkdir()
watched(lambda: restore(checkpoint, home / "saves", home / "staging", objects))
"""
)


@dataclass(frozen=True)
class Served:
    """The store, and what makes clients use it."""

    pid: int
    environment: Mapping[str, str]

    def cpu_s(self) -> float:
        """Return what it has computed until now."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(folder: Path) -> Generator[Served]:
    """Serve the sandbox's S3 from a process of its own."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    try:
        url = server.stdout.readline().strip()
        assert server.stdout.readline() == "warm\n"
        environment = {
            **os.environ,
            "AWS_ENDPOINT_URL": url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        }
        yield Served(server.pid, environment)
    finally:
        server.stdin.close()
        server.wait()


FILL = """
import os, sys
import boto3
from obstore.store import from_url
size, many, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with open(file, "wb") as out:
    for _ in range(0, size, 1 << 20):
        out.write(os.urandom(1 << 20))
boto3.client("s3").create_bucket(Bucket="team-data")
store = from_url("s3://team-data")
with open(file, "rb") as whole:
    store.put("one/corpus.bin", whole, chunk_size=16 << 20, max_concurrency=4)
with open(file, "rb") as whole:
    for number in range(many):
        store.put(f"many/{number:04d}.bin", whole.read(size // many), use_multipart=False)
"""


def asked(script: str, words: list[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Run one way in a process of its own; return what it measured."""
    done = subprocess.run(
        [sys.executable, "-c", script, *words], env=dict(environment),
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@contextmanager
def emptied(folder: Path) -> Generator[Path]:
    """Give an empty folder that is gone afterwards."""
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@dataclass
class Tried:
    """One way: what it took each time."""

    s: list[float] = field(default_factory=list[float])
    cpu_s: list[float] = field(default_factory=list[float])
    server_s: list[float] = field(default_factory=list[float])
    mb: list[float] = field(default_factory=list[float])
    says: str = ""

    def row(self) -> dict[str, float]:
        """Return its medians, of memory the most."""
        medians = {name: statistics.median(getattr(self, name)) for name in MEDIANS}
        return {**medians, "mb": max(self.mb)}


MEDIANS = ("s", "cpu_s", "server_s")


def compared(prefix: str, rounds: int, store: Served, draft: Path) -> dict[str, Any]:
    """Return each way's medians and how the agent stands, all taken in turn."""
    tried = {name: Tried() for name in ("agent", *TRUSTING, *SUMMING)}
    for _ in range(rounds):
        for name, one in tried.items():
            script = AGENT if name == "agent" else BOTO3 if name in TRUSTING[2:] else OBSTORE
            words = name.partition(" x")[2].split()
            with emptied(draft) as into:
                before = store.cpu_s()
                told = asked(script, [prefix, str(into), *words], store.environment)
                one.server_s.append(store.cpu_s() - before)
            one.s.append(told["s"])
            one.cpu_s.append(told["cpu_s"])
            one.mb.append(told["mb"])
            one.says = str(told["did"])
    rows = {name: one.row() for name, one in tried.items()}
    agent = rows["agent"]
    best = {
        what: min(names, key=lambda name: rows[name]["s"])
        for what, names in (("trusting", TRUSTING), ("summing", SUMMING))
    }
    return {
        "ways": rows, "says": tried["agent"].says, "best": best,
        "ratio": {what: rows[name]["s"] / agent["s"] for what, name in best.items()},
        "cpu_ratio": {what: rows[name]["cpu_s"] / agent["cpu_s"] for what, name in best.items()},
    }  # fmt: skip


def published(size: int, environment: Mapping[str, str], draft: Path) -> dict[str, Any]:
    """Return how much publishing and restoring a checkpoint hold, in MB, and how long they take."""
    with emptied(draft) as home:
        saves = home / "saves"
        saves.mkdir()
        with (saves / "epoch-1.pt").open("wb") as out:
            for _ in range(0, size, 1 << 20):
                out.write(os.urandom(1 << 20))
        put = asked(PUBLISH, [str(saves), str(home / "attempts")], environment)
    with emptied(draft) as home:
        got = asked(RESTORE, [put["did"], str(home)], environment)
    return {
        "publish_s": put["s"], "publish_mb": put["mb"],
        "restore_s": got["s"], "restore_mb": got["mb"],
    }  # fmt: skip


def measured(size: int, saved: int, rounds: int) -> dict[str, Any]:
    """Return all figures."""
    with tempfile.TemporaryDirectory(prefix="cloudwhale-inputs-") as place:
        draft = Path(place, "into")
        with served(Path(place, "store")) as store:
            whole = Path(place, "whole")
            subprocess.run(
                [sys.executable, "-c", FILL, str(size), str(MANY), str(whole)],
                env=dict(store.environment), check=True,
            )  # fmt: skip
            whole.unlink()
            rate = asked(TIMED + "watched(lambda: None)", ["rate"], store.environment)["md5"]
            return {
                "bytes": size,
                "checkpoint_bytes": saved,
                "cores": os.cpu_count(),
                "md5_mb_s": rate / 1e6,
                "one": compared("one/", rounds, store, draft),
                "many": compared("many/", rounds, store, draft),
                "checkpoint": published(saved, store.environment, draft),
            }


def show(found: dict[str, Any]) -> None:
    """Print it."""
    size, cores, md5 = found["bytes"], found["cores"], found["md5_mb_s"]
    print(
        f"MD5 {md5:.0f} MB/s a core, {cores} cores: nobody who sums up is beyond {cores * md5:.0f}"
    )
    for name, what in (("one", "1 object"), ("many", f"{MANY} objects")):
        part = found[name]
        print(f"{size / 1e9:.2f} GB as {what}; {part['says']}")
        for way, row in part["ways"].items():
            own, server = (row[one] / size * 1e9 for one in ("cpu_s", "server_s"))
            print(
                f"  {way:16} {size / row['s'] / 1e6:5.0f} MB/s, CPU {own:.2f} s a GB, "
                f"the store's {server:.2f}, holds {row['mb']:.0f} MB"
            )
        for duty, best in part["best"].items():
            print(
                f"  agent beside the best {duty} ({best}): {part['ratio'][duty]:.2f} of its rate "
                f"(bar {BAR} of the trusting one), {part['cpu_ratio'][duty]:.2f} by CPU"
            )
    row, saved = found["checkpoint"], found["checkpoint_bytes"]
    for verb in ("publish", "restore"):
        print(
            f"{verb} {saved / 1e9:.2f} GB: {saved / row[f'{verb}_s'] / 1e6:.0f} MB/s, holds "
            f"{row[f'{verb}_mb']:.0f} MB more than when idle (bar {HOLDS_MOST_MB:.0f})"
        )


def main() -> int:
    """Measure and print; 1 when a bar is missed."""
    ask = argparse.ArgumentParser(description="How fast inputs come, beside a tuned client.")
    ask.add_argument("--gb", type=float, default=2.0, help="GB of inputs")
    ask.add_argument("--checkpoint-gb", type=float, default=1.0, help="GB of a checkpoint")
    ask.add_argument("--rounds", type=int, default=3)
    ask.add_argument("--json", action="store_true")
    words = ask.parse_args()
    size = int(words.gb * 1e9) // (MANY << 20) * (MANY << 20) or MANY << 20
    saved = int(words.checkpoint_gb * 1e9) // (1 << 20) * (1 << 20)
    found = measured(size, saved, words.rounds)
    if words.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)
    held = [found["checkpoint"][f"{verb}_mb"] for verb in ("publish", "restore")]
    ratios = [found[name]["ratio"]["trusting"] for name in ("one", "many")]
    return 0 if min(ratios) >= BAR and max(held) <= HOLDS_MOST_MB else 1


if __name__ == "__main__":
    sys.exit(main())
