"""What the sandbox's cloud costs those who ask it: its start, its store, its list of machines.

    python tests/benchmarks/endpoint.py [--machines 100] [--json]

The cloud is a process of its own, asked over loopback as controller and agents do: S3 by obstore,
EC2 by boto3. Bars: a small GET and PUT within 5 ms (median), and 300 requests a second.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import obstore
import psutil
from obstore.store import S3Store

from cloudwhale_providers.sandbox.endpoint.account import image_id
from cloudwhale_providers.sandbox.names import ACCESS_KEY, SECRET_KEY

SERVER = """
import sys
from cloudwhale.clock import SystemClock
from cloudwhale_providers.sandbox.endpoint import Endpoint, Weather
weather = Weather(quotas={"L-DB2E81BA": 1e6})
endpoint = Endpoint(SystemClock(), weather)
print(endpoint.start(), flush=True)
endpoint.warmed.wait()
print("warm", flush=True)
sys.stdin.read()
endpoint.close()
"""
REGION = "us-east-1"
BODY = b"x" * 500  # about what an agent writes of itself every few seconds
REQUESTS = 1000
AT_ONCE = 16
MOST_MS, LEAST_PER_S = 5.0, 300.0


def spans(do: Callable[[int], object], times: int) -> list[float]:
    """Return how long each call takes, in seconds."""
    found: list[float] = []
    for number in range(times):
        begun = time.perf_counter()
        do(number)
        found.append(time.perf_counter() - begun)
    return found


def rate(do: Callable[[int], object], times: int) -> float:
    """Return calls a second when many ask at once."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(do, range(times)))
    return times / (time.perf_counter() - begun)


def of_store(url: str, server: psutil.Process) -> dict[str, float]:
    """Return the figures of the store."""
    store = S3Store(
        "cloudwhale-sandbox", endpoint=url, access_key_id=ACCESS_KEY, secret_access_key=SECRET_KEY,
        region=REGION, client_options={"allow_http": True},
    )  # fmt: skip

    def put(number: int) -> object:
        return obstore.put(store, f"box/{number}", BODY)

    def get(number: int) -> object:
        return obstore.get(store, f"box/{number % REQUESTS}").bytes()

    puts, gets = spans(put, REQUESTS), spans(get, REQUESTS)
    before = sum(server.cpu_times()[:2])
    per_s = rate(get, 2 * REQUESTS)
    cpu_s = sum(server.cpu_times()[:2]) - before
    lists = spans(lambda _: list(obstore.list(store, "box/")), 10)
    return {
        "put_ms": statistics.median(puts) * 1e3,
        "put_p95_ms": statistics.quantiles(puts, n=20)[-1] * 1e3,
        "get_ms": statistics.median(gets) * 1e3,
        "get_p95_ms": statistics.quantiles(gets, n=20)[-1] * 1e3,
        "requests_per_s": per_s,
        "server_ms_per_request": cpu_s / (2 * REQUESTS) * 1e3,
        "list_1000_ms": statistics.median(lists) * 1e3,
    }


def of_machines(url: str, machines: int) -> dict[str, float]:
    """Return the figures of EC2 with some machines."""
    client: Any = (
        import_module("botocore.session")
        .Session()
        .create_client(
            "ec2", region_name=REGION, endpoint_url=url,
            aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY,
        )
    )  # fmt: skip
    first = spans(lambda _: client.describe_instances(), 1)
    tags = [{"Key": f"cloudwhale:{number}", "Value": "word"} for number in range(8)]
    words = {
        "ImageId": image_id(REGION, "x86_64"), "InstanceType": "g5.xlarge",
        "MinCount": 1, "MaxCount": 1, "Placement": {"AvailabilityZone": f"{REGION}a"},
        "TagSpecifications": [{"ResourceType": "instance", "Tags": tags}],
    }  # fmt: skip
    launches = spans(lambda _: client.run_instances(**words), machines)
    mine = [{"Name": "tag:cloudwhale:1", "Values": ["word"]}]
    lists = spans(lambda _: client.describe_instances(Filters=mine), 10)
    parsing = time.process_time()
    client.describe_instances(Filters=mine)
    return {
        "first_call_ms": first[0] * 1e3,
        "launch_ms": statistics.median(launches) * 1e3,
        "describe_ms": statistics.median(lists) * 1e3,
        "describe_client_cpu_ms": (time.process_time() - parsing) * 1e3,
    }


def main() -> int:
    """Print the figures; 1 when a bar is missed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--machines", type=int, default=100)
    options.add_argument("--json", action="store_true")
    asked = options.parse_args()
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "AWS_EC2_METADATA_DISABLED": "true"},
    ) as server:  # fmt: skip
        assert server.stdout is not None and server.stdin is not None
        url = server.stdout.readline().strip()
        listens_s = time.perf_counter() - begun
        server.stdout.readline()
        found = {"listens_s": listens_s, "warm_s": time.perf_counter() - begun}
        found |= of_store(url, psutil.Process(server.pid))
        found |= of_machines(url, asked.machines)
        server.stdin.close()
    is_fine = (
        max(found["put_ms"], found["get_ms"]) <= MOST_MS and found["requests_per_s"] >= LEAST_PER_S
    )
    if asked.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:24} {value:10.2f}")
        print("within the bars" if is_fine else "a bar is missed")
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
