"""Keys that are read and checked, and whose effect comes with a later part."""

from collections.abc import Callable, Iterable, Sequence

from cloudwhale.model.job import JobSpec, NotifyRule

_LATER: tuple[tuple[str, Callable[[JobSpec], object], str], ...] = (
    ("nodes", lambda spec: spec.nodes > 1, "gangs of several nodes"),
    ("market", lambda spec: spec.market in ("spot", "on-demand"), "renting machines"),
    ("wait", lambda spec: spec.wait_max_s is not None, "weighing waiting against renting"),
    ("preemptible", lambda spec: not spec.preemptible, "which jobs give way to others"),
    ("inputs", lambda spec: spec.inputs, "placing jobs near their data"),
    ("outputs", lambda spec: spec.outputs, "bringing results back"),
    ("notify", lambda spec: spec.notify != NotifyRule(), "telling people"),
    ("resources.disk_io", lambda spec: spec.resources.disk_io_mb_s, "scoring by disk rate"),
    ("resources.network", lambda spec: spec.resources.network_mb_s, "scoring by network rate"),
    ("affinity", lambda spec: spec.affinity, "scoring by affinity"),
    ("speeds", lambda spec: spec.speeds, "comparing GPU models by speed"),
    ("reference", lambda spec: spec.reference, "comparing GPU models by speed"),
    (
        "value_of_time_usd_h",
        lambda spec: spec.value_of_time_usd_h is not None,
        "weighing time against money",
    ),
)

_LATER_OF_NIGHTS = {"window": "nightly bursts", "unfinished": "nightly bursts"}


def later(specs: Sequence[JobSpec], file_keys: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence for each key in use that does nothing yet."""
    keys = {key: _LATER_OF_NIGHTS[key] for key in file_keys if key in _LATER_OF_NIGHTS}
    keys |= {key: what for key, says, what in _LATER if any(says(spec) for spec in specs)}
    return tuple(
        f"`{key}` was read and checked; its effect, {what}, comes with a later part."
        for key, what in keys.items()
    )
