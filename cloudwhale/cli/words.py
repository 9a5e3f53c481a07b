"""The words that several commands take: arguments and options with their help."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from cloudwhale.cli.completing import job_words, run_words


def examples(*lines: str) -> str:
    """Return an epilog; its first character keeps the lines as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class State(StrEnum):
    """Job states as `--state` takes them: those of `model.job`, which costs too much to import."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    RECOVERING = "recovering"
    PAUSED = "paused"
    PARKED = "parked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class WithJobArgs(TyperCommand):
    """A command whose `args` stand after `--`; before it, a second file would pass for one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; end with wrong usage when there is one too many before `--`."""
        after = args[args.index("--") + 1 :] if "--" in args else []
        rest = super().parse_args(ctx, args)
        given: Sequence[str] = ctx.params.get("args") or ()
        before = given[: max(0, len(given) - len(after))]
        if before and not ctx.resilient_parsing:
            ctx.fail(
                f"one FILE is run at a time, {' '.join(before)} is too much; words for the job's "
                f"command stand after --, and `cloudwhale submit FILE FILE` takes several."
            )
        return rest


File = Annotated[Path, typer.Argument(metavar="FILE", help="Job file (YAML) or task list (JSON).")]
Files = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="Job files (YAML) or task lists (JSON).")
]
JobArgs = Annotated[
    list[str] | None,
    typer.Argument(metavar="ARGS", help="Words after -- are added to every command."),
]
JobWord = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="A job's id, the beginning of one, or a name (the newest job of that name).",
        autocompletion=job_words,
    ),
]
JobWords = Annotated[
    list[str],
    typer.Argument(
        metavar="JOB",
        help="Ids, beginnings of ids, names (every job of it) or runs (all their jobs).",
        autocompletion=job_words,
    ),
]
RunWord = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN|JOB",
        help="A run, or a job of it; left out: the newest that is not done.",
        autocompletion=run_words,
    ),
]
MetricsFile = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file", metavar="FILE.prom",
        help="Write Prometheus metrics there, for node_exporter.",
    ),
]  # fmt: skip
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, nothing else.")]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget", metavar="USD", help="Spend at most this; a smaller one in the file holds."
    ),
]
Env = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="K=V", help="Set a variable for every job; repeatable."),
]
NoCheckpointOk = Annotated[
    bool,
    typer.Option("--no-checkpoint-ok", help="Take spot jobs over an hour that save nothing."),
]
