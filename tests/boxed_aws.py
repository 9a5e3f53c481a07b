"""The sandbox's cloud in this process, reached over HTTP as an account would be."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from renting_aws import an_offer

from cloudwhale.clock import SystemClock
from cloudwhale.model.offer import Offer
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.provider import Grounds
from cloudwhale_providers.aws import AwsProvider
from cloudwhale_providers.aws.clients import ATTEMPTS, Clients
from cloudwhale_providers.sandbox.box import MAILBOX, settings
from cloudwhale_providers.sandbox.endpoint import Endpoint, Weather
from cloudwhale_providers.sandbox.names import ACCESS_KEY, SECRET_KEY


@dataclass(frozen=True)
class Box:
    """A cloud, and the clock that it goes by."""

    endpoint: Endpoint
    clock: Clock

    def provider(
        self, installation: str, offer: Offer | None = None, attempts: int = ATTEMPTS
    ) -> AwsProvider:
        """Return the provider of an installation, new as in a new process."""
        return self.provider_with(installation, [offer or an_offer()], attempts)

    def provider_with(
        self, installation: str, listed: Sequence[Offer], attempts: int = ATTEMPTS, **said: Any
    ) -> AwsProvider:
        """Return the provider of an installation whose settings say something more."""
        table = {**settings({}), "regions": ["us-east-1"], **said}
        grounds = Grounds("aws", installation, table, lambda now: listed, self.clock, MAILBOX)
        return AwsProvider(grounds, Clients(attempts=attempts))


@contextmanager
def boxed(clock: Clock | None = None, weather: Weather | None = None) -> Iterator[Box]:
    """Open a cloud and put the way to it into the environment, as a sandbox does."""
    clock = clock or SystemClock()
    cloud = Endpoint(clock, weather)
    with pytest.MonkeyPatch.context() as patch:
        try:
            patch.setenv("AWS_ENDPOINT_URL", cloud.start())
            patch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
            patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
            patch.setenv("AWS_REGION", "us-east-1")
            patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
            patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
            patch.setenv("AWS_CONFIG_FILE", "/dev/null")
            patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
            patch.delenv("AWS_SESSION_TOKEN", raising=False)
            patch.delenv("AWS_PROFILE", raising=False)
            yield Box(cloud, clock)
        finally:
            cloud.close()
