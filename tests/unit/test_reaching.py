"""Reaching other machines: what is sent, what ssh's troubles mean, the unit that is written."""

import io
import os
import platform
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from live_agent import until
from unpacking import unpack

from cloudwhale.control.reaching import bundle, installing, look, wheel
from cloudwhale.control.reaching.look import Asked, Look, Unfit
from cloudwhale.control.reaching.ssh import Ssh, Target, ThereFailed, target
from cloudwhale.control.reaching.unit import quoted, unit
from cloudwhale.spi.errors import CloudwhaleError, Denied, SettingsError, Unreachable

INFRA = Path(__file__).parents[2] / "infra" / "systemd" / "cloudwhale-agent.service"


def a_look(**fields: object) -> Look:
    """Make what is seen of a machine like this one."""
    like = {
        "python": sys.executable, "version": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "system": "Linux", "machine": platform.machine(), "libc": "-".join(platform.libc_ver()),
        "host": "gpu", "user": "ada", "home": "/home/ada/cw", "writable": True, "disk_gib": 99.0,
        "venv": True, "pip": True,
    }  # fmt: skip
    return Look.model_validate({**like, **fields})


# -- addresses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("ssh://ada@gpu7", Target("gpu7", "ada")),
        ("ssh://GPU7:2222", Target("GPU7", None, 2222)),
        ("ssh://ada@10.0.0.7:22/", Target("10.0.0.7", "ada", 22)),
    ],
)
def test_an_address_says_whom_to_reach(address: str, found: Target) -> None:
    assert target(address) == found


