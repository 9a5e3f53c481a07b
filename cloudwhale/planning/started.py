"""What finishing all started work of a world may need beyond its leases, by who pays for it."""

from cloudwhale.model.units import NOTHING, MicroUsd
from cloudwhale.model.world import World
from cloudwhale.planning import projects
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.leasing import finishing
from cloudwhale.planning.payers import project_and_month


class Started:
    """Answers for each account; worked out once, when somebody asks, for a whole round."""

    def __init__(self, world: World, durations: Durations) -> None:
        self.world, self._durations = world, durations
        self._of_runs: dict[str, MicroUsd] = {}
        self._of_projects: projects.Amounts | None = None

    def of(self, payer: str) -> MicroUsd:
        """Return the forecast of a run or a project's account."""
        if project_and_month(payer) is not None:
            return self.of_projects.get(payer, NOTHING)
        found = self._of_runs.get(payer)
        if found is None:
            found = self._of_runs[payer] = finishing(self.world, payer, self._durations)
        return found

    @property
    def of_projects(self) -> projects.Amounts:
        """Return the forecasts of all projects that have something started."""
        if self._of_projects is None:
            self._of_projects = projects.forecasts(self.world, self._durations)
        return self._of_projects
