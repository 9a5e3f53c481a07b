"""Jobs go where what they read lies already, by a whale that looks at what two nodes hold."""

from makers import a_job, wants
from staging import FACTS, MortalMachine, ends, jobs_of, program_of

from cloudwhale.control.controller import Chosen
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.model import event as e
from cloudwhale.model.job import Job, WhereRule
from cloudwhale.model.run import Run
from cloudwhale.planning.planner import Policies
from cloudwhale.planning.rules import Rules
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.simulation.stage import Scenery, Stage
from cloudwhale_policies.order import Priority
from cloudwhale_policies.whale import Whale

CORPUS, OTHER = "s3://team-data/corpus/", "s3://team-data/other/"


def a_stage() -> Stage:
    """Make a stage with two nodes that are alike."""
    objects = open_objects("memory://")
    machines = [MortalMachine(name, FACTS, objects, program_of) for name in ("a", "b")]
    chosen = Chosen(Policies(Priority(), Whale(), Rules()), "priority", "whale")
    stage = Stage(Scenery(SteppedClock(), MemoryStore(), objects, machines, chosen))
    stage.raise_controller()
    return stage


def run_one(stage: Stage, name: str, url: str, not_on: tuple[str, ...] = ()) -> str:
    """Submit a job that reads something, and let it end; return the node that it ran on."""
    now = stage.scenery.clock.now()
    job: Job = a_job(
        name, name="quick", resources=wants(cpu=1), inputs=(url,), where=WhereRule(not_on=not_on),
        run=f"run-{name}",
    ).but(submitted_at=now)  # fmt: skip
    run = Run(id=job.run, opened_at=now, user="u", folder="/")
    opened = e.RunOpened(at=now, run=run)
    stage.scenery.store.append([opened, e.Submitted(at=now, job=job.id, first=job)])
    assert ends(stage), jobs_of(stage)
    begun = {key[0]: machine.node for machine in stage.scenery.machines
             for key in (one.key for one in machine.begun)}  # fmt: skip
    assert jobs_of(stage)[name].ended
    return begun[name]


def test_who_reads_the_same_goes_to_the_node_that_has_it() -> None:
    for home, elsewhere in (("a", "b"), ("b", "a")):
        stage = a_stage()
        assert run_one(stage, "first", CORPUS, not_on=(elsewhere,)) == home
        assert run_one(stage, "second", OTHER, not_on=(home,)) == elsewhere
        assert run_one(stage, "third", CORPUS) == home
        assert run_one(stage, "fourth", OTHER) == elsewhere
