"""This host as a node of the world, where its agent has not said so itself."""

from dataclasses import replace

from cloudwhale.control import desk as desks
from cloudwhale.control.recounted import recounted
from cloudwhale.model.node import Node
from cloudwhale.model.world import Sighting, World


def with_this_host(desk: desks.Desk, world: World) -> World:
    """Return the world with the machines that providers describe; all of them count as heard."""
    nodes = dict(world.nodes)
    for name, provider in desks.providers(desk.settings).items():
        for machine in provider.machines():
            known = nodes.get(machine.node)
            if known is not None:
                nodes[machine.node] = recounted(known, machine, name)
            elif machine.facts is not None:
                nodes[machine.node] = Node(id=machine.node, facts=machine.facts, provider=name)
    sightings = {name: Sighting(node=name, heard_at=world.now) for name in nodes}
    return replace(world, nodes=nodes, sightings=sightings)
