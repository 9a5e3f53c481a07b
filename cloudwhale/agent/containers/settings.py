"""How an attempt's container is set up: what the agent told, in the words of Docker."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cloudwhale.agent.containers.cdi import cdi_devices
from cloudwhale.agent.containers.client import Docker
from cloudwhale.agent.containers.script import SCRIPT, SHELL, SOME_GPUS

HOME, NODE, JOB, ATTEMPT = (f"cloudwhale.{word}" for word in ("home", "node", "job", "attempt"))
"""Labels; nothing that is secret, as everybody who may ask Docker can read them."""
LEAST_CPU = 0.01  # Docker refuses less
LOG_BYTES = "1m"  # the job's output goes to the shim; Docker keeps what its own programs say
NAME_MOST = 180
MIG = "MIG-"
DROPPED = ("NET_RAW", "MKNOD")
"""What Docker gives and no job needs: forged packets, which pass by all filters, and devices."""


NO_CORES = {"Name": "core", "Soft": 1, "Hard": 1}
"""One byte: memory holds the job's secrets (why not none, `agent/__main__` says)."""


def home_of(attempts: Path) -> str:
    """Return what tells this agent's containers from those of others at the same Docker."""
    return hashlib.sha256(os.fsencode(attempts)).hexdigest()[:16]


def labels_of(folder: Path) -> dict[str, str]:
    """Return the labels by which an attempt's container is found, from its folder's place."""
    attempts = folder.parents[1]
    return {HOME: home_of(attempts), JOB: folder.parent.name, ATTEMPT: folder.name}


def name_of(folder: Path) -> str:
    """Return the name of an attempt's container: the same name can be given only once."""
    said = re.sub(r"[^a-zA-Z0-9_.-]", "-", f"cloudwhale-{folder.parent.name}")[:NAME_MOST]
    return f"{said}-{folder.name}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]}"


def container(folder: Path, told: Mapping[str, Any], client: Docker) -> dict[str, Any]:
    """Return the arguments of `create_container`; raise what the client raises when asked."""
    here = client.info()
    return {
        "image": told["image"],
        "name": name_of(folder),
        "labels": {**labels_of(folder), NODE: told["node"]},
        "entrypoint": [SHELL, "-c", SCRIPT, "cloudwhale"],
        "command": [told["box"], gpus_visible(told["gpus"]), told["setup"] or "", told["command"]],
        "working_dir": told["cwd"],
        "environment": _environment(told),
        "user": _user(told, here),
        "stop_signal": "SIGTERM",
        "host_config": _host_config(told, here, client),
    }


def gpus_visible(devices: Sequence[str]) -> str:
    """Return what the proof counts: device files, which slices of a GPU share."""
    return SOME_GPUS if any(one.startswith(MIG) for one in devices) else str(len(devices))


def _environment(told: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment without secrets, which Docker would write to its disk.

    Docker's init passes a signal on to all of us if it knows this word of its own.
    """
    env: dict[str, str] = {**told["env"], "TINI_KILL_PROCESS_GROUP": "1"}
    if not told["gpus"]:
        env["NVIDIA_VISIBLE_DEVICES"] = "void"  # many images ask for all of them
    if os.getuid() and "user" not in told:
        env.setdefault("HOME", told["cwd"])  # the image does not know this user
    return env


def _user(told: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Return the job's own user, else the agent's: what it saves must be read by the agent.

    Where Docker runs as this user, that is root inside.
    """
    if "user" in told:
        return f"{told['user']}:{told['user']}"
    rootless = any("name=rootless" in one for one in here.get("SecurityOptions") or ())
    return "0:0" if rootless else f"{os.getuid()}:{os.getgid()}"


def _host_config(
    told: Mapping[str, Any], here: Mapping[str, Any], client: Docker
) -> dict[str, Any]:
    from docker.types import LogConfig

    given: dict[str, Any] = {
        "init": True,
        "mounts": _mounts(told),
        "nano_cpus": int(1e9 * min(max(told["cpu"], LEAST_CPU), here.get("NCPU") or told["cpu"])),
        "shm_size": told["shm_bytes"],
        "log_config": LogConfig(
            type=LogConfig.types.JSON, config={"max-size": LOG_BYTES, "max-file": "1"}
        ),
        "group_add": [] if "user" in told else [str(group) for group in os.getgroups()],
        "privileged": False,
        "cap_drop": list(DROPPED),
        "security_opt": ["no-new-privileges:true"],
    }
    if told["host_network"]:
        given["network_mode"] = "host"
    if told["secrets"]:
        given["ulimits"] = [NO_CORES]
    if told["memory_bytes"] is not None:
        given |= {"mem_limit": told["memory_bytes"], "memswap_limit": told["memory_bytes"]}
    if told["gpus"]:
        given["device_requests"] = [_gpu_request(told["gpus"], here)]
    if any("name=userns" in one for one in here.get("SecurityOptions") or ()):
        given["userns_mode"] = "host"  # files must belong to the agent's user outside too
    return client.create_host_config(**given)


def _gpu_request(gpus: Sequence[str], here: Mapping[str, Any]) -> Any:
    """Return how GPUs are asked for: by the names of CDI where Docker has those, else by UUID.

    What CDI gives stands in the container's own list of devices, and is still there when systemd
    reads its units anew; what a hook gives is lost by that (NVIDIA Container Toolkit,
    "Troubleshooting").
    """
    from docker.types import DeviceRequest

    names = cdi_devices(gpus, here)
    if names:
        return DeviceRequest(driver="cdi", device_ids=names)
    return DeviceRequest(device_ids=list(gpus), capabilities=[["gpu"]])


def _mounts(told: Mapping[str, Any]) -> list[Any]:
    """Return what is seen inside: our folders under the names that they have outside."""
    from docker.types import Mount

    ours = [Mount(path, path, type="bind") for path in (told["cwd"], told["box"], *told["saves"])]
    theirs = [
        Mount(path, outside, type="bind", read_only=mode == "ro")
        for outside, inside in told["mounts"].items()
        for path, _, mode in [inside.partition(":")]
    ]
    return ours + theirs
