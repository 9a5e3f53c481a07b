"""Real jobs save: what is whole is published and restored bit for bit, all else is not."""

import hashlib
import os
import random
from pathlib import Path

import pytest
from live_agent import LiveAgent, a_start, a_stop, until

from cloudwhale.agent.looking import LOOK_EVERY_S
from cloudwhale.mailbox.documents import CheckpointPublished, Remark
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.reason import Code

RARELY = CheckpointRule(every_s=300.0, grace_s=5.0)
SAVE = 'save() { echo "$1" > $D/.new; mv $D/.new $D/step-$1; }; D=$CLOUDWHALE_CHECKPOINT_DIR; '


def test_a_checkpoint_comes_back_bit_for_bit(agent: LiveAgent, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    _a_checkpoint(saved / "step-40")
    agent.start()
    agent.post(
        a_start(command=f"cp -a {saved}/step-40 $CLOUDWHALE_CHECKPOINT_DIR/", checkpoint=RARELY)
    )
    checkpoint = agent.published().checkpoint
    agent.ended()
    assert (checkpoint.name, checkpoint.attempt) == ("step-40", 1)
    agent.post(a_start(command="cp -a $CLOUDWHALE_CHECKPOINT_DIR restored; echo $CLOUDWHALE_RESUME",
                       attempt=2, restore=checkpoint))  # fmt: skip
    assert agent.ended(attempt=2).exit_code == 0
    assert agent.log(attempt=2) == b"1\n"
    assert _content(agent.folder(attempt=2).work / "restored") == _content(saved)
    assert len(agent.all_of(CheckpointPublished)) == 1, "what was restored is not published again"


def test_what_a_job_saves_is_published_while_it_runs(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command=SAVE + "for i in 1 2 3 4 5 6; do save $i; sleep 0.4; done"))
    agent.ended()
    names = [report.checkpoint.name for report in agent.all_of(CheckpointPublished)]
    assert len(names) >= 3
    assert names == sorted(names)
    assert names[-1] == "step-6"


def test_only_the_newest_checkpoints_stay_in_the_store(agent: LiveAgent) -> None:
    rule = CheckpointRule(every_s=0.1, keep=2)
    agent.start()
    agent.post(a_start(command=SAVE + "for i in 1 2 3 4 5 6; do save $i; sleep 0.4; done",
                       checkpoint=rule))  # fmt: skip
    agent.ended()
    published = [report.checkpoint.manifest for report in agent.all_of(CheckpointPublished)]
    assert len(published) > 2
    manifests = [key for key in agent.objects.keys("checkpoints") if key.endswith("manifest.json")]
    assert manifests == sorted(published[-2:])


def test_a_job_that_writes_into_one_file_for_ever_publishes_nothing_half_done(
    agent: LiveAgent,
) -> None:
    agent.start()
    writer = (
        "import os,time\\n"
        "f=open(os.environ['CLOUDWHALE_CHECKPOINT_DIR']+'/state','wb')\\n"
        "while not os.path.exists('stop'):\\n"
        " f.write(os.urandom(9000)); f.flush(); time.sleep(.01)\\n"
    )
    agent.post(a_start(command=f'printf "{writer}" > w.py; exec python3 w.py'))
    state_file = agent.folder().path / "checkpoints" / "state"
    pieces = 3 * LOOK_EVERY_S / 0.01  # it takes at least three looks to write so many
    until(lambda: state_file.exists() and state_file.stat().st_size > 9000 * pieces, "it writes")
    assert agent.all_of(CheckpointPublished) == []
    (agent.folder().work / "stop").touch()
    agent.ended()
    state = state_file.read_bytes()
    checkpoint = agent.published().checkpoint
    assert checkpoint.size_bytes == len(state)
    assert agent.objects.get(checkpoint.manifest.replace("manifest.json", "000000")) == state


def test_the_last_checkpoint_of_a_stopped_job_is_published(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command=SAVE + "trap 'save 99; exit 1' TERM; save 1; echo ready\n"
                       "while true; do sleep 0.05; done", checkpoint=RARELY))  # fmt: skip
    agent.wait_for_output(b"ready")
    agent.post(a_stop())
    assert agent.published().checkpoint.name == "step-99"
    end = agent.ended()
    assert (end.how, end.exit_code) == ("stopped", 1)
    assert end.unsaved_s < end.ran_s


def test_a_checkpoint_that_a_killed_job_was_writing_is_not_published(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command=SAVE + "save 1; "
                       "(echo half; sleep 0.1; echo of it) > $D/step-2; kill -9 $$",
                       checkpoint=RARELY))  # fmt: skip
    assert agent.ended().exit_code == 137
    assert [one.checkpoint.name for one in agent.all_of(CheckpointPublished)] == ["step-1"]


def test_a_job_without_a_checkpoint_has_saved_nothing(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="sleep 0.3; exit 1"))
    end = agent.ended()
    assert end.unsaved_s == end.ran_s > 0.3


