"""Secrets on their whole way: byte for byte in the job, and nowhere else that anybody can look."""

import base64
import hashlib
import json
import os
import random
import string
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from dockerd import IMAGE, Dockerd
from shell import Shell, until

from cloudwhale.agent.containers.client import docker_client
from cloudwhale.agent.containers.settings import name_of
from cloudwhale.model.job import Job

pytestmark = pytest.mark.docker

LONG = "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=64 << 10))
SECRETS = {
    "TOKEN": "hf_tokenTOKENtokenTOKEN",
    "PREFIX": "hf_tokenTOKEN",
    "PEM": "-----BEGIN A KEY-----\nMIIEpAIBAAKCAQEA7bq\nXcv/qqdWnBzZ9w==\n-----END A KEY-----\n",
    "QUOTES": 'it\'s "quoted" `id` $(id) $HOME \\n \\ !! ; & | > <',
    "WORDS": "täst 鯨 🐋 naïve-whale",
    "SPACED": "  spaced-out-secret\t ",
    "CRLF": "first-of-two-lines\r\nsecond-of-two-lines\r\n",
    "LETTER": "q",
    "LONG": LONG,
}


def checks(word: str) -> str:
    """Return shell that compares each value with its digest, and prints each as it is."""
    lines: list[str] = []
    for name, value in SECRETS.items():
        digest = hashlib.sha256(value.encode()).hexdigest()
        lines.append(
            f'test "$(printf %s "${name}" | sha256sum | cut -c 1-64)" = {digest}'
            f" || echo {word} {name} differs"
        )
        lines.append(f'printf "%s\\n" "${name}"')
    return "\n".join([*lines, f"echo {word} over"])


def job_file() -> str:
    """Return two jobs that hold every secret, and wait until a file appears."""
    waits = "while [ ! -e go ]; do sleep 0.1; done; echo 'q and quiet'; echo $TOKEN >&2; exit 4"
    job = {
        "secrets": list(SECRETS),
        "setup": checks("setup"),
        "command": f"{checks('command')}\n{waits}",
        "retry": {"max": 0},
        "resources": {"cpu": 0.2, "memory": "64MB"},
    }
    jobs = [{"name": "plain", **job}, {"name": "boxed", "image": IMAGE, **job}]
    return json.dumps({"jobs": jobs})


