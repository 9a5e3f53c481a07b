"""Google's APIs as their discovery documents describe them: which method a request means."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from cloudwhale.spi.errors import Denied

Schema = Mapping[str, Any]
FOLDER = "googleapiclient.discovery_cache.documents"
NEEDED = "the sandbox needs google-api-python-client: install cloudwhale[sandbox]"
UNSAID: Mapping[str, Schema] = {
    "returnPartialSuccess": {"type": "boolean", "location": "query"},
}
"""What lists recommend in their descriptions, and the document of v1 has forgotten."""
WORD = re.compile(r"\{\+?([A-Za-z0-9_]+)\}")


@dataclass(frozen=True, slots=True)
class Method:
    """One method of an API."""

    id: str
    """`compute.instances.insert`."""
    verb: str
    """GET, POST, ..."""
    path: str
    """Below the API's own: `projects/{project}/zones/{zone}/instances`."""
    parameters: Mapping[str, Schema]
    asks: str
    """Schema of the body; empty: it has none."""
    answers: str
    """Schema of the answer; empty: that is empty."""


@dataclass(frozen=True, slots=True)
class Meant:
    """What a request means."""

    api: "Api"
    method: Method
    path: Mapping[str, str]
    """Parameters of the path, decoded."""


class Api:
    """One API in one version."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.name: str = document["name"]
        self.host: str = document["rootUrl"].partition("//")[2].rstrip("/")
        self.prefix = "/" + document["servicePath"]
        self.schemas: Mapping[str, Schema] = document.get("schemas", {})
        self.common: Mapping[str, Schema] = {**document.get("parameters", {}), **UNSAID}
        """Parameters that every method takes."""
        self._ways: dict[tuple[str, int], list[tuple[re.Pattern[str], Method]]] = defaultdict(list)
        found = sorted(_methods(document), key=lambda one: one.path.count("{"))
        for one in found:  # who has the fewest parameters is meant first
            self._ways[one.verb, one.path.count("/")].append((_pattern(one.path), one))

    def meant(self, verb: str, path: str) -> Meant | None:
        """Return which method a path, not decoded, means; None: none of this API."""
        if not path.startswith(self.prefix):
            return None
        below = path.removeprefix(self.prefix)
        for pattern, method in self._ways[verb, below.count("/")]:
            found = pattern.fullmatch(below)
            if found is not None:
                words = {name: unquote(word) for name, word in found.groupdict().items()}
                return Meant(self, method, words)
        return None


@cache
def api(name: str, version: str) -> Api:
    """Return an API as the client library ships it; raise Denied without that.

    That of Compute Engine takes a tenth of a second, once.
    """
    try:
        file = files(FOLDER) / f"{name}.{version}.json"
        return Api(json.loads(file.read_text(encoding="utf-8")))
    except ModuleNotFoundError as error:
        raise Denied(NEEDED) from error


def _methods(part: Mapping[str, Any]) -> Iterator[Method]:
    for one in part.get("methods", {}).values():
        yield Method(
            one["id"],
            one["httpMethod"],
            one.get("flatPath", one["path"]),
            one.get("parameters", {}),
            one.get("request", {}).get("$ref", ""),
            one.get("response", {}).get("$ref", ""),
        )
    for inner in part.get("resources", {}).values():
        yield from _methods(inner)


def _pattern(path: str) -> re.Pattern[str]:
    parts = WORD.split(path)  # text, name, text, name, ..., text
    words = [
        re.escape(part) if number % 2 == 0 else f"(?P<{part}>[^/:]+)"
        for number, part in enumerate(parts)
    ]
    return re.compile("".join(words))
