"""Notices of a real metadata service, and jobs that do badly with the time that they leave."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from live_agent import CLOCK, LiveAgent, a_start

from cloudwhale.mailbox.documents import CheckpointPublished, Remark, Warned
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.reason import Code
from cloudwhale_providers.sandbox.metadata import FINE, MetadataService, Trouble

RULE = CheckpointRule(every_s=0.2, grace_s=30.0)
D = "D=$CLOUDWHALE_CHECKPOINT_DIR; "
SAVE = D + 'save() { echo "$1" > $D/.new; mv $D/.new $D/step-$1; }; '
LIVES = "echo up; while true; do sleep 0.1; done"
NOTICE_S = 6.0
"""EC2 gives two minutes; what is tested is what becomes of a half."""


class Machine:
    """What EC2 says to the machine of an agent."""

    def __init__(self, agent: LiveAgent, service: MetadataService) -> None:
        self.says: dict[str, str] = {}
        self.trouble = FINE
        url = service.add("i-1", lambda: self.says, trouble=lambda: self.trouble)
        agent.program = "brief_agent"
        agent.options = ["--rented", "--lease=1:600", "--notices=aws"]
        agent.env |= {"AWS_EC2_METADATA_SERVICE_ENDPOINT": url}
        self._agent = agent

    def goes(self, in_s: float = NOTICE_S, action: str = "terminate") -> None:
        """Say that it is taken back."""
        at = datetime.fromtimestamp(CLOCK.now() + in_s, UTC).isoformat()
        self.says["meta-data/spot/instance-action"] = json.dumps({"action": action, "time": at})

    def runs(self, command: str, until_it_says: bytes = b"up", **fields: Any) -> None:
        """Let a job run that has said something."""
        self._agent.start()
        rule = fields.pop("checkpoint", RULE)
        self._agent.post(a_start(command=command, checkpoint=rule, **fields))
        self._agent.wait_for_output(until_it_says)

    @property
    def last_words(self) -> str:
        """What the agent says of the time that the notice left."""
        [said] = [one.says for one in self._agent.all_of(Remark) if one.code is Code.TAKEN_AWAY]
        return said


@pytest.fixture
def machine(agent: LiveAgent) -> Iterator[Machine]:
    service = MetadataService(CLOCK.now)
    yield Machine(agent, service)
    service.close()


def names(agent: LiveAgent) -> list[str]:
    return [one.checkpoint.name for one in agent.all_of(CheckpointPublished)]


def test_a_job_that_ignores_its_signal_is_killed_and_keeps_what_it_saved_before(
    agent: LiveAgent, machine: Machine
) -> None:
    machine.runs(SAVE + "trap '' TERM; save 1; " + LIVES)
    agent.published()
    begins = CLOCK.steady()
    machine.goes()
    end = agent.ended()
    assert CLOCK.steady() - begins < NOTICE_S, "half of the notice is for uploads"
    assert (end.how, names(agent)) == ("stopped", ["step-1"])
    assert "step-1 (2 bytes), saved" in machine.last_words
    assert "it was killed after its grace of 3 s" in machine.last_words


def test_a_job_that_saves_too_late_goes_on_from_what_it_saved_before(
    agent: LiveAgent, machine: Machine
) -> None:
    machine.runs(SAVE + "trap 'sleep 30; save 2; exit 3' TERM; save 1; " + LIVES)
    agent.published()
    machine.goes()
    agent.ended()
    assert names(agent) == ["step-1"]
    assert "nothing that it saved after the notice was stored in time" in machine.last_words


def test_what_a_job_was_killed_over_while_it_wrote_is_never_published(
    agent: LiveAgent, machine: Machine
) -> None:
    tears = "trap 'while true; do head -c 1000 /dev/urandom >> $D/step-2; done' TERM; "
    machine.runs(SAVE + tears + "save 1; " + LIVES)
    agent.published()
    machine.goes()
    agent.ended()
    assert names(agent) == ["step-1"]
    assert [key for key in agent.objects.keys("checkpoints") if "manifest" in key] == [
        "checkpoints/job/1-1/manifest.json"
    ]


def test_garbage_with_a_name_that_nobody_can_store_leaves_the_last_good_one(
    agent: LiveAgent, machine: Machine
) -> None:
    made = 'mkdir $D/.bad; echo x > $D/.bad/$(printf "\\377"); sleep 0.05; mv $D/.bad $D/bad'
    garbage = f"trap '{made}; exit 3' TERM; "
    machine.runs(SAVE + garbage + "save 1; " + LIVES)
    agent.published()
    machine.goes()
    end = agent.ended()
    assert (end.exit_code, names(agent)) == (3, ["step-1"])
    dropped = [one for one in agent.all_of(Remark) if one.code is Code.CHECKPOINT_DROPPED]
    assert {"is not UTF-8" in one.says for one in dropped} == {True}


@pytest.mark.root
def test_a_job_that_fills_the_disk_while_it_saves_keeps_what_it_saved_before(
    agent: LiveAgent, machine: Machine, small_disk: Path
) -> None:
    fills = "trap 'head -c 9000000 /dev/zero > $D/step-2; exit 5' TERM; "
    machine.runs(SAVE + fills + "save 1; " + LIVES)
    agent.published()
    machine.goes()
    end = agent.ended()
    assert (end.how, end.exit_code, names(agent)) == ("stopped", 5, ["step-1"])
    assert "step-1 (2 bytes), saved" in machine.last_words


def test_what_a_job_saves_within_a_notice_is_stored_and_told_with_its_times(
    agent: LiveAgent, machine: Machine
) -> None:
    machine.runs(SAVE + "trap 'save 2; exit 3' TERM; " + LIVES)
    machine.goes(120.0)
    agent.ended()
    assert names(agent) == ["step-2"]
    assert machine.last_words.startswith("step-2 (2 bytes) was saved after the notice and stored")
    assert "s before the machine goes: 0." in machine.last_words


def test_a_job_that_completes_as_its_machine_is_taken_has_completed_with_its_outputs(
    agent: LiveAgent, machine: Machine
) -> None:
    waits = "mkdir results; echo made > results/model; echo up; while ! test -e now; do :; done"
    machine.runs(waits, outputs=("results/",))
    (agent.folder().work / "now").touch()
    machine.goes()
    end = agent.ended()
    agent.wait_for(Warned)
    assert (end.how, end.exit_code) == ("exited", 0)
    assert agent.objects.get("outputs/job/1/000001") == b"made\n"


def test_a_machine_that_hibernates_at_once_keeps_what_was_whole(
    agent: LiveAgent, machine: Machine
) -> None:
    rarely = CheckpointRule(every_s=600.0, grace_s=30.0)
    machine.runs(SAVE + "trap '' TERM; save 1; " + LIVES, checkpoint=rarely)
    begins = CLOCK.steady()
    machine.goes(120.0, "hibernate")
    agent.ended()
    assert names(agent) == ["step-1"] and CLOCK.steady() - begins < 10.0


def test_maintenance_tomorrow_is_told_today_and_stops_nobody(
    agent: LiveAgent, machine: Machine
) -> None:
    tomorrow = datetime.fromtimestamp(CLOCK.now() + 86_400.0, UTC)
    event = {"Code": "instance-retirement", "NotBefore": f"{tomorrow:%d %b %Y %H:%M:%S GMT}"}
    machine.says["meta-data/events/maintenance/scheduled"] = json.dumps([event])
    machine.runs("sleep 2; echo done", b"done")
    assert agent.ended().exit_code == 0
    [warned] = agent.all_of(Warned)
    assert warned.goes_at is not None and "instance-retirement" in warned.says


@pytest.mark.parametrize("trouble", [Trouble(code=500), Trouble(delay_s=1.5)], ids=["500", "slow"])
def test_a_notice_is_heard_although_the_service_fails_or_is_slow_for_a_while(
    agent: LiveAgent, machine: Machine, trouble: Trouble
) -> None:
    machine.trouble = trouble
    machine.runs(SAVE + "trap 'save 2; exit 3' TERM; " + LIVES)
    machine.goes(120.0)
    if trouble.code is not None:
        agent.post(a_start("other", command="true"))
        agent.ended("other")
        assert not agent.all_of(Warned), "nobody says it yet"
        machine.trouble = FINE
    agent.ended()
    assert names(agent) == ["step-2"]


def test_a_service_that_forgets_its_tokens_is_heard(agent: LiveAgent) -> None:
    now = [0.0]
    service = MetadataService(lambda: now[0])
    machine = Machine(agent, service)
    try:
        machine.runs(SAVE + "trap 'save 2; exit 3' TERM; " + LIVES)
        now[0] += 30_000.0  # the longest that a token lasts is six hours
        machine.goes(120.0)
        agent.ended()
        assert names(agent) == ["step-2"], "it heard of the notice, and saved within it"
    finally:
        service.close()
