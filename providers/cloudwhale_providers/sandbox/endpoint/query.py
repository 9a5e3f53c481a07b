"""EC2's language: forms in, XML out, both as botocore's model of the service has them."""

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from typing import Any, cast
from xml.sax.saxutils import escape

from cloudwhale_providers.sandbox.endpoint.messages import Answer
from cloudwhale_providers.sandbox.endpoint.refused import REQUEST_ID, Refused

SPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
PLAIN = frozenset({"Action", "Version"})

Tree = dict[str, Any]
"""Fields by name; a field with fields of its own is a tree again."""


class Query:
    """Reads requests of EC2 and writes its answers; a name that the model lacks is an error."""

    @cached_property
    def _model(self) -> Any:
        return import_module("botocore.session").get_session().get_service_model("ec2")

    def read(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Return the parameters of a request as boto3 takes them; raise Refused."""
        shape = self._model.operation_model(form["Action"]).input_shape
        fields = {name: value for name, value in form.items() if name not in PLAIN}
        return {} if shape is None else _structure(shape, _tree(fields))

    def write(self, action: str, answer: Mapping[str, Any]) -> Answer:
        """Return an answer as XML; raise KeyError for what the model does not know."""
        return self.framed(action, self.members(action, answer))

    def members(self, action: str, answer: Mapping[str, Any]) -> str:
        """Return the XML of an answer's members, without what is around it."""
        return _members(self._model.operation_model(action).output_shape, answer)

    def element(self, shape: str, name: str, value: Any) -> str:
        """Return the XML of one value of a shape, `Instance`, in an element of a name."""
        return _element(self._model.shape_for(shape), name, value)

    def framed(self, action: str, members: str) -> Answer:
        """Return an answer whose members are XML already."""
        text = (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<{action}Response xmlns="{SPACE}">'
            f"<requestId>{REQUEST_ID}</requestId>{members}</{action}Response>"
        )
        return Answer(200, {"Content-Type": "text/xml;charset=UTF-8"}, text.encode())


def _tree(fields: Mapping[str, str]) -> Tree:
    tree: Tree = {}
    for name, value in fields.items():
        at = tree
        *way, last = name.split(".")
        for step in way:
            deeper: Any = at.setdefault(step, {})
            if not isinstance(deeper, dict):
                raise Refused("InvalidParameterValue", f"{name} is said twice")
            at = cast(Tree, deeper)
        at[last] = value
    return tree


def _structure(shape: Any, tree: Any) -> dict[str, Any]:
    if not isinstance(tree, dict):
        raise Refused("MalformedQueryString", f"{shape.name} has no fields")
    left = dict(cast(Tree, tree))
    found: dict[str, Any] = {}
    for name, member in shape.members.items():
        wire = _asked_name(name, member)
        if wire in left:
            found[name] = _value(member, left.pop(wire))
    if left:
        raise Refused("UnknownParameter", f"The parameter {min(left)} is not recognized")
    return found


def _asked_name(name: str, member: Any) -> str:
    """Return how a form calls a member: the rule of the `ec2` protocol in botocore."""
    said = member.serialization
    if "queryName" in said:
        return str(said["queryName"])
    plain = str(said.get("name", name))
    return plain[0].upper() + plain[1:]


def _value(shape: Any, said: Any) -> Any:
    kind = shape.type_name
    if kind == "structure":
        return _structure(shape, said)
    if kind == "list":
        return [_value(shape.member, said[key]) for key in sorted(said, key=int)]
    try:
        return READERS.get(kind, str)(said)
    except ValueError as error:
        raise Refused("InvalidParameterValue", f"{said!r} is no {kind}") from error


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _truth(text: str) -> bool:
    return text.lower() == "true"


READERS: Mapping[str, Callable[[str], Any]] = {
    "boolean": _truth,
    "integer": int,
    "long": int,
    "float": float,
    "double": float,
    "timestamp": _instant,
    "blob": base64.b64decode,
}


def _members(shape: Any, values: Mapping[str, Any]) -> str:
    return "".join(
        _element(shape.members[name], str(shape.members[name].serialization.get("name", name)), one)
        for name, one in values.items()
        if one is not None
    )


def _element(shape: Any, name: str, value: Any) -> str:
    kind = shape.type_name
    if kind == "structure":
        inner = _members(shape, value)
    elif kind == "list":
        inner = "".join(_element(shape.member, "item", one) for one in value)
    elif kind == "boolean":
        inner = "true" if value else "false"
    elif kind == "timestamp":
        inner = datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    else:
        inner = escape(str(value))
    return f"<{name}>{inner}</{name}>"
