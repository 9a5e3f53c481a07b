"""An endpoint of the sandbox for tests: its clients, and a clock that is moved by hand."""

import re
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from aws_models import check_answer
from obstore.store import S3Store

from cloudwhale.model.units import Instant
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale_providers.sandbox.endpoint import (
    Capacity,
    Credentials,
    Endpoint,
    Refusal,
    Weather,
    Which,
)
from cloudwhale_providers.sandbox.endpoint.account import image_id
from cloudwhale_providers.sandbox.names import ACCESS_KEY, BUCKET, SECRET_KEY

NOON: Instant = 1_800_000_000.0
REGION = "us-east-1"
IMAGE = image_id(REGION, "x86_64")
TYPE = "g5.xlarge"
KINDS = ("instance", "volume", "network-interface")
SCARCE = Weather(
    capacity=(
        Capacity(Which("g5.2xlarge", f"{REGION}a", "spot"), 0),
        Capacity(Which("g5.4xlarge", market="on-demand"), 2),
        Capacity(Which("m7i.large", market="on-demand"), 1, again=False),
    ),
    refusals=(Refusal(Which("g6.xlarge", f"{REGION}a"), "InsufficientFreeAddressesInSubnet"),),
    quotas={"L-34B43A08": 8.0, "L-1216C47A": 8.0},
)
"""Little room, and small quotas."""
_SESSIONS: Any = import_module("botocore.session")
_CONFIGS: Any = import_module("botocore.config")
_ERRORS: Any = import_module("botocore.exceptions")


@dataclass
class Box:
    """A cloud that listens, and what its hypervisor would have heard."""

    endpoint: Endpoint
    clock: SteppedClock
    heard: list[tuple[str, str]] = field(default_factory=list)
    """`started` and `ended`, with the instance."""
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict)
    _session: Any = None

    def client(self, service: str, region: str = REGION, key: str = ACCESS_KEY) -> Any:
        """Return a client that asks once."""
        if self._session is None:
            self._session = _SESSIONS.Session()
        known = (service, region + key)
        if known not in self._clients:
            self._clients[known] = self._session.create_client(
                service,
                region_name=region,
                endpoint_url=self.endpoint.url,
                aws_access_key_id=key,
                aws_secret_access_key=SECRET_KEY,
                config=_CONFIGS.Config(
                    retries={"total_max_attempts": 1}, ignore_configured_endpoint_urls=True
                ),
            )
        return self._clients[known]

    def store(self, keys: Credentials | None = None, prefix: str = "") -> S3Store:
        """Return the mailbox's client, as the box's user or by a machine's keys."""
        token: Any = {} if keys is None else {"session_token": keys.token}
        return S3Store(
            BUCKET,
            prefix=prefix or None,
            endpoint=self.endpoint.url,
            access_key_id=ACCESS_KEY if keys is None else keys.access_key,
            secret_access_key=SECRET_KEY if keys is None else keys.secret_key,
            region=REGION,
            client_options={"allow_http": True},
            **token,
        )

    def close(self) -> None:
        """Close its clients."""
        for client in self._clients.values():
            client.close()

    def ask(self, service: str, verb: str, region: str = REGION, **words: Any) -> dict[str, Any]:
        """Return an answer, which botocore's model of the service knows."""
        answer: dict[str, Any] = getattr(self.client(service, region), verb)(**words)
        answer.pop("ResponseMetadata")
        if service != "iam":  # botocore reads its policies, so they are no texts any more
            check_answer(service, self._verb(service, region, verb), answer)
        return answer

    def _verb(self, service: str, region: str, verb: str) -> str:
        name: str = self.client(service, region).meta.method_to_api_mapping[verb]
        return re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()

    def ec2(self, verb: str, region: str = REGION, **words: Any) -> dict[str, Any]:
        return self.ask("ec2", verb, region, **words)

    def refusal(self, service: str, verb: str, region: str = REGION, **words: Any) -> str:
        """Return the code with which a call is refused."""
        try:
            self.ask(service, verb, region, **words)
        except _ERRORS.ClientError as error:
            return str(error.response["Error"]["Code"])
        raise AssertionError(f"{verb} was not refused")

    def wait(self, for_s: float) -> None:
        """Let time pass, and what is due happen."""
        self.clock.advance_to(self.clock.now() + for_s)
        self.endpoint.step(self.clock.now())

    # -- launching ---------------------------------------------------------------------------

    def template(self, name: str, region: str = REGION, **data: Any) -> str:
        """Make a launch template; return its name."""
        content = {"ImageId": image_id(region, "x86_64"), **data}
        self.ec2(
            "create_launch_template", region, LaunchTemplateName=name, LaunchTemplateData=content
        )
        return name

    def fleet(
        self, template: str, *offers: tuple[str, str], market: str = "spot", **words: Any
    ) -> dict[str, Any]:
        """Ask for one machine of several (type, zone)."""
        overrides = [{"InstanceType": kind, "AvailabilityZone": zone} for kind, zone in offers]
        return self.ec2("create_fleet", **fleet_words(template, overrides, market, **words))

    def run(self, zone: str = f"{REGION}a", **words: Any) -> str:
        """Launch one machine; return its id."""
        asked = {
            "ImageId": IMAGE, "InstanceType": TYPE, "MinCount": 1, "MaxCount": 1,
            "Placement": {"AvailabilityZone": zone}, **words,
        }  # fmt: skip
        return str(self.ec2("run_instances", **asked)["Instances"][0]["InstanceId"])

    def described(self, machine: str, region: str = REGION) -> dict[str, Any]:
        """Return an instance as it is listed."""
        answer = self.ec2("describe_instances", region, InstanceIds=[machine])
        found: dict[str, Any] = answer["Reservations"][0]["Instances"][0]
        return found

    def state(self, machine: str) -> str:
        return str(self.described(machine)["State"]["Name"])


