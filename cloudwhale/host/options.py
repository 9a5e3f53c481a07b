"""What a user says of a host: on a command line, in settings, as arguments of an agent."""

import argparse
import math
import re
from collections.abc import Sequence

from cloudwhale.model.gpus import canonical
from cloudwhale.model.node import Device
from cloudwhale.model.units import GiB
from cloudwhale.model.value import Value
from cloudwhale.spi.errors import SettingsError

DECLARED_MOST = 1000
DECLARED = re.compile(r"(?:(\d+)\s*x\s+)?(\S.*?)\s+(\d+(?:\.\d+)?)\s*(?:GB|GiB)", re.IGNORECASE)
NAMED = re.compile(r"(GPU-[0-9a-f-]+):\s+(.*)")
"""A stand-in by the id that containers get it by: `GPU-…: A10G 24GB`."""


class HostOptions(Value):
    """What a user says of a host; None and empty: as it is."""

    devices: tuple[str, ...] = ()
    """Declared stand-ins for GPUs: "2x RTX4090 24GB"."""
    cpu: float | None = None
    memory_gib: GiB | None = None
    labels: dict[str, str] = {}


AS_IT_IS = HostOptions()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Let a command line say what a user says of a host."""
    parser.add_argument("--device", action="append", default=[], metavar='"2x RTX4090 24GB"')
    parser.add_argument("--cpu", type=float)
    parser.add_argument("--memory-gib", type=float)
    parser.add_argument("--label", action="append", default=[], metavar="KEY=VALUE")


def options_from(arguments: argparse.Namespace) -> HostOptions:
    """Return what a parsed command line says; raise SettingsError for what none has."""
    for name, amount in (("--cpu", arguments.cpu), ("--memory-gib", arguments.memory_gib)):
        if amount is not None and not 0 < amount < math.inf:
            raise SettingsError(
                f"{name} must be a number above 0, and {amount} is not",
                "Write digits, like 4, or leave it out: all of the host is used then.",
            )
    labels: dict[str, str] = {}
    for label in arguments.label:
        key, equals, value = label.partition("=")
        if not equals:
            raise SettingsError(f"the label {label!r} has no value", "Write KEY=VALUE.")
        labels[key] = value
    return HostOptions(
        devices=tuple(arguments.device),
        cpu=arguments.cpu,
        memory_gib=arguments.memory_gib,
        labels=labels,
    )


def as_arguments(options: HostOptions) -> list[str]:
    """Return the arguments that an agent's command line says the same with."""
    words = [f"--device={device}" for device in options.devices]
    words += [f"--label={key}={value}" for key, value in options.labels.items()]
    if options.cpu is not None:
        words.append(f"--cpu={options.cpu}")
    if options.memory_gib is not None:
        words.append(f"--memory-gib={options.memory_gib}")
    return words


def declared(texts: Sequence[str]) -> tuple[Device, ...]:
    """Return stand-ins for GPUs; raise SettingsError for a text that describes none."""
    devices: list[Device] = []
    for text in texts:
        named = NAMED.fullmatch(text.strip())
        match = DECLARED.fullmatch(named[2] if named else text.strip())
        if match is None or not 1 <= int((match[1] or "1")[:9]) <= DECLARED_MOST:
            raise SettingsError(
                f"{text!r} describes no devices",
                f'Write them like "2x RTX4090 24GB"; {DECLARED_MOST:,} at most.',
            )
        count, name, size = match.groups()
        model = canonical(name, float(size)) or name
        for _ in range(int(count or 1)):
            number = named[1] if named else f"declared-{len(devices)}"
            devices.append(Device(id=number, model=model, memory_gib=float(size), declared=True))
    return tuple(devices)
