"""The option `--sandbox` of every command that starts, steers or reads jobs, added in one place."""

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from cloudwhale.control.given import WITHOUT

STARTERS = frozenset({"run", "submit", "plan", "controller", "night"})
"""Commands that start it, and so may say what its weather is."""

Sandbox = Annotated[
    bool,
    typer.Option(
        "--sandbox",
        help="In a cloud on this host, without an account: with its own jobs and money.",
    ),
]
SandboxScript = Annotated[
    Path | None,
    typer.Option("--sandbox-script", metavar="FILE", help="The weather there (docs/sandbox.md)."),
]


def add_option(app: typer.Typer) -> None:
    """Let all commands of an application go into the sandbox."""
    for command in app.registered_commands:
        if command.callback is not None:
            name = command.name or _name_of(command.callback)
            if name not in WITHOUT:
                command.callback = _with_option(command.callback, has_script=name in STARTERS)
    for group in app.registered_groups:
        inner = group.typer_instance
        if inner is not None and group.name not in WITHOUT:
            add_option(inner)
            outer = inner.registered_callback
            if outer is not None and outer.callback is not None:
                outer.callback = _with_option(outer.callback, has_script=False)


def _ask_for(script: Path | None) -> None:
    from cloudwhale.settings import PREFIX  # pydantic: a fifth of a second that --help does without

    os.environ[f"{PREFIX}SANDBOX"] = "true"
    if script is not None:
        os.environ[f"{PREFIX}SANDBOX_SCRIPT"] = str(script.expanduser().absolute())


def _name_of(function: Callable[..., Any]) -> str:
    return function.__name__.replace("_", "-")


def _with_option(function: Callable[..., Any], *, has_script: bool) -> Callable[..., Any]:
    """Return a command that takes the option too, and passes the others on.

    What is said there goes into the environment: the controller that a command leaves behind, and
    all that is read of settings, find it in one place.
    """

    @functools.wraps(function)
    def called(
        *words: Any, sandbox: bool = False, sandbox_script: Path | None = None, **options: Any
    ) -> Any:
        if sandbox or sandbox_script is not None:
            _ask_for(sandbox_script)
        return function(*words, **options)

    if getattr(function, "takes_sandbox", False):
        return function  # the application was made before, in this process
    added: dict[str, Any] = {"sandbox": (Sandbox, False)}
    if has_script:
        added["sandbox_script"] = (SandboxScript, None)
    signature = inspect.signature(function)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in added.items()
    ]
    told: Any = called
    told.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *more])
    told.__annotations__ = function.__annotations__ | {
        name: kind for name, (kind, _) in added.items()
    }
    told.takes_sandbox = True
    return called
