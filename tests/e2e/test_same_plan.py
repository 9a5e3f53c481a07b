"""The same world gives the same plan, byte for byte, however busy the host is."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from renting_world import planned

from cloudwhale import plugins
from cloudwhale.model.plan import Rent

RUNS, AT_ONCE = 10, 2
WORLDS = (3, 4)
TELLS = (
    "import sys\n"
    "from renting_world import planned\n"
    "for seed in map(int, sys.argv[2:]):\n"
    "    print(planned(sys.argv[1], seed).model_dump_json())\n"
)


@pytest.fixture
def load() -> Iterator[None]:
    """Keep two cores busy for as long as the test lasts."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for one in busy:
        one.kill()
        one.wait()


def begun(rent: str, hash_seed: int) -> subprocess.Popen[bytes]:
    """Start a program that plans the worlds and prints the plans."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    environment["PYTHONPATH"] = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", TELLS, rent, *map(str, WORLDS)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def told(rent: str) -> list[bytes]:
    """Return what each of the runs has printed."""
    found: list[bytes] = []
    for first in range(0, RUNS, AT_ONCE):
        programs = [begun(rent, first + number) for number in range(AT_ONCE)]
        found += [program.communicate()[0] for program in programs]
        assert all(program.returncode == 0 for program in programs)
    return found


def best_installed() -> str:
    return "whale-rent" if "whale-rent" in plugins.names(plugins.RENTS) else "greedy"


def test_ten_programs_on_a_loaded_host_make_the_same_plan(load: None) -> None:
    rent = best_installed()
    plans = [planned(rent, seed) for seed in WORLDS]
    rented = [step for plan in plans for step in plan.steps if isinstance(step, Rent)]
    shared = [step for step in rented if len(step.rental.jobs) > 1]
    assert len(rented) >= 4 and shared, "there is something to decide"
    expected = "".join(f"{plan.model_dump_json()}\n" for plan in plans).encode()
    found = told(rent)
    assert len(found) == RUNS and set(found) == {expected}


@pytest.mark.parametrize("rent", plugins.names(plugins.RENTS))
def test_every_way_to_rent_makes_the_same_plan_in_two_programs(rent: str) -> None:
    programs = [begun(rent, hash_seed) for hash_seed in (11, 12)]
    first, second = (program.communicate()[0] for program in programs)
    assert first == second and first.count(b'"kind":"rent"') >= 4
