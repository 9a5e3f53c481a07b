"""A whole run whose machine really boots: a container with its GPUs, and nothing left of it."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

from booting import BOOTS_WITHIN_S, image_here, leaks_of, rules_of
from dockerd import busybox_image
from shell import Shell

IMAGE = "cloudwhale-test/busybox:1"
JOB = f"""
name: boxed
image: {IMAGE}
command: ls -d /dev/nvidia[0-9]* && id -u && hostname
resources: {{gpu: "A10G:4", cpu: 1}}
duration: 5m
"""


def saved(layer: bytes) -> bytes:
    """Return an image of one layer as `docker save` writes it (Image Specification v1.2)."""
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    config = {
        "architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [digest]},
    }  # fmt: skip
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    files = {
        "layer.tar": layer,
        "config.json": json.dumps(config).encode(),
        "manifest.json": json.dumps(manifest).encode(),
    }
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, body in files.items():
            made = tarfile.TarInfo(name)
            made.size = len(body)
            tar.addfile(made, io.BytesIO(body))
    return archive.getvalue()


def test_a_run_boots_a_machine_runs_a_container_with_its_gpus_there_and_gives_it_back(
    tmp_path: Path,
) -> None:
    shell = Shell(tmp_path, {"CLOUDWHALE_SANDBOX_MACHINES": "boots"})
    box = shell.home / "sandbox" / "cloud"
    (box / "images").mkdir(parents=True)
    image_here(box)
    (box / "images" / "busybox.tar").write_bytes(saved(busybox_image()))
    file = shell.write("boxed.yaml", JOB)
    run = shell.start("run", file, "--budget", "50", "--sandbox", "-y")
    out, _ = run.communicate(timeout=2 * BOOTS_WITHIN_S)
    assert run.returncode == 0, out
    told = shell("logs", "boxed", "--sandbox").out.split()
    assert told[:4] == [f"/dev/nvidia{number}" for number in range(4)]
    assert not json.loads(shell("leaks", "--sandbox", "--json").out).get("leaks")
    assert shell("sandbox", "stop").code == 0
    assert leaks_of(box) == []
    assert rules_of(box) == []
    shell.close()
