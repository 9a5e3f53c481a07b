"""The commands that follow: run a file to its end, attach to a run."""

from cloudwhale.cli.exits import Exit
from cloudwhale.cli.looking import settings_here
from cloudwhale.cli.measured import with_file
from cloudwhale.cli.presence import must_be_sure, someone_is_there
from cloudwhale.cli.wishes import RunOptions
from cloudwhale.clock import SystemClock


def run(options: RunOptions) -> int:
    """Submit the jobs of a file, or take up its unfinished run, and follow to the end."""
    if not options.yes and not someone_is_there():
        from cloudwhale.cli.planning import read

        read(options.file, options.wishes, SystemClock().now())  # what is wrong with it goes first
    must_be_sure(options.yes)
    settings = with_file(settings_here(starts=True), options.metrics_file)
    if options.file.is_file():
        from cloudwhale.control.host import wake_local_agent

        # The agent takes as long to start as all else does until it gets its first order.
        wake_local_agent(settings)
    from cloudwhale.cli.watching import Watch

    with Watch(settings, options.as_json) as watch:
        found = watch.submitted(options)
        return watch.follow(found) if found is not None else Exit.DONE


def attach(word: str | None, as_json: bool) -> int:
    """Follow a run that was submitted before."""
    from cloudwhale.cli.watching import Watch

    with Watch(settings_here(starts=True), as_json) as watch:
        return watch.follow(watch.found(word))
