"""All that a project needs for machines, in order: APIs, roles, account, bucket, who may what."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError, SettingsError
from cloudwhale.spi.provider import Amends
from cloudwhale_providers import rows
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.asking import said_by
from cloudwhale_providers.gcp.checks_bucket import Bucket, bucket_of
from cloudwhale_providers.gcp.mending.apis import ApiWants
from cloudwhale_providers.gcp.mending.buckets import BucketWants
from cloudwhale_providers.gcp.mending.giving import GivenRoles
from cloudwhale_providers.gcp.mending.people import PeopleWants
from cloudwhale_providers.gcp.operations import Pause
from cloudwhale_providers.gcp.policies import Name, Places, bindings, role
from cloudwhale_providers.rows import Found, failed
from cloudwhale_providers.wants import Round, Want

MACHINE = "cloudwhale-machine"
"""What the machines' service account is called where the settings name none."""
FOLDER = "cloudwhale"
"""Of the mailbox in a bucket that is made for it."""
REGION = "us-central1"
"""Where a bucket is made when `regions` names none: it has every kind of GPU."""
KINDS = ("user", "group", "serviceAccount", "domain", "principal", "principalSet")
row = partial(rows.row, "gcp")


class Mends:
    """Looks at a project for what it lacks; each look is new."""

    def __init__(self, account: Account, mailbox: str, pause: Pause) -> None:
        self._account = account
        self._mailbox = mailbox
        self._pause = pause

    def amends(self, whose: Callable[[], str], allow: str = "") -> Amends:
        """Return what is there, what can be made, and what the settings are to say then."""
        account = self._account
        try:
            project = account.project
        except CloudwhaleError as error:
            return Amends((row("credentials", failed(error)),))
        own = bucket_of(account.options.mailbox) or bucket_of(self._mailbox)
        bucket = own or Bucket(f"cloudwhale-{project}".replace(":", "-").replace(".", "-"), FOLDER)
        places = self._places(project, bucket, whom(allow) if allow else "")
        looked = Round("gcp", self._pause, refused)
        apis = ApiWants(account.calls, project)
        looked.look(apis.wants())
        if apis.is_readable():
            looked.look(self._wants(places, bucket, whose))
        return Amends(
            rows=looked.rows,
            mendings=looked.mendings,
            mailbox="" if own or self._is_far() else _url(bucket),
            settings=self._settings(places, "" if own or not self._is_far() else _url(bucket)),
            policy=policy(places),
        )

    def _is_far(self) -> bool:
        """Say whether there is a mailbox in another cloud: then this one gets one beside it."""
        return "://" in self._mailbox and not self._mailbox.startswith("file:")

    def _wants(self, places: Places, bucket: Bucket, whose: Callable[[], str]) -> Sequence[Want]:
        calls = self._account.calls
        given = bindings(places)
        made: list[Name] = list(dict.fromkeys(one.role for one in given))
        people = PeopleWants(calls, places.project, places.machine)
        wanted = BucketWants(calls, bucket, places.project, self._region(), whose)
        return (
            *people.roles(made), *people.account(), *wanted.wants(),
            *GivenRoles(calls, places).wants(given),
        )  # fmt: skip

    def _places(self, project: str, bucket: Bucket, member: str) -> Places:
        email = f"{MACHINE}@{_of_domain(project)}.iam.gserviceaccount.com"
        machine = self._account.options.service_account or email
        return Places(project, bucket.name, bucket.prefix, machine, member)

    def _settings(self, places: Places, mailbox: str) -> dict[str, Any]:
        """Return what `[clouds.gcp]` is to say."""
        options = self._account.options
        found: dict[str, Any] = {
            "project": places.project,
            "regions": list(options.regions) or [self._region()],
            "service_account": places.machine,
        }
        return {**found, "mailbox": mailbox} if mailbox else found

    def _region(self) -> str:
        """Return where a bucket is made: beside the machines, as far as the settings say where."""
        named = [one for one in self._account.options.regions if not set("*?[") & set(one)]
        return named[0] if named else REGION


def _url(bucket: Bucket) -> str:
    return f"gs://{bucket.name}/{bucket.prefix}".rstrip("/")


def policy(places: Places) -> str:
    """Return what whoever runs cloudwhale must be allowed: roles, and on what they are given."""
    given = [one for one in bindings(Places(
        places.project, places.bucket, places.prefix, "", places.controller or "user:YOU"
    ))]  # fmt: skip
    on = {
        "project": f"projects/{places.project}",
        "account": f"projects/{places.project}/serviceAccounts/{places.machine}",
        "bucket": f"gs://{places.bucket}",
    }
    told = [{"on": on[one.on], "member": one.member, "role": role(one.role)} for one in given]
    return json.dumps(told, indent=2)


def whom(said: str) -> str:
    """Return a member as IAM names it; raise SettingsError for what is none."""
    kind, colon, name = said.partition(":")
    if colon and kind in KINDS and name:
        return said
    if "@" in said and not colon:
        is_account = said.endswith(".gserviceaccount.com")
        return f"{'serviceAccount' if is_account else 'user'}:{said}"
    raise SettingsError(
        f"--allow: {said!r} is nobody whom IAM knows",
        "Write user:ann@example.com, group:…, or serviceAccount:…; `gcloud config get account` "
        "says who you are.",
    )


def refused(error: CloudwhaleError) -> Found:
    """Return a row's words for what Google refuses, with the permission that is missing."""
    said = said_by(error)
    is_permission = said is not None and said.status == 403 and not said.facts.get("service")
    permission, colon, _ = error.says.partition(":")
    if not is_permission or not colon:
        return failed(error)
    return failed(error, f"Allow {permission} to whoever sets the project up; then run this again.")


def _of_domain(project: str) -> str:
    """Return a project as e-mails of its accounts name it: `example.com:lab` is the other way."""
    domain, colon, name = project.rpartition(":")
    return f"{name}.{domain}" if colon else project
