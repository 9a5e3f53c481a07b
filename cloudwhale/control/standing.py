"""What a plan leaves to be done once it is carried out: nothing more, another, or itself again."""

from cloudwhale.model import plan as p
from cloudwhale.model.world import World
from cloudwhale.planning.decided import events_of

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

    But for how long an agent may go on unheard, which is told from now on.
    """
    tells = any(isinstance(step, p.TellLease) for step in made.steps)
    return not tells and not events_of(made, world.now)
