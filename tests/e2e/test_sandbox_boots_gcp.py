"""A whole run whose machine boots as one of Compute Engine does: by cloud-init, with a token."""

import json
from pathlib import Path

from booting import BOOTS_WITHIN_S, image_here, leaks_of, rules_of
from shell import Shell

JOB = """
name: boxed
command: ls -d /dev/nvidia[0-9]*; cat /sys/class/dmi/id/product_name; echo $CLOUDWHALE_JOB_ID
resources: {gpu: "L4:1", cpu: 1}
market: on-demand
duration: 5m
"""
SCRIPT = "clouds: [gcp]\nowned: none\n"


def test_a_machine_of_compute_engine_boots_runs_a_job_and_is_given_back(tmp_path: Path) -> None:
    script = tmp_path / "gcp.yaml"
    script.write_text(SCRIPT)
    told = {
        "CLOUDWHALE_SANDBOX_MACHINES": "boots", "CLOUDWHALE_SANDBOX_SCRIPT": str(script),
    }  # fmt: skip
    shell = Shell(tmp_path, told)
    box = shell.home / "sandbox" / "cloud"
    box.mkdir(parents=True)
    image_here(box)
    file = shell.write("boxed.yaml", JOB)
    run = shell.start("run", file, "--budget", "50", "--sandbox", "-y", "--json")
    out, _ = run.communicate(timeout=2 * BOOTS_WITHIN_S)
    assert run.returncode == 0, out
    said = shell("logs", "boxed", "--sandbox").out
    assert "/dev/nvidia0" in said and "Google Compute Engine" in said
    receipt = json.loads(out[out.index("\n{") :])  # what it says beside it comes first
    assert [one["provider"] for one in receipt["providers"]] == ["gcp"]
    assert not json.loads(shell("leaks", "--sandbox", "--json").out).get("leaks")
    assert shell("sandbox", "stop").code == 0
    assert leaks_of(box) == []
    assert rules_of(box) == []
    shell.close()
