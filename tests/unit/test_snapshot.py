"""The script that makes the price lists that ship."""

import os
import sys
from pathlib import Path

import pytest
import snapshot
from price_lists import a_shape

from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.listings import Origin, read
from cloudwhale_providers.prices.hazards import hazard_per_h

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "providers" / "cloudwhale_providers" / "prices"
AWS = (
    "instance_type,gpu_name,gpu_count,gpu_mem_mib_each,vcpus,mem_gib,local_ssd_gb,region,zones,"
    "ondemand_usd_h,ondemand_basis,spot_usd_h_est,interruption_band\n"
    "g5.xlarge,A10G,1,22888,4,16.0,250,us-east-1,us-east-1a;us-east-1b,1.006,listed-2026-07-20,"
    "0.41,>20%\n"
    "g5.xlarge,A10G,1,22888,4,16.0,250,sa-east-1,sa-east-1a,1.9,estimated,,\n"
    "g6f.large,L4,0,2861,2,8.0,100,us-east-1,,0.2,listed-2026-07-20,0.1,<5%\n"
    "g5g.xlarge,T4g,1,16384,4,8.0,0,us-east-1,,0.42,listed-2026-07-20,0.13,<5%\n"
    "m7i.48xlarge,,0,,192,768.0,0,us-east-1,,9.7,listed-2026-07-20,3.1,<5%\n"
)
GCP = (
    "machine_type,gpu_name,gpu_count,gpu_mem_mib_each,vcpus,mem_gib,local_ssd_gb,region,zones_2023,"
    "ondemand_usd_h,spot_usd_h\n"
    "a3-megagpu-8g,H100-MEGA,8,81920,208,1872,6000,us-central1,,90.1,40.2\n"
    "g4-standard-6,RTX-PRO-6000,0.125,98304,6,22,0,us-central1,,0.5,0.2\n"
)


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    (tmp_path / "aws_instance_prices.csv").write_text(AWS)
    (tmp_path / "gcp_instance_prices.csv").write_text(GCP)
    return tmp_path


def test_parts_of_gpus_and_arm_are_left_out(tables: Path) -> None:
    found = {one.shape.type for one in snapshot.whole(tables)}
    assert found == {"g5.xlarge", "m7i.48xlarge", "a3-megagpu-8g"}


def test_what_is_estimated_is_marked_and_dated_by_its_oldest_part(tables: Path) -> None:
    here, there, *_ = snapshot.whole(tables)
    assert here.shape == a_shape(gpu_gib=22888 / 1024, disk_gib=232.8)
    assert here.on_demand is not None and here.spot is not None and there.on_demand is not None
    assert (here.on_demand.estimated, here.on_demand.at) == (False, snapshot.AWS_LIST_AT)
    assert (there.on_demand.estimated, there.on_demand.at) == (True, snapshot.AWS_RATIO_AT)
    assert (here.spot.estimated, here.spot.usd_h) == (True, MicroUsd(410_000))
    assert (here.hazard_per_h, there.hazard_per_h, there.spot) == (hazard_per_h(4), None, None)


def test_files_are_written_that_can_be_read(
    tables: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["snapshot.py", str(tables), "--out", str(tables)])
    snapshot.main()
    assert capsys.readouterr().out == "aws.csv: 1 of 3 listings\ngcp.csv: 1 of 1 listings\n"
    text = (tables / "gcp.csv").read_text()
    assert text.startswith("# Prices of GCP")
    assert "Apache License" in text
    [one] = read(text.splitlines(keepends=True), Origin("gcp.csv", 0.0, ""))
    assert (one.shape.gpu, one.shape.disk_gib) == ("H100-80GB", 6000.0)


def test_prices_that_cannot_be_right_are_left_out_and_counted(
    tables: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tables / "aws_instance_prices.csv").write_text(AWS.replace("0.41,>20%", "1.5,>20%"))
    monkeypatch.setattr(sys, "argv", ["snapshot.py", str(tables), "--out", str(tables)])
    snapshot.main()
    assert capsys.readouterr().out.startswith("aws.csv: 1 of 3 listings, 1 spot-dearer\n")
    [one] = read((tables / "aws.csv").read_text().splitlines(True), Origin("aws.csv", 0.0, ""))
    assert one.on_demand is not None and one.spot is None


def test_a_gpu_that_nobody_knows_ends_the_script(tables: Path) -> None:
    (tables / "gcp_instance_prices.csv").write_text(GCP.replace("H100-MEGA", "Voodoo2"))
    with pytest.raises(SystemExit, match="no GPU model is called 'Voodoo2'"):
        list(snapshot.whole(tables))


def test_what_ships_is_what_the_script_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Path(os.environ.get("CLOUDWHALE_TRACES") or ROOT.parent / "shared" / "data")
    if not (tables / "aws_instance_prices.csv").exists():
        pytest.skip("the tables of prices are not here; CLOUDWHALE_TRACES says where they are")
    monkeypatch.setattr(sys, "argv", ["snapshot.py", str(tables), "--out", str(tmp_path)])
    snapshot.main()
    for name in ("aws.csv", "gcp.csv"):
        assert (tmp_path / name).read_text() == (SHIPPED / name).read_text()
