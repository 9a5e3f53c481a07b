"""How AWS's services are asked: one client each, with patience that is stated, errors of ours."""

import threading
from importlib import import_module
from typing import Any

import pytest
from small_schedules import refused

from cloudwhale.spi.errors import CloudwhaleError, Denied, Unreachable
from cloudwhale_providers.aws.asking import code_of
from cloudwhale_providers.aws.clients import ANSWER_S, ATTEMPTS, CONNECT_S, Clients

_exceptions: Any = import_module("botocore.exceptions")
_parsers: Any = import_module("botocore.parsers")


class Session:
    """A session that counts its clients, and lets them raise what a test says."""

    def __init__(self, raises: Exception | None = None) -> None:
        self.raises = raises
        self.made: list[tuple[str, str, Any]] = []

    def client(self, service: str, region_name: str, config: Any) -> "Session":
        self.made.append((service, region_name, config))
        return self

    def create_fleet(self, **words: Any) -> dict[str, Any]:
        if self.raises is not None:
            raise self.raises
        return {"FleetId": "fleet-1"}


def _asked(raises: Exception) -> CloudwhaleError:
    with pytest.raises(CloudwhaleError) as caught:
        Clients(session=lambda profile: Session(raises)).call("us-east-1", "ec2", "create_fleet")
    return caught.value


def test_eight_threads_share_one_client_for_each_region_and_service() -> None:
    session = Session()
    clients = Clients(session=lambda profile: session)

    def ask() -> None:
        for region in ("us-east-1", "eu-west-1"):
            clients.call(region, "ec2", "create_fleet")

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(name for _, name, _ in session.made) == ["eu-west-1", "us-east-1"]


def test_patience_is_stated() -> None:
    session = Session()
    Clients(session=lambda profile: session).call("us-east-1", "ec2", "create_fleet")
    config = session.made[0][2]
    assert config.retries == {"mode": "standard", "total_max_attempts": ATTEMPTS}
    assert (config.connect_timeout, config.read_timeout) == (CONNECT_S, ANSWER_S)


def test_an_error_of_aws_keeps_its_code_and_its_cause() -> None:
    error = _asked(refused("Throttling", "slower", 400))
    assert isinstance(error, Unreachable) and code_of(error) == "Throttling"
    assert error.says == "ec2:CreateFleet in us-east-1: slower (Throttling)"


@pytest.mark.parametrize(
    ("raises", "kind", "remedy"),
    [
        (_exceptions.NoCredentialsError(), Denied, "aws configure"),
        (
            _exceptions.PartialCredentialsError(provider="env", cred_var="secret"),
            Denied,
            "aws configure",
        ),
        (_exceptions.ProfileNotFound(profile="lab"), Denied, "list-profiles"),
        (_exceptions.UnauthorizedSSOTokenError(), Denied, "aws sso login"),
        (_exceptions.ParamValidationError(report="no"), Denied, "report"),
        (_exceptions.EndpointConnectionError(endpoint_url="http://aws"), Unreachable, "again"),
        (_exceptions.ReadTimeoutError(endpoint_url="http://aws"), Unreachable, "again"),
        (_exceptions.ConnectTimeoutError(endpoint_url="http://aws"), Unreachable, "again"),
        (_exceptions.ConnectionClosedError(endpoint_url="http://aws"), Unreachable, "again"),
        (_parsers.ResponseParserError("a page of HTML"), Unreachable, "again"),
    ],
)
def test_what_botocore_raises_becomes_ours(
    raises: Exception, kind: type[CloudwhaleError], remedy: str
) -> None:
    error = _asked(raises)
    assert type(error) is kind and remedy in error.remedy and error.__cause__ is raises
