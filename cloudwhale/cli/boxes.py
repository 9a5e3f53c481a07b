"""What `sandbox` does: serve, status, meter, stop."""

import os
import signal
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cloudwhale.cli.exits import Exit
from cloudwhale.cli.output import document_or, emit, say
from cloudwhale.clock import SystemClock, iso, pause
from cloudwhale.control.surrounding import Box, box_of
from cloudwhale.model.units import MicroUsd, Seconds, usd
from cloudwhale.reporting.figures import counted
from cloudwhale.reporting.sheet import Cell, Column, Sheet, cells
from cloudwhale.settings import checked, load
from cloudwhale.spi.errors import Unreachable
from cloudwhale.spi.sandbox import Metered, Standing

ENDS_WITHIN_S: Seconds = 30.0
LOOK_EVERY_S: Seconds = 0.05


def serve(folder: Path | None, script: Path | None, machines: str | None) -> int:
    """Be the sandbox until it is idle or told to end."""
    settings = load(Path.cwd())
    if machines is not None:
        settings = checked({**settings.model_dump(), "sandbox_machines": machines}, "--machines")
    box = box_of(settings)
    return box.sandbox.serve(folder or box.folder, script, SystemClock(), settings.sandbox_machines)


def status(as_json: bool) -> int:
    """Say whether it runs, and what runs there."""
    box = _box()
    told, machines = box.sandbox.standing(box.folder), box.sandbox.meter(box.folder)
    running = sum(one.until is None for one in machines) if told is not None else 0
    if as_json:
        keys = {} if told is None else asdict(told)
        emit({"runs": told is not None, "home": str(box.home), "machines": running, **keys})
    elif told is None:
        say(f"The sandbox of {box.home} does not run; a command with `--sandbox` starts it.")
    else:
        pace = "" if told.speed == 1 else f"; time goes {told.speed:g} times as fast there"
        say(f"The sandbox of {box.home} answers at {told.url}, process {told.pid}{pace}.")
        say(f"{counted(running, 'machine')} of {len(machines)} in all run there now.")
        for note in told.notes:
            say(note)
    return Exit.DONE


def meter(as_json: bool) -> int:
    """Print what its machines have cost."""
    box = _box()
    machines = box.sandbox.meter(box.folder)
    document_or(
        as_json,
        lambda: {
            "machines": [_keys(one) for one in machines],
            "total_usd": usd(MicroUsd(sum(one.cost for one in machines))),
        },
        lambda paper: paper.sheet(_sheet(machines)),
    )
    return Exit.DONE


def _keys(one: Metered) -> dict[str, Any]:
    return {
        "id": one.id,
        "node": one.node,
        "provider": one.provider,
        "type": one.type,
        "zone": one.zone,
        "market": one.market,
        "since": iso(one.since),
        "until": iso(one.until),
        "usd_h": usd(one.usd_h),
        "cost_usd": usd(one.cost),
    }


def _sheet(machines: Sequence[Metered]) -> Sheet:
    columns = (
        Column("machine"),
        Column("node"),
        Column("provider"),
        Column("type"),
        Column("zone"),
        Column("market"),
        Column("seconds", right=True),
        Column("an hour", right=True),
        Column("cost", right=True),
    )
    total = usd(MicroUsd(sum(one.cost for one in machines)))
    note = f"{total} USD in all, of the sandbox's own money." if machines else "No machine yet."
    return Sheet(columns, tuple(map(_row, machines)), notes=(note,))


def _row(one: Metered) -> tuple[Cell, ...]:
    for_s = "runs" if one.until is None else f"{one.until - one.since:,.0f}"
    return cells(
        one.id, one.node, one.provider, one.type, one.zone, one.market,
        for_s, f"{usd(one.usd_h)}", Cell(f"{usd(one.cost)}", "strong"),
    )  # fmt: skip


def stop(as_json: bool) -> int:
    """End it with all its machines; raise Unreachable when it does not end."""
    box = _box()
    told = box.sandbox.standing(box.folder)
    if told is not None:
        _ended(box, told)
    if as_json:
        emit({"stopped": told is not None})
    else:
        say("The sandbox has ended." if told else "The sandbox does not run.")
    return Exit.DONE


def _ended(box: Box, told: Standing) -> None:
    try:
        os.kill(told.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    waited_s = 0.0
    while box.sandbox.standing(box.folder) is not None or _lives(told.pid):
        if waited_s >= ENDS_WITHIN_S:
            raise Unreachable(
                f"the sandbox, process {told.pid}, does not end", f"Look into {box.folder}."
            )
        pause(LOOK_EVERY_S)
        waited_s += LOOK_EVERY_S


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Say whether whoever started it has not collected it yet."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return text[text.rfind(")") + 2 :][:1] == "Z"


def _box() -> Box:
    return box_of(load(Path.cwd()))
