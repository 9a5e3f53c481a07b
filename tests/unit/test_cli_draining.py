"""Which jobs keep a node from being removed."""

from pathlib import Path

import pytest
from makers import a_job, a_node, a_run

from cloudwhale.cli.draining import InUse, remove
from cloudwhale.control.desk import open_desk
from cloudwhale.model import event as e
from cloudwhale.model.job import Member, Placement
from cloudwhale.model.reason import Code, Reason
from cloudwhale.settings import load


@pytest.mark.parametrize("node", ["one", "other"])
def test_a_node_is_in_use_while_any_rank_of_a_gang_is_there(
    node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOUDWHALE_HOME", str(tmp_path))
    gang = Placement(node="one", others=(Member(node="other"),))
    why = Reason(code=Code.PLACED, says="rented for it")
    with open_desk(load(tmp_path), may_migrate=True) as desk:
        desk.store.append([
            e.RunOpened(at=0.0, run=a_run()),
            e.Submitted(at=0.0, job="g", first=a_job("g", nodes=2)),
            *(e.NodeJoined(at=1.0, node=a_node(name)) for name in ("one", "other")),
            e.Placed(at=2.0, job="g", attempt=1, placement=gang, reason=why),
        ])  # fmt: skip
    with pytest.raises(InUse, match=f"g is on {node}"):
        remove(node, force=False, as_json=False)
