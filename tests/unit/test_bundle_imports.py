"""An agent imports nothing that is not in its archive, in none of its branches."""

import ast
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

from cloudwhale.control.bundle_content import ours
from cloudwhale.control.bundle_distributions import NEEDED, closure, normal

OURS = ("cloudwhale", "cloudwhale_providers")


def imported(source: str, package: str) -> Iterator[str]:
    """Yield what a module imports, also in functions: as a dotted path, names of it included."""
    tree = ast.parse(source)
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) not in for_types:
            yield from _named(node, package)


def _named(node: ast.AST, package: str) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            above = package.split(".")[: None if level < 2 else 1 - level]
            base = ".".join([*above, module or ""] if level else [module or ""])
            yield from (f"{base}.{alias.name}" for alias in names)
        case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=name)]):
            yield str(name)
        case _:
            pass


def file_of(name: str) -> tuple[str, Path] | None:
    """Return a module of ours that a dotted path leads to, and its file."""
    while name.split(".")[0] in OURS:
        path = name.replace(".", "/")
        for candidate in (f"{path}.py", f"{path}/__init__.py"):
            top = find_spec(name.split(".")[0])
            assert top is not None and top.submodule_search_locations
            file = Path(top.submodule_search_locations[0]).parent / candidate
            if file.is_file():
                return candidate, file
        name = name.rpartition(".")[0]
    return None


def reached() -> tuple[set[str], set[str]]:
    """Return the files of ours that an agent may import, and the names of all else."""
    ahead = [
        path.removeprefix("lib/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for path in ours()
        if path.endswith(".py") and ("cloudwhale/agent/" in path or "_notices" in path)
    ]
    files: set[str] = set()
    others: set[str] = set()
    while ahead:
        name = ahead.pop()
        found = file_of(name)
        if found is None:
            others.add(name.split(".")[0])
        elif found[0] not in files:
            files.add(found[0])
            module = found[0].removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            package = module if found[0].endswith("__init__.py") else module.rpartition(".")[0]
            ahead += imported(found[1].read_text(), package)
            ahead += [part for part in parents(module)]
    return files, others - sys.stdlib_module_names - {""}


def parents(module: str) -> Iterator[str]:
    while module := module.rpartition(".")[0]:
        yield module


def test_all_of_ours_that_an_agent_may_import_travels() -> None:
    files, _ = reached()
    assert "cloudwhale/agent/containers/client.py" in files, "it looked into functions"
    assert {f"lib/{file}" for file in files} - set(ours()) == set()


def test_what_an_agent_imports_of_others_is_on_the_list_and_nothing_else_is() -> None:
    _, others = reached()
    by_module = packages_distributions()
    asked = {normal(by_module[name][0]) for name in others}
    assert asked <= closure()
    assert set(NEEDED) <= asked, "what nobody imports any more stays here"
