"""What reports mean for nodes: joining, leaving, draining, coming back."""

from makers import a_job, a_node, a_world, placed

from cloudwhale.control.reports import Reading
from cloudwhale.mailbox import documents as d
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.node import NodeState

JOB = placed(a_job("j"), "gpu").but(state=JobState.RUNNING)


def heard(report: d.AnyReport, node: object, job: bool = False) -> list[e.Event]:
    world = a_world([JOB] if job else [], [node])  # type: ignore[list-item]
    return list(Reading(world, 5.0).events("gpu", report.model_dump_json().encode()))


def a_goodbye(agent: str = "gpu-1") -> d.Left:
    return d.Left(at=1.0, agent=agent)


def by_itself(**fields: object) -> object:
    return a_node("gpu", provider="", agent="gpu-1", **fields)


def test_a_node_whose_agent_left_takes_no_jobs() -> None:
    (event,) = heard(a_goodbye(), by_itself())
    assert isinstance(event, e.NodeLost)


def test_a_job_that_its_leaving_agent_did_not_end_is_lost_with_it() -> None:
    _, lost = heard(a_goodbye(), by_itself(), job=True)
    assert isinstance(lost, e.AttemptLost) and lost.job == "j"


def test_an_agent_that_we_start_ourselves_may_leave_and_its_node_stays() -> None:
    assert heard(a_goodbye(), a_node("gpu", provider="local", agent="gpu-1")) == []


def test_the_goodbye_of_an_agent_that_was_ousted_means_nothing() -> None:
    assert heard(a_goodbye("gpu-0"), by_itself()) == []


def test_a_drained_node_that_was_lost_comes_back_draining() -> None:
    node = by_itself(state=NodeState.LOST, drained=True)
    (event,) = heard(d.Heartbeat(at=1.0, agent="gpu-1"), node)
    assert isinstance(event, e.NodeJoined) and event.node.state is NodeState.DRAINING


def test_a_node_that_drains_keeps_that_and_its_provider_when_its_agent_starts_again() -> None:
    facts = a_node().facts
    report = d.Joined(at=1.0, agent="gpu-2", facts=facts, public_key="k")
    (event,) = heard(report, by_itself(state=NodeState.DRAINING, drained=True))
    assert isinstance(event, e.NodeJoined)
    node = event.node
    assert (node.state, node.drained, node.provider) == (NodeState.DRAINING, True, "")
