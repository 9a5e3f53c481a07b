"""What the command line says of every job of a file, as it was typed."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cloudwhale.cli.exits import WrongUsage
from cloudwhale.spi.errors import SpecError

if TYPE_CHECKING:
    from cloudwhale.control.intake import Overrides


@dataclass(frozen=True, slots=True)
class Wishes:
    """Options that `run`, `submit` and `plan` share."""

    budget: str | None = None
    env: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    no_checkpoint_ok: bool = False
    keep_on_failure: str | None = None

    def overrides(self) -> "Overrides":
        """Return them as values; raise WrongUsage for what cannot be one."""
        from cloudwhale.control.intake import Overrides, budget_flag, env_flag, time_flag

        keep = self.keep_on_failure

        try:
            return Overrides(
                budget=None if self.budget is None else budget_flag(self.budget),
                env=env_flag(self.env),
                args=self.args,
                no_checkpoint_ok=self.no_checkpoint_ok,
                keep_on_failure_s=None if keep is None else time_flag("--keep-on-failure", keep),
            )
        except SpecError as error:
            raise WrongUsage(error.says, error.remedy) from error


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What `run` was asked for."""

    file: Path
    wishes: Wishes
    yes: bool
    new: bool
    as_json: bool
    metrics_file: Path | None = None
