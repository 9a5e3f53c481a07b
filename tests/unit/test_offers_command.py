"""What `offers` and `catalog update` print, in JSON and in a table, and how they end."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from makers import a_device, a_job, a_node, placed, wants
from price_lists import DAY_S, NOW, FakePrices, a_listing, a_price, a_shape
from rich.console import Console
from typer.testing import CliRunner

from cloudwhale.cli import completing, offering, updating
from cloudwhale.cli.app import whole_app
from cloudwhale.cli.exits import Exit, NotFound
from cloudwhale.cli.updating import Wanted, update_catalog
from cloudwhale.control.catalogue import opening
from cloudwhale.control.catalogue.asking import Words, asked
from cloudwhale.control.catalogue.listed import offers_of
from cloudwhale.model.job import JobState
from cloudwhale.planning.inventory import free_capacity
from cloudwhale.planning.searching import search
from cloudwhale.reporting.drawn import show
from cloudwhale.reporting.offers import Shown, offer_keys, offers_sheet, own_keys
from cloudwhale.reporting.sheet import plain_lines
from cloudwhale.spi.errors import CloudwhaleError, NothingCanRunIt, SettingsError, Unreachable
from cloudwhale.spi.prices import Reading, Told

APP = whole_app()
LISTINGS = [
    a_listing("g5.xlarge", zones=("us-east-1a", "us-east-1b"), hazard_per_h=0.0179),
    a_listing("g6.xlarge", "eu-west-1", a_price(0.9, estimated=True), None),
    a_listing("m7i.large", on_demand=0.1, spot=None, shape=a_shape("m7i.large", gpu="", gpus=0)),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home without machines of its own GPUs, and one cloud with a short list."""
    monkeypatch.setenv("CLOUDWHALE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    cloud = {"aws": FakePrices(LISTINGS)}
    for module in (opening, updating):
        monkeypatch.setattr(module, "price_lists", lambda: cloud)
    yield tmp_path


class SteppedClock:
    """A clock that stands until it is moved."""

    passed_s = 0.0

    def now(self) -> float:
        return NOW

    def steady(self) -> float:
        return self.passed_s


def called(*words: str) -> Any:
    done = CliRunner().invoke(APP, ["offers", *words, "--json"], catch_exceptions=False)
    assert done.exit_code == Exit.DONE
    return json.loads(done.output)


def failed(*words: str) -> CloudwhaleError:
    with pytest.raises(CloudwhaleError) as caught:
        CliRunner().invoke(APP, ["offers", *words], catch_exceptions=False)
    return caught.value


def test_offers_are_one_document_cheapest_useful_hour_first() -> None:
    found = called()["offers"]
    rented = [one for one in found if one["market"] != "local"]
    assert [one["id"] for one in rented] == [
        "aws/us-east-1a/g5.xlarge/spot", "aws/eu-west-1a/g6.xlarge/on-demand",
        "aws/us-east-1a/g5.xlarge/on-demand",
    ]  # fmt: skip
    costs = [one["useful_usd_h"] for one in rented]
    assert costs == sorted(costs)
    first = rented[0]
    assert first["zones"] == ["us-east-1a", "us-east-1b"]
    assert (first["gpu"], first["gpus"], first["gpu_memory_gib"]) == ("A10G", 1, 24)
    assert (first["price_usd_h"], first["cap_usd_h"], first["extras_usd_h"]) == (0.4, 1.0, 0.01)
    assert (first["hazard_per_h"], first["source"]) == (0.0179, "list")
    assert first["priced_at"] == "2026-11-29T00:53:20.000+00:00"


def test_machines_of_ours_that_have_it_free_stand_above_at_no_price() -> None:
    own = called("--cpu", "0.5")["offers"][0]
    assert (own["market"], own["price_usd_h"], own["useful_usd_h"]) == ("local", 0.0, 0.0)


@pytest.mark.parametrize(
    "words", [("--market", "spot"), ("--region", "us-*"), ("--provider", "aws")]
)
def test_who_asks_for_a_cloud_is_not_shown_his_own(words: tuple[str, str]) -> None:
    found = called("--cpu", "0.5", *words)["offers"]
    assert found and "local" not in {one["market"] for one in found}


def test_rows_can_be_limited() -> None:
    assert len(called("--limit", "1", "--provider", "aws")["offers"]) == 1


def test_settings_keep_offers_out_and_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDWHALE_NEVER", "g5*")
    found = called("--provider", "aws")
    assert [one["type"] for one in found["offers"]] == ["g6.xlarge"]
    assert found["left_out"]["never"] == 4
    assert "Settings keep out 4 by `never`." in found["notes"]
    monkeypatch.setenv("CLOUDWHALE_NEVER", "nonsense,g5*")
    notes = called("--provider", "aws")["notes"]
    assert "`never` has 'nonsense', which no offer that is known matches." in notes
    monkeypatch.setenv("CLOUDWHALE_REGIONS", "mars")
    assert "`regions` has 'mars'" in failed("--provider", "aws").remedy
    monkeypatch.delenv("CLOUDWHALE_REGIONS")
    monkeypatch.setenv("CLOUDWHALE_NEVER", "g*")
    error = failed("--provider", "aws")
    assert isinstance(error, NothingCanRunIt)
    assert error.says == "5 offers have it, but your settings keep all of them out"


def test_when_nothing_fits_the_nearest_and_what_it_lacks_are_named() -> None:
    error = failed("--gpu", "A10G:4")
    assert isinstance(error, NothingCanRunIt)
    assert "needs 4 GPUs on one node, g6.xlarge has 1 that suit" in error.says
    assert error.remedy.startswith("Ask for 1 or fewer.")
    assert "Offers are known in aws/eu-west-1, aws/us-east-1" in failed("--region", "mars").remedy


def test_who_looks_where_a_price_was_dropped_is_told(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heading = "provider,type,region,cpu,memory_gib,on_demand_usd_h"
    (here / "my.csv").write_text(f"{heading}\nlab,box,cellar,8,32,0\n")
    monkeypatch.setenv("CLOUDWHALE_PRICES", str(here / "my.csv"))
    remedy = failed("--provider", "lab").remedy
    assert remedy.endswith("1 price dropped: `cloudwhale offers` says why.")


def test_an_hour_of_work_is_of_as_many_gpus_as_are_asked_for() -> None:
    assert "USD for what one A10G does in an hour" in called("--gpu", "A10G")["notes"][0]
    assert "USD for an hour" in called("--cpu", "1")["notes"][0]
    assert offering.work_of(asked(Words(gpu="A10G:2"))) == "what 2 A10G do in an hour"


def test_a_wrong_word_is_wrong_usage() -> None:
    assert isinstance(failed("--gpu", "Voodoo2"), SettingsError)
    assert CliRunner().invoke(APP, ["offers", "--market", "black"]).exit_code == 2
    assert CliRunner().invoke(APP, ["offers", "--limit", "0"]).exit_code == 2


def test_a_price_file_of_your_own_is_in_it(here: Path) -> None:
    (here / "my.csv").write_text(
        "provider,type,region,gpu,gpus,cpu,memory_gib,on_demand_usd_h\n"
        "lab,box,cellar,H200,8,64,512,1.5\n"
    )
    (here / "cloudwhale.toml").write_text('prices = ["my.csv"]\n')
    assert called("--gpu", "H200:8")["offers"][0]["id"] == "lab/cellar/box/on-demand"


# -- the table -----------------------------------------------------------------------------------


def shown(notes: tuple[str, ...] = ()) -> Shown:
    node = a_node("desk", devices=(a_device("gpu-0"), a_device("gpu-1")), cpu=8.0)
    job = placed(a_job("train", resources=wants(2.0, 1)), "desk", "gpu-0").but(
        state=JobState.RUNNING
    )
    own = free_capacity([node], [job])["desk"]
    hits = search(offers_of(LISTINGS, {"aws": FakePrices([])}), asked(Words())).hits
    return Shown((own,), hits, NOW, 30 * DAY_S, notes)


def drawn(width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    with console.capture() as captured:
        show(console, offers_sheet(shown(("A note.",))))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_a_pipe_gets_every_column() -> None:
    lines = plain_lines(offers_sheet(shown()))
    assert lines[0].split() == [
        "OFFER", "GPUS", "CPUS", "GIB", "USD/H", "USEFUL", "MARKET", "HAZARD", "PRICE", "AGE",
        "AVAILABLE", "NOTE",
    ]  # fmt: skip
    assert lines[1].split()[:3] == ["desk", "1x", "A100-40GB"]
    assert "free beside others" in lines[1]
    spot = next(line for line in lines if "g5.xlarge/spot" in line)
    assert "1.8 %/h" in spot and "2 zones" in spot and "0.400" in spot
    assert next(line for line in lines if "g6.xlarge" in line).endswith("estimate")


@pytest.mark.parametrize("width", [80, 140])
def test_no_table_is_wider_than_the_terminal(width: int) -> None:
    lines = drawn(width)
    assert max(map(len, lines)) <= width
    assert any("~0.900" in line for line in lines), "estimates are marked"
    assert ("hazard" in lines[0]) == (width == 140)
    assert lines[-2:] == ["~: estimated from other prices.", "A note."]


def test_the_document_says_of_an_own_machine_what_is_free() -> None:
    keys = own_keys(shown().own[0])
    assert (keys["gpus"], keys["gpu"], keys["cpu"]) == (1, "A100-40GB", 6.0)
    assert keys.keys() == offer_keys(shown().rows[0], NOW).keys()


# -- catalog update --------------------------------------------------------------------------------


def test_an_update_says_what_has_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new = [a_listing("g5.xlarge", on_demand=1.5, spot=0.3), a_listing("g9.xlarge")]
    monkeypatch.setattr(updating, "price_lists", lambda: {"aws": FakePrices(LISTINGS, new)})
    assert update_catalog(Wanted((), (), as_json=False)) == Exit.DONE
    said = capsys.readouterr().out
    assert "aws: 2 listings, 1 region read." in said
    assert "  2 new, 1 gone, 1 dearer, 1 cheaper, 0 as before." in said
    assert "dearer: g5.xlarge us-east-1 on-demand 1 to 1.5 (+50%)" in said
    assert [one["type"] for one in called("--provider", "aws")["offers"]].count("g9.xlarge") == 2


def test_an_update_is_one_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new = [a_listing("g5.xlarge", on_demand=1.5, spot=0.3)]
    monkeypatch.setattr(updating, "price_lists", lambda: {"aws": FakePrices(LISTINGS, new)})
    update_catalog(Wanted((), (), as_json=True))
    [found] = json.loads(capsys.readouterr().out)["updates"]
    assert (found["provider"], found["read"], found["regions"]) == ("aws", True, ["us-east-1"])
    assert (found["dearer"], found["cheaper"], found["gone"]) == (1, 1, 1)
    assert found["moves"][0] == {
        "type": "g5.xlarge", "region": "us-east-1", "market": "on-demand", "before_usd_h": 1.0,
        "price_usd_h": 1.5, "share": 0.5,
    }  # fmt: skip


def test_an_update_that_fails_ends_with_trouble_and_keeps_the_old(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = FakePrices(LISTINGS, Unreachable("the list does not answer"))
    monkeypatch.setattr(updating, "price_lists", lambda: {"aws": failing})
    assert update_catalog(Wanted((), (), as_json=False)) == Exit.TROUBLE
    assert (
        "the list does not answer; the prices that were known are kept" in capsys.readouterr().out
    )
    assert called("--provider", "aws")["offers"]


def test_an_unknown_provider_is_named() -> None:
    with pytest.raises(NotFound, match="No provider is called azure"):
        update_catalog(Wanted((), ("azure",), as_json=False))


def test_a_person_sees_what_is_being_read_when_it_takes_longer_than_a_glance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(updating, "is_terminal", lambda stream: True)
    monkeypatch.setattr(
        updating, "console_on", lambda stream: Console(file=screen, force_terminal=True, width=80)
    )
    clock = SteppedClock()
    with updating.Working(clock) as working:
        working.told("prices of us-east-1")
    assert screen.getvalue() == "", "not at once"
    with updating.Working(clock) as working:
        clock.passed_s += updating.QUIET_S
        working.told("prices of us-east-1")
        working.told("prices of us-east-2")
    assert "prices of us-east-2" in screen.getvalue()


def test_reading_ends_when_it_has_taken_too_long() -> None:
    clock = SteppedClock()
    with updating.Working(clock) as working:
        clock.passed_s += updating.LONGEST_S
        working.told("prices of us-east-1")
        clock.passed_s += 1.0
        with pytest.raises(Unreachable, match=r"takes over 60 min \(prices of us-east-2\)"):
            working.told("prices of us-east-2")


def test_an_update_of_one_cloud_by_its_region_is_no_trouble_for_the_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Elsewhere(FakePrices):
        def read(self, regions: Any, now: float, told: Told) -> Reading:
            return Reading(())

    aws = FakePrices(LISTINGS)
    monkeypatch.setattr(updating, "price_lists", lambda: {"aws": aws, "gcp": Elsewhere([])})
    assert update_catalog(Wanted(("us-east-1",), (), as_json=False)) == Exit.DONE
    assert "gcp: not read.\n  none of its regions was asked for." in capsys.readouterr().out
    monkeypatch.setattr(updating, "price_lists", lambda: {"gcp": Elsewhere([])})
    assert update_catalog(Wanted(("moon",), (), as_json=False)) == Exit.TROUBLE


# -- completion ----------------------------------------------------------------------------------


def test_regions_providers_and_gpus_are_completed() -> None:
    assert completing.region_words("us") == [("us-east-1", "aws")]
    assert completing.provider_words("") == ["aws"]
    assert completing.gpu_words("a10") == ["A10", "A100", "A100-40GB", "A100-80GB", "A10G"]
