"""Every guard of the house is seen to fail: a fault is planted in a copy, and the real tool runs.

A contract that was not seen to fail does not count. Each test plants the faults of one rule at
once, and every one of them must be named in what the tool prints.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("cloudwhale", "providers/cloudwhale_providers", "policies/cloudwhale_policies")
LEAVES_OUT = shutil.ignore_patterns("__pycache__")

Fault = tuple[str, str]
"""A dotted module and the module that it imports against the rule."""

CONTRACTS: dict[str, list[Fault]] = {
    "imports go down the house": [
        ("cloudwhale.model.planted", "cloudwhale.spi"),
        ("cloudwhale.spi.planted", "cloudwhale.planning"),
        ("cloudwhale.planning.planted", "cloudwhale.mailbox"),
        ("cloudwhale.mailbox.planted", "cloudwhale.planning"),
        ("cloudwhale.settings", "cloudwhale.clock"),
        ("cloudwhale.clock", "cloudwhale.mailbox"),
        ("cloudwhale.agent.planted", "cloudwhale.reporting"),
        ("cloudwhale.plugins", "cloudwhale.mailbox"),
        ("cloudwhale.control.planted", "cloudwhale.simulation"),
        ("cloudwhale.simulation.planted", "cloudwhale.cli"),
    ],
    "the house never imports a plugin": [
        ("cloudwhale.model.planted", "cloudwhale_policies"),
        ("cloudwhale.plugins", "cloudwhale_providers"),
        ("cloudwhale.planning.planted", "cloudwhale_policies.order"),
        ("cloudwhale.control.planted", "cloudwhale_providers"),
        ("cloudwhale.cli.planted", "cloudwhale_providers"),
    ],
    "plugins do not know each other": [
        ("cloudwhale_providers.planted", "cloudwhale_policies"),
        ("cloudwhale_providers.deep.planted", "cloudwhale_policies.order"),
        ("cloudwhale_policies.planted", "cloudwhale_providers"),
        ("cloudwhale_policies.deep.planted", "cloudwhale_providers"),
        ("cloudwhale_policies.deep.deeper.planted", "cloudwhale_providers"),
    ],
    "plugins see the seams only": [
        ("cloudwhale_providers.planted", "cloudwhale.mailbox.objects"),
        ("cloudwhale_providers.deep.planted", "cloudwhale.agent"),
        ("cloudwhale_providers.other", "cloudwhale.plugins"),
        ("cloudwhale_providers.third", "cloudwhale.settings"),
        ("cloudwhale_policies.planted", "cloudwhale.cli"),
        ("cloudwhale_policies.deep.planted", "cloudwhale.planning.fit"),
        ("cloudwhale_policies.other", "cloudwhale.simulation"),
        ("cloudwhale_policies.third", "cloudwhale.reporting"),
        ("cloudwhale_policies.fourth", "cloudwhale.control.store"),
        ("cloudwhale_policies.fifth", "cloudwhale.clock"),
    ],
    "decisions are pure": [
        ("cloudwhale.planning.planted", "time"),
        ("cloudwhale.planning.other", "random"),
        ("cloudwhale.planning.third", "os"),
        ("cloudwhale.planning.fourth", "cloudwhale.clock"),
        ("cloudwhale.planning.fifth", "cloudwhale.settings"),
        ("cloudwhale.model.planted", "uuid"),
        ("cloudwhale.model.other", "sqlalchemy"),
        ("cloudwhale.spi.planted", "threading"),
        ("cloudwhale.planning.sixth", "cloudwhale.spi.planted"),
        ("cloudwhale_policies.planted", "subprocess"),
        ("cloudwhale_policies.deep.planted", "logging"),
    ],
    "duty is pure": [
        ("cloudwhale.agent.duty", "time"),
        ("cloudwhale.agent.course", "os"),
        ("cloudwhale.agent.actions", "obstore"),
        ("cloudwhale.agent.state", "cloudwhale.clock"),
        ("cloudwhale.agent.seen", "cloudwhale.mailbox.box"),
    ],
    "the agent obeys and does not plan": [
        ("cloudwhale.agent.planted", "cloudwhale.planning"),
        ("cloudwhale.agent.duty", "cloudwhale.planning.fit"),
        ("cloudwhale.agent.__main__", "cloudwhale.planning.ledger"),
        ("cloudwhale.agent.deep.planted", "cloudwhale.planning.planner"),
        ("cloudwhale.agent.deep.other", "cloudwhale.planning.lifecycle"),
    ],
    "only the store knows the database": [
        ("cloudwhale.reporting.planted", "sqlalchemy"),
        ("cloudwhale.control.planted", "sqlalchemy"),
        ("cloudwhale.cli.planted", "alembic"),
        ("cloudwhale.agent.planted", "sqlite3"),
        ("cloudwhale.simulation.planted", "sqlalchemy"),
        ("cloudwhale_providers.planted", "alembic"),
    ],
}


OF_ONE_FILE: dict[str, list[tuple[str, str]]] = {
    "C901": [(f"cloudwhale/{room}/planted.py", "branchy") for room in ("model", "control", "cli")]
    + [("providers/cloudwhale_providers/a.py", "branchy"), ("tests/unit/test_a.py", "branchy")],
    "TID251": [
        ("cloudwhale/planning/a.py", "import time"),
        ("cloudwhale/control/a.py", "from time import monotonic as steady"),
        ("cloudwhale/agent/a.py", "from datetime import datetime as day\nday.now()"),
        ("cloudwhale/mailbox/a.py", "import datetime\ndatetime.date.today()"),
        ("cloudwhale/cli/a.py", "import threading\nthreading.Timer(1, print)"),
        ("cloudwhale/simulation/a.py", "from threading import Timer"),
        ("providers/cloudwhale_providers/a.py", "import asyncio\nasyncio.sleep(1)"),
        ("providers/cloudwhale_providers/b.py", "from asyncio import sleep"),
        ("policies/cloudwhale_policies/a.py", "import asyncio as aio\naio.wait_for(1, 1)"),
        ("tests/unit/test_a.py", "import signal\nsignal.setitimer(signal.ITIMER_REAL, 1)"),
    ],
    "D10": [
        ("cloudwhale/model/a.py", "WORD = 1"),
        ("cloudwhale/planning/a.py", '"""A module."""\n\n\nclass Fit: ...'),
        ("cloudwhale/agent/a.py", '"""A module."""\n\n\ndef launch() -> None: ...'),
        ("providers/cloudwhale_providers/a.py", "class Cloud: ..."),
        ("policies/cloudwhale_policies/deep/__init__.py", "WORD = 1"),
    ],
    "BLE001": [
        (f"cloudwhale/{room}/a.py", "try:\n    pass\nexcept Exception:\n    pass")
        for room in ("control", "agent", "cli", "mailbox", "planning")
    ],
    "PLR0913": [
        (f"cloudwhale/{room}/a.py", "def fit(a, b, c, d, e, f): ...")
        for room in ("control", "agent", "spi", "mailbox", "planning")
    ],
}
"""Rules of ruff, and for each the files that break it."""


def branchy(branches: int) -> str:
    """Return a function whose complexity is the number of its branches and one more."""
    lines = [f"    if word == {number}:\n        return {number}" for number in range(branches)]
    return "\n".join(["def branchy(word: int) -> int:", *lines, "    return 0"])


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Copy the packages and the settings of every tool."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=LEAVES_OUT)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """Copy the settings of every tool beside empty packages: enough for rules about one file."""
    for package in PACKAGES:
        (tmp_path / package).mkdir(parents=True)
        (tmp_path / package / "__init__.py").write_text('"""A package."""\n')
        (tmp_path / package / "py.typed").touch()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def tool(folder: Path, *words: str) -> tuple[int, str]:
    """Run a tool of this environment in a folder, which its imports come from."""
    roots = (folder, folder / "providers", folder / "policies")
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, roots)),
            "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
            "COLUMNS": "400",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def lint_imports(folder: Path) -> tuple[int, str]:
    """Run import-linter as `lint-imports` does."""
    program = "from importlinter.cli import lint_imports_command as run; run()"
    (folder / "run_linter.py").write_text(program + "\n")
    return tool(folder, "run_linter", "--no-cache", "--no-logo")


def source(folder: Path, module: str) -> Path:
    """Return the file of a module, its packages made where they are missing."""
    top, *rest = module.split(".")
    package = next(folder / path for path in PACKAGES if path.endswith(top))
    for part in rest[:-1]:
        package /= part
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
    return package / f"{rest[-1]}.py"


def plant(folder: Path, fault: Fault) -> str:
    """Add an import to a module; return how import-linter names it."""
    module, imported = fault
    file = source(folder, module)
    lines = file.read_text().splitlines() if file.exists() else []
    file.write_text("\n".join([*lines, f"import {imported}", ""]))
    return f"{module} -> {imported} (l.{len(lines) + 1})"


def verdicts(output: str) -> dict[str, str]:
    """Return KEPT or BROKEN of each contract that import-linter reports."""
    return dict(re.findall(r"^(.+) (KEPT|BROKEN)\b", output, re.MULTILINE))


def contracts() -> dict[str, dict[str, object]]:
    """Return import-linter's contracts by name."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {
        contract["name"]: contract for contract in settings["tool"]["importlinter"]["contracts"]
    }


