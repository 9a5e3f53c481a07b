"""Every key of a job file and what may stand there: the tables that the documentation prints."""

import os

from cloudwhale.control.intake import words
from cloudwhale.control.intake.array import axes
from cloudwhale.control.intake.fields import (
    Fields,
    Reading,
    Table,
    into,
    many,
    one,
    pairs,
    part,
    read,
)
from cloudwhale.control.intake.gpu import gpu, one_model, speeds
from cloudwhale.control.intake.moments import deadline, window, zone
from cloudwhale.control.intake.tree import Items, Node, Scalar
from cloudwhale.control.intake.unfit import Unfit, shown
from cloudwhale.control.intake.units import (
    at_least,
    between,
    factor,
    money,
    number,
    rate,
    size,
    some_time,
    time,
    whole,
    yes_no,
)
from cloudwhale.mailbox.addresses import name_of
from cloudwhale.model.job import (
    PRIORITY_HIGHEST,
    CheckpointRule,
    NotifyRule,
    Resources,
    RetryCause,
    RetryRule,
    WhereRule,
)
from cloudwhale.model.night import DAYS

# Signals that a process can catch, so that it can save before it ends.
SIGNALS = ("SIGTERM", "SIGINT", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGQUIT")
NOTIFIED = (
    "completed", "failed", "cancelled", "parked", "preempted", "budget", "checkpoint-late", "all",
)  # fmt: skip
STORES = ("s3", "gs", "https", "http", "file")
CPU_MOST = 4096
NODES_MOST = 1024


def workdir(node: Node, reading: Reading) -> str:
    """Return an existing folder as an absolute path; relative ones start at the job file."""
    text = one(words.some_text)(node, reading)
    known = reading.workdirs.get(text)
    if known is None:
        # os.path and not pathlib, which raises for unknown users and for names that are too long.
        folder = os.path.abspath(os.path.join(reading.folder, os.path.expanduser(text)))
        if not os.path.isdir(folder):
            kind = "is not a folder" if os.path.exists(folder) else "does not exist"
            raise Unfit(f"{shown(text)} {kind} (in {reading.folder})", "Make it, or write another.")
        known = reading.workdirs[text] = folder
    return known


def inputs(node: Node, reading: Reading) -> tuple[str, ...]:
    """Return what a job reads, each under a name of its own."""
    found = many(words.source(STORES))(node, reading)
    names: dict[str, str] = {}
    for url in found:
        other = names.setdefault(name_of(url), url)
        if other != url:
            items = node.items if isinstance(node, Items) else (node,)
            at = next((one for one in items if isinstance(one, Scalar) and one.text == url), node)
            raise Unfit(
                f"{shown(url)} and {shown(other)} would both be called {name_of(url)}",
                "Rename one: a job finds each input under the last part of its address.",
                at,
            )
    return found


def _wait(node: Node, reading: Reading) -> Fields:
    return read(node, {"max": into("wait_max_s", one(time))}, reading)


def _affinity(node: Node, reading: Reading) -> Fields:
    return read(node, {"labels": into("affinity", many(words.some_text))}, reading)


RESOURCES: Table = {
    "gpu": into("gpu", gpu),
    "cpu": into("cpu", one(at_least(between(number, 0.01, CPU_MOST)))),
    "memory": into("memory_gib", one(at_least(size))),
    "disk": into("disk_gib", one(at_least(size))),
    "shm": into("shm_gib", one(at_least(size))),
    "disk_io": into("disk_io_mb_s", one(at_least(rate))),
    "network": into("network_mb_s", one(at_least(rate))),
}

CHECKPOINT: Table = {
    "path": into("path", one(words.inside)),
    "every": into("every_s", one(some_time)),
    "signal": into("signal", one(words.choice(SIGNALS))),
    "grace": into("grace_s", one(time)),
    "keep": into("keep", one(between(whole, 1, 1000))),
}

RETRY: Table = {
    "max": into("max", one(between(whole, 0, 1000))),
    "on": into("on", many(words.choice([cause.value for cause in RetryCause]))),
    "backoff": into("backoff_s", one(time)),
}

WHERE: Table = {
    "labels": into("labels", pairs(words.some_text, words.text)),
    "not": into("not_on", many(words.some_text)),
}

NOTIFY: Table = {
    "on": into("on", many(words.choice(NOTIFIED))),
    "webhook": into("webhook", one(words.webhook)),
}

JOB: Table = {
    "name": into("name", one(words.folder_name)),
    "project": into("project", one(words.folder_name)),
    "image": into("image", one(words.image)),
    "workdir": into("workdir", workdir),
    "setup": into("setup", one(words.some_text)),
    "command": into("command", one(words.some_text)),
    "env": into("env", pairs(words.env_name, words.text)),
    "secrets": into("secrets", many(words.env_name)),
    "resources": into("resources", part(Resources, RESOURCES)),
    "mounts": into("mounts", pairs(words.absolute, words.mount_point)),
    "nodes": into("nodes", one(between(whole, 1, NODES_MOST))),
    "duration": into("duration_s", one(some_time)),
    "reference": into("reference", one(one_model)),
    "max_duration": into("max_duration_s", one(some_time)),
    "deadline": into("deadline", deadline),
    "priority": into("priority", one(between(whole, 0, PRIORITY_HIGHEST))),
    "preemptible": into("preemptible", one(yes_no)),
    "wait": _wait,
    "market": into("market", one(words.choice(("auto", "spot", "on-demand", "local")))),
    "checkpoint": into("checkpoint", part(CheckpointRule, CHECKPOINT)),
    "retry": into("retry", part(RetryRule, RETRY)),
    "budget": into("budget", one(money)),
    "inputs": into("inputs", inputs),
    "outputs": into("outputs", many(words.inside)),
    "after": into("after", many(words.folder_name)),
    "array": into("axes", axes),
    "where": into("where", part(WhereRule, WHERE)),
    "affinity": _affinity,
    "notify": into("notify", part(NotifyRule, NOTIFY)),
    "speeds": into("speeds", speeds),
    "value_of_time_usd_h": into("value_of_time_usd_h", one(factor)),
    "auto_size": into("auto_size", one(yes_no)),
    "keep_on_failure": into("keep_on_failure_s", one(some_time)),
}
"""One job; the fields are those of `JobSpec`, and `axes` is what it is multiplied by."""

NIGHT: Table = {
    "window": into("window", window),
    "zone": into("zone", one(zone)),
    "days": into("days", many(words.choice(DAYS))),
    "budget": into("budget", one(money)),
    "deadline": into("deadline", deadline),
    "unfinished": into("unfinished", one(words.choice(("park", "carry-over", "continue")))),
}
"""What a file of several jobs may say of all of them together."""
