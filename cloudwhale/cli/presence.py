"""Whether somebody is there to be asked; apart from what costs much to import."""

import sys

from cloudwhale.cli.exits import WrongUsage


def someone_is_there() -> bool:
    """Say whether a person sits at the terminal and can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def must_be_sure(yes: bool) -> None:
    """Raise WrongUsage when nobody can be asked and nobody has said -y."""
    if not yes and not someone_is_there():
        raise WrongUsage(
            "This is not a terminal, so nobody can be asked whether the plan is fine.",
            "Say -y to run without being asked, or look first with `cloudwhale plan FILE`.",
        )


def agrees(question: str) -> bool:
    """Ask; Enter means yes."""
    print(f"{question} [Y/n] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    return answer.strip().lower() in ("", "y", "yes") and answer != ""
