"""What is known of a machine, brought up to date by its provider: its agent may sleep."""

from cloudwhale.model.node import Node
from cloudwhale.spi.provider import Machine


def recounted(known: Node, machine: Machine, provider: str) -> Node:
    """Return the node with how jobs can be run there now; itself when that is as before."""
    here = machine.facts
    if here is None or known.provider != provider:
        return known
    if here.runtimes == known.facts.runtimes:
        return known
    return known.but(facts=known.facts.but(runtimes=here.runtimes, images=here.images))
