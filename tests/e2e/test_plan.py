"""`plan` and the refusals of `run` with the catalogue that is installed, and with broken ones."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from shell import Shell

from cloudwhale.clock import SystemClock
from cloudwhale.control.catalogue import catalogue
from cloudwhale.settings import Settings

GPU = "name: train\ncommand: 'true'\nduration: 2h\nreference: L4\nresources: {gpu: 1}\n"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    here = Shell(tmp_path, {"CLOUDWHALE_CPU": "2", "CLOUDWHALE_MEMORY_GIB": "8"})
    yield here
    here.close()


def test_a_job_that_fits_here_is_never_rented_for(shell: Shell) -> None:
    shell.write("job.yaml", "name: small\ncommand: 'true'\nduration: 1m\nresources: {cpu: 1}\n")
    said = shell("plan", "job.yaml", "--budget", "50", "--json")
    assert said.code == 0, said.err
    assert said.document["machines"] == [] and said.document["cost_usd"] == 0
    (job,) = said.document["jobs"]
    assert (job["state"], job["node"]) == ("runs-now", "host")
    assert job["runner_up"]["cost_usd"] > 0


@pytest.mark.parametrize(
    ("text", "budget", "code", "words"),
    [
        (GPU, "0.10", 112, "would be enough"),
        (GPU.replace("gpu: 1", "gpu: 64"), "50", 111, "the nearest that could be rented"),
        (f"{GPU}deadline: 5m\n", "500", 113, "the earliest that it could be done"),
    ],
)
def test_plan_run_and_submit_end_alike_and_queue_nothing(
    shell: Shell, text: str, budget: str, code: int, words: str
) -> None:
    shell.write("job.yaml", text)
    for command in (("plan",), ("run", "-y"), ("submit",)):
        said = shell(*command, "job.yaml", "--budget", budget)
        assert said.code == code, said.out + said.err
        assert words in said.out + said.err
    assert shell.jobs() == []


def test_a_run_that_would_have_to_rent_is_refused_as_no_account_is_set_up(shell: Shell) -> None:
    shell.write("job.yaml", GPU)
    said = shell("run", "-y", "job.yaml", "--budget", "50")
    assert said.code == 111
    assert "No cloud account is set up" in said.err
    assert shell.jobs() == []


def test_plan_without_a_budget_names_one_that_would_do(shell: Shell) -> None:
    shell.write("job.yaml", GPU)
    least = shell("plan", "job.yaml", "--json").document["least_budget_usd"]
    assert least > 0
    assert shell("plan", "job.yaml", "--budget", str(least)).code == 0


def test_settings_that_keep_machines_out_are_named(shell: Shell) -> None:
    shell.write("job.yaml", GPU)
    shell.write("cloudwhale.toml", 'never = ["*"]\n')
    said = shell("plan", "job.yaml", "--budget", "50")
    assert said.code == 111
    assert "`never` keeps out" in said.out


# -- catalogues that are not as they should be -----------------------------------------------

HEADING = "provider,type,region,gpu,gpus,gpu_gib,cpu,memory_gib,on_demand_usd_h,spot_usd_h"


def prices(shell: Shell, *rows: str, heading: str = HEADING) -> None:
    shell.write("mine.csv", "\n".join((heading, *rows)) + "\n")
    shell.write("cloudwhale.toml", 'prices = ["mine.csv"]\n')
    shell.write("job.yaml", GPU)


def test_prices_of_your_own_are_planned_with(shell: Shell) -> None:
    prices(shell, "lab,box,here,L4,1,24,8,32,0.01,")
    said = shell("plan", "job.yaml", "--budget", "50", "--json")
    assert said.code == 0, said.err
    assert said.document["jobs"][0]["offer"].startswith("lab/here/box")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("lab,box,here,L4,1,24,8,32,-1,", "mine.csv:2: on_demand_usd_h: '-1'"),
        ("lab,box,here,L4,1,24,8,32,cheap,", "mine.csv:2: on_demand_usd_h: 'cheap'"),
        ("lab,box,here,L4,1,24,8,32,inf,", "mine.csv:2: on_demand_usd_h: 'inf'"),
    ],
)
def test_a_price_that_cannot_be_is_named_with_its_line(shell: Shell, row: str, words: str) -> None:
    prices(shell, row)
    said = shell("plan", "job.yaml", "--budget", "50")
    assert said.code == 2
    assert words in said.err


def test_a_currency_that_is_not_dollars_is_refused(shell: Shell) -> None:
    prices(shell, "lab,box,here,L4,1,24,8,32,1,,EUR", heading=f"{HEADING},currency")
    said = shell("plan", "job.yaml", "--budget", "50")
    assert said.code == 2
    assert "currency" in said.err and "EUR" in said.err


def test_a_machine_without_any_price_is_not_rented(shell: Shell) -> None:
    prices(shell, "lab,box,here,L4,1,24,8,32,,")
    said = shell("plan", "job.yaml", "--budget", "50", "--json")
    assert said.code == 0, said.err
    assert not said.document["jobs"][0]["offer"].startswith("lab/")


def kept(shell: Shell, text: str) -> None:
    folder = shell.home / "prices"
    folder.mkdir(parents=True)
    (folder / "aws.csv").write_text(text)
    shell.write("job.yaml", GPU)


@pytest.mark.parametrize("text", ["", "no prices\n", "# cloudwhale prices, form 1, read at 1.0\n"])
def test_kept_prices_that_are_broken_are_said_and_the_shipped_ones_hold(
    shell: Shell, text: str
) -> None:
    kept(shell, text)
    said = shell("plan", "job.yaml", "--budget", "50", "--json")
    assert said.code == 0, said.err
    assert any("cannot be used" in note for note in said.document["notes"])
    assert said.document["machines"]


def test_old_prices_are_said_to_be_old(shell: Shell) -> None:
    shell.write("job.yaml", GPU)
    shell.write("cloudwhale.toml", "catalogue_max_age_days = 0.5\n")
    said = shell("plan", "job.yaml", "--budget", "50", "--json")
    assert any("days old" in note for note in said.document["notes"])


def test_prices_from_the_future_are_said_to_be(shell: Shell) -> None:
    tomorrow = datetime.fromtimestamp(SystemClock().now(), UTC) + timedelta(days=3)
    row = f"lab,box,here,L4,1,24,8,32,0.01,,{tomorrow.date().isoformat()}"
    prices(shell, row, heading=f"{HEADING},on_demand_at")
    said = shell("plan", "job.yaml", "--budget", "50", "--json")
    assert any("dated after now" in note for note in said.document["notes"])


def test_two_lists_that_disagree_are_told_of_and_the_newer_holds(shell: Shell) -> None:
    now = SystemClock().now()
    shipped = catalogue(Settings(home=shell.home), now).offers
    one = next(o for o in shipped if o.type == "g6.xlarge" and o.market == "on-demand")
    dear = 2 * (one.price_usd_h or 0) / 1e6
    day_after = datetime.fromtimestamp((one.priced_at or now) + 86400, UTC).date().isoformat()
    row = f"aws,g6.xlarge,{one.region},L4,1,24,4,16,{dear:.4f},,{day_after}"
    prices(shell, row, heading=f"{HEADING},on_demand_at")
    said = shell("plan", "job.yaml", "--budget", "50", "--json")
    assert said.code == 0, said.err
    (note,) = [note for note in said.document["notes"] if f"g6.xlarge in {one.region}" in note]
    assert "Two sources say different things" in note and f"{dear:.4f}"[:4] in note


def test_a_plan_is_made_again_to_the_byte_but_for_its_times(shell: Shell) -> None:
    shell.write("job.yaml", GPU)
    first, again = (shell("plan", "job.yaml", "--budget", "50", "--json") for _ in range(2))
    assert timeless(first.document) == timeless(again.document)


def timeless(document: dict[str, object]) -> str:
    """Return a document without the moments in it."""

    def without(value: object) -> object:
        if isinstance(value, dict):
            return {k: without(v) for k, v in value.items() if not k.endswith("_at")}
        return [without(each) for each in value] if isinstance(value, list) else value

    return json.dumps(without(document))


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("[clouds.aws]\n", ("cannot reach the mailbox", "s3://")),
        ("[clouds.awss]\n", ("[clouds.awss]: no provider is called", "[clouds.aws]")),
    ],
)
def test_a_cloud_that_cannot_be_rented_from_is_said_before_anything_is_queued(
    shell: Shell, toml: str, words: tuple[str, ...]
) -> None:
    shell.write("job.yaml", GPU)
    shell.write("cloudwhale.toml", toml)
    for command in (("run", "-y"), ("submit",), ("plan",)):
        said = shell(*command, "job.yaml", "--budget", "5")
        assert said.code == 2, said.out + said.err
        assert all(word in said.err for word in words), said.err
    (shell.folder / "cloudwhale.toml").unlink()
    assert shell.jobs() == []
