"""Who is stopped inside an order: those behind, the last first, where it pays, and nobody else."""

from makers import a_job, a_node, a_world, wants

from cloudwhale.control.desk import policies
from cloudwhale.model import plan as p
from cloudwhale.model.job import CheckpointRule, Job, JobState, Placement, Wish
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.world import World
from cloudwhale.planning.checker import check
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.rules import Rules
from cloudwhale.settings import Settings
from cloudwhale.spi.policy import Order
from cloudwhale_policies.fits import BestFit, FirstFit
from cloudwhale_policies.order import Las, Srsf, Srtf
from cloudwhale_policies.whale_order import Whale

NOW = 10_000.0
FREE = Rules(
    hold=False, reserve=False, displace=True, preempt_after_s=0.0, restart_s=0.0,
)  # fmt: skip
COSTLY = FREE.but(restart_s=60.0)
SAVES = CheckpointRule()


def job(name: str, length_s: float, cpu: float = 1.0, **fields: object) -> Job:
    known = {"submitted_at": NOW, "duration_s": length_s, "checkpoint": SAVES}
    return a_job(name, resources=wants(cpu=cpu), **{**known, **fields})


def runs(name: str, length_s: float, cpu: float, ran_s: float = 500.0, **fields: object) -> Job:
    where = Placement(node=str(fields.pop("node", "pool")), devices=())
    return job(name, length_s, cpu, **{"submitted_at": 0.0, **fields}).but(
        state=JobState.RUNNING, attempt=1, placement=where,
        placed_at=NOW - ran_s, started_at=NOW - ran_s, order_posted=True,
    )  # fmt: skip


def a_pool(*jobs: Job, cpu: float = 8.0) -> World:
    return a_world(list(jobs), [a_node("pool", cpu=cpu)], now=NOW)


def made(world: World, order: Order | None = None, rules: Rules = FREE) -> p.Plan:
    found = plan(world, Policies(order or Srtf(), FirstFit(), rules))
    assert not check(found, world, rules)
    return found


def stops(found: p.Plan) -> list[str]:
    return sorted(step.job for step in found.steps if isinstance(step, p.AskToStop))


def places(found: p.Plan) -> list[str]:
    return sorted(step.job for step in found.steps if isinstance(step, p.Place))


def told(found: p.Plan) -> dict[str, Code]:
    return {s.job: s.reason.code for s in found.steps if isinstance(s, p.Explain)}


def test_the_last_of_those_behind_give_way_and_no_more_than_is_needed() -> None:
    world = a_pool(
        job("new", 100.0, cpu=3.0), runs("short", 550.0, 2.0),
        runs("long", 3000.0, 3.0), runs("longer", 4000.0, 3.0),
    )  # fmt: skip
    found = made(world)
    assert stops(found) == ["longer"]
    assert told(found)["new"] is Code.MAKES_ROOM
    wider = made(a_pool(world.jobs["short"], world.jobs["long"], world.jobs["longer"],
                        job("new", 100.0, cpu=4.0)))  # fmt: skip
    assert stops(wider) == ["long", "longer"]


def test_who_stands_first_of_those_behind_stays_where_the_others_suffice() -> None:
    world = a_pool(job("new", 100.0, cpu=4.0), runs("small", 4000.0, 3.0), runs("l", 3000.0, 5.0))
    assert stops(made(world)) == ["l"]


def test_nobody_is_stopped_for_one_who_stands_behind_or_fits_as_it_is() -> None:
    assert stops(made(a_pool(job("new", 4000.0, cpu=4.0), runs("run", 3000.0, 6.0)))) == []
    fits = made(a_pool(job("new", 100.0, cpu=2.0), runs("run", 3000.0, 6.0)))
    assert (stops(fits), places(fits)) == ([], ["new"])


