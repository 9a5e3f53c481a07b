"""The driver: made when it is needed, one for each thread, and asked in one way."""

import inspect
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError, Denied, SettingsError
from cloudwhale_providers.libcloud.errors import Lacking, is_lacking, said, translated
from cloudwhale_providers.libcloud.settings import LibcloudSettings
from cloudwhale_providers.libcloud.words import BY_ID, GETTERS, OF_DRIVER, USUAL, Taken, place_of

OURS = ("name", "size", "image")
"""Words of `create_node` that are always filled."""
INSTALL = "pip install 'cloudwhale[libcloud]'"


class Driving:
    """Asks a driver; safe for threads, as each has its own: libcloud's connections are not."""

    def __init__(
        self,
        name: str,
        options: LibcloudSettings,
        make: Callable[[], Any] | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """`make`: makes the driver, where a test has one."""
        self._name = name
        self._options = options
        self._make = make or self._made
        self._environment = environment
        self._own = threading.local()

    def driver(self) -> Any:
        """Return this thread's driver; raise SettingsError, Denied or Unreachable."""
        found = getattr(self._own, "driver", None)
        if found is None:
            found = self._own.driver = self._opened()
        return found

    def _opened(self) -> Any:
        try:
            return self._make()
        except CloudwhaleError:
            raise
        except TypeError as error:
            says = f"[clouds.{self._name}]: {self._options.driver} cannot be made: {said(error)}"
            remedy = "Give it its words in `credentials` and `options`: libcloud's pages have them."
            raise SettingsError(says, remedy) from error
        except Exception as error:
            raise translated(error, "a connection", self._options.driver) from error

    def ask(self, verb: str, *things: Any, **words: Any) -> Any:
        """Return what a method of the driver answers; raise Denied, TryAnother or Unreachable."""
        driver = self.driver()
        method = getattr(driver, verb, None)
        if method is None:
            absent = Lacking(verb)
            raise translated(absent, verb, self._options.driver) from absent
        try:
            found = method(*things, **words)
            # Some answer with a list that asks for more while it is read.
            return list(found) if verb.startswith("list_") else found
        except Exception as error:  # drivers raise what they like, their bugs too
            raise translated(error, verb, self._options.driver) from error

    def asked_if_it_can(self, verb: str) -> Any:
        """Return what a method answers; None where the driver does not have it."""
        try:
            return self.ask(verb)
        except Denied as error:
            if error.__cause__ is not None and is_lacking(error.__cause__):
                return None
            raise

    def words_of(self, verb: str) -> Mapping[str, inspect.Parameter]:
        """Return the parameters of a method of the driver; empty where it has none of the name."""
        method = getattr(self.driver(), verb, None)
        return {} if method is None else inspect.signature(method).parameters

    def getter(self) -> str:
        """Return the method that looks at one machine by its id; empty: the driver has none."""
        for verb in GETTERS:
            first = next(iter(self.words_of(verb)), "")
            if first in BY_ID:
                return verb
        return ""

    def place(self) -> Taken | None:
        """Return what takes user data; None: nothing is known that does."""
        path = self._options.user_data or OF_DRIVER.get(self._options.driver, "")
        if path:
            return place_of(path)
        taken = self.words_of("create_node")
        return next((Taken(word) for word in USUAL if word in taken), None)

    def _made(self) -> Any:
        return driver_class(self._options.driver, self._name)(**self._filled())

    def _filled(self) -> dict[str, Any]:
        """Return the words of the driver's constructor, those with secrets from the environment."""
        options = self._options
        lacking = [one for one in options.credentials.values() if not self._environment.get(one)]
        if lacking:
            raise Denied(
                f"[clouds.{self._name}]: ${', $'.join(lacking)} is not set, which `credentials` "
                f"names",
                "Set it in the environment of whoever runs cloudwhale.",
            )
        secret = {word: self._environment[name] for word, name in options.credentials.items()}
        return {**options.options, **secret}


def driver_class(driver: str, name: str) -> Any:
    """Return a driver's class; raise SettingsError where libcloud or the driver is missing."""
    try:
        providers = import_module("libcloud.compute.providers")
    except ImportError as error:
        says = f"[clouds.{name}] needs apache-libcloud, which is not installed"
        raise SettingsError(says, f"{INSTALL}.") from error
    known = sorted(str(one) for one in providers.DRIVERS)
    if driver not in known:
        says = f"[clouds.{name}]: libcloud has no compute driver {driver!r}"
        raise SettingsError(says, f"It has: {', '.join(known)}.")
    try:
        return providers.get_driver(driver)
    except ImportError as error:
        says = f"[clouds.{name}]: the driver {driver} needs a module that is missing: {error}"
        raise SettingsError(says, "Install it beside cloudwhale.") from error


def lacking(driving: Driving, options: LibcloudSettings) -> Sequence[str]:
    """Return what `create_node` wants and nobody gives, by its word."""
    given = {*OURS, *options.create, *(["location"] if options.location else [])}
    place = driving.place()
    if place is not None:
        given.add(place.word)
    return [
        word
        for word, one in driving.words_of("create_node").items()
        if one.default is one.empty and word not in given and _is_named(one)
    ]


def _is_named(one: inspect.Parameter) -> bool:
    return one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
