"""Reads a job file; every error carries file, line, column, the value and the remedy."""

from cloudwhale.control.intake.file import JobFile, read_jobs
from cloudwhale.control.intake.flags import budget_flag, env_flag, time_flag
from cloudwhale.control.intake.job import Overrides

__all__ = ["JobFile", "Overrides", "budget_flag", "env_flag", "read_jobs", "time_flag"]