def fleet_words(
    template: str, overrides: list[dict[str, Any]], market: str = "spot", **words: Any
) -> dict[str, Any]:
    """Return the words of CreateFleet for one machine."""
    named = {"LaunchTemplateName": template, "Version": "$Latest"}
    return {
        "Type": "instant",
        "LaunchTemplateConfigs": [
            {"LaunchTemplateSpecification": named, "Overrides": overrides}
        ],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": 1, "DefaultTargetCapacityType": market,
        },
        **words,
    }  # fmt: skip


def tags_at_creation(**tags: str) -> list[dict[str, Any]]:
    """Return tags for instance, volume and interface."""
    said = [{"Key": key, "Value": value} for key, value in tags.items()]
    return [{"ResourceType": kind, "Tags": said} for kind in KINDS]


def tags_of(thing: Mapping[str, Any], key: str = "Tags") -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in thing.get(key, ())}


def made(answer: Mapping[str, Any]) -> list[str]:
    """Return the instances that a fleet has made."""
    return [machine for row in answer["Instances"] for machine in row["InstanceIds"]]


def codes(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return where a fleet was refused a machine, and why."""
    return [
        (row["LaunchTemplateAndOverrides"]["Overrides"]["AvailabilityZone"], row["ErrorCode"])
        for row in answer["Errors"]
    ]


def coded(text: str) -> str:
    return b64encode(text.encode()).decode()


@contextmanager
def a_box(
    weather: Weather | None = None,
    folder: Path | None = None,
    real: Callable[[float], float] = lambda for_s: for_s,
) -> Iterator[Box]:
    """Give a cloud; every thread of it has ended afterwards."""
    before = set(threading.enumerate())
    clock = SteppedClock(NOON)
    endpoint = Endpoint(clock, weather, folder=folder, real=real)
    box = Box(endpoint, clock)
    endpoint.on_started = lambda one: box.heard.append(("started", one.id))
    endpoint.on_ended = lambda one: box.heard.append(("ended", one.id))
    try:
        endpoint.start()
        assert endpoint.warmed.wait(120)
        yield box
    finally:
        box.close()
        endpoint.close()
        assert set(threading.enumerate()) <= before
