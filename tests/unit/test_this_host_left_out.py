"""A host that takes no jobs is no node, whatever was known of it before."""

from pathlib import Path

import pytest
from makers import a_node

from cloudwhale.control.desk import open_desk, this_host
from cloudwhale.control.this_host import leave_out_this_host, with_this_host
from cloudwhale.model import event as e
from cloudwhale.model.node import NodeState
from cloudwhale.settings import Settings

AT = 1000.0


@pytest.mark.parametrize("takes_jobs", [True, False])
def test_a_host_that_takes_no_jobs_is_counted_on_no_more(tmp_path: Path, takes_jobs: bool) -> None:
    settings = Settings(home=tmp_path, node="host", takes_jobs=takes_jobs)
    with open_desk(settings, may_migrate=True) as desk:
        ours = a_node("host", provider="local", state=NodeState.READY)
        others = a_node("gpu7", state=NodeState.READY)
        desk.store.append([e.NodeJoined(at=AT, node=node) for node in (ours, others)])
        seen = with_this_host(desk, desk.store.world(AT))
        assert set(seen.nodes) == ({"host", "gpu7"} if takes_jobs else {"gpu7"})
        leave_out_this_host(desk)
        leave_out_this_host(desk)
        known = desk.store.world(AT).nodes
        usable = {name for name, node in known.items() if node.state is NodeState.READY}
        assert usable == ({"host", "gpu7"} if takes_jobs else {"gpu7"})
        assert bool(this_host(settings)) == takes_jobs
