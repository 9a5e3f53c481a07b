"""The house style that no linter knows: sizes, names, public lists, quick help, clean words."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import cloudwhale
from cloudwhale.planning.diagram import job_diagram

ROOT = Path(__file__).parents[2]
PACKAGES = ("cloudwhale", "providers", "policies")
FOLDERS = (*PACKAGES, "tests", "examples", "infra", ".ci")
LINES_MOST = 400
FUNCTION_LINES_MOST = 50
NAMES_THAT_SAY_NOTHING = {"manager", "handler", "helper", "helpers", "util", "utils", "misc"}
HEAVY = ("numpy", "sqlalchemy", "alembic", "ortools", "boto3", "botocore", "google", "obstore")
LAZY = {"__getattr__", "__dir__"}
# Put together here so that this file does not hold them itself.
FORBIDDEN = {
    "a folder of somebody's machine": r"(?<![\w.>/])/(wo" + r"rk|ro" + r"ot)/\w",
    "a registry's host": "|".join(
        re.escape(".".join(parts))
        for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"))
    ),
    "a tool of somebody's machine": "far" + r"m-\w|chat" + "gpt|anth" + "ropic|cla" + "ude",
    "work that was left": r"\b(TO" + "DO|FIX" + "ME|XX" + r"X)\b|NotImplemented" + "Error",
}


def texts() -> Iterator[Path]:
    """Yield every file of the repository that is read by people."""
    for entry in (*ROOT.iterdir(), *(file for top in FOLDERS for file in (ROOT / top).rglob("*"))):
        if entry.is_file() and "__pycache__" not in entry.parts and entry.name != ".git":
            yield entry


def modules(*tops: str) -> list[Path]:
    """Return the Python files under some folders."""
    return [file for top in tops for file in sorted((ROOT / top).rglob("*.py"))]


def names_of(file: Path) -> str:
    """Return a file's name in the repository."""
    return str(file.relative_to(ROOT))


@dataclass(frozen=True)
class Seen:
    """What was seen in a module: reading all of them takes seconds, so it is done once."""

    says: str
    """Its docstring."""
    names: tuple[str, ...]
    """Of its functions and classes."""
    functions: tuple[tuple[int, str, int], ...]
    """Where each begins, its name, and how many lines it has."""


@cache
def seen(file: Path) -> Seen:
    """Read a Python file."""
    tree = ast.parse(file.read_text())
    nodes = list(ast.walk(tree))
    functions = [one for one in nodes if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = [one for one in nodes if isinstance(one, ast.ClassDef)]
    return Seen(
        ast.get_docstring(tree) or "", tuple(one.name for one in (*functions, *classes)),
        tuple((one.lineno, one.name, (one.end_lineno or 0) - one.lineno + 1) for one in functions),
    )  # fmt: skip


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    long = {
        names_of(file): lines
        for file in modules(*FOLDERS)
        if (lines := len(file.read_text().splitlines())) > LINES_MOST
    }
    assert long == {}


def test_no_function_is_longer_than_fifty_lines() -> None:
    long = {
        f"{names_of(file)}:{line} {name}": size
        for file in modules(*FOLDERS)
        for line, name, size in seen(file).functions
        if size > FUNCTION_LINES_MOST
    }
    assert long == {}


def test_names_are_words_of_the_field() -> None:
    empty = [
        f"{names_of(file)}: {name}"
        for file in modules(*PACKAGES)
        for name in (file.stem, *seen(file).names)
        if NAMES_THAT_SAY_NOTHING & {word.lower() for word in re.findall("[A-Z]?[a-z]+", name)}
    ]
    assert empty == []


def test_a_module_starts_with_one_sentence() -> None:
    wrong = []
    for file in modules(*PACKAGES):
        first = seen(file).says.split("\n\n")[0]
        if not first.endswith((".", ":")):
            wrong.append(f"{names_of(file)}: {first}")
    assert wrong == []


def test_a_package_lists_its_public_names_and_nothing_else() -> None:
    wrong = []
    for file in modules(*PACKAGES):
        if file.name == "__init__.py":
            body = ast.parse(file.read_text()).body
            wrong += [
                f"{names_of(file)}:{node.lineno}" for node in body if not _may_stand_in_init(node)
            ]
            listed = _strings(body, "__all__")
            wrong += [f"{names_of(file)}: {name}" for name in sorted(_imported(body) ^ listed)]
    assert wrong == []


def _may_stand_in_init(node: ast.stmt) -> bool:
    """Allow a docstring, imports, dunder names and a table for lazy imports with its lookup."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name.startswith("__") or name == "_LAZY"
        case ast.FunctionDef(name=name):
            return name in LAZY
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body):
            return all(isinstance(each, ast.Import | ast.ImportFrom) for each in body)
        case _:
            return False


def _imported(body: list[ast.stmt]) -> set[str]:
    """Return the names that imports of our own packages bring, those for type checkers too."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.If):
            found |= _imported(node.body)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cloudwhale"):
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def _strings(body: list[ast.stmt], name: str) -> set[str]:
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id == name:
                return set(ast.literal_eval(node.value))
    return set()


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import json, sys\n"
        "from cloudwhale.cli import main\n"
        "sys.argv = ['cloudwhale', '--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        "print('\\n' + json.dumps(sorted(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert "cloudwhale.cli" in loaded
    assert "Usage: cloudwhale" in done.stdout
    assert [name for name in HEAVY if name in loaded] == []


def test_guards_are_never_switched_off_in_a_line() -> None:
    off = [
        f"{names_of(file)}:{number}"
        for file in modules(*FOLDERS)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if re.search(r"#\s*no" + r"qa:?\s*($|.*(C901|TID251|BLE001|PLR0913|D10))", line)
        or re.search(r"#\s*ruf" + r"f:|#\s*type:\s*ig" + r"nore($|[^\[])|#\s*myp" + "y:", line)
    ]
    assert off == []


@pytest.mark.parametrize("what", FORBIDDEN)
def test_the_repository_holds_no(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what], re.IGNORECASE if "tool" in what else 0)
    found = [
        f"{names_of(file)}: {match[0]}"
        for file in texts()
        if (match := pattern.search(file.read_text(errors="replace")))
    ]
    assert found == []


def test_the_state_diagram_in_the_docs_is_the_one_that_the_table_prints() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    _, found, rest = text.partition("<!-- job states -->")
    assert found, "ARCHITECTURE.md has no <!-- job states -->"
    shown, found, _ = rest.partition("<!-- /job states -->")
    assert found
    assert shown.strip() == f"```mermaid\n{job_diagram().strip()}\n```"


def test_the_version_is_said_once_and_agrees() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == cloudwhale.__version__


def test_the_licence_is_the_whole_apache_licence() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Version 2.0, January 2004" in text
    assert text.rstrip().endswith("limitations under the License.")
    assert len(text.split()) == 1581
