"""This host as a node of the world, as it will be once its agent has been started."""

from dataclasses import replace

from cloudwhale.control import desk as desks
from cloudwhale.control.recounted import recounted
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.world import Sighting, World


def with_this_host(desk: desks.Desk, world: World) -> World:
    """Add this host as its provider describes it, as it will be when its agent was started."""
    nodes = dict(world.nodes)
    for name, provider in desks.this_host(desk.settings).items():
        for machine in provider.machines():
            known = nodes.get(machine.node)
            if known is not None:
                nodes[machine.node] = _awake(recounted(known, machine, name))
            elif machine.facts is not None:
                nodes[machine.node] = Node(
                    id=machine.node, facts=machine.facts, provider=name, state=NodeState.READY
                )
    sightings = {name: Sighting(node=name, heard_at=world.now) for name in nodes}
    return replace(world, nodes=nodes, sightings=sightings)


def _awake(node: Node) -> Node:
    """Return a node of this host as it is once the controller has started its agent."""
    asleep = node.state in (NodeState.EXPECTED, NodeState.LOST)
    return node.but(state=NodeState.READY) if asleep and not node.drained else node
