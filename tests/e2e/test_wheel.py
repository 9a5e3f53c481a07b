"""The wheel: what it holds, and that it works where there is no source tree."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

import cloudwhale

ROOT = Path(__file__).parents[2]
SOURCES = {
    "cloudwhale": ROOT / "cloudwhale",
    "cloudwhale_providers": ROOT / "providers" / "cloudwhale_providers",
    "cloudwhale_policies": ROOT / "policies" / "cloudwhale_policies",
}
LIMIT_S = 120.0


class Installed(NamedTuple):
    """The wheel, and the environment that it was installed into."""

    wheel: Path
    bin: Path
    folder: Path
    """Somewhere else than the source tree; jobs are run from here."""


def run(*words: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end without a terminal, and without our own settings."""
    inherited = {key: text for key, text in os.environ.items() if not key.startswith("CLOUDWHALE")}
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=inherited | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Build the wheel and install it into a fresh environment; libraries come from ours."""
    top = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation")
    done = run(*build, "--outdir", top / "dist", ROOT, cwd=top)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (top / "dist").glob("*.whl")
    venv.create(top / "venv", with_pip=False)
    python = top / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
    done = run(*pip, "--no-deps", "--no-index", wheel, cwd=top)
    assert done.returncode == 0, done.stdout + done.stderr
    # A plain path: what our environment's own .pth files say, the source tree say, is not read.
    (site,) = (top / "venv" / "lib").glob("python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    shutil.copy(ROOT / "examples" / "hello.yaml", top)
    return Installed(wheel, python.parent, top)


def test_it_holds_the_three_packages_whole_and_nothing_else(installed: Installed) -> None:
    wanted = {
        f"{package}/{file.relative_to(folder)}"
        for package, folder in SOURCES.items()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    held = {
        name for name in zipfile.ZipFile(installed.wheel).namelist() if ".dist-info/" not in name
    }
    assert held == wanted
    assert {f"{package}/py.typed" for package in SOURCES} <= held
    assert any("/migrations/versions/" in name for name in held)


def test_its_licence_and_entry_points_travel_with_it(installed: Installed) -> None:
    archive = zipfile.ZipFile(installed.wheel)
    info = f"cloudwhale-{cloudwhale.__version__}.dist-info"
    assert archive.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    points = archive.read(f"{info}/entry_points.txt").decode()
    assert "cloudwhale = cloudwhale.cli:main" in points
    assert "[cloudwhale.policies.score]" in points


def test_it_is_imported_from_its_own_environment(installed: Installed) -> None:
    words = "import cloudwhale, cloudwhale_policies as p; print(cloudwhale.__file__, p.__file__)"
    done = run(installed.bin / "python", "-c", words, cwd=installed.folder)
    assert all(file.startswith(str(installed.folder)) for file in done.stdout.split()), done


def test_it_says_its_version(installed: Installed) -> None:
    done = run(installed.bin / "cloudwhale", "version", cwd=installed.folder)
    assert done.returncode == 0, done.stderr
    assert cloudwhale.__version__ in done.stdout


def test_it_runs_the_smallest_job_away_from_the_source_tree(installed: Installed) -> None:
    done = run(
        installed.bin / "cloudwhale", "run", "hello.yaml", "-y", "--json",
        cwd=installed.folder, CLOUDWHALE_HOME=str(installed.folder / "home"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    receipt = json.loads(done.stdout)
    (job,) = receipt["jobs"]
    assert (job["name"], job["state"]) == ("hello", "completed")
    assert receipt["interruptions"] == 0
    assert float(receipt["spent_usd"]) == 0


def test_it_knows_prices_without_a_network(installed: Installed) -> None:
    done = run(
        installed.bin / "cloudwhale", "offers", "--gpu", "A100:2", "--json",
        cwd=installed.folder, CLOUDWHALE_HOME=str(installed.folder / "home"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    offers = json.loads(done.stdout)["offers"]
    assert {offer["provider"] for offer in offers} == {"aws", "gcp"}
    assert all(offer["gpus"] >= 2 and offer["price_usd_h"] > 0 for offer in offers)


def test_a_fleet_is_planned_by_the_installed_wheel_without_a_network(
    installed: Installed, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    dead = "http://127.0.0.1:9"  # nobody listens there: a request would fail
    done = run(
        installed.bin / "cloudwhale", "plan", "examples/fleet.yaml", "--budget", "50", "--json",
        cwd=tmp_path, CLOUDWHALE_HOME=str(tmp_path / "home"), CLOUDWHALE_CPU="2",
        http_proxy=dead, https_proxy=dead, HTTP_PROXY=dead, HTTPS_PROXY=dead,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    plan = json.loads(done.stdout)
    assert plan["machines"] and 0 < plan["cost_usd"] <= plan["worst_case_usd"] <= 50
    assert all(machine["priced_at"] for machine in plan["machines"])
