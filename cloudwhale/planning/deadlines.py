"""Deadlines that pass while a job has its place: it is late, is told once, and goes on.

A job that is stopped at its deadline would have cost all that it has cost for nothing; whoever
wants that can cancel it. One that waits when its deadline passes is parked (`planning/queue`).
"""

from collections.abc import Sequence

from cloudwhale.model import plan as p
from cloudwhale.model.job import HOLDS_A_PLACE
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant
from cloudwhale.model.world import World
from cloudwhale.planning.queue import earliest


def missed(world: World) -> tuple[Sequence[p.Missed], Instant | None]:
    """Return who has a place when its deadline passes, and when the next one's does.

    It goes on, and is told once.
    """
    steps: list[p.Missed] = []
    again: Instant | None = None
    for job in world.jobs.values():
        deadline = job.spec.deadline
        if deadline is None or job.deadline_said or job.state not in HOLDS_A_PLACE:
            continue
        if world.now < deadline:
            again = earliest(again, deadline)
            continue
        says = f"its deadline passed {world.now - deadline:.0f} s ago; it goes on where it is"
        reason = Reason(code=Code.DEADLINE_MISSED, says=says, change="cancel it, or let it end")
        steps.append(p.Missed(job=job.id, reason=reason))
    return steps, again
