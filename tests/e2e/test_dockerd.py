"""Where no dockerd can be had, the tests of containers skip with the reason; in CI they fail."""

import os
import subprocess
import sys
from pathlib import Path

import dockerd
import pytest

FAILS = '#!/bin/sh\necho "cannot mount overlay" >&2\nexit 1\n'


@pytest.mark.root
@pytest.mark.parametrize(
    ("ci", "says"),
    [
        ({}, "SKIPPED [1] test_asks.py:1: no dockerd here: it is installed and cannot start"),
        ({"CI": "1"}, "no dockerd here, and CI must have one: it is installed and can"),
    ],
)
def test_a_dockerd_that_is_installed_and_cannot_start_is_a_reason_to_skip_but_in_ci(
    tmp_path: Path, ci: dict[str, str], says: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gets as far as to start one")
    (tmp_path / "test_asks.py").write_text("def test_it(own_dockerd): pass\n")
    (tmp_path / "bin").mkdir()
    for name in ("dockerd", "runc", "busybox"):
        (tmp_path / "bin" / name).write_text(FAILS)
        (tmp_path / "bin" / name).chmod(0o755)
    env = {name: value for name, value in os.environ.items() if name not in dockerd.IN_CI}
    env |= {"PATH": f"{tmp_path / 'bin'}:{env['PATH']}", "TMPDIR": str(tmp_path), **ci}
    env |= {"PYTHONPATH": str(Path(dockerd.__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "dockerd", "-c", os.devnull,
         f"--rootdir={tmp_path}", "test_asks.py"],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == (1 if ci else 0), done.stdout
    assert says in done.stdout
    assert "cannot mount overlay" in done.stdout
