"""The rows of `doctor`: this host, its providers, the store, the settings; each with its remedy."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

from cloudwhale.control.desk import mailbox_url, own_mailboxes, policies, providers
from cloudwhale.control.notifying.reaching import trusting
from cloudwhale.control.notifying.targets import Target, targets
from cloudwhale.control.saying import Say, to_nobody
from cloudwhale.control.store import database_url, open_store
from cloudwhale.control.store.address import is_postgres, masked
from cloudwhale.control.surrounding import boots
from cloudwhale.host import Hierarchies, check_docker, check_gpus
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import CloudwhaleError, SettingsError
from cloudwhale.spi.provider import Check

SHELL = "/bin/bash"


def checks(settings: Settings, only: str = "", say: Say = to_nobody) -> Sequence[Check]:
    """Look at everything that jobs need; takes a second, and some more for each cloud.

    `only`: the name of a provider whose rows are enough; raise SettingsError for one that is none
    of the settings'. `say` is told what takes seconds.
    """
    if only:
        rows = [*_of_provider(settings, only)]
        return [*rows, *_archive(settings, say)] if only in settings.clouds else rows
    rows = [_python(), _shell(), _groups(), check_gpus(settings.devices), check_docker()]
    rows += [row for provider in providers(settings).values() for row in provider.check()]
    rows += _archive(settings, say)
    rows += [_database(settings), _mailbox(settings), *_own_mailboxes(settings)]
    return [*rows, _policies(settings), *_targets(settings)]


def _of_provider(settings: Settings, name: str) -> Sequence[Check]:
    found = providers(settings)
    if name not in found:
        raise SettingsError(
            f"the settings name no provider {name!r}, but {', '.join(sorted(found)) or 'none'}",
            f"Write a table [clouds.{name}] into cloudwhale.toml; it may be empty. Or let "
            f"`cloudwhale doctor {name} --fix` do it, which makes what the account lacks.",
        )
    return found[name].check()


def _targets(settings: Settings) -> Iterator[Check]:
    """Look at whom the settings tell, and whether their secrets are there; sends nothing."""
    try:
        for target in targets(settings.notify).values():
            yield check_target(target)
    except SettingsError as error:
        yield Check(name="notify", state="failed", says=error.says, remedy=error.remedy)


def check_target(target: Target) -> Check:
    """Say whether what a target of notices needs can be read; nothing is sent."""
    name, says = f"notify {target.name}", f"{target.way}; `cloudwhale notify test` sends a trial"
    try:
        if target.way in ("webhook", "slack"):
            target.address()
        if target.secret.is_given:
            target.secret.read()
        if target.ca_file:
            trusting(target)
    except SettingsError as error:
        return Check(name=name, state="failed", says=error.says, remedy=error.remedy)
    return Check(name=name, state="ok", says=says)


def _archive(settings: Settings, say: Callable[[str], object]) -> Sequence[Check]:
    """Look at what rented machines get their agent from; nothing where none of them boots."""
    if not boots(settings):
        return ()
    from cloudwhale.control.bundle_check import check

    return (check(say),)


def _python() -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Check(name="python", state="ok", says=f"{version} at {sys.executable}")


def _shell() -> Check:
    if os.access(SHELL, os.X_OK):
        return Check(name="shell", state="ok", says=SHELL)
    remedy = "Install bash if your commands need it."
    return Check(name="shell", state="warning", says="jobs run in /bin/sh", remedy=remedy)


def _groups() -> Check:
    kinds = list(_kinds(Hierarchies.of_this_process()))
    if kinds:
        return Check(name="cgroups", state="ok", says=", ".join(kinds))
    return Check(
        name="cgroups",
        state="warning",
        says="this user can make none: memory is watched, and CPU is not limited",
        remedy="Run the agent as root, or as a systemd unit with Delegate=yes.",
    )


def _kinds(hierarchies: Hierarchies) -> Iterator[str]:
    for controller in ("cpu", "memory"):
        if any(os.access(folder, os.W_OK) for folder in hierarchies.lineage(controller)[:1]):
            yield f"{controller} by version 1"
    for folder in hierarchies.lineage(""):
        given = (folder / "cgroup.subtree_control").read_text().split()
        if {"cpu", "memory"} <= set(given) and os.access(folder, os.W_OK):
            yield "cpu and memory by version 2"
            return


def _database(settings: Settings) -> Check:
    url = database_url(settings)
    try:
        where = f"{masked(url)}, " if is_postgres(url) else ""
        with closing(open_store(url, may_migrate=False)) as store:
            says = f"{where}readable, {store.version()} events"
    except CloudwhaleError as error:
        return _failed("database", error)
    return Check(name="database", state="ok", says=says)


def _mailbox(settings: Settings) -> Check:
    """Open the mailbox; one in a bucket is not asked, that could take minutes."""
    url = mailbox_url(settings)
    try:
        folder = open_objects(url).folder
    except CloudwhaleError as error:
        return _failed("mailbox", error)
    if folder is not None and not os.access(folder, os.W_OK | os.X_OK):
        remedy = f"Make {folder} writable, or set `mailbox`."
        return Check(name="mailbox", state="failed", says=f"{url} is not writable", remedy=remedy)
    if not settings.mailbox and _may_be_shared(settings):
        return Check(
            name="mailbox",
            state="warning",
            says=f"{url} is this host's alone, and the database may be several hosts'",
            remedy="Set `mailbox` to a folder or a bucket that all of them share.",
        )
    return Check(name="mailbox", state="ok", says=url)


def _own_mailboxes(settings: Settings) -> Iterator[Check]:
    """Open the mailboxes that clouds have for themselves; their providers' rows look into them."""
    for name, url in own_mailboxes(settings).items():
        try:
            open_objects(url)
        except CloudwhaleError as error:
            yield _failed(f"mailbox of {name}", error)
        else:
            yield Check(name=f"mailbox of {name}", state="ok", says=url)


def _may_be_shared(settings: Settings) -> bool:
    """Say whether other hosts can use our database."""
    try:
        return is_postgres(database_url(settings))
    except CloudwhaleError:
        return False  # the row of the database says so


def _policies(settings: Settings) -> Check:
    try:
        policies(settings)
    except CloudwhaleError as error:
        return _failed("policies", error)
    says = f"order {settings.order}, score {settings.score}"
    return Check(name="policies", state="ok", says=says)


def _failed(name: str, error: CloudwhaleError) -> Check:
    return Check(name=name, state="failed", says=error.says, remedy=error.remedy)
