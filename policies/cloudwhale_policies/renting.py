"""Which machines are rented: the plain way, one machine for each job."""

from collections.abc import Sequence

from cloudwhale.spi.renting import Choice, RentalProblem


class OneEach:
    """For each job the offer on which it is expected to cost least; what launchers of jobs do."""

    def choose(self, problem: RentalProblem) -> Sequence[Choice]:
        """Return a machine for each job that some offer fits; ties end at the offer's id."""
        found: list[Choice] = []
        for rentable in problem.jobs:
            costs = rentable.costs
            if costs:
                offer = min(costs, key=lambda name: (costs[name], name))
                says = f"the cheapest for {rentable.job.id} alone"
                found.append(Choice(offer=offer, jobs=(rentable.job.id,), says=says))
        return found
