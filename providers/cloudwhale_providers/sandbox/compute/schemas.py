"""Holds what is asked and answered against the schemas of a discovery document."""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cloudwhale_providers.sandbox.compute.discovery import Api, Method, Schema

SPANS = {
    "int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1),
}  # fmt: skip
WHOLE = re.compile(r"-?[0-9]+")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and where."""

    where: str
    """`instance.scheduling`; empty: the whole."""
    says: str
    is_unknown: bool = False
    """Whether a field is there that the schema does not have."""


class Schemas:
    """The schemas of one API."""

    def __init__(self, api: Api) -> None:
        self._schemas = api.schemas
        self._common = api.common

    def of_body(self, method: Method, body: Any) -> Iterator[Fault]:
        """Yield what is wrong with the body of a request."""
        if method.asks:
            yield from self._of(body, {"$ref": method.asks}, "")
        elif body:
            yield Fault("", "the method takes no body")

    def of_answer(self, method: Method, answer: Any) -> Iterator[Fault]:
        """Yield what is wrong with an answer."""
        if method.answers:
            yield from self._of(answer, {"$ref": method.answers}, "")
        elif answer:
            yield Fault("", "the method answers nothing")

    def of_query(self, method: Method, query: Mapping[str, str]) -> Iterator[Fault]:
        """Yield what is wrong with the fields of an address."""
        for name, text in query.items():
            schema = method.parameters.get(name) or self._common.get(name)
            if schema is None or schema.get("location") == "path":
                yield Fault(name, "Cannot bind query parameter.", is_unknown=True)
            else:
                yield from self._of(_read(text, schema), schema, name)

    def of_path(self, method: Method, path: Mapping[str, str]) -> Iterator[Fault]:
        """Yield what is wrong with the parameters of a path."""
        for name, text in path.items():
            yield from self._of(text, method.parameters.get(name, {"type": "string"}), name)

    # -- values ------------------------------------------------------------------------------

    def _of(self, value: Any, schema: Schema, where: str) -> Iterator[Fault]:
        while "$ref" in schema:
            schema = self._schemas[schema["$ref"]]
        kind = schema.get("type", "any")
        if value is None or kind == "any":
            return
        if kind == "object":
            yield from self._of_object(value, schema, where)
        elif kind == "array":
            yield from self._of_array(value, schema, where)
        else:
            says = _wrong(value, kind, schema)
            if says:
                yield Fault(where, says)

    def _of_object(self, value: Any, schema: Schema, where: str) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield Fault(where, f"{value!r} is no object")
            return
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        fields: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        for name, inner in fields.items():
            at = f"{where}.{name}" if where else name
            if name in known or others is not None:
                yield from self._of(inner, known.get(name, others), at)
            else:
                says = f'Unknown name "{name}"{_at(where)}: Cannot find field.'
                yield Fault(where, says, is_unknown=True)

    def _of_array(self, value: Any, schema: Schema, where: str) -> Iterator[Fault]:
        if not isinstance(value, list):
            yield Fault(where, f"{value!r} is no array")
            return
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        for number, inner in enumerate(items):
            yield from self._of(inner, schema["items"], f"{where}[{number}]")


def _wrong(value: Any, kind: str, schema: Schema) -> str:
    """Return what is wrong with a plain value; empty: nothing."""
    if kind == "boolean":
        return "" if isinstance(value, bool) else f"{value!r} is no truth value"
    if kind == "string":
        return _wrong_text(value, schema)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return f"{value!r} is no number"
    if kind == "number":
        return "" if isinstance(value, int | float) else f"{value!r} is no number"
    return _wrong_whole(str(value), schema.get("format", "int32"))


def _wrong_text(value: Any, schema: Schema) -> str:
    form = schema.get("format", "")
    if form in SPANS and not isinstance(value, bool):
        return _wrong_whole(str(value), form)
    if not isinstance(value, str):
        return f"{value!r} is no text"
    if "enum" in schema and value not in schema["enum"]:
        return f'"{value}" is none of {", ".join(schema["enum"])}'
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        return f"'{value}' must be a match of regex '{schema['pattern']}'"
    if form == "byte":
        try:
            b64decode(value, altchars=b"-_", validate=True)
        except ValueError:
            return f"{value!r} is no base64"
    return ""


def _wrong_whole(text: str, form: str) -> str:
    least, most = SPANS[form]
    if WHOLE.fullmatch(text) and least <= int(text) <= most:
        return ""
    return f"{text!r} is no whole number of {form}"


def _read(text: str, schema: Schema) -> Any:
    """Return a value of an address as JSON would have it."""
    if schema["type"] == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    return [text] if schema["type"] == "array" else text


def _at(where: str) -> str:
    return f" at '{where}'" if where else ""
