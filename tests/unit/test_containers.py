"""Containers without Docker: what it is told, what its answers mean, how an end is judged."""

import json
import os
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from live_agent import a_start, until

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.containers.box import Box
from cloudwhale.agent.containers.client import NotThere, trouble
from cloudwhale.agent.containers.end import Traces, judged, unborn
from cloudwhale.agent.containers.images import ImageRefused, registry_of
from cloudwhale.agent.containers.process import first_process
from cloudwhale.agent.containers.settings import container, labels_of, name_of
from cloudwhale.agent.launching import NORMAL, description, runtime_of
from cloudwhale.agent.shim_causes import cause, gpu_out_of_memory
from cloudwhale.host.containers import answer, check_docker, images_here
from cloudwhale.model.node import Device

GIB = 2**30


class FakeDocker:
    """The two answers of Docker that a container's settings depend on."""

    def __init__(self, **info: Any) -> None:
        self._info = {"NCPU": 2, "SecurityOptions": [], **info}

    def info(self) -> dict[str, Any]:
        return self._info

    def create_host_config(self, **given: Any) -> dict[str, Any]:
        return given


def settings(tmp_path: Path, docker: FakeDocker | None = None, **order: Any) -> dict[str, Any]:
    """Return what Docker is told of a job with an image."""
    folder = AttemptFolder(tmp_path / "nodes" / "host" / "attempts", ("job", 1))
    told = description(a_start(image="python:3.12", **order), folder, SECRETS, None, NORMAL)
    fake: Any = docker or FakeDocker()
    return container(folder.path, json.loads(told), fake)


SECRETS = {"TOKEN": "deep blue"}


def a_device(name: str, *, declared: bool = False) -> Device:
    return Device(id=name, model="L4", memory_gib=24.0, declared=declared)


def test_limits_are_those_of_the_order(tmp_path: Path) -> None:
    host = settings(tmp_path, cpu=1.5, memory_gib=4.0, shm_gib=1.0)["host_config"]
    assert host["nano_cpus"] == 1_500_000_000
    assert host["mem_limit"] == host["memswap_limit"] == 4 * GIB
    assert host["shm_size"] == GIB
    assert (host["init"], host["privileged"]) == (True, False)


def test_limits_that_docker_would_refuse_are_brought_within_its_bounds(tmp_path: Path) -> None:
    assert settings(tmp_path, cpu=64.0)["host_config"]["nano_cpus"] == 2_000_000_000
    assert settings(tmp_path, cpu=0.001)["host_config"]["nano_cpus"] == 10_000_000
    assert settings(tmp_path, memory_gib=4.0)["host_config"]["shm_size"] == 2 * GIB


