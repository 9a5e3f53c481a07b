"""What a job leaves on its node, which makes the next job like it start sooner there."""

from collections.abc import Sequence

from cloudwhale.model.job import JobSpec

MOST_KEPT = 50
"""More than a disk holds images of; the list travels with every world."""


def left_by(spec: JobSpec) -> tuple[str, ...]:
    """Return what a job of this spec leaves, as `Node.cached` names it, each once."""
    labels = [f"label:{label}" for label in spec.affinity]
    images = [f"image:{spec.image}"] if spec.image else []
    inputs = [f"input:{url}" for url in spec.inputs]
    return tuple(dict.fromkeys([*labels, *images, *inputs]))


def with_newest(cached: Sequence[str], left: Sequence[str]) -> tuple[str, ...]:
    """Return what a node has cached after a job started there: newest last, each once."""
    older = [name for name in cached if name not in left]
    return (*older, *left)[-MOST_KEPT:]
