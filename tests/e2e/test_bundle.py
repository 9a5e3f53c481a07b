"""The agent's archive runs where nothing of ours is installed: jobs, containers, notices."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from dockerd import IMAGE, Dockerd
from live_agent import LiveAgent, a_start, until
from unpacking import unpack

from cloudwhale.agent.containers.settings import name_of
from cloudwhale.control.bundle import Bundle, made
from cloudwhale.control.bundle_content import PYTHONS
from cloudwhale.mailbox.documents import Joined
from cloudwhale.mailbox.sealing import seal

LIMIT_S = 60.0
CLEAN_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass(frozen=True)
class Machine:
    """A Python outside of any environment, and the archive unpacked beside it."""

    python: str
    folder: Path
    number: str
    """Of its Python, as folders of libraries are called: 312."""

    def clean(self, **more: str) -> list[str]:
        """Return words that leave nothing of our environment to the command behind them."""
        libraries = f"{self.folder}/lib:{self.folder}/lib-cp{self.number}"
        told = {"PATH": CLEAN_PATH, "PYTHONPATH": libraries, **more}
        return ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in told.items())]

    def run(self, *words: str) -> str:
        """Run Python there; fail with what it says."""
        done = subprocess.run(
            [*self.clean(), self.python, "-P", *words], capture_output=True, text=True,
            cwd="/", timeout=LIMIT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


def outside(version: str) -> str | None:
    """Return a Python of a version that is in no environment; None: there is none here."""
    here = ".".join(map(str, sys.version_info[:2]))
    base = os.path.join(sys.base_prefix, "bin", f"python{here}") if version == here else None
    for found in (f"/usr/bin/python{version}", base, shutil.which(f"python{version}")):
        if found and _is(found, version):
            return found
    return None


def _is(python: str, version: str) -> bool:
    code = "import sys; sys.exit(sys.prefix != sys.base_prefix or "
    code += f"'%d.%d' % sys.version_info[:2] != {version!r})"
    try:
        return subprocess.run([python, "-c", code], capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return made()


@pytest.fixture(scope="module")
def unpacked(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(bundle.file) as archive:
        unpack(archive, folder)
    return folder


@pytest.fixture(params=PYTHONS)
def machine(request: pytest.FixtureRequest, bundle: Bundle, unpacked: Path) -> Machine:
    version = str(request.param)
    if version not in bundle.pythons:
        pytest.skip("; ".join(bundle.missing))
    python = outside(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    return Machine(python, unpacked, version.replace(".", ""))


@pytest.fixture
def bare(agent: LiveAgent, machine: Machine) -> LiveAgent:
    """Give an agent that will be started from the archive alone."""
    agent.python, agent.before = machine.python, machine.clean()
    return agent


def test_the_agent_starts_where_nothing_is_installed(machine: Machine) -> None:
    assert "--own-users" in machine.run("-m", "cloudwhale.agent", "--help")
    code = "import cloudwhale, pydantic, obstore, nacl.public as n, docker, psutil, pynvml as p\n"
    code += "print([m.__file__ for m in (cloudwhale, pydantic, obstore, n, docker, psutil, p)])"
    files = machine.run("-c", code)
    assert files.count(str(machine.folder)) == 7, files


def test_whoever_hears_notices_is_found_there(machine: Machine) -> None:
    code = "from cloudwhale.plugins import NOTICES, load, names\n"
    code += "print([load(NOTICES, name).__module__ for name in names(NOTICES)])"
    heard = [f"cloudwhale_providers.{cloud}_notices" for cloud in ("aws", "gcp")]
    assert machine.run("-c", code).strip() == str(heard)


def test_every_module_of_the_agent_can_be_imported_there(machine: Machine) -> None:
    code = (
        "import importlib, pkgutil, cloudwhale, cloudwhale_providers as p\n"
        "for room in (cloudwhale, p):\n"
        "    for m in pkgutil.walk_packages(room.__path__, room.__name__ + '.'):\n"
        "        if 'shim_' not in m.name and '__main__' not in m.name:\n"
        "            importlib.import_module(m.name)\n"
        "import cloudwhale.agent.__main__\n"
        "import sys; print(len([m for m in sys.modules if m.startswith('cloudwhale')]))"
    )
    assert int(machine.run("-c", code)) > 50


def test_a_job_runs_under_it_and_sees_nothing_of_it(bare: LiveAgent) -> None:
    bare.start()
    key = bare.wait_for(Joined).public_key
    command = 'echo "$TOKEN" | tr a-z A-Z; echo "path ${PYTHONPATH-none}"; echo kept > out; exit 3'
    bare.post(a_start(command=command, secrets={"TOKEN": seal("word", key)}, outputs=("out",)))
    end = bare.ended()
    assert (end.how, end.exit_code) == ("exited", 3)
    assert bare.log().split() == [b"WORD", b"path", b"none"]
    assert end.peaks is not None and bare.end() == 0


@pytest.mark.docker
def test_a_container_runs_under_it(bare: LiveAgent, machine: Machine, dockerd: Dockerd) -> None:
    bare.before = machine.clean(DOCKER_HOST=dockerd.host)
    bare.start()
    bare.post(a_start(command="echo inside; cat /proc/1/comm", image=IMAGE))
    assert bare.ended().exit_code == 0
    assert bare.log().startswith(b"inside\n")
    mine = {name_of(path) for path in bare.attempts.glob("*/*")}
    bare.end()
    until(lambda: not mine & set(dockerd.names()), "no container of it is left")


def test_it_says_what_it_holds(bundle: Bundle, unpacked: Path) -> None:
    told = json.loads((unpacked / "bundle.json").read_text())
    assert tuple(told["pythons"]) == bundle.pythons
    for version in bundle.pythons:
        assert (unpacked / f"lib-cp{version.replace('.', '')}" / "pydantic_core").is_dir()
    held = set(told["distributions"])
    assert {"obstore", "pydantic-core"} <= held
    assert not held & {"numpy", "ortools", "highspy", "matplotlib", "boto3"}
    assert not held & {"google-api-python-client", "google-auth", "httplib2", "apache-libcloud"}


def test_a_machine_fetches_little(bundle: Bundle) -> None:
    assert bundle.size_bytes < 20 * 2**20