def test_room_that_is_being_made_goes_to_nobody_else() -> None:
    owed = Reason(code=Code.MAKES_ROOM, says="", change="")
    going = runs("going", 3000.0, 6.0).but(wish=Wish.GIVE_WAY, stop_posted=True)
    world = a_pool(
        job("new", 100.0, cpu=7.0).but(reason=owed), job("next", 200.0, cpu=1.5), going,
        job("small", 300.0, cpu=1.0),
    )  # fmt: skip
    found = made(world)
    assert (stops(found), places(found)) == ([], ["small"])
    assert "new" not in told(found)  # it knows already


def test_those_who_may_not_be_stopped_are_not() -> None:
    first = Reason(code=Code.AGED, says="", change="")
    fixed = runs("fixed", 3000.0, 8.0, preemptible=False)
    young = runs("young", 3000.0, 8.0, ran_s=5.0)
    aged = runs("aged", 3000.0, 8.0).but(reason=first)
    new = job("new", 100.0, cpu=4.0)
    assert stops(made(a_pool(new, fixed))) == []
    assert stops(made(a_pool(new, aged))) == []
    patient = FREE.but(preempt_after_s=60.0)
    found = made(a_pool(new, young), rules=patient)
    assert stops(found) == []
    assert found.look_again_at == NOW + 55.0
    assert stops(made(a_pool(new, young), rules=FREE)) == ["young"]


def test_a_stop_must_pay_twice_and_what_would_be_lost_counts() -> None:
    new = job("new", 1000.0, cpu=8.0)
    assert stops(made(a_pool(new, runs("twice", 2500.0, 8.0)))) == ["twice"]
    assert stops(made(a_pool(new, runs("twice", 2500.0, 8.0)), rules=COSTLY)) == []
    assert stops(made(a_pool(new, runs("more", 2700.0, 8.0)), rules=COSTLY)) == ["more"]
    unsaved = runs("more", 2700.0, 8.0, checkpoint=None)
    assert stops(made(a_pool(new, unsaved), rules=COSTLY)) == []


def test_whoever_was_stopped_does_not_come_back_for_whom_it_gave_way_to() -> None:
    world = a_pool(job("new", 1000.0, cpu=8.0), runs("old", 2700.0, 8.0))
    assert stops(made(world, rules=COSTLY)) == ["old"]
    back = job("old", 2700.0, cpu=8.0, submitted_at=0.0).but(attempt=1, run_s=500.0)
    found = made(a_pool(runs("new", 1000.0, 8.0, ran_s=0.0), back), rules=COSTLY)
    assert stops(found) == []


def test_service_alone_decides_where_nothing_else_is_known() -> None:
    order = Las((8.0,))
    hour = 3600.0
    old = runs("old", 1e6, 8.0, ran_s=9 * hour, submitted_at=-1e6)
    young = runs("young", 1e6, 8.0, ran_s=1 * hour)
    new = job("new", 1e6, cpu=8.0)
    assert stops(made(a_pool(new, old), order)) == ["old"]
    found = made(a_pool(new, young), order)
    assert stops(found) == []
    assert found.look_again_at == NOW + 7 * hour


def test_without_the_setting_nobody_of_a_class_gives_way() -> None:
    world = a_pool(job("new", 100.0, cpu=8.0), runs("run", 5000.0, 8.0))
    assert stops(made(world, rules=FREE.but(displace=False))) == []
    assert stops(made(world, rules=FREE.but(preempt=False))) == []


def test_the_whale_stops_for_less_work_and_for_those_who_have_waited_too_long() -> None:
    new = job("new", 100.0, cpu=8.0)
    assert stops(made(a_pool(new, runs("run", 5000.0, 8.0)), Whale(), COSTLY)) == ["run"]
    old = job("old", 90_000.0, cpu=8.0, submitted_at=NOW - 5e6)
    assert stops(made(a_pool(old, runs("run", 5000.0, 8.0)), Whale(), COSTLY)) == ["run"]
    urgent = job("urgent", 90_000.0, cpu=8.0, priority=90)
    assert stops(made(a_pool(urgent, runs("run", 5000.0, 8.0)), Whale(), COSTLY)) == ["run"]
    batch = job("batch", 100.0, cpu=8.0, priority=10)
    assert stops(made(a_pool(batch, runs("run", 5000.0, 8.0)), Whale(), COSTLY)) == []


