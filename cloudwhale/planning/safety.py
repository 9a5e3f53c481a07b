"""The last moment at which renting on-demand still meets a deadline, whatever spot does until
then.

A job has a deadline D. Of its work, L seconds on some on-demand machine are left from its newest
whole checkpoint; what it has done since then counts as lost. To go on there takes

    changeover = tick + boot + hand-over + restore

- *tick*: from a moment that is due, or a loss, to the call, and from a machine that is there to
  the order that starts the job: the controller's part of it all, together;
- *boot*: as the offer says, from the call to its agent's first word;
- *hand-over*: from the wish that it stop to the checkpoint in the store, where it runs elsewhere:
  its landing, or the notice of the machine that it has, whichever is longer; nothing for who
  waits;
- *restore*: from the order to work that goes on: fetching and loading the checkpoint.

Its last safe moment is s = D - changeover - L. The rule: on-demand is rented for it at s, if it
does not run on on-demand or on a machine of ours by then, and until s it may idle or be on spot.

*Claim.* If the rule holds from a moment on that is not after s, the job is done by D, in whatever
way spot machines come, boot, save or vanish, with notice or without.

*Assumptions.* (1) On-demand is had, and its agent speaks within the stated boot time. (2) The work
is what is expected, or what `max_duration` cuts it to; its speed there is as stated. (3) The
budget holds the on-demand lease: what it may cost is kept from when a spot machine is rented on.
(4) The controller lives, and does its part within the tick; a machine that is gone is listed as
gone within it. (5) A checkpoint that was published can be restored within the restore time.

*Proof.* L never grows: a checkpoint is replaced by a newer one only, so s never moves to the left,
and it is only looked at whether now >= s. Let now = s, for the first time. On-demand is asked for,
and is there by s + tick + boot. Until then the job does what it does: no loss can take the
checkpoint that L is counted from. When the machine is there the job either waits, or it runs and
is stopped, or its machine goes by itself; in each of these cases it is out within the hand-over,
and what it then resumes from is that checkpoint or a newer one. So it is done by s + changeover +
L = D. If s jumps to the right meanwhile, as it saves, the job is done earlier still.

*It is tight.* Asked for a moment later than s, with the boot as long as stated and the machine
lost just before its next save, it is done that moment after D (`property/test_safety_property`).

*A machine that is ready* may stand by while the spot machine goes on: until `stays_until`, by the
same argument without the boot. Who is expected to be done there by then is not moved.
"""

from dataclasses import dataclass

from cloudwhale.model.units import Instant, Seconds

TICK_S: Seconds = 30.0
"""A cloud's list is asked for every 10 s and answers in 5, an inbox is read within a second, an
order within two; the same again for who stops first."""


@dataclass(frozen=True, slots=True)
class Changeover:
    """What it takes until a job goes on on a machine that is not rented yet."""

    boot_s: Seconds
    restore_s: Seconds
    hand_over_s: Seconds = 0.0
    """From the wish that it stop to the checkpoint in the store; 0 for who waits."""
    tick_s: Seconds = TICK_S

    @property
    def takes_s(self) -> Seconds:
        """Return the sum: without progress, from the moment that it is due."""
        return self.tick_s + self.boot_s + self.hand_over_s + self.restore_s


def last_safe_at(deadline: Instant, left_s: Seconds, change: Changeover) -> Instant:
    """Return the last moment at which on-demand, asked for then, meets a deadline for certain.

    `left_s`: the run time there of all that the newest checkpoint does not hold. May have passed.
    """
    return deadline - change.takes_s - left_s


def stays_until(deadline: Instant, left_s: Seconds, change: Changeover) -> Instant:
    """Return until when a job may go on on spot while its on-demand machine is ready."""
    return last_safe_at(deadline, left_s, change) + change.boot_s