def test_the_copy_without_a_fault_keeps_every_contract(house: Path) -> None:
    code, output = lint_imports(house)
    assert code == 0, output
    assert verdicts(output) == dict.fromkeys(CONTRACTS, "KEPT")


def test_each_contract_has_at_least_five_planted_faults() -> None:
    assert contracts().keys() == CONTRACTS.keys()
    assert all(len(faults) >= 5 for faults in CONTRACTS.values())


@pytest.mark.parametrize("contract", CONTRACTS)
def test_a_broken_contract_names_every_fault(house: Path, contract: str) -> None:
    expected = [plant(house, fault) for fault in CONTRACTS[contract]]
    code, output = lint_imports(house)
    assert code == 1, output
    assert verdicts(output)[contract] == "BROKEN", output
    told = output[output.index(f"\n{contract}\n---") :]
    assert [fault for fault in expected if fault not in told] == [], told


@pytest.mark.parametrize("name", ["util.py", "helpers/__init__.py", "api.py", "core.py", "web.py"])
def test_a_module_beside_the_rooms_must_be_placed_in_a_layer(house: Path, name: str) -> None:
    file = house / "cloudwhale" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text('"""Nobody has said where this belongs."""\n')
    code, output = lint_imports(house)
    assert code == 1
    assert verdicts(output)["imports go down the house"] == "BROKEN"
    assert f"cloudwhale.{name.split('/')[0].removesuffix('.py')}" in output


