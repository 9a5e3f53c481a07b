"""A stage with a cloud: jobs that this host cannot run, money, and what the cloud bills for it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from makers import a_job, wants
from staging import CHOSEN, FACTS, RULES, ControllerDied, Fuse, MortalMachine, program_of

from cloudwhale.agent.seen import Warned
from cloudwhale.control.controller import Chosen
from cloudwhale.control.effects import Effect, InlineEffects
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, MicroUsd, micro_usd
from cloudwhale.model.world import Account
from cloudwhale.planning.planner import Policies
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud
from cloudwhale.simulation.machines import SimulatedMachine
from cloudwhale.simulation.stage import Scenery, Stage
from cloudwhale.spi.provider import LaunchRequest, Leftover
from cloudwhale.spi.store import Store
from cloudwhale.spi.waiting import Verdict, Waits
from cloudwhale_policies.fits import BestFit
from cloudwhale_policies.order import Priority
from cloudwhale_policies.renting.one_each import OneEach

T = TypeVar("T")

BIG = Facts(cpu=8.0, memory_gib=32.0, disk_gib=100.0)


class NeverWaits:
    """Rents for whoever fits nowhere now, as far as there are offers."""

    needs_quotes = True

    def verdicts(self, waits: Waits) -> Mapping[str, Verdict]:
        return {
            one.job.id: Verdict("rent", "it fits nowhere now")
            for one in waits.waiting
            if one.quote is not None and not one.fits_now
        }


RENTING = Policies(Priority(), BestFit(), RULES, NeverWaits(), OneEach())


def an_offer(name: str = "big", **fields: Any) -> Offer:
    """Make an offer of the cloud: eight CPUs for 3.60 USD an hour, booted in 20 s."""
    base: dict[str, Any] = {
        "provider": "cloud", "region": "r", "zone": "r-a", "market": "on-demand", "facts": BIG,
        "price_usd_h": micro_usd("3.6"), "cap_usd_h": micro_usd("3.6"), "boot_s": 20.0,
        "billing_least_s": 60.0,
    }  # fmt: skip
    return Offer(**{"id": name, **base, **fields})


def a_cloudy_stage(
    names: Iterable[str] = ("quick",),
    shelves: Iterable[Shelf] = (Shelf(an_offer()),),
    budget: str | None = "10",
    store: Store | None = None,
    seed: int = 0,
    cloud: type[SimulatedCloud] = SimulatedCloud,
    own: MicroUsd | None = None,
    **of_job: Any,
) -> Stage:
    """Make a stage with one small machine, a cloud, and jobs that want four CPUs each.

    `own`: the budget that each job has of its own.
    """
    clock, objects = SteppedClock(), open_objects("memory://")
    machine = MortalMachine("host", FACTS, objects, program_of)
    scenery = Scenery(clock, store or MemoryStore(), objects, [machine], a_chosen())
    stage = Stage(scenery)
    made = cloud(list(shelves), objects, program_of, lambda: stage.machine_time, seed)
    stage.scenery = replace(scenery, clouds={"cloud": made})
    now = clock.now()
    limit = None if budget is None else micro_usd(budget)
    run = Run(id="run-1", opened_at=now, user="u", folder="/", budget=limit)
    submitted: list[e.Event] = [e.RunOpened(at=now, run=run)]
    for number, name in enumerate(names):
        fields = {
            "name": name, "resources": wants(cpu=4), "duration_s": 30.0,
            "checkpoint": CheckpointRule(every_s=5.0, grace_s=10.0), "budget": own,
        } | of_job  # fmt: skip
        job = a_job(f"{name}-{number}", **fields).but(submitted_at=now + number)
        submitted.append(e.Submitted(at=now, job=job.id, first=job))
    stage.scenery.store.append(submitted)
    return stage


def a_chosen() -> Chosen:
    """Return the policies that rent at once, under no names: their rounds are not made again."""
    return replace(CHOSEN, policies=RENTING)


def cloud_of(stage: Stage) -> SimulatedCloud:
    return stage.scenery.clouds["cloud"]


def settles(stage: Stage, at_most_s: float = 3000.0) -> bool:
    """Play until every job has ended and every machine is back."""
    return stage.play(lambda: is_settled(stage), at_most_s)


def is_settled(stage: Stage) -> bool:
    world = stage.scenery.store.world(stage.scenery.clock.now())
    return not world.jobs and not world.rentals


def account_of(stage: Stage) -> Account:
    """Return the run's account, by its events: nothing may be open any more."""
    reserved = spent = 0
    for told in stage.scenery.store.since(0, 100_000):
        match told.event:
            case e.Reserved(amount=amount):
                reserved += amount
            case e.Charged(amount=amount):
                reserved, spent = reserved - amount, spent + amount
            case e.Released(amount=amount):
                reserved -= amount
            case _:
                continue
    run = stage.scenery.store.run("run-1")
    limit = None if run is None else run.budget
    return Account(payer="run-1", limit=limit, reserved=MicroUsd(reserved), spent=MicroUsd(spent))