@pytest.mark.parametrize(
    "address",
    [
        "gpu7", "http://gpu7", "ssh://", "ssh://ada:secret@gpu7", "ssh://gpu7/path", "ssh://gpu7:x",
        "ssh://-oProxyCommand=evil", "ssh://a b", "ssh://-l@gpu7", "ssh://gpu7:99999",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(SettingsError, match="not the address of a host"):
        target(address)


# -- ssh -------------------------------------------------------------------------------------


def an_ssh(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Ssh:
    """Put a program called ssh in front of the real one."""
    program = folder / "ssh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Ssh(Target("gpu7", "ada", 2222))


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("ssh: connect to host gpu7 port 22: Connection refused", Unreachable, "nobody listens"),
        ("ssh: Could not resolve hostname gpu7: Name or service not known", Unreachable, "nobody"),
        ("ssh: connect to host gpu7 port 22: Connection timed out", Unreachable, "does not answer"),
        ("ssh: connect to host gpu7 port 22: No route to host", Unreachable, "does not answer"),
        ("Host key verification failed.", Denied, "ssh -p 2222 ada@gpu7"),
        (
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
            Denied, "ssh-keygen -R gpu7",
        ),
        ("ada@gpu7: Permission denied (publickey).", Denied, "ssh-copy-id -p 2222 ada@gpu7"),
        ("kex_exchange_identification: read: reset", Unreachable, "kex_exchange_identification"),
    ],
)  # fmt: skip
def test_what_ssh_says_becomes_a_sentence_with_a_remedy(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    kind: type[CloudwhaleError],
    words: str,
) -> None:
    ssh = an_ssh(tmp_path, monkeypatch, f"cat >/dev/null; echo '{said}' >&2; exit 255")
    with pytest.raises(kind) as caught:
        ssh.script("true")
    assert words in str(caught.value) and caught.value.remedy


def test_what_fails_there_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = an_ssh(tmp_path, monkeypatch, "cat >/dev/null; echo 'no space left' >&2; exit 1")
    with pytest.raises(ThereFailed, match="on ada@gpu7: no space left"):
        ssh.script("true")


def test_nobody_is_asked_for_a_password_and_the_port_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = an_ssh(tmp_path, monkeypatch, 'cat >/dev/null; echo "$@"')
    said = ssh.script("true").split()
    assert "BatchMode=yes" in said and "ConnectTimeout=10" in said
    assert said[said.index("-p") :] == ["-p", "2222", "--", "ada@gpu7", "sh", "-s"]


def test_an_upload_arrives_whole_and_its_progress_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What follows the dashes and the host is what sshd would give to a shell.
    ssh = an_ssh(tmp_path, monkeypatch, 'while [ "$1" != -- ]; do shift; done; shift 2; eval "$*"')
    body, told = os.urandom(1_000_000), list[tuple[int, int]]()
    ssh.upload(body, str(tmp_path / "there"), lambda sent, whole: told.append((sent, whole)))
    assert (tmp_path / "there").read_bytes() == body
    assert told[-1] == (len(body), len(body)) and len(told) == 4


@pytest.mark.parametrize("path", ["/tmp/a b", "/tmp/$(id)", "/tmp/a;b", "/tmp/'"])
def test_a_path_that_a_shell_would_read_is_refused(path: str) -> None:
    with pytest.raises(SettingsError, match="cannot be a folder"):
        Ssh(Target("gpu7")).upload(b"", path, lambda sent, whole: None)


# -- what is seen ----------------------------------------------------------------------------


def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ssh:
    """Give an ssh that leads to this very machine."""
    return an_ssh(folder, monkeypatch, 'while [ "$1" != -- ]; do shift; done; shift 2; exec "$@"')


def test_the_look_at_a_machine_like_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.touch()
    home = tmp_path / "state"
    asked = Asked(home=str(home), node="n", token=str(token))
    seen = look.look(here(tmp_path, monkeypatch), asked)
    assert bundle.fits(seen)
    assert (seen.home, seen.meets, seen.working, seen.installed) == (str(home), True, False, ())
    assert seen.disk_gib > 0 and not home.exists(), "looking changes nothing"


def test_a_login_script_that_prints_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'echo Welcome; while [ "$1" != -- ]; do shift; done; shift 2; exec "$@"'
    assert look.look(an_ssh(tmp_path, monkeypatch, script), Asked()).python


def test_a_host_with_an_old_python_is_refused_with_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = '{"python": "", "version": "Python 3.9.2"}'
    ssh = an_ssh(tmp_path, monkeypatch, f"cat >/dev/null; echo '{said}'")
    with pytest.raises(Unfit, match=r"no Python 3\.11 or newer \(there is Python 3\.9\.2\)"):
        look.look(ssh, Asked())


def test_a_host_that_answers_nonsense_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = an_ssh(tmp_path, monkeypatch, "cat >/dev/null; echo 'This account is not available.'")
    with pytest.raises(Unreachable, match="This account is not available"):
        look.look(ssh, Asked())


@pytest.mark.parametrize(
    "other", [{"version": "3.99"}, {"machine": "riscv64"}, {"libc": "musl-1.2"}]
)
def test_another_kind_of_machine_gets_the_wheel(other: dict[str, str]) -> None:
    assert installing.package_for(a_look(**other)).kind == "wheel"
    with pytest.raises(Unfit, match="python3-venv"):
        installing.package_for(a_look(pip=False, **other))


def test_a_home_that_no_script_may_name_is_refused() -> None:
    with pytest.raises(Unfit, match="not safe"):
        installing.folder_of(a_look(home="/home/a b"), bundle.Package("bundle", "n", b""))


def test_what_lies_there_already_is_not_sent_again() -> None:
    package = bundle.Package("bundle", "agent.tar.gz", b"all of it")
    agent = installing.Agent("na", "s3://lab/mail", 600.0)
    first, _ = installing.steps(a_look(), package, agent)
    assert first == f"install our packages as they are here (0 MiB) in {there(package)}"
    first, second = installing.steps(
        a_look(installed=(package.folder,), working=True), package, agent
    )
    assert first == f"use what lies in {there(package)} already"
    assert second.startswith("restart the agent of na")


def there(package: bundle.Package) -> str:
    return installing.folder_of(a_look(), package)


# -- what is sent ----------------------------------------------------------------------------


def test_a_machine_like_this_one_gets_a_bundle_that_runs_the_agent(tmp_path: Path) -> None:
    package = installing.package_for(a_look())
    assert package.kind == "bundle"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)
    python = tmp_path / "v" / "bin" / "python"
    with tarfile.open(fileobj=io.BytesIO(package.body)) as archive:
        unpack(archive, next((tmp_path / "v" / "lib").glob("*/site-packages")))
    code = (
        "import pkgutil, importlib, cloudwhale.agent as a\n"
        "for m in pkgutil.iter_modules(a.__path__):\n"
        "    if not m.name.startswith(('shim', '__')):\n"
        "        importlib.import_module(f'{a.__name__}.{m.name}')\n"
        "import cloudwhale.agent.__main__, docker, pynvml, nacl.public, obstore\n"
        "print(cloudwhale.__file__)"
    )
    done = subprocess.run(
        [python, "-I", "-c", code], capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path)), "nothing of this installation was used"


