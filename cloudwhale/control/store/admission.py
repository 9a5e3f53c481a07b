"""Whether a write may go in: the epoch of who writes, and the version of what a plan saw."""

from cloudwhale.spi.errors import Fenced, StaleWorld


def admit(epoch: int | None, newest: int) -> None:
    """Raise Fenced when a write names an epoch that is not the newest; submitters name none."""
    if epoch is not None and epoch != newest:
        raise Fenced(
            f"another controller has taken over: its epoch is {newest}, this one's is {epoch}",
            "Nothing to do: this one stops, the other goes on.",
        )


def stale(version: int, newest: int) -> StaleWorld:
    """Return the error for a plan of a world that others have changed since."""
    return StaleWorld(
        f"the plan saw event {version}, others have written since (now {newest})",
        "Plan again.",
    )
