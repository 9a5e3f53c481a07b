"""A machine that is switched off under its agent: 30 s by Compute Engine's word, then no power.

Google's metadata server says `preempted` and ACPI tells the machine to stop, which systemd passes
on as SIGTERM, in whatever order.
"""

import signal
from collections.abc import Iterator

import pytest
import small_gce
from live_agent import CLOCK, LiveAgent, a_start

from cloudwhale.mailbox.documents import CheckpointPublished, Left, Warned
from cloudwhale.model.job import CheckpointRule
from cloudwhale_providers.gcp_notices import TAKEN

RULE = CheckpointRule(every_s=0.2, grace_s=60.0)
"""It would take a minute to save, which it does not get."""
SAVE = 'D=$CLOUDWHALE_CHECKPOINT_DIR; save() { echo "$1" > $D/.new; mv $D/.new $D/step-$1; }; '
LIVES = "echo up; while true; do sleep 0.1; done"
POWER_OFF_S = 30.0


class Machine:
    """A machine of Compute Engine with an agent and a job."""

    def __init__(self, agent: LiveAgent, server: small_gce.Metadata) -> None:
        self.agent, self.server = agent, server
        server.says(TAKEN, "FALSE")
        agent.options = ["--rented", "--lease=1:900", "--notices=gcp"]
        agent.env |= {"GCE_METADATA_HOST": server.host}

    def runs(self, command: str) -> None:
        """Let a job run that has said something."""
        self.agent.start()
        self.agent.post(a_start(command=command, checkpoint=RULE))
        self.agent.wait_for_output(b"up")

    def is_preempted(self) -> None:
        self.server.says(TAKEN, "TRUE")

    def is_switched_off(self) -> None:
        self.agent.process.send_signal(signal.SIGTERM)

    def lands(self, began_at: float) -> float:
        """Wait until its agent has left; return how long that took."""
        assert self.agent.process.wait(timeout=2 * POWER_OFF_S) == 0
        return CLOCK.steady() - began_at

    @property
    def names(self) -> list[str]:
        return [one.checkpoint.name for one in self.agent.all_of(CheckpointPublished)]


@pytest.fixture
def machine(agent: LiveAgent) -> Iterator[Machine]:
    with small_gce.metadata() as server:
        yield Machine(agent, server)


@pytest.mark.parametrize("first", ["the word", "the switch"])
def test_what_a_job_saves_when_it_is_told_is_stored_before_the_power_goes(
    machine: Machine, first: str
) -> None:
    machine.runs(SAVE + "trap 'sleep 2; save 2; exit 3' TERM; save 1; " + LIVES)
    began_at = CLOCK.steady()
    ways = [machine.is_preempted, machine.is_switched_off]
    for way in ways if first == "the word" else reversed(ways):
        way()
    assert machine.lands(began_at) < POWER_OFF_S
    assert machine.names[-1] == "step-2"
    assert machine.agent.ended().exit_code == 3
    machine.agent.wait_for(Left)


def test_the_word_alone_lands_a_job_in_half_of_the_time(machine: Machine) -> None:
    machine.runs(SAVE + "trap 'save 2; exit 3' TERM; save 1; " + LIVES)
    machine.is_preempted()
    told = machine.agent.wait_for(Warned)
    assert told.goes_at is not None and told.stops
    assert 20.0 < told.goes_at - CLOCK.now() <= POWER_OFF_S
    assert machine.agent.ended().exit_code == 3
    assert machine.names[-1] == "step-2"


def test_a_job_that_does_not_listen_loses_what_it_had_not_saved_and_no_more(
    machine: Machine,
) -> None:
    machine.runs(SAVE + "trap '' TERM; save 1; " + LIVES)
    began_at = CLOCK.steady()
    machine.is_switched_off()
    assert machine.lands(began_at) < POWER_OFF_S
    assert (machine.agent.ended().how, machine.names) == ("stopped", ["step-1"])
    machine.agent.wait_for(Left)
