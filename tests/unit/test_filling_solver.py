"""Solvers of one process share its threads: prices after a bound, and a failure that is told."""

import subprocess
import sys

import pytest

SHARED = """
import numpy as np
from cloudwhale.simulation.filling import mix_of
from cloudwhale.simulation.filling_bound import most_allocated_milli
from cloudwhale.spi.filling import ClusterNode, Demand, Pod, Shape
from cloudwhale_policies.filling.menu import menu_of
from cloudwhale_policies.filling.prices import Free, Programme, SolverBroke, quiet_solver

shape = Shape(cpu_milli=10_000, memory_mib=65536, gpus=1, model="T4")
pods = [Pod("a", Demand(2000, 1024, 1, 1000, frozenset()))]
menu = menu_of([shape], mix_of(pods))
one = np.array([1000.0])


def prices():
    return Programme(menu).prices(Free(4 * one, 90 * one, 9 * one), np.array([50.0]))
"""
BOUND_FIRST = """
assert most_allocated_milli([ClusterNode("n", shape)], pods) == 1000
print(prices() is not None)
"""
OTHER_THREADS_FIRST = """
solver = quiet_solver()
solver.setOptionValue("threads", 2)
solver.addVar(0.0, 1.0)
solver.run()
try:
    prices()
except SolverBroke as error:
    print("threads" in str(error))
"""


@pytest.mark.parametrize("first", [BOUND_FIRST, OTHER_THREADS_FIRST])
def test_a_solver_that_came_before_takes_no_prices_away_in_silence(first: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHARED + first], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "True\n", done.stderr
