"""The example of a burst, from its plan to its receipt, on machines of a cloud in a box."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from shell import Done, Shell

from cloudwhale_providers.sandbox import Sandbox
from cloudwhale_providers.sandbox.processes import of_folder

EXAMPLES = Path(__file__).parents[2] / "examples"
FEWER = ("--", "--epochs", "80")  # the last word counts, so every job is done in two seconds
SMALL = {"CLOUDWHALE_CPU": "1", "CLOUDWHALE_MEMORY_GIB": "2"}
RENTED = re.compile(r"rent-\d+-\d+")


@dataclass(frozen=True)
class Burst:
    """What a run of the example has printed and left."""

    shell: Shell
    done: Done
    receipt: dict[str, Any]

    def job(self, name: str) -> dict[str, Any]:
        jobs: list[dict[str, Any]] = self.receipt["jobs"]
        (found,) = [job for job in jobs if job["name"] == name]
        return found


@pytest.fixture(scope="module")
def burst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Burst]:
    """Run the example once; afterwards no process of it, nor of its cloud, may be left."""
    folder = tmp_path_factory.mktemp("burst")
    shutil.copytree(EXAMPLES, folder / "examples")
    shell = Shell(folder, SMALL)
    try:
        words = ("examples/burst.yaml", "--budget", "50", "--sandbox", "-y", *FEWER)
        done = shell("run", *words)
        assert done.code == 0, done.out + done.err
        run = re.findall(r"receipt of (run-\w+)", done.out)[-1]
        yield Burst(shell, done, shell("attach", run, "--sandbox", "--json").document)
        assert shell("sandbox", "stop").code == 0
        assert of_folder(shell.home / "sandbox" / "cloud") == frozenset()
        assert shell.processes() == []
    finally:
        shell.close()


def test_the_plan_says_what_is_rented_and_that_it_can_be(burst: Burst) -> None:
    assert re.search(r"rents 2 machines for \S+ USD, \S+ USD at worst of a budget", burst.done.out)
    assert "No cloud account" not in burst.done.out


def test_one_stays_here_and_three_share_two_machines(burst: Burst) -> None:
    assert {job["state"] for job in burst.receipt["jobs"]} == {"completed"}
    assert (burst.job("gather")["node"], burst.job("gather")["market"]) == ("host", "local")
    places = {name: burst.job(name)["node"] for name in ("fit-a", "fit-b", "fit-large")}
    assert places["fit-a"] == places["fit-b"] != places["fit-large"]
    assert all(RENTED.fullmatch(node) for node in places.values())


def test_every_machine_is_followed_from_asking_to_its_return(burst: Burst) -> None:
    steps = ["is asked for", "boots", "is ready", "is given back", "is back"]
    for machine in burst.receipt["machines"]:
        told = re.findall(rf"^\S+ {machine['id']} (.*)", burst.done.out, re.MULTILINE)
        told = [said for said in told if not said.startswith("boots: ")]  # phases of its boot
        assert len(told) == len(steps), told
        assert all(said.startswith(step) for said, step in zip(told, steps, strict=True)), told


def test_once_all_machines_are_there_the_lid_may_be_closed(burst: Burst) -> None:
    said = r"You may close the lid: it continues until \d\d:\d\d, \d+\.\d+ USD reserved"
    assert re.search(said, burst.done.out)


def test_what_the_jobs_print_is_shown(burst: Burst) -> None:
    for name in ("gather", "fit-a", "fit-b", "fit-large"):
        assert re.search(rf"^{name}-\w+ \| final loss 0\.\d+", burst.done.out, re.MULTILINE), name


def test_what_the_jobs_leave_lies_in_a_folder_of_each(burst: Burst) -> None:
    for name in ("gather", "fit-a", "fit-b", "fit-large"):
        left = json.loads((burst.shell.folder / "results" / name / "fit.json").read_text())
        assert left["epochs"] == 80 and left["right"] > 0.8
        assert f": ./results/{name} (1 file" in burst.done.out
    again = burst.shell("results", "fit-a", "--sandbox")
    assert again.code == 0 and "already" in again.out
    other = burst.shell("results", "fit-a", "--sandbox", "--to", "elsewhere", "--json").document
    assert other["files"] == 1 and (burst.shell.folder / "elsewhere" / "fit.json").exists()


def test_the_receipt_is_what_the_meter_says_to_the_micro_dollar(burst: Burst) -> None:
    metered = {one.node: one.cost for one in Sandbox().meter(burst.shell.home / "sandbox/cloud")}
    charged = {one["id"]: round(one["spent_usd"] * 1e6) for one in burst.receipt["machines"]}
    assert charged == metered
    spent = round(burst.receipt["spent_usd"] * 1e6)
    assert spent == sum(metered.values()) > 0
    assert spent == sum(round(job["spent_usd"] * 1e6) for job in burst.receipt["jobs"])
    assert burst.receipt["budget_usd"] == 50
    assert burst.receipt["reserved_usd"] == 0 < burst.receipt["released_usd"] < 50


def test_the_receipt_names_zone_market_and_price(burst: Burst) -> None:
    for machine in burst.receipt["machines"]:
        assert machine["provider"] == "aws" and machine["state"] == "returned"
        assert machine["zone"].startswith(machine["region"])
        assert machine["price_usd_h"] > 0 and machine["billed_s"] > 0
    job = burst.job("fit-large")
    assert (job["provider"], job["zone"]) == ("aws", _machine_of(burst, job)["zone"])


def _machine_of(burst: Burst, job: dict[str, Any]) -> dict[str, Any]:
    machines: list[dict[str, Any]] = burst.receipt["machines"]
    (found,) = [one for one in machines if one["id"] == job["node"]]
    return found


def test_nothing_is_left_in_the_cloud(burst: Burst) -> None:
    assert burst.shell("leaks", "--sandbox", "--json").document["leaks"] == []
    assert burst.shell("nodes", "--sandbox", "--json").document["nodes"][0]["id"] == "host"
    told = burst.shell("sandbox", "status", "--json").document
    assert told["machines"] == 0


def test_the_receipt_is_paid_from_money_of_its_own(burst: Burst) -> None:
    assert not (burst.shell.home / "cloudwhale.db").exists()
