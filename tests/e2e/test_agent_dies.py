"""An agent dies around each thing that it does: no job runs twice, no answer is lost."""

from pathlib import Path

import pytest
from live_agent import LiveAgent, a_start, a_stop, until

from cloudwhale.mailbox.documents import AttemptEnded, CheckpointPublished

POINTS = 30  # so many things at least happen from the start of an agent to the last of the ends
SAVE_AND_FAIL = (
    'echo x >> "$MARK"; echo word; cd $CLOUDWHALE_CHECKPOINT_DIR;'
    " head -c 9000 /dev/zero > .draft; mv .draft step; exit 3"
)
STAY = 'echo x >> "$MARK"; sleep 60'


@pytest.mark.parametrize("point", range(1, POINTS + 1))
def test_whatever_an_agent_was_doing_when_it_died_the_next_one_goes_on(
    agent: LiveAgent, tmp_path: Path, point: int
) -> None:
    marks = {job: tmp_path / f"mark of {job}" for job in ("fails", "stays")}
    agent.post(a_start("fails", SAVE_AND_FAIL, env={"MARK": str(marks["fails"])}))
    agent.post(a_start("stays", STAY, env={"MARK": str(marks["stays"])}))
    agent.post(a_stop("stays"))
    agent.post(a_start("refused", image="pytorch:2.9"))
    agent.program = "mortal_agent"
    agent.env |= {"MORTAL_AT": str(point), "MORTAL_AFTER": "" if point % 2 else "yes"}
    agent.start()
    until(lambda: agent.process.poll() is not None, "it died")
    agent.program = "cloudwhale.agent"
    agent.start()
    assert (agent.ended("fails").how, agent.ended("fails").exit_code) == ("exited", 3)
    assert agent.ended("stays").how == "stopped"
    assert agent.ended("refused").how == "start-failed"
    agent.end()
    assert marks["fails"].read_text() == "x\n"
    assert not marks["stays"].exists() or marks["stays"].read_text() == "x\n"
    assert agent.log("fails") == b"word\n"
    assert len({(one.job, one.how, one.exit_code) for one in agent.all_of(AttemptEnded)}) == 3
    seqs = {one.checkpoint.seq for one in agent.all_of(CheckpointPublished)}
    assert len(seqs) == 1, "a number that was used before its manifest came is not used again"