def rentals_of(stage: Stage) -> dict[str, list[Rental]]:
    """Return every rental's story, as its events tell it."""
    found: dict[str, list[Rental]] = {}
    for told in stage.scenery.store.since(0, 100_000):
        if isinstance(told.event, e.RentalChanged):
            found.setdefault(told.event.rental.id, []).append(told.event.rental)
    return found


def adds_up(stage: Stage) -> None:
    """Check that nothing is left open, and that we have paid what the cloud says."""
    cloud, account = cloud_of(stage), account_of(stage)
    assert cloud.running == 0
    assert account.reserved == 0
    assert account.spent == cloud.bill()
    assert account.spent <= (account.limit or 0)
    for story in rentals_of(stage).values():
        assert story[-1].state is RentalState.RETURNED


# -- notices ---------------------------------------------------------------------------------


class WarnedMachine(SimulatedMachine):
    """A machine that its provider tells when it is taken."""

    def told(self, goes_at: Instant | None, now: Instant) -> None:
        """Hear that it goes then; None: that it may."""
        self._see(Warned(goes_at, "terminate at 12:00"), now)


class WarningCloud(SimulatedCloud):
    """A cloud whose machines can be warned."""

    makes = WarnedMachine


def warn(stage: Stage, name: str, goes_at: Instant | None) -> None:
    """Let a machine's provider warn it, and take it then."""
    one = cloud_of(stage).hired[name]
    assert isinstance(one.machine, WarnedMachine)
    one.machine.told(goes_at, stage.machine_time)
    if goes_at is not None:
        one.taken_at = goes_at


def nothing_overlaps(stage: Stage) -> None:
    """Check the books of all machines: no attempt began before those of the job before it ended."""
    machines = [*stage.scenery.machines, *cloud_of(stage).machines_ever]
    begun = [one for machine in machines for one in machine.begun]
    assert len({one.key for one in begun}) == len(begun), "an attempt began twice"
    for machine in machines:
        for (job, attempt), folder in machine.disk.folders.items():
            later = [one for one in begun if one.key[0] == job and one.key[1] > attempt]
            if folder.process is not None:
                assert all(one.at >= folder.process.ends_at for one in later), (job, attempt)


# -- deaths, and what is left over -----------------------------------------------------------

CALLS = ("create", "schedule", "move", "terminate", "delete", "sweep")
"""What a cloud is asked for that changes something, and the look for what is left over."""
DEEDS = (
    "launch", "extend", "terminate", "sweep", "tell", "search", "remove", "tidy", "start", "stop",
)  # fmt: skip
"""Effects whose before and after differ for somebody else."""


class MortalCloud(SimulatedCloud):
    """A cloud whose caller may die before or after any call that changes something there."""

    fuse = Fuse(None)

    def ask(self, verb: str, do: Callable[[], T]) -> T:
        answer: T = self.fuse.around(do) if verb in CALLS else do()
        return answer


class MortalDeeds(InlineEffects):
    """Effects whose controller may die around those that are seen from outside."""

    def __init__(self, fuse: Fuse) -> None:
        super().__init__()
        self._fuse = fuse

    def start(self, effect: Effect, now: Instant) -> bool:
        if effect.key.verb not in DEEDS:
            return super().start(effect, now)
        return super().start(Effect(effect.key, lambda: self._fuse.around(effect.do)), now)


def dies(live: Callable[[], object]) -> bool:
    """Live; say whether the controller died of it."""
    try:
        live()
    except ControllerDied:
        return True
    return False


def plant_foreign(cloud: SimulatedCloud, many: int) -> dict[str, Leftover]:
    """Put machines of another installation into the same account; return them."""
    for number in range(many):
        name = f"i-foreign-{number}"
        cloud.foreign[name] = Leftover(
            id=name, what="instance", node=f"rent-{number}", region="r", is_ours=False,
            installation="another", since=0.0,
        )  # fmt: skip
    return dict(cloud.foreign)


def plant_forgotten(cloud: SimulatedCloud, now: Instant, ago_s: float) -> None:
    """Let a machine of ours run that no database knows, launched a while ago."""
    offer = next(iter(cloud.offers(now)))
    request = LaunchRequest(
        request_id="forgotten", node="forgotten", offer=offer, mailbox="memory://", home="/",
        stop_at=now + 1e6,
    )  # fmt: skip
    cloud.launch(request)
    cloud.hired["forgotten"].launched_at -= ago_s


def left_over(stage: Stage) -> list[Leftover]:
    """Return what is left at the cloud of ours and belongs to no rental that is open."""
    world = stage.scenery.store.world(stage.scenery.clock.now())
    live = {one.node for one in world.rentals.values() if one.node is not None}
    return list(cloud_of(stage).unknown(live))
