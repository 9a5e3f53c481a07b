"""What costs a tenth of a second to import is imported by those commands alone that need it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from shell import LIMIT_S, Shell

SELDOM_NEEDED = {"alembic", "docker", "matplotlib", "numpy", "ortools", "psycopg", "pynvml"} | {
    "boto3", "flask", "google.auth", "googleapiclient", "libcloud", "moto",
}  # fmt: skip
PROGRAM = """
import json, sys
from cloudwhale.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code
finally:
    open('modules', 'w').write(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize(
    ("words", "needs"),
    [
        (("--help",), "typer"),
        (("ps",), "sqlalchemy"),
        (("offers",), "cloudwhale.control.catalogue"),
        (("submit", "job.yaml"), "cloudwhale.control.store.sql"),
        (("run", "-y", "job.yaml"), "cloudwhale.control.controller"),
    ],
)
def test_a_command_imports_nothing_that_it_does_not_need(
    tmp_path: Path, words: tuple[str, ...], needs: str
) -> None:
    shell = Shell(tmp_path)
    shell.write("job.yaml", "name: hello\ncommand: echo hello\nresources: {cpu: 0.1}\n")
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words], cwd=tmp_path, env=shell.environment,
            capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
    finally:
        shell.close()
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads((tmp_path / "modules").read_text()))
    assert needs in loaded, "it was really done"
    assert loaded & SELDOM_NEEDED == set()
