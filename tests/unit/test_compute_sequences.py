"""Whatever is asked of the box's Compute Engine, in whichever order, its books add up."""

import json
import random
import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from boxed_gce import NOON, PLAIN, ZONE, Gce, a_gce, body, scheduling

from cloudwhale.simulation.clock import SteppedClock
from cloudwhale_providers.sandbox.compute import Compute
from cloudwhale_providers.sandbox.compute.places import PROJECT
from cloudwhale_providers.sandbox.endpoint import Interruption, Reap, Weather, Which

STEPS, NAMES = 250, [f"cw-{number}" for number in range(6)]
KINDS = (PLAIN, "g2-standard-4", "g2-standard-12")
WEATHER = Weather(
    boot_s=8.0,
    stopping_s=3.0,
    operation_s=5.0,
    interruptions=(Interruption(age_s=60.0, which=Which("g2-standard-4"), nth=2),),
    reaps=(Reap(age_s=40.0, which=Which(KINDS[2]), nth=1), Reap(which=Which(KINDS[2]), nth=3)),
    quotas={"NVIDIA_L4_GPUS": 2.0},
)
FINE = {200, 400, 404, 409, 412}
"""What may come of a call that is asked at random."""


def step(box: Gce, chance: random.Random) -> None:
    """Do one thing."""
    name, kind = chance.choice(NAMES), chance.choice(KINDS)
    duration = {"seconds": str(chance.choice((30, 90, 100_000)))}
    limited = scheduling(chance.choice(("spot", "on-demand")), maxRunDuration=duration)
    limited["instanceTerminationAction"] = chance.choice(("DELETE", "STOP"))
    named = {"zone": ZONE, "instance": name}
    does: list[Any] = [
        lambda: box.insert(name, kind=kind, scheduling=limited),
        lambda: box.insert(name, kind=kind, scheduling=limited),
        lambda: box.ask("instances.delete", **named),
        lambda: box.ask("instances.stop", **named),
        lambda: box.compute.end(name),
        lambda: box.compute.interrupt(name, chance.choice((0.0, 120.0))),
        lambda: box.wait(chance.choice((0.0, 2.0, 20.0, 200.0))),
        lambda: box.wait(chance.choice((1.0, 5.0, 30.0))),
        lambda: box.ask("disks.delete", zone=ZONE, disk=name),
    ]
    try:
        chance.choice(does)()
    except Exception as error:
        status = getattr(getattr(error, "resp", None), "status", None)
        if status not in FINE:
            raise


def check(box: Gce) -> None:
    """Hold what is listed, what is told of and what is taken against each other."""
    listed = {one["name"]: one for one in box.ask("instances.list", zone=ZONE).get("items", [])}
    disks = {one["name"]: one for one in box.ask("disks.list", zone=ZONE).get("items", [])}
    for name, one in listed.items():
        assert disks[name]["users"] == [one["selfLink"]], "each machine has its disk"
        seen = box.compute.instance(one["id"])
        if seen is None:
            continue  # its launch fails, and nobody ever runs it
        assert (seen.state == "terminated") == (one["status"] == "TERMINATED")
        if one["status"] in ("PROVISIONING", "STAGING", "RUNNING"):
            assert seen.ended_at is None
        if one["status"] == "TERMINATED":
            assert seen.ended_at is not None, "what has stopped is charged no longer"
    assert set(disks) == set(listed), "a disk goes with its machine"
    seen_all = box.compute.instances()
    assert len({one.id for one in seen_all}) == len(seen_all)
    assert all(one.ended_at is None or one.ended_at >= one.launched_at for one in seen_all)
    gpus = sum(
        one["guestAccelerators"][0]["acceleratorCount"]
        for one in listed.values()
        if "guestAccelerators" in one and takes_room(box, one)
    )
    quotas = box.ask("regions.get", region="us-central1")["quotas"]
    told = {one["metric"]: one["usage"] for one in quotas}
    assert told["NVIDIA_L4_GPUS"] == gpus <= 2.0
    assert told["SSD_TOTAL_GB"] == 200.0 * len(disks)


def takes_room(box: Gce, one: dict[str, Any]) -> bool:
    seen = box.compute.instance(one["id"])
    return seen is not None and seen.ended_at is None


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_is_asked_the_books_add_up(seed: int) -> None:
    chance = random.Random(seed)
    with a_gce(WEATHER) as box:
        for number in range(STEPS):
            step(box, chance)
            if number % 5 == 0:
                box.wait(0.0)
                check(box)
        box.wait(500.0)
        check(box)
        heard = Counter(box.heard)
        started = sum(count for (what, _), count in heard.items() if what == "started")
        assert started > 10, "something has happened"


def test_a_request_that_comes_many_times_at_once_makes_one_machine() -> None:
    request = "11111111-2222-4333-8444-555555555555"
    with a_gce() as box:
        box.ask("instances.list", zone=ZONE)  # the client is made once, by one thread
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(box.insert, "cw-one", request=request) for _ in range(16)]
            names = {one.result()["name"] for one in asked}
        assert len(names) == 1 and len(box.compute.instances()) == 1
        with ThreadPoolExecutor(8) as pool:
            taken = [pool.submit(box.insert, "cw-two", kind=PLAIN) for _ in range(8)]
            made = [one for one in taken if one.exception() is None]
        assert len(made) == 1 and len(box.compute.instances()) == 2


def test_two_clouds_of_one_process_know_nothing_of_each_other() -> None:
    with a_gce() as one, a_gce() as other:
        one.made("cw-here", kind=PLAIN)
        assert other.compute.instances() == []
        assert not other.compute.knows(one.compute.user_token())


def test_a_port_that_is_taken_is_said_and_nothing_stays_open() -> None:
    before = set(threading.enumerate())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        compute = Compute(SteppedClock(NOON), port=taken.getsockname()[1])
        with pytest.raises(OSError):
            compute.start()
        compute.close()
    assert set(threading.enumerate()) <= before


def test_it_answers_on_another_socket_too() -> None:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    with a_gce() as box:
        box.compute.listen_also(listening)
        with socket.create_connection(listening.getsockname(), timeout=30) as talk:
            path = f"/compute/v1/projects/{PROJECT}/zones/{ZONE}"
            head = f"GET {path} HTTP/1.1\r\nHost: box\r\nAuthorization: Bearer "
            talk.sendall(f"{head}{box.compute.user_token()}\r\nConnection: close\r\n\r\n".encode())
            told = b"".join(iter(lambda: talk.recv(4096), b""))
        assert json.loads(told.partition(b"\r\n\r\n")[2])["name"] == ZONE


def test_a_body_that_is_no_json_is_refused() -> None:
    with a_gce() as box, socket.create_connection(_place(box), timeout=30) as talk:
        path = f"/compute/v1/projects/{PROJECT}/zones/{ZONE}/instances"
        head = f"POST {path} HTTP/1.1\r\nHost: box\r\nAuthorization: Bearer "
        said = json.dumps(body("cw-half"))[:-3]
        talk.sendall(
            f"{head}{box.compute.user_token()}\r\nContent-Length: {len(said)}\r\n"
            f"Connection: close\r\n\r\n{said}".encode()
        )
        told = b"".join(iter(lambda: talk.recv(4096), b""))
        assert json.loads(told.partition(b"\r\n\r\n")[2])["error"]["code"] == 400


def _place(box: Gce) -> tuple[str, int]:
    return "127.0.0.1", int(box.compute.url.rpartition(":")[2])
