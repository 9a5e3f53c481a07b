"""What a user has set for deciding: kept with every round, so that it can be made again."""

from cloudwhale.model.node import Node
from cloudwhale.model.units import Seconds
from cloudwhale.model.value import Value


class Patience(Value):
    """How long silence is borne."""

    attempt_lease_s: Seconds = 600.0
    """An agent that cannot reach the store for this long stops its jobs."""
    clock_skew_s: Seconds = 30.0
    """How far two clocks may differ."""

    def lost_after_s(self, node: Node) -> Seconds:
        """Return the silence after which a node counts as lost.

        Its agent may have been started with a longer lease than ours: then its jobs run as long.
        """
        return max(self.attempt_lease_s, node.lease_s or 0.0)

    def out_after_s(self, node: Node) -> Seconds:
        """Return the silence after which nothing that was started on a node runs for certain."""
        return self.lost_after_s(node) + self.clock_skew_s


class Rules(Value):
    """How a round decides, policies aside."""

    patience: Patience = Patience()
    weights: dict[str, float] = {}
    """Weight of each named score; they sum to 1. Empty: the policy's own."""
    shares: dict[str, float] = {}
    """What each project is entitled to, beside the others; one that is not named has 1."""
    match: bool = True
    """Whether the jobs of a class are matched to places together; else one by one, first first."""
    age: bool = True
    """Whether those who have waited too long go first: what bounds every wait."""
    hold: bool = True
    """Whether a job may wait for a better place although it fits somewhere."""
    reserve: bool = True
    """Whether room is kept for the oldest job that is too large for what is free."""
    strict: bool = False
    """Whether nobody may pass a job that does not fit yet; some orders are strict without it."""
    preempt: bool = True
    """Whether jobs may be stopped for those of a higher class."""
    displace: bool = False
    """Whether jobs may be stopped for others of their class that stand before them."""
    classless: bool = False
    """Whether they may be stopped for those of a lower class too: the order alone says who goes."""
    bring_home: bool = True
    """Whether a job may be moved from a rented machine to an owned one, where that pays."""
    auto_size: bool = False
    """Whether jobs are sized by their family whose file does not say."""
    restart_s: Seconds = 60.0
    """What stopping, placing and restoring a job is expected to cost it."""
    preempt_after_s: Seconds = 60.0
    """A job that has run for less is not stopped for another."""
    value_usd_h: float = 20.0
    """What an hour of a job's waiting is worth, in dollars, where its file does not say."""
