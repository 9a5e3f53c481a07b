"""Task lists of older tools: a list of `id`, `image`, `gpu_mem_needed`, `cmd`, `status`."""

import re

from cloudwhale.control.intake import words
from cloudwhale.control.intake.fields import Reading, Table, into, one, read
from cloudwhale.control.intake.job import Overrides, overridden
from cloudwhale.control.intake.starting import check_start
from cloudwhale.control.intake.tree import Items, Node, Section
from cloudwhale.control.intake.unfit import Unfit
from cloudwhale.control.intake.units import number
from cloudwhale.model.job import GpuRequest, JobSpec, Resources, Span
from cloudwhale.model.units import GiB

MEGABYTES_FROM = 1000  # no GPU has 1,000 GB, and no task asked for less than 1,000 MB in MB
MIB_PER_GIB = 1024


def _image(text: str) -> str | None:
    return words.image(text) if text else None


def _gpu_memory(text: str) -> GiB:
    amount = number(text)
    return amount if amount < MEGABYTES_FROM else amount / MIB_PER_GIB


TASK: Table = {
    "id": into("name", one(words.some_text)),
    "image": into("image", one(_image)),
    "gpu_mem_needed": into("gpu_memory", one(_gpu_memory)),
    "cmd": into("command", one(words.some_text)),
    "status": into("status", one(words.text)),
}


def tasks(root: Items, reading: Reading, overrides: Overrides) -> tuple[JobSpec, ...]:
    """Return the tasks that are not done; keys that are not ours are told of and left alone."""
    foreign: dict[str, None] = {}
    specs: list[JobSpec] = []
    for item in root.items:
        spec = _task(item, reading, foreign, overrides)
        if spec is not None:
            specs.append(spec)
    if foreign:
        reading.notes.append(
            f"These keys of the task list mean nothing here: {', '.join(foreign)}."
        )
    if not specs:
        reading.notes.append("Every task of the list is done.")
    return tuple(specs)


def _task(
    item: Node, reading: Reading, foreign: dict[str, None], overrides: Overrides
) -> JobSpec | None:
    if not isinstance(item, Section):
        raise Unfit("a task is keys with values", f"Write {{{', '.join(TASK)}}}.", item)
    foreign.update(dict.fromkeys(name for name in item.entries if name not in TASK))
    known = {name: entry for name, entry in item.entries.items() if name in TASK}
    fields = read(Section(item.line, item.column, known), TASK, reading)
    if fields.pop("status", "") == "done":
        return None
    for key, name in (("id", "name"), ("cmd", "command"), ("gpu_mem_needed", "gpu_memory")):
        if name not in fields:
            raise Unfit(f"the task has no `{key}`", f"Add {key!r}; jobs go under `jobs:`.", item)
    fields["name"] = _safe(str(fields["name"]), item)
    memory = fields.pop("gpu_memory")
    if memory:
        gpu = GpuRequest(count=1, memory_gib=Span.model_validate({"least": memory}))
        fields["resources"] = Resources(gpu=gpu)
    spec = overridden(JobSpec.model_validate(fields), overrides)
    check_start(spec, {}, item)
    return spec


def _safe(name: str, item: Node) -> str:
    """Return a task's id as a name; the list belongs to another tool, so it is not refused."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("._-")[:63].rstrip(".")
    if not safe:
        raise Unfit(f"the id {name!r} has no letter or digit", "Give the task another id.", item)
    return safe
