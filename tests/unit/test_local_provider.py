"""This host as a provider, and what it says it has."""

import argparse
import fcntl
import os
import signal
from pathlib import Path

import pytest
from live_agent import until

from cloudwhale.host import (
    Hierarchies,
    HostOptions,
    add_arguments,
    as_arguments,
    declared,
    facts,
    options_from,
)
from cloudwhale.spi.errors import SettingsError, Unreachable
from cloudwhale.spi.provider import LaunchRequest
from cloudwhale_providers.local import LocalProvider


def a_provider(tmp_path: Path, *options: str) -> LocalProvider:
    """Make a provider of this host with a home of its own."""
    home = tmp_path / "home"
    return LocalProvider(home, "host", lambda: facts(home, HostOptions()), options)


def a_request(tmp_path: Path) -> LaunchRequest:
    """Make a request for this host's agent."""
    return LaunchRequest(
        request_id="launch-1", node="host", offer=None, mailbox=(tmp_path / "mailbox").as_uri(),
        home=str(tmp_path / "home"),
    )  # fmt: skip


# -- the agent -------------------------------------------------------------------------------


def test_an_agent_that_is_there_already_is_not_started_again(tmp_path: Path) -> None:
    place = tmp_path / "home" / "nodes" / "host"
    place.mkdir(parents=True)
    with (place / "agent.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert a_provider(tmp_path).launch(a_request(tmp_path)).state == "running"
    assert not (place / "agent.log").exists()


def test_an_agent_outlives_who_asked_for_it_and_its_output_is_kept(tmp_path: Path) -> None:
    provider = a_provider(tmp_path)
    provider.launch(a_request(tmp_path))
    until(lambda: provider.machines()[0].state == "running", "the agent runs")
    lock = tmp_path / "home" / "nodes" / "host" / "agent.lock"
    pid = until(lambda: int(lock.read_text() or 0) or None, "the agent has said who it is")
    assert os.getsid(pid) == pid
    assert (tmp_path / "home" / "nodes" / "host" / "agent.log").exists()
    assert a_provider(tmp_path).machines()[0].state == "running", "another process sees it too"
    provider.terminate("host")
    until(lambda: provider.machines()[0].state == "gone", "the agent is gone")


def test_an_agent_that_cannot_start_is_gone_and_says_why(tmp_path: Path) -> None:
    provider = a_provider(tmp_path, "--no-such-option")
    provider.launch(a_request(tmp_path))
    until(lambda: provider.machines()[0].state == "gone", "it gave up")
    log = (tmp_path / "home" / "nodes" / "host" / "agent.log").read_text()
    assert "unrecognized arguments: --no-such-option" in log
    with pytest.raises(Unreachable, match="ended at once.*unrecognized arguments"):
        provider.launch(a_request(tmp_path))
    assert provider.launch(a_request(tmp_path)).state == "starting", "then it is tried again"


def test_a_home_that_cannot_be_written_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where a folder should be")
    with pytest.raises(Unreachable, match="cannot be started"):
        a_provider(tmp_path).launch(a_request(tmp_path))


def test_a_process_that_has_the_id_of_an_agent_of_old_is_not_ended(tmp_path: Path) -> None:
    place = tmp_path / "home" / "nodes" / "host"
    place.mkdir(parents=True)
    (place / "agent.lock").write_text(f"{os.getpid()}\n")
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        a_provider(tmp_path).terminate("host")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == []


def test_a_job_without_an_agent_is_left_over(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "nodes" / "host" / "attempts" / "job" / "1"
    folder.mkdir(parents=True)
    with (folder / "shim.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        [left] = a_provider(tmp_path).leftovers(())
        assert (left.id, left.what) == (str(folder), "a job without an agent")
    assert a_provider(tmp_path).leftovers(()) == ()


def test_a_provider_of_what_is_owned_offers_nothing(tmp_path: Path) -> None:
    assert a_provider(tmp_path).offers(0.0) == ()
    assert a_provider(tmp_path).extend("host", 1e9) == "fixed"


def test_the_disk_is_checked_and_whether_agents_run_here(tmp_path: Path) -> None:
    rows = {row.name: row for row in a_provider(tmp_path).check()}
    assert set(rows) == {"agents", "disk"}
    assert rows["agents"].state == "ok"
    assert "GiB free" in rows["disk"].says


# -- what a host has -------------------------------------------------------------------------


def test_a_host_has_what_the_kernel_says_unless_the_user_says_less(tmp_path: Path) -> None:
    own = facts(tmp_path, HostOptions())
    assert own.cpu <= len(os.sched_getaffinity(0))
    assert own.memory_gib * 2**30 <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    less = facts(tmp_path, HostOptions(cpu=0.5, memory_gib=1.0, labels={"rack": "a"}))
    assert (less.cpu, less.memory_gib, less.labels) == (0.5, 1.0, {"rack": "a"})
    assert own.runtimes == ("process",)


def test_a_folder_that_is_not_there_yet_has_the_disk_of_the_one_above(tmp_path: Path) -> None:
    assert facts(tmp_path / "a" / "b", HostOptions()).disk_gib > 0


def test_declared_devices_are_marked_and_numbered() -> None:
    devices = declared(["2x RTX4090 24GB", "A100 80GB"])
    assert [device.id for device in devices] == ["declared-0", "declared-1", "declared-2"]
    assert [(device.model, device.memory_gib) for device in devices] == [
        ("RTX4090", 24.0), ("RTX4090", 24.0), ("A100-80GB", 80.0)
    ]  # fmt: skip
    assert all(device.declared for device in devices)


@pytest.mark.parametrize("text", ["", "RTX4090", "two RTX4090", "24GB", "2x"])
def test_what_describes_no_device_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="describes no devices"):
        declared([text])


def read_back(*words: str) -> HostOptions:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return options_from(parser.parse_args(words))


def test_what_is_said_of_a_host_survives_an_agents_command_line() -> None:
    options = HostOptions(devices=("2x L4 24GB",), cpu=3.0, memory_gib=7.0, labels={"a": "b=c"})
    assert read_back(*as_arguments(options)) == options
    assert read_back() == HostOptions()
    with pytest.raises(SettingsError, match="has no value"):
        read_back("--label=a")


# -- control groups that are only folders ----------------------------------------------------


def hierarchies(tmp_path: Path, own: str, *mounts: str) -> Hierarchies:
    """Make control groups under a folder; `mounts` end with what mountinfo says of each."""
    lines = [f"30 25 0:26 {mount}" for mount in mounts]
    return Hierarchies("\n".join(lines).replace("@", str(tmp_path)), own)


def test_the_smallest_limit_above_us_counts(tmp_path: Path) -> None:
    for folder, most in (("", "max"), ("a", "3000000000"), ("a/b", "5000000000")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "memory.max").write_text(f"{most}\n")
        (tmp_path / folder / "cpu.max").write_text("150000 100000\n" if folder else "max 100000\n")
    found = hierarchies(tmp_path, "0::/a/b", "/ @ rw - cgroup2 cgroup2 rw")
    assert found.memory_most_bytes() == 3_000_000_000
    assert found.cpu_most() == 1.5


def test_a_limit_of_version_1_that_is_none_is_none(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "cpu").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    mounts = (
        "/ @/memory rw - cgroup cgroup rw,memory",
        "/ @/cpu rw - cgroup cgroup rw,cpu,cpuacct",
    )
    found = hierarchies(tmp_path, "4:memory:/\n3:cpu,cpuacct:/", *mounts)
    assert (found.memory_most_bytes(), found.cpu_most()) == (None, None)
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("1073741824\n")
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("50000\n")
    assert (found.memory_most_bytes(), found.cpu_most()) == (1 << 30, 0.5)


def test_in_a_container_the_mount_stands_for_our_group(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    found = hierarchies(tmp_path, "0::/docker/abc", "/docker/abc @ rw - cgroup2 cgroup2 rw")
    assert found.lineage("") == [tmp_path]
    elsewhere = hierarchies(tmp_path, "0::/not/here", "/ @ rw - cgroup2 cgroup2 rw")
    assert elsewhere.memory_most_bytes() == 1000


def test_a_host_without_control_groups_has_no_limits() -> None:
    found = Hierarchies("", "")
    assert (found.memory_most_bytes(), found.cpu_most(), found.lineage("cpu")) == (None, None, [])
