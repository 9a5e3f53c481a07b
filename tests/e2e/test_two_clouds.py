"""The example of a burst over two clouds: one runs dry, a job moves, each is billed its part."""

import faulthandler
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from paced_training import EXAMPLES, LIMIT_S, final_loss, pace, undisturbed_loss
from shell import Done, Shell

from cloudwhale_providers.sandbox import Sandbox
from cloudwhale_providers.sandbox.processes import of_folder

RAN = re.compile(r"running on (rent-\S+)")
WORDS = (
    "run", "examples/two-clouds.yaml", "--budget", "20", "--sandbox",
    "--sandbox-script", "examples/weather/two-clouds.yaml", "-y",
)  # fmt: skip
"""As the example's own first lines have it."""
STEPS, TAKEN_AFTER = 2200, "15s"
"""So that two thirds of the training are done when its machine is taken."""
EPOCHS = 80
"""Of each of the other jobs, which only have to be somewhere."""
EVERYWHERE = {"aws", "gcp"}


@dataclass(frozen=True)
class Burst:
    """What a run of the example has printed and left."""

    shell: Shell
    said: str
    receipt: dict[str, Any]
    story: list[dict[str, Any]]
    """Of the training."""
    undisturbed: tuple[str, str]
    """How the training ends that nobody interrupts."""
    leaks: tuple[Done, Done]
    """What is left, as text and as JSON, told while the box stands."""

    @property
    def machines(self) -> dict[str, dict[str, Any]]:
        """Those that came, by id."""
        return {one["id"]: one for one in self.receipt["machines"] if one["spent_usd"] > 0}


@pytest.fixture(scope="module")
def burst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Burst]:
    """Run the example once; afterwards nothing of it, nor of its clouds, may be left."""
    folder = tmp_path_factory.mktemp("two-clouds")
    shutil.copytree(EXAMPLES, folder / "examples")
    example = folder / "examples/two-clouds.yaml"
    example.write_text(example.read_text().replace("--epochs 300", f"--epochs {EPOCHS}"))
    pace(folder / "examples", "two-clouds.yaml", STEPS)
    weather = folder / "examples/weather/two-clouds.yaml"
    weather.write_text(weather.read_text().replace("after: 20s", f"after: {TAKEN_AFTER}"))
    faulthandler.dump_traceback_later(3 * LIMIT_S, exit=True)  # later than tests as a rule
    shell = Shell(folder, {"CLOUDWHALE_SANDBOX_MACHINES": "processes"})
    try:
        # Before: a box that is not asked for long ends.
        undisturbed = undisturbed_loss(shell, STEPS)
        running = shell.start(*WORDS)
        said, _ = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 0, said[-5000:]
        run = re.findall(r"receipt of (run-\w+)", said)[-1]
        receipt = shell("attach", run, "--sandbox", "--json").document
        story = shell("explain", "train", "--sandbox", "--json").document["story"]
        leaks = shell("leaks", "--sandbox"), shell("leaks", "--sandbox", "--json")
        yield Burst(shell, said, receipt, story, undisturbed, leaks)
        assert shell("sandbox", "stop").code == 0
        assert of_folder(shell.home / "sandbox" / "cloud") == frozenset()
        assert shell.processes() == []
    finally:
        shell.close()


def test_what_one_cloud_has_no_room_for_goes_to_the_other(burst: Burst) -> None:
    assert {job["state"] for job in burst.receipt["jobs"]} == {"completed"}
    places = Counter(job["provider"] for job in burst.receipt["jobs"] if job["name"] == "fit")
    assert places == {"gcp": 1, "aws": 2}, "the dearer one is asked once the other is empty"
    assert "ZONE_RESOURCE_POOL_EXHAUSTED" in burst.said


def test_a_job_that_is_taken_resumes_on_the_other_cloud_with_the_same_loss(burst: Burst) -> None:
    (train,) = [job for job in burst.receipt["jobs"] if job["name"] == "train"]
    ran = [RAN.match(row["says"]) for row in burst.story if row["kind"] == "started"]
    places = [burst.machines[said[1]]["provider"] for said in ran if said is not None]
    assert places == ["gcp", "aws"] and train["interruptions"] == 1
    assert "resumed from" in burst.said
    assert final_loss(burst.said) == burst.undisturbed


def test_its_checkpoint_is_brought_across_and_that_is_paid_for(burst: Burst) -> None:
    assert re.search(r"its checkpoint \S+ is brought from gcp \(\S+ KiB\)", burst.said)
    paid = {one["id"]: one["egress_usd"] for one in burst.machines.values() if one["egress_usd"]}
    (train,) = [job for job in burst.receipt["jobs"] if job["name"] == "train"]
    assert set(paid) == {train["node"]}, "the machine that it was brought to"
    by_cloud = {one["provider"]: one["egress_usd"] for one in burst.receipt["providers"]}
    assert by_cloud == {"aws": 0, "gcp": paid[train["node"]]}, "the cloud that it has left"


def test_the_receipt_says_what_each_cloud_has_cost_and_the_meter_agrees(burst: Burst) -> None:
    metered: Counter[str] = Counter()
    machines: dict[str, int] = {}
    for one in Sandbox().meter(burst.shell.home / "sandbox/cloud"):
        metered[one.provider] += one.cost
        machines[one.node] = one.cost
    charged = {
        name: micro(one["spent_usd"]) - micro(one["egress_usd"])
        for name, one in burst.machines.items()
    }
    assert charged == machines
    split = {
        one["provider"]: micro(one["spent_usd"]) - micro(one["egress_usd"])
        for one in burst.receipt["providers"]
    }
    assert split == dict(metered) and set(split) == EVERYWHERE
    whole = sum(micro(one["spent_usd"]) for one in burst.receipt["providers"])
    assert whole == micro(burst.receipt["spent_usd"])


def test_nothing_is_left_in_either_cloud(burst: Burst) -> None:
    said, told = burst.leaks
    assert said.code == 0 and all(name in said.out for name in EVERYWHERE)
    assert told.document["leaks"] == []
    assert burst.shell("sandbox", "status", "--json").document["machines"] == 0


def micro(usd: float) -> int:
    return round(usd * 1e6)