def test_the_gpus_are_asked_for_by_uuid_and_declared_ones_not_at_all(tmp_path: Path) -> None:
    real = settings(tmp_path, devices=(a_device("GPU-a"), a_device("GPU-b")))
    (request,) = real["host_config"]["device_requests"]
    assert request["DeviceIDs"] == ["GPU-a", "GPU-b"]
    assert request["Capabilities"] == [["gpu"]]
    assert real["command"][1] == "2"
    assert "NVIDIA_VISIBLE_DEVICES" not in real["environment"]
    stand_in = settings(tmp_path, devices=(a_device("declared-0", declared=True),))
    assert "device_requests" not in stand_in["host_config"]
    assert stand_in["command"][1] == "0"
    assert stand_in["environment"]["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert settings(tmp_path, devices=(a_device("MIG-a"),))["command"][1] == "some"


LISTED = [{"Source": "cdi", "ID": f"nvidia.com/gpu={one}"} for one in ("0", "GPU-a", "GPU-b")]


def cdi_specification(folder: Path, *names: str) -> str:
    """Write what the toolkit writes of its devices; return the folder."""
    lines = [f"  - name: {one}\n    containerEdits: {{}}\n" for one in names]
    (folder / "nvidia.yaml").write_text("kind: nvidia.com/gpu\ndevices:\n" + "".join(lines))
    (folder / "README").write_text("nvidia.com/gpu GPU-c")
    return str(folder)


@pytest.mark.parametrize(
    ("info", "named"),
    [
        ({}, False),
        ({"CDISpecDirs": []}, False),
        ({"CDISpecDirs": ["none-here"]}, False),
        ({"CDISpecDirs": ["SPECS"]}, True),
        ({"CDISpecDirs": ["SPECS"], "DiscoveredDevices": []}, False),
        ({"CDISpecDirs": [], "DiscoveredDevices": LISTED}, True),
        ({"DiscoveredDevices": LISTED[:2]}, False),
    ],
)
def test_gpus_are_asked_for_by_their_names_in_cdi_where_docker_knows_all_of_them(
    tmp_path: Path, info: dict[str, Any], named: bool
) -> None:
    specs = cdi_specification(tmp_path, "GPU-a", "GPU-b", "all")
    told = {key: specs if one == ["SPECS"] else one for key, one in info.items()}
    told |= {"CDISpecDirs": [specs]} if info.get("CDISpecDirs") == ["SPECS"] else {}
    here = FakeDocker(ServerVersion="28.3.0", **told)
    host = settings(tmp_path, here, devices=(a_device("GPU-a"), a_device("GPU-b")))["host_config"]
    (request,) = host["device_requests"]
    if named:
        assert request["Driver"] == "cdi"
        assert request["DeviceIDs"] == ["nvidia.com/gpu=GPU-a", "nvidia.com/gpu=GPU-b"]
        assert not request["Capabilities"] and not request["Count"]
    else:
        assert (request["Driver"], request["DeviceIDs"]) == ("", ["GPU-a", "GPU-b"])
        assert request["Capabilities"] == [["gpu"]]


def test_no_container_gains_rights_and_its_network_is_its_own(tmp_path: Path) -> None:
    host = settings(tmp_path)["host_config"]
    assert host["cap_drop"] == ["NET_RAW", "MKNOD"]
    assert host["security_opt"] == ["no-new-privileges:true"]
    assert host["ulimits"] == [{"Name": "core", "Soft": 1, "Hard": 1}]
    assert "network_mode" not in host
    gang = settings(tmp_path, host_network=True)
    assert gang["host_config"]["network_mode"] == "host"


def test_a_job_with_a_user_of_its_own_is_that_user_inside(tmp_path: Path) -> None:
    folder = tmp_path / "nodes" / "host" / "attempts" / "job" / "1"
    folder.mkdir(parents=True)
    (folder / "user").write_text("200007")
    told = settings(tmp_path, host_network=True)
    assert told["user"] == "200007:200007"
    assert told["host_config"]["group_add"] == []
    assert told["environment"]["HOME"] == str(folder / "home")
    assert str(folder / "home") in {one["Source"] for one in told["host_config"]["mounts"]}


def test_no_secret_and_nothing_of_ours_is_told_to_docker(tmp_path: Path) -> None:
    told = settings(tmp_path, secrets={"TOKEN": "sealed"}, env={"A": "b"})
    assert told["environment"]["A"] == "b"
    assert "deep blue" not in json.dumps(told)
    assert "PATH" not in told["environment"]


@pytest.mark.parametrize(
    ("uid", "options", "user", "userns", "home"),
    [
        (0, [], "0:0", None, None),
        (1000, [], "1000:1000", None, "work"),
        (1000, ["name=rootless"], "0:0", None, "work"),
        (1000, ["name=userns"], "1000:1000", "host", "work"),
    ],
)
def test_a_container_runs_as_the_agents_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, options: list[str], user: str,
    userns: str | None, home: str | None,
) -> None:  # fmt: skip
    monkeypatch.setattr(os, "getuid", lambda: uid)
    monkeypatch.setattr(os, "getgid", lambda: uid)
    told = settings(tmp_path, FakeDocker(SecurityOptions=options))
    assert told["user"] == user
    assert told["host_config"].get("userns_mode") == userns
    assert Path(told["environment"].get("HOME", "")).name == (home or "")


def test_a_mount_goes_where_the_order_says_and_ours_keep_their_names(tmp_path: Path) -> None:
    mounts = settings(tmp_path, mounts={"/data": "/corpus:ro", "/out": "/out"})["host_config"]
    found = {one["Source"]: (one["Target"], one["ReadOnly"]) for one in mounts["mounts"]}
    assert found.pop("/data") == ("/corpus", True)
    assert found.pop("/out") == ("/out", False)
    folder = tmp_path / "nodes" / "host" / "attempts" / "job" / "1"
    names = {str(folder / name) for name in ("work", "box", "checkpoints")}
    assert set(found) == names == {target for target, _ in found.values()}


