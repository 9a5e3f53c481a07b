"""The table of renting: its jobs are the same for a seed, and it prints every way and the bound."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MODULES = ("rentals", "rentals_mix", "rentals_offers", "rentals_problem", "rentals_replay")

AWS = """\
instance_type,gpu_name,gpu_count,gpu_mem_mib_each,vcpus,mem_gib,region,zones,ondemand_usd_h,\
ondemand_basis,spot_usd_h_est,interruption_band
big,H100,8,81920,192,2048,us-east-1,us-east-1a;us-east-1b,40.0,listed-2026-07-20,12.0,>20%
small,A10G,1,22888,16,64,eu-west-1,eu-west-1a,1.2,estimated,0.5,<5%
slice,L4,0,2861,2,8,eu-west-1,eu-west-1a,0.2,estimated,0.1,<5%
"""
GCP = """\
machine_type,gpu_name,gpu_count,gpu_mem_mib_each,vcpus,mem_gib,region,zones_2023,ondemand_usd_h,\
spot_usd_h
pair,A100-40GB,2,40960,24,170,us-central1,us-central1-a,7.0,2.5
cards,T4,4,16384,96,360,us-central1,,2.4,1.1
ada,L40S,8,46080,192,720,europe-west4,europe-west4-a,16.0,16.0
light,L4,8,24576,96,384,europe-west4,europe-west4-b,8.0,3.0
large,A100-80GB,8,81920,96,1360,europe-west4,europe-west4-b,40.0,20.0
"""
EGRESS = "from_region,to_region,price_usd_per_gb\nus-east-1,eu-west-1,0.02\n"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Their folder is where their modules find each other; the prices are of two small clouds."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("CLOUDWHALE_TRACES", str(tmp_path))
    (tmp_path / "aws_instance_prices.csv").write_text(AWS)
    (tmp_path / "gcp_instance_prices.csv").write_text(GCP)
    (tmp_path / "aws_egress_usd_per_gb.csv").write_text(EGRESS)
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


def test_every_zone_and_market_is_an_offer_but_slices_and_absurd_prices() -> None:
    import rentals_offers

    found = [offer.id for offer in rentals_offers.offers()]
    assert "aws/big/us-east-1b/spot" in found
    assert "gcp/cards/us-central1-?/on-demand" in found
    assert not any("slice" in one for one in found)
    assert [one for one in found if "ada" in one] == ["gcp/ada/europe-west4-a/on-demand"]
    assert len(found) == 2 * 2 + 2 + 2 + 2 + 1 + 2 + 2


def test_a_mix_is_the_same_for_a_seed_and_another_for_the_next() -> None:
    import rentals_mix

    mix = rentals_mix.MIXES["mixed-100"]
    assert mix.draw(7) == mix.draw(7)
    assert mix.draw(7) != mix.draw(8)
    classes = rentals_mix.MIXES["classes-2000"].draw(7)
    assert len(classes) == 2000
    assert len({task.job.spec.name for task in classes}) <= 50


def test_the_table_has_every_way_below_none_the_bound_and_the_simulator_agrees(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import rentals
    import rentals_mix

    mixes = {"few": rentals_mix.Mix(8), "alike": rentals_mix.Mix(12, 3)}
    monkeypatch.setattr(rentals, "MIXES", mixes)
    names = ["one-each", "greedy", "milp", "cp-sat", "whale-rent"]
    asked = ["--seeds", "2", "--mixes", "few,alike", "--policies", ",".join(names)]
    monkeypatch.setattr(sys, "argv", ["rentals.py", "--json", "--simulated", *asked])
    rentals.main()
    told = json.loads(capsys.readouterr().out)
    for rows in told["mixes"].values():
        assert [row["name"] for row in rows] == ["bound", *names]
        for row in rows[1:]:
            assert all(gap >= -1e-9 for gap in row["gaps"])
            for one in row["found"]:
                assert one["left_out"] == 0
                assert one["simulated_usd"] == pytest.approx(one["usd"], rel=0.03)


def test_the_table_is_readable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import rentals
    import rentals_mix

    monkeypatch.setattr(rentals, "MIXES", {"few": rentals_mix.Mix(6)})
    asked = ["--seeds", "1", "--mixes", "few", "--policies", "greedy"]
    monkeypatch.setattr(sys, "argv", ["rentals.py", *asked])
    rentals.main()
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("few: 6 jobs") for line in lines)
    assert [line.split()[0] for line in lines[3:6]] == ["bound", "one-each", "greedy"]
