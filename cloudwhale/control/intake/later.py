"""Keys that are read and checked, and whose effect comes with a later part."""

from collections.abc import Callable, Sequence

from cloudwhale.model.job import JobSpec, NotifyRule

_LATER: tuple[tuple[str, Callable[[JobSpec], object], str], ...] = (
    ("notify", lambda spec: spec.notify != NotifyRule(), "telling people"),
)


def later(specs: Sequence[JobSpec]) -> tuple[str, ...]:
    """Return a sentence for each key in use that does nothing yet."""
    keys = {key: what for key, says, what in _LATER if any(says(spec) for spec in specs)}
    return tuple(
        f"`{key}` was read and checked; its effect, {what}, comes with a later part."
        for key, what in keys.items()
    )
