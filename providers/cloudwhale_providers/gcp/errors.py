"""What Google's refusals mean to us: one table of codes, and what is to be done.

A code comes with an HTTP status, as the reason of an error, or inside an operation that failed.
Where one code says many things its sentence tells which.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cloudwhale.spi.errors import (
    CloudwhaleError,
    Denied,
    NoCapacity,
    QuotaExceeded,
    TryAnother,
    Unreachable,
)
from cloudwhale_providers.gcp.asking import Refused, Said

COMPUTE = "compute"
VERBS = {"insert": "create", "aggregatedList": "list", "getFromFamily": "useReadOnly"}
"""What IAM calls methods that Compute Engine calls otherwise."""


class Errand(NamedTuple):
    """What was asked of Google, for the sentences that tell how it was refused."""

    permission: str
    """As IAM calls it, `compute.instances.create`."""
    where: str = ""
    """Zone or region; empty: everywhere."""
    project: str = ""
    account: str = ""
    """Who a machine is to be."""

    @classmethod
    def of(cls, service: str, method: str, words: Mapping[str, Any]) -> "Errand":
        """Return what a call asks for."""
        where = str(words.get("zone") or words.get("region") or "")
        body: Mapping[str, Any] = words.get("body") or {}
        accounts: Sequence[Mapping[str, Any]] = body.get("serviceAccounts") or ()
        account = str(accounts[0].get("email", "")) if accounts else ""
        project = str(words.get("project") or "")
        return cls(permission(service, method), where, project, account)


class Reaction(NamedTuple):
    """What a refusal means, as the error that it becomes, and how it is mended."""

    kind: type[CloudwhaleError]
    remedy: str = ""
    """Names of Errand stand in it in braces, and those of `Said.facts`."""


_ELSEWHERE = Reaction(NoCapacity)
_QUOTA = Reaction(QuotaExceeded)
_AGAIN = Reaction(Unreachable, "It is asked again by itself.")
_OVER = Reaction(TryAnother, "")
_ALLOW = Reaction(
    Denied,
    "Allow {permission} to whoever runs cloudwhale: `gcloud projects add-iam-policy-binding "
    "{project} --member=… --role=…`; `cloudwhale doctor gcp` names the roles.",
)
_LOGIN = Reaction(
    Denied,
    "`gcloud auth application-default login` makes credentials; or let "
    "GOOGLE_APPLICATION_CREDENTIALS name the key file of a service account.",
)
_ENABLE = Reaction(Denied, "`gcloud services enable {service} --project={project}` enables it.")
_BILLING = Reaction(
    Denied, "`gcloud billing projects link {project} --billing-account=…` lets it be billed."
)
_PROJECT = Reaction(
    Denied, "Check `project` of [clouds.gcp]: `gcloud projects list` lists those that you see."
)
_MISTAKE = Reaction(
    Denied,
    "Check what [clouds.gcp] says (image, network, subnetwork, service_account); if it is right, "
    "{permission} was asked in a wrong way: please report it.",
)
_IMAGE = Reaction(
    Denied,
    "Check `image` of [clouds.gcp]: `gcloud compute images list --project="
    "deeplearning-platform-release --no-standard-images` lists those with drivers.",
)
_NETWORK = Reaction(
    Denied,
    "Check `network` and `subnetwork` of [clouds.gcp]: `gcloud compute networks create default "
    "--project={project} --subnet-mode=auto` makes the usual one.",
)
_ACT_AS = Reaction(
    Denied,
    "`gcloud iam service-accounts add-iam-policy-binding {account} --project={project} "
    "--member=… --role=roles/iam.serviceAccountUser` lets whoever runs cloudwhale use it.",
)
_ACCOUNT = Reaction(
    Denied,
    "Check `service_account` of [clouds.gcp]: `gcloud iam service-accounts list "
    "--project={project}`; `cloudwhale doctor gcp --fix` makes one.",
)
_ADDRESS = Reaction(
    Denied,
    "An organisation policy forbids external addresses: set `external_address = false` in "
    "[clouds.gcp], with Cloud NAT or Private Google Access in the network; or let an administrator "
    "allow them: `gcloud resource-manager org-policies delete compute.vmExternalIpAccess "
    "--project={project}`.",
)
_POLICY = Reaction(
    Denied,
    "An organisation policy forbids it: `gcloud resource-manager org-policies list "
    "--project={project}` lists them; an administrator can allow it.",
)
_GUARDED = Reaction(
    Denied,
    "Somebody protects it: `gcloud compute instances update NAME --no-deletion-protection "
    "--project={project} --zone={where}`.",
)
_BUSY = Reaction(Unreachable, "Something is being done with it: it is asked again by itself.")

REACTIONS: Mapping[str, Reaction] = {
    # No hardware there now. SkyPilot and dstack react to the same ones; it has nothing to do with
    # quotas (Compute Engine docs, "Troubleshooting resource availability errors").
    "ZONE_RESOURCE_POOL_EXHAUSTED": _ELSEWHERE,
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": _ELSEWHERE,
    "RESOURCE_POOL_EXHAUSTED": _ELSEWHERE,
    "insufficientCapacity": _ELSEWHERE,
    "STOCKOUT": _ELSEWHERE,
    "stockout": _ELSEWHERE,
    "UNSUPPORTED_OPERATION": _ELSEWHERE,  # of a launch: it was preempted before it was there
    "RESOURCE_NOT_READY": _ELSEWHERE,
    "VM_MIN_COUNT_NOT_REACHED": _ELSEWHERE,
    "QUOTA_EXCEEDED": _QUOTA,
    "quotaExceeded": _QUOTA,
    "limitExceeded": _QUOTA,
    # It may or may not have happened; name and requestId make asking again harmless.
    "RESOURCE_OPERATION_RATE_EXCEEDED": _AGAIN,
    "RATE_LIMIT_EXCEEDED": _AGAIN,
    "rateLimitExceeded": _AGAIN,
    "userRateLimitExceeded": _AGAIN,
    "RESOURCE_EXHAUSTED": _AGAIN,
    "resourceExhausted": _AGAIN,
    "backendError": _AGAIN,
    "internalError": _AGAIN,
    "INTERNAL": _AGAIN,
    "UNAVAILABLE": _AGAIN,
    "DEADLINE_EXCEEDED": _AGAIN,
    "resourceNotReady": _BUSY,
    "resourceInUse": _BUSY,
    "resourceInUseByAnotherResource": _BUSY,
    "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE": _BUSY,
    "fingerprintMismatch": _BUSY,
    "alreadyExists": Reaction(Unreachable, "What is there is looked at."),
    "RESOURCE_ALREADY_EXISTS": Reaction(Unreachable, "What is there is looked at."),
    # The account, its project and permissions.
    "SERVICE_DISABLED": _ENABLE,
    "accessNotConfigured": _ENABLE,
    "BILLING_DISABLED": _BILLING,
    "billingDisabled": _BILLING,
    "billingNotEnabled": _BILLING,
    "CONSUMER_INVALID": _PROJECT,
    "CONSUMER_SUSPENDED": _PROJECT,
    "USER_PROJECT_DENIED": _ALLOW,
    "IAM_PERMISSION_DENIED": _ALLOW,
    "PERMISSION_DENIED": _ALLOW,
    "PERMISSIONS_ERROR": _ALLOW,
    "forbidden": _ALLOW,
    "insufficientPermissions": _ALLOW,
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT": Reaction(
        Denied,
        "The credentials are for less than they must be: `gcloud auth application-default login "
        "--scopes=https://www.googleapis.com/auth/cloud-platform`.",
    ),
    "SERVICE_ACCOUNT_ACCESS_DENIED": _ACT_AS,
    "authError": _LOGIN,
    "UNAUTHENTICATED": _LOGIN,
    "ACCESS_TOKEN_EXPIRED": _LOGIN,
    "CREDENTIALS_MISSING": _LOGIN,
    # What we, or the settings, have said wrongly.
    "conditionNotMet": _POLICY,
    "CONDITION_NOT_MET": _POLICY,
    "notFound": _MISTAKE,
    "RESOURCE_NOT_FOUND": _MISTAKE,
    "invalid": _MISTAKE,
    "INVALID_ARGUMENT": _MISTAKE,
    "INVALID_USAGE": _MISTAKE,
    "INVALID_FIELD_VALUE": _MISTAKE,
    "badRequest": _MISTAKE,
    "required": _MISTAKE,
}

LACKS = re.compile(
    r"/(?:machineTypes|acceleratorTypes)/|resource\.(?:machineType|guestAccelerators)"
    r"|machine type (?:with name )?'?[\w-]+'? does not exist", re.I
)  # fmt: skip
"""How it is said that a zone does not know a machine type, or its GPUs."""

SENTENCES: Sequence[tuple[re.Pattern[str], Reaction]] = (
    (re.compile(r"Required '[\w.]+' permission"), _ALLOW),
    # Stock-outs come under many codes, 503 among them.
    (
        re.compile(
            r"stock.?out|does not have enough resources|ZONE_RESOURCE_POOL_EXHAUSTED"
            r"|currently unavailable in the .* zone", re.I
        ),
        _ELSEWHERE,
    ),
    (re.compile(r"Quota '\w+' exceeded", re.I), _QUOTA),
    (LACKS, _ELSEWHERE),
    (re.compile(r"constraints/compute\.vmExternalIpAccess"), _ADDRESS),
    (re.compile(r"[Cc]onstraint\b.*\bviolated|constraints/"), _POLICY),
    (re.compile(r"protected against deletion|deletion.?protection", re.I), _GUARDED),
    (re.compile(r"does not have access to service account"), _ACT_AS),
    (re.compile(r"service ?accounts?\b.*\b(?:not (?:found|exist)|invalid)", re.I), _ACCOUNT),
    (re.compile(r"resource\.serviceAccounts|/serviceAccounts/", re.I), _ACCOUNT),
    (re.compile(r"/images/|sourceImage|images/family", re.I), _IMAGE),
    (re.compile(r"/(?:networks|subnetworks)/|resource\.networkInterfaces", re.I), _NETWORK),
    (re.compile(r"has not been used in project|API .*is disabled|it is disabled"), _ENABLE),
    (re.compile(r"billing", re.I), _BILLING),
    (re.compile(r"[Pp]roject\b.*\b(?:not found|deleted|suspended)"), _PROJECT),
    (re.compile(r"The resource 'projects/[^/']+' was not found"), _PROJECT),
    (re.compile(r"Unknown project"), _PROJECT),
)  # fmt: skip
"""Read where a code says too little, and before it: the first that is found decides."""

PLAIN = frozenset(
    {
        "notFound", "RESOURCE_NOT_FOUND", "invalid", "INVALID_ARGUMENT", "INVALID_USAGE",
        "INVALID_FIELD_VALUE", "badRequest", "required", "conditionNotMet", "CONDITION_NOT_MET",
        "forbidden", "PERMISSION_DENIED", "backendError", "UNAVAILABLE", "internalError",
        "INTERNAL", "SERVICE_UNAVAILABLE", "FAILED_PRECONDITION", "failedPrecondition",
    }
)  # fmt: skip
"""Codes whose sentence is read first."""

AUTH: Mapping[str, Reaction] = {
    "DefaultCredentialsError": _LOGIN,
    "ReauthFailError": _LOGIN,
    "ReauthSamlChallengeFailError": _LOGIN,
    "RefreshError": _LOGIN,
    "MalformedError": _LOGIN,
    "InvalidOperation": _LOGIN,
    "InvalidValue": _LOGIN,
    "UnknownApiNameOrVersion": _MISTAKE,
    "TypeError": _MISTAKE,  # a word that the method does not have, or not in that form
    "AttributeError": _MISTAKE,
}
"""By name of exceptions of Google's libraries, or of a base of theirs; others: out of reach."""


