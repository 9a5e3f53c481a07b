"""Whether a project has what machines need: APIs, our permissions, and who machines are."""

from collections.abc import Mapping, Sequence
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.asking import said_by, says_that_it_is_gone
from cloudwhale_providers.gcp.policies import permissions, role_id
from cloudwhale_providers.rows import Found, failed

APIS = (
    "compute.googleapis.com", "storage.googleapis.com", "iam.googleapis.com",
    "cloudresourcemanager.googleapis.com",
)  # fmt: skip
"""What is asked of a project; Service Usage, which says so, is one more."""
FIX = "`cloudwhale doctor gcp --fix`"
DOCTORS = frozenset(
    {
        "compute.networks.get", "compute.routers.list", "compute.subnetworks.list",
        "resourcemanager.projects.get", "serviceusage.services.get",
    }
)  # fmt: skip
"""Permissions that only `doctor` uses."""
ADVICE = frozenset({"compute.advice.capacityHistory"})
"""Without it spot prices and preemption rates are the catalogue's."""
EXTERNAL = "compute.subnetworks.useExternalIp"


def apis(account: Account) -> Found:
    """Return which APIs the project has not enabled."""
    closed: list[str] = []
    try:
        for name in APIS:
            path = f"projects/{account.project}/services/{name}"
            answer = account.calls.call("serviceusage", "services.get", name=path)
            if answer.get("state") != "ENABLED":
                closed.append(name)
    except CloudwhaleError as error:
        if _is_refused(error):
            return Found(
                "warning",
                f"which APIs are enabled cannot be seen: {error.says}",
                "Allow serviceusage.services.get, which only `doctor` asks for.",
            )
        return failed(error)
    if not closed:
        return Found("ok", "enabled")
    return Found(
        "failed",
        f"the project has not enabled {', '.join(closed)}",
        f"{FIX}, or `gcloud services enable {' '.join(closed)} --project={account.project}`",
    )


def permitted(account: Account) -> Found:
    """Return which permissions whoever asks lacks in the project."""
    wanted = [
        one for one in permissions("controller")
        if one != EXTERNAL or account.options.external_address
    ]  # fmt: skip
    try:
        answer = account.calls.call(
            "cloudresourcemanager", "projects.testIamPermissions",
            resource=f"projects/{account.project}", body={"permissions": wanted},
        )  # fmt: skip
    except CloudwhaleError as error:
        return failed(error)
    lacking = set(wanted) - set(answer.get("permissions") or ())
    if not lacking:
        return Found("ok", "machines may be launched, followed and ended")
    return Found(
        "warning" if lacking <= DOCTORS | ADVICE else "failed",
        f"not allowed in the project {account.project}: {', '.join(sorted(lacking))}",
        allow_command(account.project),
    )


def allow_command(project: str) -> str:
    """Return what lets somebody run cloudwhale."""
    role = f"projects/{project}/roles/{role_id('controller')}"
    return (
        f"{FIX[:-1]} --allow user:YOU` makes the role and gives it, as somebody who may; or "
        f"`gcloud projects add-iam-policy-binding {project} --member=user:YOU --role={role}`"
    )


def machines(account: Account) -> Found:
    """Return whether machines are somebody that may reach the mailbox, whom we may let them be."""
    email = account.options.service_account
    if not email:
        return Found(
            "failed",
            "no `service_account` is set: machines could not reach the mailbox",
            f"{FIX} makes one and writes it; or the commands of docs/gcp.md, and set "
            "`service_account` in [clouds.gcp].",
        )
    path = f"projects/-/serviceAccounts/{email}"
    try:
        there: Mapping[str, Any] = account.calls.call(
            "iam", "projects.serviceAccounts.get", name=path
        )
    except CloudwhaleError as error:
        if says_that_it_is_gone(error):
            return _no_account(account, email)
        if not _is_refused(error):
            return failed(error)
        there = {}  # who may not look may use it all the same
    if there.get("disabled"):
        return Found(
            "failed", f"the service account {email} is disabled",
            f"`gcloud iam service-accounts enable {email} --project={account.project}`",
        )  # fmt: skip
    return _usable(account, email, path)


def _usable(account: Account, email: str, path: str) -> Found:
    wanted = ["iam.serviceAccounts.actAs"]
    try:
        answer = account.calls.call(
            "iam", "projects.serviceAccounts.testIamPermissions", resource=path,
            body={"permissions": wanted},
        )  # fmt: skip
    except CloudwhaleError as error:
        return failed(error)
    if set(wanted) <= set(_several(answer.get("permissions"))):
        return Found("ok", f"machines are {email}")
    return Found(
        "failed",
        f"machines may not be started as {email}: iam.serviceAccounts.actAs is not allowed",
        f"`gcloud iam service-accounts add-iam-policy-binding {email} --project={account.project} "
        f"--member=user:YOU --role=projects/{account.project}/roles/{role_id('acting')}`, or "
        "--role=roles/iam.serviceAccountUser",
    )


def _no_account(account: Account, email: str) -> Found:
    name = email.partition("@")[0]
    return Found(
        "failed",
        f"there is no service account {email}",
        f"{FIX} makes it, or `gcloud iam service-accounts create {name} "
        f"--project={account.project}`; or set `service_account` in [clouds.gcp] to one that is "
        "there.",
    )


def _several(value: Sequence[str] | None) -> Sequence[str]:
    return value or ()


def _is_refused(error: CloudwhaleError) -> bool:
    said = said_by(error)
    return said is not None and said.status == 403 and not said.facts.get("service")