def test_plugins_are_kept_from_every_room_that_is_not_a_seam() -> None:
    rooms = {
        f"cloudwhale.{entry.stem}"
        for entry in (ROOT / "cloudwhale").iterdir()
        if (entry / "__init__.py").is_file() or (entry.suffix == ".py" and entry.stem[0] != "_")
    }
    closed = contracts()["plugins see the seams only"]["forbidden_modules"]
    assert isinstance(closed, list)
    assert set(closed) == rooms - {"cloudwhale.spi", "cloudwhale.model"}


def ruff(folder: Path, files: dict[str, str]) -> set[tuple[str, str]]:
    """Write files and return what ruff says of them: the file and the rule."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\n")
    _, output = tool(folder, "ruff", "check", "--no-cache", "--output-format=concise", ".")
    rows = (line.split(" ") for line in output.splitlines() if ".py:" in line)
    return {(row[0].split(":")[0], row[1]) for row in rows}


@pytest.mark.parametrize("rule", OF_ONE_FILE)
def test_ruff_names_every_file_that_breaks_a_rule(shell: Path, rule: str) -> None:
    files = {name: branchy(10) if text == "branchy" else text for name, text in OF_ONE_FILE[rule]}
    assert len(files) >= 5
    told = {file for file, code in ruff(shell, files) if code.startswith(rule)}
    assert told == files.keys()


def test_what_is_just_allowed_passes_ruff(shell: Path) -> None:
    told = ruff(
        shell,
        {
            "cloudwhale/clock.py": '"""The real clock."""\n\nimport time\n\nNOW = time.time()',
            "cloudwhale/model/a.py": f'"""A module."""\n\n\n{branchy(9)}',
            "cloudwhale/cli/a.py": '"""A module."""\n\n\ndef _run(a, b, c, d, e, f): ...',
            "tests/unit/test_a.py": "def test_that_a_test_needs_no_docstring() -> None: ...",
        },
    )
    assert told == {("cloudwhale/model/a.py", "D103")}


def test_a_file_that_is_not_formatted_fails_the_format_check(shell: Path) -> None:
    (shell / "cloudwhale" / "a.py").write_text("WORD = {'a':1}\n")
    code, output = tool(shell, "ruff", "format", "--check", "--no-cache", ".")
    assert code == 1
    assert "cloudwhale/a.py" in output


STRICT: dict[str, tuple[str, str | None, str | None]] = {
    "cloudwhale/a.py": ("def fit(job): ...", "no-untyped-def", "reportMissingParameterType"),
    "cloudwhale/b.py": ("JOBS: list = []", "type-arg", "reportMissingTypeArgument"),
    "cloudwhale/c.py": (
        "def fit(job: str | None) -> int:\n    return len(job)",
        "arg-type",
        "reportArgumentType",
    ),
    "cloudwhale/d.py": ("from cloudwhale.a import gone", "attr-defined", "reportUnusedImport"),
    "cloudwhale/e.py": (
        "def fit(job: int) -> bool:\n    return job is None",
        None,
        "reportUnnecessaryComparison",
    ),
    "providers/cloudwhale_providers/a.py": (
        "from typing import Any\n\n\ndef fit(job: Any) -> int:\n    return job.size",
        "no-any-return",
        None,
    ),
    "providers/cloudwhale_providers/b.py": (
        "def fit(job): ...",
        None,
        "reportUnknownParameterType",
    ),
    "policies/cloudwhale_policies/a.py": (
        'PRICE: int = "1.20"',
        "assignment",
        "reportAssignmentType",
    ),
    "tests/unit/test_a.py": ("def test_fit():\n    pass", "no-untyped-def", None),
    "examples/train/train.py": ("def fit(job): ...", "no-untyped-def", None),
    "infra/prices/a.py": ("def fit(job): ...", "no-untyped-def", None),
}
"""Files, what mypy must call each, and what pyright must call it, which leaves some to mypy."""


@pytest.fixture
def loose(shell: Path) -> Path:
    """Write files that are right for a lax type checker and wrong for a strict one."""
    for name, (text, _, _) in STRICT.items():
        (shell / name).parent.mkdir(parents=True, exist_ok=True)
        (shell / name).write_text(text + "\n")
    return shell


def test_mypy_is_strict_in_every_folder(loose: Path) -> None:
    code, output = tool(loose, "mypy", "--cache-dir=/dev/null", "--output=json")
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    told = {(row["file"], row["code"]) for row in rows}
    assert code == 1
    assert {(name, rule) for name, (_, rule, _) in STRICT.items() if rule} - told == set()


def test_pyright_is_strict_in_the_three_packages(loose: Path) -> None:
    code, output = tool(loose, "pyright", "--outputjson", "--pythonpath", sys.executable)
    report = json.loads(output[output.index("{") : output.rindex("}") + 1])
    told = {
        (str(Path(row["file"]).relative_to(loose)), row.get("rule"))
        for row in report["generalDiagnostics"]
    }
    assert code == 1
    assert {(name, rule) for name, (_, _, rule) in STRICT.items() if rule} - told == set()


def test_an_import_inside_a_function_counts_too(house: Path) -> None:
    text = '"""A module."""\n\n\ndef now() -> float:\n    import time\n\n    return time.time()\n'
    source(house, "cloudwhale.planning.planted").write_text(text)
    _, output = lint_imports(house)
    assert "cloudwhale.planning.planted -> time (l.5)" in output


def test_duty_is_made_of_pure_modules_alone() -> None:
    pure = contracts()["duty is pure"]["source_modules"]
    assert isinstance(pure, list)
    reached: set[str] = set()
    for module in pure:
        for node in ast.walk(ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "cloudwhale.agent":
                reached |= {f"cloudwhale.agent.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                reached.add(node.module)
    assert "cloudwhale.agent.course" in reached
    assert {name for name in reached if name.startswith("cloudwhale.agent")} <= set(pure)
