"""GPUs as a job file asks for them: `A100:2`, `24GB..80GB:1..2`, 1, 0.5, or a section."""

import difflib
import re
from collections.abc import Iterable

from cloudwhale.control.intake.fields import Fields, Reading, Table, into, many, one, pairs, read
from cloudwhale.control.intake.tree import Node, Scalar
from cloudwhale.control.intake.unfit import Unfit, shown
from cloudwhale.control.intake.units import between, ends, factor, gpu_size, number, span, whole
from cloudwhale.model.gpus import FAMILIES, MODELS, variants
from cloudwhale.model.job import GpuRequest, Span

COUNT_MOST = 1024  # the largest single machines have 16

_COUNT = re.compile(r"[0-9]+(\s*\.\.\s*[0-9]*)?|\.\.\s*[0-9]+")
_SHARE = re.compile(r"[0-9]+\.[0-9]+")


def gpu(node: Node, reading: Reading) -> GpuRequest:
    """Return the GPUs that a job asks for, per node."""
    if isinstance(node, Scalar):
        fields = short_form(node.text)
    else:
        fields = {"count": 1, **read(node, _KEYS, reading)}
    request = GpuRequest.model_validate(fields)
    _refuse_contradiction(request)
    return request


def short_form(text: str) -> Fields:
    """Return the fields of `A100:2`; its parts may come in any order, each kind once."""
    fields: Fields = {}
    for part in (part.strip() for part in text.split(":")):
        new = _part(part, text)
        twice = fields.keys() & new.keys()
        if twice:
            raise Unfit(f"{shown(text)} says {min(twice)} twice", "Write it like A100:2.")
        fields |= new
    return {"count": 1, **fields}


def _part(part: str, text: str) -> Fields:
    if _COUNT.fullmatch(part):
        return count(part)
    if _SHARE.fullmatch(part):
        return {"share": share(part)}
    if part[:1].isdigit() or part.startswith(".."):
        return {"memory_gib": span(gpu_size)(part)}
    if not part:
        raise Unfit(f"{shown(text)} has an empty part", "Write it like A100:2 or 24GB..80GB:1.")
    return {"models": _flat(tuple(model(name.strip()) for name in part.split(",")))}


def count(text: str) -> Fields:
    """Return how many GPUs: `2`, or `1..2` for any number between."""
    if ".." not in text:
        return {"count": _count(text)}
    least, most = ends(text, _count)
    if least is None or most is None or least == 0:
        raise Unfit(f"{shown(text)} leaves an end open", "Write both ends, from 1 on: 1..2.")
    return {"count": least, "count_most": most}


_count = between(whole, 0, COUNT_MOST)


def share(text: str) -> float:
    """Return a share of each GPU, above 0 and at most 1."""
    value = number(text)
    if not 0 < value <= 1:
        raise Unfit(
            f"a share of {shown(text)} is not above 0 and at most 1",
            "Write a fraction like 0.5; ask for whole GPUs with `count`.",
        )
    return value


def model(text: str) -> tuple[str, ...]:
    """Return the canonical names that a model's name means."""
    found = variants(text)
    if found:
        return found
    known = [*FAMILIES, *(name for name in MODELS if name.rpartition("-")[0] not in FAMILIES)]
    close = difflib.get_close_matches(text.upper(), known, 1)
    hint = f"Did you mean {close[0]}?" if close else f"Known: {', '.join(known)}."
    raise Unfit(f"no GPU model is called {shown(text)}", hint)


def one_model(text: str) -> str:
    """Return one canonical name; a family's name means its member with the least memory."""
    return model(text)[0]


def speeds(node: Node, reading: Reading) -> dict[str, float]:
    """Return relative speeds by canonical model; a family's name speaks for its members."""
    given = pairs(_known_model, factor)(node, reading)
    return {model: speed for name, speed in given.items() for model in variants(name)}


def _known_model(text: str) -> str:
    model(text)
    return text


def _flat(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in group))


def _take_count(node: Node, reading: Reading) -> Fields:
    return one(count)(node, reading)


def _take_models(node: Node, reading: Reading) -> Fields:
    return {"models": _flat(many(model)(node, reading))}


_KEYS: Table = {
    "count": _take_count,
    "memory": into("memory_gib", one(span(gpu_size))),
    "model": _take_models,
    "share": into("share", one(share)),
}


def _refuse_contradiction(request: GpuRequest) -> None:
    wanted: Span = request.memory_gib
    sizes = [MODELS[name].memory_gib for name in request.models]
    if sizes and not any(wanted.holds(size) for size in sizes):
        least = f"{wanted.least:g}GB.." if wanted.most is None else f"{wanted.least:g}GB"
        most = "" if wanted.most is None else f"..{wanted.most:g}GB"
        raise Unfit(
            f"{', '.join(request.models)} has {max(sizes):g}GB, and {least}{most} is asked for",
            "Ask for less memory, or for another model.",
        )
