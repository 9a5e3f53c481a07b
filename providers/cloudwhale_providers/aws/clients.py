"""AWS's services by region: clients made when they are needed, and one way to ask them."""

from collections.abc import Callable, Mapping
from importlib import import_module
from threading import Lock
from typing import Any

from cloudwhale.model.units import Seconds
from cloudwhale_providers.aws.errors import Errand, failure, refusal
from cloudwhale_providers.prices.aws_spot import sdk

ATTEMPTS = 4
"""botocore's `standard` mode waits 1, 2, 4 s at most, each drawn, after throttling and 5xx."""
CONNECT_S: Seconds = 5.0
ANSWER_S: Seconds = 60.0  # CreateFleet of type instant answers when it has tried all its choices
AT_ONCE = 16
"""Connections of a client; effects run in eight threads."""
IAM_NAMES = {"service-quotas": "servicequotas"}
"""What IAM calls services that boto3 calls otherwise."""
PERMISSIONS = {
    "s3:HeadBucket": "s3:ListBucket",
    "s3:GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
    "s3:PutPublicAccessBlock": "s3:PutBucketPublicAccessBlock",
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "s3:PutBucketEncryption": "s3:PutEncryptionConfiguration",
    "s3:GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
    "s3:PutBucketLifecycleConfiguration": "s3:PutLifecycleConfiguration",
}
"""Calls whose permission is called otherwise (S3 User Guide, "Required permissions for S3 API")."""


class Clients:
    """See Calls: one session, one client for each region and service; safe for threads."""

    def __init__(
        self,
        profile: str = "",
        attempts: int = ATTEMPTS,
        answer_s: Seconds = ANSWER_S,
        session: Callable[[str], Any] | None = None,
    ) -> None:
        self._profile = profile
        self._attempts = attempts
        self._answer_s = answer_s
        self._make = _session if session is None else session
        self._session: Any = None
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = Lock()
        """Sessions are not safe for threads, clients are: boto3 guide, "Multithreading"."""

    def call(self, region: str, service: str, verb: str, **words: Any) -> Mapping[str, Any]:
        """Return the answer of a service; raise Denied, TryAnother or Unreachable, with remedy."""
        errors = import_module("botocore.exceptions")
        errand = Errand(permission(service, verb), region)
        parsers = import_module("botocore.parsers")
        try:
            found: Mapping[str, Any] = getattr(self._client(region, service), verb)(**words)
        except errors.ClientError as error:
            said = error.response.get("Error", {})
            status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
            code, message = str(said.get("Code", "")), str(said.get("Message", ""))
            raise refusal(code, message, errand, status) from error
        except (errors.BotoCoreError, parsers.ResponseParserError, ValueError) as error:
            raise failure(error, errand) from error
        return found

    def _client(self, region: str, service: str) -> Any:
        with self._lock:
            found = self._clients.get((region, service))
            if found is None:
                found = self._opened().client(
                    service, region_name=region, config=_patience(self._attempts, self._answer_s)
                )
                self._clients[(region, service)] = found
            return found

    def _opened(self) -> Any:
        if self._session is None:
            self._session = self._make(self._profile)
        return self._session


def permission(service: str, verb: str) -> str:
    """Return what IAM calls the permission for a call."""
    name = f"{IAM_NAMES.get(service, service)}:{_camel(verb)}"
    return PERMISSIONS.get(name, name)


def _session(profile: str) -> Any:
    return sdk().session.Session(profile_name=profile or None)


def _patience(attempts: int, answer_s: Seconds) -> Any:
    return import_module("botocore.config").Config(
        connect_timeout=CONNECT_S,
        read_timeout=answer_s,
        max_pool_connections=AT_ONCE,
        retries={"mode": "standard", "total_max_attempts": attempts},
        user_agent_extra="cloudwhale",
    )


def _camel(verb: str) -> str:
    """Return a method's name as the API's operation: `create_fleet` is CreateFleet."""
    return "".join(part.capitalize() for part in verb.split("_"))
