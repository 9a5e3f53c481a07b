"""How fast a machine's agent fetches what jobs read, beside a well-tuned client of the same store.

    python tests/benchmarks/inputs.py [--gb 2] [--rounds 3] [--json]

The store is the sandbox's S3 in a process of its own. The same bytes lie there as one object and as
200; each way fetches them into files, in a process of its own, in turn. A tuned client is obstore
with ranges, or boto3's transfer manager, at the best of several widths. Bar: the agent's way,
checksums included, is at least 70 % as fast; publishing and restoring a checkpoint of half as much
holds at most 64 MB beyond what the process held when idle.
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
from pathlib import Path
from typing import Any

from cloudwhale_providers.sandbox.names import ACCESS_KEY, SECRET_KEY

BUCKET = "team-data"
MANY = 200
BAR = 0.7
HOLDS_MOST_MB = 64.0
WAYS = (
    ("obstore x4", "4", ""), ("obstore x8", "8", ""), ("boto3 x10", "10", ""),
    ("obstore x8 with MD5", "8", "md5"),
)  # fmt: skip

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
import hashlib, json, os, sys, threading, time
def held_kib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
def watched(do):
    idle, most, ended = held_kib(), 0, threading.Event()
    def look():
        nonlocal most
        while not ended.wait(0.01):
            most = max(most, held_kib())
    thread = threading.Thread(target=look)
    thread.start()
    began, used = time.perf_counter(), time.process_time()
    did = do()
    took_s, cpu_s = time.perf_counter() - began, time.process_time() - used
    ended.set()
    thread.join()
    mb = max(0, most - idle) * 1024 / 1e6
    print(json.dumps({"s": took_s, "cpu_s": cpu_s, "mb": mb, "did": did}))
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


@contextmanager
def served(folder: Path) -> Generator[Mapping[str, str]]:
    """Serve the sandbox's S3 from a process of its own; give the environment of its clients."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    try:
        url = server.stdout.readline().strip()
        assert server.stdout.readline() == "warm\n"
        yield {
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
    finally:
        server.stdin.close()
        server.wait()


FILL = """
import os, sys
import boto3, obstore
from boto3.s3.transfer import TransferConfig
from obstore.store import from_url
size, many, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with open(file, "wb") as out:
    for _ in range(0, size, 1 << 20):
        out.write(os.urandom(1 << 20))
client = boto3.client("s3")
client.create_bucket(Bucket="team-data")
config = TransferConfig(multipart_chunksize=16 << 20)
client.upload_file(file, "team-data", "one/corpus.bin", Config=config)
store = from_url("s3://team-data")
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


def compared(
    prefix: str, rounds: int, environment: Mapping[str, str], draft: Path
) -> dict[str, Any]:
    """Return medians of the agent and of the best tuned client, in seconds, taken in turn."""
    tried: dict[str, list[float]] = {}
    held: list[float] = []
    cpu: dict[str, float] = {}
    says = ""
    for _ in range(rounds):
        with emptied(draft) as into:
            told = asked(AGENT, [prefix, str(into)], environment)
            tried.setdefault("agent", []).append(told["s"])
            held.append(told["mb"])
            cpu["agent"] = told["cpu_s"]
            says = told["did"]
        for name, width, sums in WAYS:
            script = BOTO3 if name.startswith("boto3") else OBSTORE
            with emptied(draft) as into:
                told = asked(script, [prefix, str(into), width, *sums.split()], environment)
            tried.setdefault(name, []).append(told["s"])
            cpu[name] = told["cpu_s"]
    medians = {name: statistics.median(some) for name, some in tried.items()}
    agent_s = medians.pop("agent")
    with_sums_s = medians.pop(WAYS[-1][0])
    best = min(medians, key=lambda name: medians[name])
    return {
        "agent_s": agent_s, "tuned_s": medians[best], "tuned": best, "says": says,
        "ratio": medians[best] / agent_s, "ratio_with_sums": with_sums_s / agent_s,
        "agent_mb": max(held), "clients_s": medians, "cpu_s": cpu,
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


def measured(size: int, rounds: int) -> dict[str, Any]:
    """Return all figures."""
    with tempfile.TemporaryDirectory(prefix="cloudwhale-inputs-") as place:
        draft = Path(place, "into")
        with served(Path(place, "store")) as environment:
            whole = Path(place, "whole")
            subprocess.run(
                [sys.executable, "-c", FILL, str(size), str(MANY), str(whole)],
                env=dict(environment), check=True,
            )  # fmt: skip
            whole.unlink()
            return {
                "bytes": size,
                "one": compared("one/", rounds, environment, draft),
                "many": compared("many/", rounds, environment, draft),
                "checkpoint": published(size // 2, environment, draft),
            }


def main() -> int:
    """Measure and print; 1 when a bar is missed."""
    ask = argparse.ArgumentParser(description="How fast inputs come, beside a tuned client.")
    ask.add_argument("--gb", type=float, default=2.0, help="GB of inputs")
    ask.add_argument("--rounds", type=int, default=3)
    ask.add_argument("--json", action="store_true")
    words = ask.parse_args()
    size = int(words.gb * 1e9) // (MANY << 20) * (MANY << 20) or MANY << 20
    found = measured(size, words.rounds)
    if words.json:
        print(json.dumps(found, indent=2))
    else:
        for name, what in (("one", "1 object"), ("many", f"{MANY} objects")):
            row = found[name]
            cpu = [row["cpu_s"][who] for who in ("agent", row["tuned"])]
            print(
                f"{size / 1e9:.2f} GB as {what}: agent {size / row['agent_s'] / 1e6:.0f} MB/s, "
                f"{row['tuned']} {size / row['tuned_s'] / 1e6:.0f} MB/s, ratio {row['ratio']:.2f} "
                f"(bar {BAR}), {row['ratio_with_sums']:.2f} of one that sums up too; "
                f"CPU {cpu[0]:.1f} s, {cpu[1]:.1f} s; "
                f"holds {row['agent_mb']:.0f} MB; {row['says']}"
            )
        row = found["checkpoint"]
        for verb in ("publish", "restore"):
            rate = size / 2 / row[f"{verb}_s"] / 1e6
            print(
                f"{verb} {size / 2e9:.2f} GB: {rate:.0f} MB/s, holds {row[f'{verb}_mb']:.0f} MB "
                f"more than when idle (bar {HOLDS_MOST_MB:.0f})"
            )
    held = [found["checkpoint"][f"{verb}_mb"] for verb in ("publish", "restore")]
    ratios = [found[name]["ratio"] for name in ("one", "many")]
    return 0 if min(ratios) >= BAR and max(held) <= HOLDS_MOST_MB else 1


if __name__ == "__main__":
    sys.exit(main())
