"""The units of a night are what systemd can read, as the files say how to use them."""

import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "infra" / "systemd"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_service_and_the_timer_of_a_night_are_read_by_systemd(tmp_path: Path) -> None:
    for ending in ("service", "timer"):
        text = (UNITS / f"cloudwhale-night@.{ending}").read_text()
        # The program is not installed here; what the unit says of it is looked at below.
        text = text.replace("/usr/local/bin/cloudwhale", "/bin/true")
        (tmp_path / f"cloudwhale-night@srv-lab.{ending}").write_text(text)
    names = [
        str(tmp_path / f"cloudwhale-night@srv-lab.{ending}") for ending in ("service", "timer")
    ]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names],
        capture_output=True,
        text=True,
        timeout=60,
    )
    told = [line for line in done.stderr.splitlines() if "cloudwhale" in line]
    assert not told, told


def test_the_service_runs_the_night_of_its_instance() -> None:
    text = (UNITS / "cloudwhale-night@.service").read_text()
    assert "ExecStart=/usr/local/bin/cloudwhale night /%I -y\n" in text
