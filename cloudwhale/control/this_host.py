"""This host as a node of the world, as it will be once its agent has been started."""

from dataclasses import replace

from cloudwhale.control import desk as desks
from cloudwhale.control.recounted import recounted
from cloudwhale.model import event as e
from cloudwhale.model.job import HOLDS_A_PLACE
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.world import Sighting, World


def with_this_host(desk: desks.Desk, world: World) -> World:
    """Add this host as its provider describes it, as it will be when its agent was started.

    Where it takes no jobs, it is left out: an agent of an earlier time counts no more.
    """
    left_out = _ours_in(desk, world) if not desk.settings.takes_jobs else None
    nodes = {name: node for name, node in world.nodes.items() if node != left_out}
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


def leave_out_this_host(desk: desks.Desk) -> None:
    """Count on this host no more where it takes no jobs; what runs there ends as it would.

    An agent that joins here again, when it takes some, makes a new node.
    """
    now = desk.clock.now()
    world = desk.store.world(now)
    node = None if desk.settings.takes_jobs else _ours_in(desk, world)
    if node is None:
        return
    here = (job for job in world.jobs.values() if job.state in HOLDS_A_PLACE)
    is_used = any(job.placement is not None and job.placement.node == node.id for job in here)
    kind = e.NodeDrained if is_used else e.NodeRemoved
    desk.store.append([kind(at=now, node=node.id)])


def _ours_in(desk: desks.Desk, world: World) -> Node | None:
    """Return this host among the nodes; None when no agent of its was ever expected."""
    node = world.nodes.get(desks.node_name(desk.settings))
    return node if node is not None and node.provider else None


def _awake(node: Node) -> Node:
    """Return a node of this host as it is once the controller has started its agent."""
    asleep = node.state in (NodeState.EXPECTED, NodeState.LOST)
    return node.but(state=NodeState.READY) if asleep and not node.drained else node
