"""The sandbox as the house asks for one: how it is reached, and where it begins."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cloudwhale.spi.clock import Clock
from cloudwhale.spi.sandbox import Machines, Metered, Standing, Surroundings
from cloudwhale_providers.sandbox import record
from cloudwhale_providers.sandbox.names import (
    ACCESS_KEY,
    ACCOUNT,
    BUCKET,
    INSTANCE_PROFILE,
    REGIONS,
    SCHEDULER_ROLE,
    SECRET_KEY,
)  # fmt: skip

MAILBOX = f"s3://{BUCKET}/mailbox"
HERE = "127.0.0.1,localhost"

_OTHERS = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_ROLE_ARN",
           "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
           "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
           "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_CA_BUNDLE")  # fmt: skip
"""Whoever has an account may have these set; they lead out of the box."""
_ENDPOINTS = "AWS_ENDPOINT_URL_"
"""A service's own endpoint goes before the one that is meant for all."""


class Sandbox:
    """See `spi/sandbox`."""

    def serve(
        self, folder: Path, script: Path | None, clock: Clock, machines: Machines = "auto"
    ) -> int:
        """Be the cloud; see `spi/sandbox`. `clock` is the real one: the script may change it."""
        from cloudwhale_providers.sandbox.serving import serve

        return serve(folder, script, clock, machines)

    def progress(self, folder: Path) -> str:
        """Return how far a sandbox is that begins; empty: nothing keeps it."""
        return record.progress_of(folder)

    def surroundings(self, folder: Path) -> Surroundings | None:
        """Return how the sandbox of a folder is reached; None: none answers."""
        told = record.found(folder)
        if told is None:
            return None
        return Surroundings(
            environment={**_without(os.environ), **reached(told.url, told.clock)},
            mailbox=MAILBOX,
            clouds={"aws": settings()},
            owned=told.owned,
            boots=told.boots,
            notes=told.notes,
            script=told.digest,
        )

    def check(self, script: Path) -> str:
        """Read a script; raise SpecError when it is wrong. Return what tells it from others."""
        from cloudwhale_providers.sandbox.weather import read

        return read(script).digest

    def standing(self, folder: Path) -> Standing | None:
        """Return how the sandbox of a folder stands; None: none answers."""
        told = record.found(folder)
        if told is None:
            return None
        return Standing(told.pid, told.url, told.speed, told.script, told.notes)

    def meter(self, folder: Path) -> Sequence[Metered]:
        """Return its own count of what its machines cost."""
        from cloudwhale_providers.sandbox.meter import metered

        return metered(folder)


def settings() -> dict[str, Any]:
    """Return the settings of the provider that launches in the box."""
    return {
        "regions": list(REGIONS),
        "instance_profile": INSTANCE_PROFILE,
        "scheduler_role": f"arn:aws:iam::{ACCOUNT}:role/{SCHEDULER_ROLE}",
    }


def reached(url: str, clock: str) -> dict[str, str]:
    """Return the environment of whoever is inside: the machines of the box have no other."""
    found = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGIONS[0],
        "AWS_DEFAULT_REGION": REGIONS[0],
        "AWS_ALLOW_HTTP": "true",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "NO_PROXY": HERE,
        "no_proxy": HERE,
    }
    return found | ({"CLOUDWHALE_CLOCK": clock} if clock else {})


def _without(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what leads out of the box, to be taken away."""
    strange = [name for name in environment if name.startswith(_ENDPOINTS) or name in _OTHERS]
    return dict.fromkeys(strange, "")