@pytest.fixture
def shell(tmp_path: Path, dockerd: Dockerd, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.setenv("DOCKER_HOST", dockerd.host)
    typed = Shell(tmp_path, {"CLOUDWHALE_CPU": "2", **SECRETS})
    yield typed
    typed.close()


def needles() -> list[bytes]:
    """Return what must be found nowhere: every line of every value that says anything."""
    lines = {line for value in SECRETS.values() for line in value.strip().splitlines()}
    told = [line.strip().encode() for line in lines if len(line) > 8 and "A KEY" not in line]
    told = [one[:2000] for one in told]  # of the long one, its beginning
    return told + [base64.b64encode(one)[:-4] for one in told if len(one) < 100]


def files_with_secrets(*folders: Path) -> list[str]:
    """Return every file below these folders that holds one."""
    wanted, found = needles(), list[str]()
    for folder in folders:
        for path in folder.rglob("*"):
            try:
                body = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            except OSError:
                continue
            found += [f"{path}: {one[:20]!r}" for one in wanted if one in body]
    return found


def process_table_with_secrets() -> list[str]:
    """Return every process whose command shows one."""
    found: list[str] = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        found += [f"{name}: {one[:20]!r}" for one in needles() if one in command]
    return found


def folder_of(shell: Shell, job: Job) -> Path:
    return shell.home / "nodes" / "host" / "attempts" / job.id / "1"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_secrets_arrive_byte_for_byte_and_are_found_nowhere_else(
    shell: Shell, dockerd: Dockerd
) -> None:
    run = shell.start("run", "-y", shell.write("jobs.yaml", job_file()))
    until("both jobs to be there", lambda: len(shell.jobs()) == 2)
    jobs = {job.spec.name: job for job in shell.jobs()}
    for job in jobs.values():
        log = folder_of(shell, job) / "log" / "000001"
        until(
            f"{job.id} to have tried them",
            lambda log=log: log.exists() and b"command over" in log.read_bytes(),  # type: ignore[misc]
        )
    looked = (shell.home, dockerd.folder / "root" / "containers", dockerd.folder / "exec")
    assert files_with_secrets(*looked) == []
    assert process_table_with_secrets() == []
    with docker_client() as client:
        name = name_of(folder_of(shell, jobs["boxed"]))
        known = json.dumps(client.inspect_container(name), ensure_ascii=False).encode()
        said = client.logs(name, tail=1000)
    assert [one for one in needles() if one in known or one in said] == []
    for job in jobs.values():
        (folder_of(shell, job) / "work" / "go").touch()
    out, _ = run.communicate(timeout=60)
    assert "differs" not in out
    assert [one for one in needles() if one in out.encode()] == []
    assert out.count("setup over") == out.count("command over") == 2
    assert out.count("q and quiet") == 2, "one letter is left as it is"
    told = [shell("explain", job.id).out for job in jobs.values()]
    told += [shell("ps", "--all", "--json").out, shell("logs", jobs["plain"].id).out]
    assert [one for one in needles() if one in "".join(told).encode()] == []
    assert "it said last: ***" in "".join(told)
    assert files_with_secrets(shell.folder) == [], "when all is over"


@pytest.mark.parametrize("image", [None, IMAGE])
def test_a_setup_that_fails_says_nothing_of_them(shell: Shell, image: str | None) -> None:
    job = {"name": "fails", "secrets": ["TOKEN"], "command": "true", "retry": {"max": 0}}
    job |= {"setup": 'echo "no good: $TOKEN"; exit 9', **({"image": image} if image else {})}
    done = shell("run", "-y", shell.write("job.yaml", json.dumps(job)))
    assert done.code != 0
    assert "no good: ***" in done.out
    assert SECRETS["TOKEN"] not in done.out + done.err
    assert files_with_secrets(shell.folder) == []


def asks_for_token() -> str:
    """Return a job that ends well when it gets its secret."""
    digest = hashlib.sha256(SECRETS["TOKEN"].encode()).hexdigest()
    command = f'test "$(printf %s "$TOKEN" | sha256sum | cut -c 1-64)" = {digest}'
    return json.dumps({"name": "waits", "secrets": ["TOKEN"], "command": command})


@pytest.mark.parametrize("damage", [b"", bytes(32)], ids=["cut off", "another"])
def test_a_job_whose_secret_was_lost_is_parked_and_goes_on_when_it_is_given_again(
    shell: Shell, damage: bytes
) -> None:
    assert shell("submit", shell.write("job.yaml", asks_for_token())).code == 0
    key = shell.home / "secret.key"
    kept = key.read_bytes()
    key.write_bytes(damage)
    controller = shell.start("controller")
    shell.until_state("waits", "parked")
    [job] = shell.jobs()
    assert job.reason is not None and job.reason.code.value == "secret-missing"
    assert job.reason.says.startswith(f"TOKEN of {job.id}: ")
    assert f"`cloudwhale resume {job.id}`" in (job.reason.change or "")
    key.write_bytes(kept if not damage else damage)
    shell.settings = {**shell.settings, "TOKEN": ""}
    refused = shell("resume", job.id)
    assert refused.code != 0 and "the secret TOKEN is not set" in refused.err
    shell.settings = {**shell.settings, "TOKEN": SECRETS["TOKEN"]}
    assert shell("resume", job.id).code == 0
    shell.until_state("waits", "completed")
    assert controller.poll() is None
    assert files_with_secrets(shell.folder) == []
