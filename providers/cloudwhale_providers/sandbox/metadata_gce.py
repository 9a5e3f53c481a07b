"""Compute Engine's metadata service: a tree that is read whole or in part, and waited at.

Compute Engine docs, "About VM metadata", "View and query VM metadata": the header that must be
there, folders with a slash at their end, `recursive`, `alt`, and `wait_for_change` with an ETag.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote

from cloudwhale.model.units import Seconds
from cloudwhale_providers.sandbox.metadata import Asker, Question, Talk

Node: TypeAlias = Any
"""A word, a number, a tuple of lines, or a folder: a mapping by name."""
Tree = Callable[[], Mapping[str, Any]]
"""What a machine is told now, below `/computeMetadata/v1/`."""

FLAVOR, GOOGLE = "Metadata-Flavor", "Google"
ROOT = "/computeMetadata/v1"
LOOK_EVERY_S: Seconds = 0.5
"""So often is looked, in the box's time, whether what somebody waits for has changed."""
LONGEST_S: Seconds = 3600.0
"""So long is waited where nothing is said: whoever asks has gone by then."""
AS_THEY_ARE = frozenset({"attributes", "service-accounts"})
"""Folders whose names are their owner's: in JSON they are not spelled otherwise."""
ALONE = frozenset({"token", "identity"})
"""What is not part of a whole tree: each reading of it may be another."""


def gce_talk(tree: Tree) -> Talk:
    """Return who answers a machine of Compute Engine."""

    def talk(asker: Asker) -> None:
        _GceQuestion(asker, tree)

    return talk


class _GceQuestion(Question):
    """Answers from a tree."""

    def do_GET(self) -> None:
        """Give a part of the tree, at once or when it has changed."""
        if self.is_in_trouble():
            return
        if self.headers.get(FLAVOR) != GOOGLE or "X-Forwarded-For" in self.headers:
            self._say(403, "Missing Metadata-Flavor:Google header.", "text/html")
            return
        path, _, query = self.path.partition("?")
        said = {name.lower(): value for name, value in parse_qsl(query, keep_blank_values=True)}
        if not path.startswith(ROOT):
            at_root = path in ("", "/")
            self._say(200 if at_root else 404, "computeMetadata/\n" if at_root else "")
            return
        below = unquote(path.removeprefix(ROOT))
        found = self._found(below)
        if found is None:
            self._say(404, "The requested URL was not found on this server.", "text/html")
        elif _is_folder(found) and not below.endswith("/"):
            self.say(301, "", {"Location": f"{path}/", FLAVOR: GOOGLE})
        else:
            self._give(below, found, said)

    def _found(self, below: str) -> Node | None:
        node: Any = self.server()
        for name in filter(None, below.split("/")):
            if not _is_folder(node):
                return None
            node = node.get(name)
        return node

    def _give(self, below: str, found: Node, said: Mapping[str, str]) -> None:
        """Answer with what is there, once it is another than who asks has seen."""
        parent = below.strip("/").rpartition("/")[2]
        text, kind = _shown(found, said, parent)
        if said.get("wait_for_change", "").lower() == "true":
            seen = said.get("last_etag") or _etag(text)
            left_s = float(said.get("timeout_sec") or LONGEST_S)
            while _etag(text) == seen and left_s > 0:
                if not self.asker.wait(min(LOOK_EVERY_S, left_s)):
                    return
                left_s -= LOOK_EVERY_S
                newest = self._found(below)
                if newest is None:
                    self._say(404, "", "text/html")
                    return
                text, kind = _shown(newest, said, parent)
        self._say(200, text, kind)

    def _say(self, code: int, text: str, kind: str = "application/text") -> None:
        told = {
            "Content-Type": kind, FLAVOR: GOOGLE, "Server": "Metadata Server for VM",
            "ETag": _etag(text), "X-XSS-Protection": "0", "X-Frame-Options": "SAMEORIGIN",
        }  # fmt: skip
        self.say(code, text, told)


def _etag(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _shown(node: Node, said: Mapping[str, str], called: str) -> tuple[str, str]:
    """Return text and type of an answer; `called`: the last name of its path."""
    is_whole = said.get("recursive", "").lower() == "true"
    is_folder = _is_folder(node)
    if said.get("alt", "json" if is_whole and is_folder else "text") == "json":
        is_spelled = called not in AS_THEY_ARE
        found = _plain(node, is_spelled) if is_whole or not is_folder else _names(node)
        return json.dumps(found), "application/json"
    if is_folder and is_whole:
        return "".join(f"{path} {text}\n" for path, text in _lines(node, "")), "application/text"
    if is_folder:
        return "".join(f"{name}\n" for name in _names(node)), "application/text"
    return _text(node), "application/json" if _is_json(node) else "application/text"


def _names(folder: Mapping[str, Any]) -> list[str]:
    return sorted(f"{name}/" if _is_folder(node) else name for name, node in folder.items())


def _plain(node: Any, is_spelled: bool) -> Any:
    """Return a node as JSON has it: `machine-type` is `machineType` there."""
    if _is_folder(node):
        folder: Mapping[str, Any] = node
        if folder and all(name.isdecimal() for name in folder):
            return [_plain(one, True) for one in folder.values()]
        return {
            _camel(name) if is_spelled else name: _plain(one, name not in AS_THEY_ARE)
            for name, one in folder.items()
            if name not in ALONE
        }
    return _lines_of(node) if isinstance(node, tuple) else node


def _lines(folder: Mapping[str, Any], above: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, node in sorted(folder.items()):
        if _is_folder(node):
            found += _lines(node, f"{above}{name}/")
        elif name not in ALONE:
            found.append((f"{above}{name}", _text(node)))
    return found


def _camel(name: str) -> str:
    return re.sub("-(.)", lambda match: match[1].upper(), name)


def _text(node: Any) -> str:
    return (
        "".join(f"{line}\n" for line in _lines_of(node)) if isinstance(node, tuple) else str(node)
    )


def _lines_of(node: Any) -> list[str]:
    return list(node)


def _is_folder(node: Any) -> bool:
    return isinstance(node, Mapping)


def _is_json(node: Node) -> bool:
    return isinstance(node, str) and node.startswith("{") and node.endswith("}")