def test_containers_of_two_homes_with_one_job_have_two_names(tmp_path: Path) -> None:
    one, other = (tmp_path / home / "attempts" / "job é" / "1" for home in "ab")
    assert name_of(one) != name_of(other)
    assert labels_of(one) != labels_of(other)
    assert name_of(one).isascii()


# -- how an end is judged ------------------------------------------------------------------------

WANTED: dict[str, Any] = {
    "gpus": [], "memory_bytes": GIB, "full_below": 0, "full_paths": [], "image": "python:3.12",
}  # fmt: skip
GONE, BORN = {"gpus": "0"}, {"gpus": "0", "began": ""}
EXITED = {"Running": False, "OOMKilled": False, "ExitCode": 137}


@pytest.mark.parametrize(
    ("notes", "state", "ours", "end"),
    [
        ({**BORN, "over": "0"}, EXITED, False, ("exited", 0)),
        ({**BORN, "over": "0", "oom": ""}, EXITED, False, ("exited", 0)),
        ({**BORN, "over": "3"}, None, False, ("exited", 3)),
        ({**BORN, "over": "137", "oom": ""}, EXITED, False, ("oom", 137)),
        (BORN, {**EXITED, "OOMKilled": True}, False, ("oom", 137)),
        ({**GONE, "setup-failed": "", "over": "4"}, EXITED, False, ("setup-failed", 4)),
        (BORN, EXITED, True, ("exited", 137)),
        (BORN, EXITED, False, ("runtime-lost", None)),
        (BORN, None, False, ("runtime-lost", None)),
        ({**BORN, "signalled": "", "over": "143"}, None, False, ("runtime-lost", None)),
        ({**BORN, "signalled": "", "over": "143"}, EXITED, False, ("exited", 143)),
        ({**BORN, "signalled": "", "over": "143"}, None, True, ("exited", 143)),
    ],
)
def test_an_end_is_judged_by_the_containers_notes_and_dockers_word(
    notes: dict[str, str], state: dict[str, Any] | None, ours: bool, end: tuple[str, int | None]
) -> None:
    found = judged(Traces(notes, state, b"", ours), WANTED)
    assert (found.how, found.code) == end


def test_a_container_that_the_kernel_ended_for_memory_ran_out_of_it() -> None:
    found = judged(Traces(BORN, EXITED, b"", ours=False, starved=True), WANTED)
    assert (found.how, found.code) == ("oom", 137)
    removed = judged(Traces(BORN, {**EXITED, "ExitCode": 143}, b"", False, starved=True), WANTED)
    assert removed.how == "runtime-lost"


@pytest.mark.parametrize(
    ("given", "visible", "fails"),
    [
        ([], "3", False), (["GPU-a"], "1", False), (["GPU-a"], "0", True), (["GPU-a"], "3", True),
        (["MIG-a", "MIG-b"], "1", False), (["MIG-a"], "0", True),
    ],
)  # fmt: skip
def test_without_the_proof_of_its_gpus_no_end_counts(
    given: list[str], visible: str, fails: bool
) -> None:
    notes = {"gpus": visible, "began": "", "over": "0"}
    found = judged(Traces(notes, EXITED, b"", ours=False), {**WANTED, "gpus": given})
    assert found.how == ("no-gpus" if fails else "exited")


def test_an_image_without_a_shell_is_refused_and_a_folder_that_is_not_seen_is_not() -> None:
    said = "[FATAL tini (7)] exec /bin/sh failed: No such file or directory"
    refused = unborn("alone:1", {"ExitCode": 127}, said)
    assert refused.how == "image-refused"
    assert "alone:1 has no /bin/sh" in refused.says
    other = "[FATAL tini (7)] exec /bin/sh failed: Exec format error"
    assert unborn("arm64:1", {"ExitCode": 1}, other).how == "image-refused"
    assert unborn("alone:1", {"ExitCode": 2}, "can't create output").how == "start-failed"


@pytest.mark.parametrize(
    "line",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "RuntimeError: CUDA error: out of memory",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to",
    ],
)
def test_gpu_memory_that_was_refused_is_read_from_the_log(line: str) -> None:
    newest = f"step 3\n{line}\n  in forward\n".encode()
    assert gpu_out_of_memory(newest) == line
    known = cause(1, newest)
    assert known is not None and known[0] == "gpu-oom"
    assert cause(0, newest) is None


