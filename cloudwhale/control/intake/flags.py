"""What the command line says in the words of the job file."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from cloudwhale.control.intake import words
from cloudwhale.control.intake.unfit import Unfit, shown
from cloudwhale.control.intake.units import money, some_time
from cloudwhale.model.units import MicroUsd, Seconds

T = TypeVar("T")


def budget_flag(text: str) -> MicroUsd:
    """Return the bound of `--budget 50`; raise SpecError when it is not one."""
    return _flag("--budget", money, text)


def time_flag(name: str, text: str) -> Seconds:
    """Return the length of an option like `--keep-on-failure 30m`; raise SpecError for another."""
    return _flag(name, some_time, text)


def env_flag(settings: Iterable[str]) -> dict[str, str]:
    """Return the variables of `--env NAME=VALUE`; raise SpecError for what is not one."""
    return dict(_flag("--env", _setting, setting) for setting in settings)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise Unfit(f"{shown(text)} is not NAME=VALUE", "Write --env NAME=VALUE.")
    return words.env_name(name), words.text(value)


def _flag(name: str, parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except Unfit as wrong:
        raise wrong.error(name) from wrong.__cause__