def test_the_same_files_make_the_same_bundle(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("two")
    (tmp_path / "a").write_text("one")
    files = {"x/b": tmp_path / "b", "x/a": tmp_path / "a"}
    first = bundle._tar(files, {"y/c": b"three"})
    os.utime(tmp_path / "a", (1, 1))
    (tmp_path / "a").chmod(0o600)
    assert bundle._tar(dict(reversed(files.items())), {"y/c": b"three"}) == first
    assert bundle._packed(first) == bundle._packed(first)


def test_what_an_agent_does_not_need_stays_here() -> None:
    folders = {path.split("/", 1)[0] for path in bundle.agent_files()}
    assert {"cloudwhale", "pydantic", "obstore"} <= folders
    assert not folders & {"sqlalchemy", "numpy", "rich", "typer", "pytest", "alembic"}


def test_our_wheel_is_one(tmp_path: Path) -> None:
    package = wheel.wheel()
    with zipfile.ZipFile(io.BytesIO(package.body)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        info = next(name.split("/")[0] for name in names if ".dist-info/" in name)
        rows = [row.split(",") for row in archive.read(f"{info}/RECORD").decode().splitlines()]
        assert {row[0] for row in rows} == set(names)
        for name, digest, size in rows[:-1]:
            body = archive.read(name)
            assert int(size) == len(body) and digest.startswith("sha256=")
        text = archive.read(f"{info}/METADATA").decode()
    assert "Requires-Dist: pydantic" in text and "editables" not in text
    assert "cloudwhale/control/reaching/look.sh" in names, "scripts travel with it"
    assert package.folder == wheel.wheel().folder, "the same files, the same wheel"


# -- the unit --------------------------------------------------------------------------------


def settings_of(text: str) -> dict[str, str]:
    """Return what a unit sets, comments aside."""
    rows = [row for row in text.splitlines() if row and row[0] not in "#["]
    return dict(row.split("=", 1) for row in rows)


def test_the_unit_that_is_written_is_the_one_that_is_shown() -> None:
    shown = settings_of(INFRA.read_text())
    written = settings_of(unit("%l", ["/usr/local/bin/cloudwhale"], system=True))
    of_the_host = {"ExecStart", "EnvironmentFile"}
    assert {**shown, **dict.fromkeys(of_the_host)} == {**written, **dict.fromkeys(of_the_host)}
    assert written["KillMode"] == "process", "jobs outlive the agent"
    assert written["OOMPolicy"] == "continue"


@pytest.mark.parametrize("text", [INFRA.read_text(), unit("n", ["/x", "--device=2x A100 80GB"])])
def test_systemd_understands_the_unit(tmp_path: Path, text: str) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    rows = [
        row.replace(row.split("=", 1)[1].split()[0], "/usr/bin/env", 1)
        if row.startswith("ExecStart=")
        else row
        for row in text.splitlines()
    ]
    file = tmp_path / "cloudwhale-agent.service"
    file.write_text("\n".join(rows) + "\n")
    done = subprocess.run(
        ["systemd-analyze", "verify", file], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_words_of_the_unit_are_quoted_as_systemd_reads_them() -> None:
    assert quoted("--device=2x A100 80GB") == '"--device=2x A100 80GB"'
    assert quoted("100%") == "100%%"
    assert quoted("a$HOME") == "a$$HOME"


# -- starting --------------------------------------------------------------------------------

HOLDER = """
import fcntl, sys
lock = open(sys.argv[1], "r+")
if sys.argv[2] == "holds":
    fcntl.flock(lock, fcntl.LOCK_EX)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("lock", ["holds", "left behind"])
def test_only_an_agent_that_holds_its_lock_is_replaced(tmp_path: Path, lock: str) -> None:
    place, program = tmp_path / "nodes" / "na", tmp_path / "new" / "bin" / "python"
    for folder in (place, program.parent):
        folder.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} "$@"\ntouch {tmp_path}/started\n'
    )
    program.chmod(0o700)
    note = place / "agent.lock"
    note.touch()
    words = [sys.executable, "-c", HOLDER, str(note), lock, "cloudwhale"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"ready\n"
        note.write_text(f"{holder.pid}")
        head = f"HOME_DIR='{tmp_path}' NODE=na SYSTEMD=no UNIT='' DIR='{tmp_path}/new'\n"
        script = Path(installing.__file__).with_name("start.sh").read_text()
        subprocess.run(
            ["sh", "-s"], input=f"{head}set -- --node=na\n{script}", text=True, check=True,
            timeout=60, env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
        )  # fmt: skip
        until((tmp_path / "started").exists, "the new agent starts")
        assert (holder.poll() is None) == (lock == "left behind")
        holder.communicate()
