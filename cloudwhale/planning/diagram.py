"""The diagram of a job's states, printed from the table so that it cannot be wrong."""

from cloudwhale.model.job import ENDED
from cloudwhale.planning.lifecycle import TRANSITIONS


def job_diagram() -> str:
    """Return the states and edges as a mermaid diagram; edges to itself are left out."""
    edges: dict[tuple[str, str], list[str]] = {}
    for (source, event), target in TRANSITIONS.items():
        if source is not target:
            edges.setdefault((source.value, target.value), []).append(event.__name__)
    lines = ["stateDiagram-v2", "    [*] --> pending: Submitted"]
    lines += [
        f"    {source} --> {target}: {', '.join(names)}"
        for (source, target), names in edges.items()
    ]
    lines += [f"    {state.value} --> [*]" for state in sorted(ENDED)]
    return "\n".join(lines)