def test_other_words_about_memory_are_no_refusal_of_the_gpu() -> None:
    assert gpu_out_of_memory(b"MemoryError\nallocated 3 GiB of CUDA memory\n") is None
    assert cause(1, b"grpc: RESOURCE_EXHAUSTED: quota of requests\n") is None


# -- what Docker answers ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "how"),
    [
        ('could not select device driver "" with capabilities: [[gpu]]', "no-gpus"),
        ("Unknown runtime specified nvidia", "no-gpus"),
        ("nvidia-container-cli: initialization error: driver not loaded", "no-gpus"),
        ("nvidia-container-cli: device error: GPU-a: unknown device", "device-lost"),
        ("write /var/lib/docker/x: no space left on device", "disk-full"),
        ("bind source path does not exist: /data", "start-failed"),
    ],
)
def test_dockers_words_have_a_meaning(words: str, how: str) -> None:
    assert trouble(words).how == how


def test_what_is_not_there_is_told_apart() -> None:
    assert isinstance(trouble("No such container: whale"), NotThere)


def test_a_refusal_says_what_to_do() -> None:
    login = ImageRefused("ghcr.io/lab/net:1", "unauthorized: authentication required")
    assert "`docker login ghcr.io`" in login.says
    absent = ImageRefused("python:9", "manifest for python:9 not found: manifest unknown")
    assert "check its name and tag" in absent.says
    assert "login" not in absent.says


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("python:3.12", "docker.io"), ("lab/net", "docker.io"), ("ghcr.io/lab/net", "ghcr.io"),
        ("localhost/net", "localhost"), ("10.0.0.1:5000/net:1", "10.0.0.1:5000"),
    ],
)  # fmt: skip
def test_an_images_name_tells_its_registry(image: str, registry: str) -> None:
    assert registry_of(image) == registry


def serve_once(path: Path, body: bytes) -> threading.Thread:
    """Answer one request on a socket."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def live() -> None:
        with listener, listener.accept()[0] as link:
            link.recv(1000)
            link.sendall(body)

    thread = threading.Thread(target=live)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("body", "images"),
    [
        (
            b'HTTP/1.0 200 OK\r\n\r\n[{"RepoTags": ["b:1", "<none>:<none>"]},'
            b' {"RepoTags": null, "RepoDigests": ["a@sha256:0"]}]',
            ("a@sha256:0", "b:1"),
        ),
        (b"HTTP/1.0 500 Oh\r\n\r\n[]", None),
        (b"HTTP/1.0 200 OK\r\n\r\n{", None),
        (b"", None),
    ],
)
def test_the_images_of_a_host_are_those_that_docker_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes, images: tuple[str, ...] | None
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/d")
    server = serve_once(tmp_path / "d", body)
    assert images_here() == images
    server.join()


def test_a_host_without_docker_runs_no_containers_and_doctor_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address in (f"unix://{tmp_path}/d", "tcp://127.0.0.1:1"):
        monkeypatch.setenv("DOCKER_HOST", address)
        assert answer("/images/json") is None
        assert check_docker().state == "warning"
        assert address in check_docker().says


# -- the shared folder, and a container's first process --------------------------------------


def test_secrets_go_through_a_pipe_once_somebody_reads(tmp_path: Path) -> None:
    value = "it's \\ $(not) run\nsecond"
    box = Box(tmp_path / "box", {"TOKEN": value})
    box.hand_over()
    assert box.waits

    def handed_over() -> bool:
        box.hand_over()
        return not box.waits

    script = f'. "{box.path}/secrets"; printf %s "$TOKEN" > "{box.path}/output"'
    with subprocess.Popen(["/bin/sh", "-c", script]) as shell:
        until(handed_over, "somebody reads")
    assert shell.returncode == 0
    assert box.read().decode() == value
    assert box.read() == b""
    box.close()
    assert list(box.path.iterdir()) == []


def test_a_process_of_another_container_is_not_taken_for_ours() -> None:
    assert first_process(os.getpid(), "0123456789abcdef" * 4) is None
    assert first_process(0, "") is None


def test_the_image_decides_between_container_and_process() -> None:
    assert runtime_of(a_start()).name == "process"
    assert runtime_of(a_start(image="python:3.12")).name == "container"