def test_a_checkpoint_that_is_damaged_in_the_store_is_not_restored(
    agent: LiveAgent, tmp_path: Path
) -> None:
    agent.start()
    agent.post(a_start(command=SAVE + "save 1"))
    checkpoint = agent.published().checkpoint
    agent.ended()
    [damaged] = (tmp_path / "mailbox" / "checkpoints").glob("*/*/000000")
    damaged.write_text("2\n")
    agent.post(a_start(attempt=2, command="echo ran", restore=checkpoint))
    end = agent.ended(attempt=2)
    assert (end.how, end.exit_code) == ("restore-failed", None)
    assert "is damaged" in end.says


def test_where_the_newest_checkpoint_is_damaged_the_one_before_is_restored(
    agent: LiveAgent, tmp_path: Path
) -> None:
    agent.start()
    agent.post(a_start(command=SAVE + "save 1; until [ -e go ]; do sleep 0.05; done; save 2"))
    agent.published()
    (agent.folder().work / "go").touch()
    agent.ended()
    newest = agent.published(2).checkpoint
    (tmp_path / "mailbox" / newest.manifest).with_name("000000").write_text("3\n")
    agent.post(a_start(attempt=2, command="cat $CLOUDWHALE_CHECKPOINT_DIR/*", restore=newest))
    assert agent.ended(attempt=2).exit_code == 0
    assert agent.log(attempt=2) == b"1\n"
    [remark] = agent.all_of(Remark)
    assert remark.says.endswith("step-1 of attempt 1 was restored instead")


def test_the_checkpoints_of_earlier_attempts_do_not_pile_up(agent: LiveAgent) -> None:
    rule = CheckpointRule(every_s=0.1, keep=2)
    two = SAVE + "save 1; sleep 1.2; save 2"
    agent.start()
    agent.post(a_start(command=two, checkpoint=rule))
    agent.ended()
    first = agent.published(2).checkpoint
    agent.post(a_start(command=SAVE + "sleep 0.1; save 3; sleep 1.2; save 4", checkpoint=rule,
                       attempt=2, restore=first))  # fmt: skip
    agent.ended(attempt=2)
    own = [one.checkpoint.manifest for one in agent.all_of(CheckpointPublished)
           if one.attempt == 2]  # fmt: skip
    assert len(own) == 2

    def left() -> list[str]:
        return [key for key in agent.objects.keys("checkpoints") if key.endswith(".json")]

    until(lambda: left() == sorted(own), "what attempt 1 had saved is gone")


def test_a_checkpoint_that_is_gone_from_the_store_is_not_restored(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command=SAVE + "save 1"))
    checkpoint = agent.published().checkpoint
    agent.ended()
    agent.objects.delete([checkpoint.manifest])
    agent.post(a_start(attempt=2, command="echo ran", restore=checkpoint))
    assert agent.ended(attempt=2).how == "restore-failed"


def test_a_checkpoint_is_published_once_although_the_agent_was_killed(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command=SAVE + "save 1; while [ ! -e go ]; do sleep 0.05; done"))
    agent.published()
    agent.kill()
    agent.start()
    agent.joined_again(2)
    (agent.folder().work / "go").touch()
    agent.ended()
    assert {one.checkpoint.seq for one in agent.all_of(CheckpointPublished)} == {1}


def test_a_checkpoint_folder_outside_the_workdir_is_refused(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(checkpoint=CheckpointRule(path="../../elsewhere")))
    end = agent.ended()
    assert (end.how, end.exit_code) == ("start-failed", None)


@pytest.mark.root
def test_a_full_disk_in_the_checkpoint_folder_is_called_that(
    agent: LiveAgent, small_disk: Path
) -> None:
    agent.start()
    command = SAVE + "save 1; sleep 1.5; head -c 9000000 /dev/zero > $D/.big || exit 5"
    agent.post(a_start(command=command))
    end = agent.ended()
    assert (end.how, end.exit_code) == ("disk-full", 5)
    assert "No space left on device" in end.says
    assert agent.published().checkpoint.name == "step-1"


@pytest.mark.root
def test_a_log_that_fills_the_disk_does_not_kill_its_job(
    agent: LiveAgent, small_disk: Path
) -> None:
    agent.start()
    agent.post(a_start(command="yes 0123456789 | head -c 9000000; exit 0"))
    end = agent.ended()
    assert (end.how, end.exit_code) == ("exited", 0)
    remark = agent.wait_for(Remark)
    assert remark.code is Code.LOG_SHORTENED
    assert 1_000_000 < len(agent.log()) < 2_100_000


def _a_checkpoint(folder: Path) -> None:
    """Make a checkpoint with all that one may hold."""
    random.seed(7)
    (folder / "shards" / "deep").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "weights.bin").write_bytes(random.randbytes(3_000_000))
    (folder / "nothing").touch()
    (folder / "shards" / "deep" / "ünï #1?.bin").write_bytes(random.randbytes(70_000))
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o750)
    (folder / "latest").symlink_to("weights.bin")


def _content(folder: Path) -> dict[str, tuple[int, str]]:
    """Return every path below a folder with its mode and what it holds."""
    found: dict[str, tuple[int, str]] = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if path.is_symlink():
            held = os.readlink(path)
        else:
            held = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(folder))] = (mode, held)
    return found
