"""What a plan leaves to be done once it is carried out: nothing more, another, or itself again."""

from cloudwhale.model import plan as p
from cloudwhale.model.world import World
from cloudwhale.planning.decided import events_of
from cloudwhale.planning.telling import telling

SETTLES_ITSELF = (
    p.Place, p.Explain, p.WakeAgent, p.PostStart, p.PostStop, p.Late, p.TellLease, p.ForgetSaves,
)  # fmt: skip


def version_after(made: p.Plan, world: World) -> int:
    """Return the version that needs no other plan: the world's own, or that of the plan's events.

    Of steps that make no room and free no job, the same world gives no second plan.
    """
    settles = all(isinstance(step, SETTLES_ITSELF) for step in made.steps)
    if made.look_again_at is not None and made.look_again_at <= world.now:
        settles = False
    return world.version + (len(events_of(made, world.now)) if settles else 0)


def stands(made: p.Plan, world: World) -> bool:
    """Say whether a plan is the same until something changes or is due: it is of effects alone.

    But for how long an agent may go on unheard, see `anew`.
    """
    return not events_of(made, world.now)


def anew(made: p.Plan, world: World) -> p.Plan:
    """Return a plan that stands as a round would make it now.

    Agents are told of their leases from now on; nothing else in it counts from its time.
    """
    told = (step for step in made.steps if isinstance(step, p.TellLease))
    first = next(map(made.steps.index, told), len(made.steps))
    rest = (step for step in made.steps[first:] if not isinstance(step, p.TellLease))
    fresh = telling(world.rentals, world.now).steps if first < len(made.steps) else ()
    return made.but(version=world.version, steps=(*made.steps[:first], *fresh, *rest))
