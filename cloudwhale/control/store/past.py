"""What events are folded over: things as they were stored last."""

from dataclasses import dataclass, field
from typing import Protocol

from cloudwhale.model.budget import Budget
from cloudwhale.model.job import Job
from cloudwhale.model.node import Node
from cloudwhale.model.notice import Notice
from cloudwhale.model.peak import History
from cloudwhale.model.rental import Rental
from cloudwhale.model.run import Run
from cloudwhale.model.world import Account, Use

Family = tuple[str, str]
"""Project and name."""


@dataclass(slots=True)
class Named:
    """Things that will be asked for, so that they can be read in one go."""

    jobs: set[str] = field(default_factory=set[str])
    runs: set[str] = field(default_factory=set[str])
    accounts: set[str] = field(default_factory=set[str])
    notices: set[str] = field(default_factory=set[str])


class Past(Protocol):
    """Things that may have been let go of because nothing alive needed them."""

    def fetch(self, named: Named) -> None:
        """Read these ahead."""
        ...

    def job(self, job: str) -> Job | None:
        """Return a job by id, None when there never was one."""
        ...

    def run(self, run: str) -> Run | None:
        """Return a run by id."""
        ...

    def account(self, payer: str) -> Account | None:
        """Return an account by payer."""
        ...


class Rows(Past, Protocol):
    """Things as they were stored last; None for what was never stored."""

    def node(self, node: str) -> Node | None:
        """Return a node by id."""
        ...

    def rental(self, rental: str) -> Rental | None:
        """Return a rental by id."""
        ...

    def position(self, node: str) -> int | None:
        """Return up to which number a node's inbox was read."""
        ...

    def history(self, family: Family) -> History | None:
        """Return what a family's newest jobs took and used."""
        ...

    def use(self, project: str) -> Use | None:
        """Return what a project's ended attempts have used."""
        ...

    def budget(self, project: str) -> Budget | None:
        """Return what a project may spend in a month, as it was set last."""
        ...

    def notice(self, notice: str) -> Notice | None:
        """Return a notice by id."""
        ...
