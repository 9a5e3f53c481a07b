"""What may go wrong with machines that boot: their box dies, their metadata is late, they pry."""

import os
import signal
from pathlib import Path

from booting import BOOTS_WITHIN_S, a_booting_cloud, image_here, leaks_of, rules_of
from boxed import IMAGE, REGION
from live_agent import CLOCK
from mortal_box import clients
from shell import Shell, until

from cloudwhale_providers.sandbox import Sandbox
from cloudwhale_providers.sandbox.endpoint import MetadataFault, Weather
from cloudwhale_providers.sandbox.processes import of_folder

SLEEPS = "#!/bin/sh\n(trap '' TERM; setsid sleep 600) &\necho it sleeps\nsleep 600\n"
"""User data that never ends, and leaves a process that has a session of its own."""


def test_what_a_machine_leaves_when_its_box_is_killed_is_gone_at_once_or_with_the_next_box(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "box"
    folder.mkdir()
    image_here(folder)
    shell = Shell(tmp_path)
    words = ("sandbox", "serve", "--folder", str(folder), "--machines", "boots")
    box = shell.start(*words)
    until("the cloud answers", lambda: Sandbox().standing(folder))
    launch(folder, SLEEPS)
    consoles = folder / "instances"
    until("it runs its user data", lambda: "it sleeps" in said(consoles), limit_s=BOOTS_WITHIN_S)
    assert leaks_of(folder)
    os.kill(box.pid, signal.SIGKILL)
    box.wait()
    until("its machine has ended with it", lambda: not of_folder(consoles), limit_s=60.0)
    assert not [line for line in leaks_of(folder) if "overlay" in line], "mounts are private"
    box = shell.start(*words)
    until("the next one answers", lambda: Sandbox().standing(folder))
    assert leaks_of(folder) == []
    box.terminate()
    box.wait()
    assert leaks_of(folder) == []
    assert rules_of(folder) == []
    shell.close()


def said(consoles: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in consoles.glob("*/console.log"))


def launch(folder: Path, script: str) -> None:
    """Launch a machine in a box that another process is."""
    ec2 = clients(folder)["ec2", REGION]
    ec2.run_instances(
        ImageId=IMAGE, InstanceType="g5.xlarge", MinCount=1, MaxCount=1, UserData=script
    )


def test_a_machine_whose_metadata_service_is_slow_boots_later(tmp_path: Path) -> None:
    slow = Weather(metadata_faults=(MetadataFault(delay_s=0.2),))
    with a_booting_cloud(tmp_path / "box", slow) as cloud:
        machine = cloud.launch("late", "#!/bin/sh\necho it runs\n")
        cloud.until(lambda: "it runs" in cloud.console(machine), "it boots in the end")
        found = cloud.endpoint.instance(machine)
        assert found is not None and CLOCK.now() - found.launched_at > 4.0


def test_a_machine_whose_metadata_service_answers_500_never_boots_and_is_taken_back(
    tmp_path: Path,
) -> None:
    ill = Weather(metadata_faults=(MetadataFault(code=500),))
    with a_booting_cloud(tmp_path / "box", ill) as cloud:
        machine = cloud.launch("never", "#!/bin/sh\necho it runs\n")
        over = "modules --mode=final failed"
        cloud.until(lambda: over in cloud.console(machine), "cloud-init has given up")
        assert "it runs" not in cloud.console(machine)
        cloud.ends(machine)
        assert cloud.leaks() == []


def test_a_machine_has_its_own_time_its_own_network_and_no_power_over_this_host(
    tmp_path: Path,
) -> None:
    with a_booting_cloud(tmp_path / "box", Weather(clock_ahead_s=300.0)) as cloud:
        one = cloud.launch("one", PRIES)
        other = cloud.launch("other", "#!/bin/sh\n")
        cloud.until(lambda: one not in cloud.running, "it has powered off")
        seen = dict(line.split(": ", 1) for line in cloud.console(one).splitlines() if ": " in line)
        assert abs(float(seen["its time"]) - CLOCK.now() - 300.0) < 60.0
        assert seen["sets the clock"] == "no"
        assert seen["its own id"] == one
        assert other not in cloud.console(one)
        assert seen["the cloud"] == "403"  # nobody who is known, but there
        assert seen["this host's loopback"] == "no"


PRIES = """#!/bin/sh
echo "its time: $(date +%s)"
yes() { if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi; }
echo "sets the clock: $(yes date -s 2020-01-01)"
own=http://169.254.169.254/latest
token=$(curl -s -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' $own/api/token)
echo "its own id: $(curl -s -H "X-aws-ec2-metadata-token: $token" $own/meta-data/instance-id)"
echo "the cloud: $(curl -s -o /dev/null -w '%{http_code}' $AWS_ENDPOINT_URL/cloudwhale-sandbox)"
echo "this host's loopback: $(yes curl -s -m 2 http://127.0.0.1:${AWS_ENDPOINT_URL##*:})"
shutdown -h now
"""
