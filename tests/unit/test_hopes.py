import random

import pytest
from makers import a_device, a_job, a_node, wants

from cloudwhale.model.job import GpuRequest, Job, Placement, Span, WhereRule
from cloudwhale.model.node import Node
from cloudwhale.planning import hopes
from cloudwhale.planning.fit import fit
from cloudwhale.planning.hopes import nodes_of_each
from cloudwhale.planning.inventory import free_capacity


def some_jobs(draw: random.Random) -> list[Job]:
    return [
        a_job(
            f"j{n}",
            resources=wants(
                cpu=draw.choice([0.5, 4.0, 32.0]),
                gpu=GpuRequest(
                    count=draw.choice([0, 1, 2]),
                    share=draw.choice([0.25, 1.0]),
                    models=draw.choice([(), ("A100",), ("L4",)]),
                    memory_gib=Span(least=draw.choice([0.0, 30.0])),
                ),
            ),
            where=draw.choice(
                [WhereRule(), WhereRule(not_on=("n3",)), WhereRule(labels={"a": "b"})]
            ),
            secrets=draw.choice([(), ("TOKEN",)]),
        )
        for n in range(60)
    ]


def some_nodes(draw: random.Random) -> list[Node]:
    cards = (("A100-40GB", 40.0), ("L4", 24.0))
    return [
        a_node(
            f"n{n}",
            cpu=draw.choice([2.0, 8.0, 64.0]),
            labels=draw.choice([{}, {"a": "b"}]),
            devices=tuple(
                a_device(f"n{n}-{k}", *draw.choice(cards)) for k in range(draw.randrange(4))
            ),
        )
        for n in range(20)
    ]


@pytest.mark.parametrize("few", [0, 10**9])
@pytest.mark.parametrize("seed", range(3))
def test_many_jobs_are_told_the_nodes_that_each_of_them_fits(
    seed: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hopes, "FEW", few)
    draw = random.Random(seed)
    jobs, rooms = some_jobs(draw), list(free_capacity(some_nodes(draw), ()).values())
    expected = [
        tuple(r.node.id for r in rooms if isinstance(fit(job.spec, r), Placement)) for job in jobs
    ]
    assert nodes_of_each([job.spec for job in jobs], rooms) == expected
    assert len(set(expected)) > 5


def test_without_jobs_or_without_nodes_there_is_nothing_to_hope_for() -> None:
    assert nodes_of_each([], []) == []
    assert nodes_of_each([a_job().spec], []) == [()]