def reaction(said: Said) -> Reaction:
    """Return what a refusal means; one that nobody knows by its status."""
    is_plain = said.code in PLAIN or said.code not in REACTIONS
    by_sentence = next((one for pattern, one in SENTENCES if pattern.search(said.says)), None)
    if by_sentence is not None and is_plain:
        return by_sentence
    known = REACTIONS.get(said.code)
    if known is not None:
        return known
    if said.status >= 500 or said.status == 429:
        return _AGAIN
    return {401: _LOGIN, 403: _ALLOW}.get(said.status, _MISTAKE)


def refusal(said: Said, errand: Errand, known: Reaction | None = None) -> CloudwhaleError:
    """Return a refusal as an error of ours, whose cause `code_of` reads."""
    known = known or reaction(said)
    where = f" in {errand.where}" if errand.where else ""
    sentence = f"{errand.permission}{where}: {said.says.strip().rstrip('.')} ({said.code})"
    words = {"service": f"{COMPUTE}.googleapis.com", **said.facts, **errand._asdict()}
    words["project"] = errand.project or "PROJECT"
    error = known.kind(sentence, known.remedy.format_map(words))
    error.__cause__ = Refused(said)
    return error


def failure(error: Exception, errand: Errand) -> CloudwhaleError:
    """Return what comes without an answer of Google as an error of ours."""
    names = (one.__name__ for one in type(error).__mro__)
    known = next((AUTH[name] for name in names if name in AUTH), _AGAIN)
    where = f" in {errand.where}" if errand.where else ""
    words = {**errand._asdict(), "project": errand.project or "PROJECT"}
    says = error.args[0] if error.args and isinstance(error.args[0], str) else error
    return known.kind(f"{errand.permission}{where}: {says}", known.remedy.format_map(words))


def failed(said: Said, errand: Errand) -> CloudwhaleError:
    """Return what an operation that failed says, as an error of ours.

    That Google had a fault is an answer there, not a doubt: another attempt is another launch.
    """
    known = reaction(said)
    return refusal(said, errand, known if known.kind is not Unreachable else _OVER)


def permission(service: str, method: str) -> str:
    """Return what IAM calls the permission for a method."""
    parts = method.split(".")
    if parts[0] in ("projects", "services") and len(parts) > 2:
        parts = parts[1:]
    api = "resourcemanager" if service == "cloudresourcemanager" else service
    return ".".join((api, *parts[:-1], VERBS.get(parts[-1], parts[-1])))