def test_shares_say_who_goes_first_and_stop_nobody() -> None:
    theirs = runs("run", 1000.0, 8.0, project="much")
    new = job("new", 90_000.0, cpu=8.0, project="none")
    assert stops(made(a_pool(new, theirs), Whale(), COSTLY)) == []


def test_of_two_nodes_the_one_whose_jobs_stand_last_makes_room() -> None:
    nodes = [a_node("n1", cpu=8.0), a_node("n2", cpu=8.0)]
    jobs = [
        runs("soon", 600.0, 8.0, node="n1"), runs("late", 9000.0, 8.0, node="n2"),
        job("new", 50.0, cpu=8.0),
    ]  # fmt: skip
    assert stops(made(a_world(jobs, nodes, now=NOW), Srsf())) == ["late"]


def test_an_order_without_classes_stops_whoever_stands_behind() -> None:
    dear = runs("dear", 5000.0, 8.0, priority=90)
    cheap = job("cheap", 100.0, cpu=8.0, priority=10)
    assert stops(made(a_pool(cheap, dear), rules=FREE.but(classless=True))) == ["dear"]
    assert stops(made(a_pool(cheap, dear))) == []
    settings = Settings.model_validate({"home": "/nowhere", "order": "srtf"})
    assert policies(settings).rules.classless
    whale = Settings.model_validate({"home": "/nowhere", "order": "whale", "displace": True})
    assert not policies(whale).rules.classless


def test_age_puts_nobody_before_those_of_a_higher_class_that_run() -> None:
    old = job("old", 90_000.0, cpu=8.0, submitted_at=NOW - 5e6, priority=10)
    assert stops(made(a_pool(old, runs("run", 5000.0, 8.0)), Whale(), COSTLY)) == []
    low = runs("run", 5000.0, 8.0, priority=10)
    assert stops(made(a_pool(old, low), Whale(), COSTLY)) == ["run"]


def test_room_that_was_made_is_taken_although_more_is_kept_for_the_first_that_waits() -> None:
    """Else whoever gave way would come back at once, and give way again."""
    owed = Reason(code=Code.MAKES_ROOM, says="", change="")
    world = a_pool(
        runs("long", 500.0, 4.0, checkpoint=None), job("wide", 300.0, cpu=8.0),
        job("new", 2000.0, cpu=4.0).but(reason=owed), job("old", 9000.0, cpu=4.0),
    )  # fmt: skip
    assert places(made(world, rules=COSTLY.but(reserve=True))) == ["new"]
    unowed = a_pool(*(one.but(reason=None) for one in world.jobs.values()))
    assert places(made(unowed, rules=COSTLY.but(reserve=True))) == []


def test_nobody_stops_for_a_job_that_the_match_has_found_a_place_for() -> None:
    """The walk fills nodes in turn, the match as its score likes: it may find what was missed."""
    nodes = [a_node(name, cpu=8.0) for name in ("n1", "n2", "n3")]
    jobs = [
        runs("one", 3000.0, 2.0, node="n1"), runs("two", 4000.0, 4.0, node="n2"),
        runs("three", 5000.0, 8.0, node="n3"),
        job("small", 10.0, cpu=4.0), job("wide", 100.0, cpu=6.0),
    ]  # fmt: skip
    world = a_world(jobs, nodes, now=NOW)
    found = plan(world, Policies(Srtf(), BestFit(), FREE))
    assert not check(found, world, FREE)
    assert (stops(found), places(found)) == ([], ["small", "wide"])
