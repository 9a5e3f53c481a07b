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
    AWS,
    BUCKET,
    CREDENTIALS,
    FOLDER,
    GCP,
    GCP_BUCKET,
    GCP_STORE,
    INSTANCE_PROFILE,
    REGIONS,
    SCHEDULER_ROLE,
    SECRET_KEY,
)  # fmt: skip

MAILBOX = f"s3://{BUCKET}/{FOLDER}"
GCP_MAILBOX = f"gs://{GCP_BUCKET}/{FOLDER}"
HERE = "127.0.0.1,localhost"

_OTHERS = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_ROLE_ARN",
           "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
           "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
           "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_CA_BUNDLE")  # fmt: skip
"""Whoever has an account may have these set; they lead out of the box."""
_ENDPOINTS, _GCLOUD = "AWS_ENDPOINT_URL_", "CLOUDSDK_"
"""A service's own endpoint goes before the one that is meant for all."""
_OTHERS_GCP = ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "GCE_METADATA_HOST", "GCE_METADATA_IP",
               "GCE_METADATA_ROOT", "METADATA_HOST", "GOOGLE_SERVICE_ACCOUNT",
               "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_BASE_URL",
               "GOOGLE_BEARER_TOKEN", "GOOGLE_SKIP_SIGNATURE", "GOOGLE_BUCKET",
               "GOOGLE_BUCKET_NAME", "GOOGLE_API_USE_MTLS_ENDPOINT",
               "GOOGLE_API_USE_CLIENT_CERTIFICATE", "GOOGLE_CLOUD_UNIVERSE_DOMAIN")  # fmt: skip
"""The same of Google's clients; taken away where the box has a Google's cloud."""


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
        clouds = {name: SETTINGS[name](told.urls) for name in SETTINGS if name in told.urls}
        return Surroundings(
            environment=_surrounded(folder, told),
            mailbox=MAILBOX if AWS in clouds else GCP_MAILBOX,
            clouds=clouds,
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


def settings(urls: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of the provider that launches in the box."""
    return {
        "regions": list(REGIONS),
        "instance_profile": INSTANCE_PROFILE,
        "scheduler_role": f"arn:aws:iam::{ACCOUNT}:role/{SCHEDULER_ROLE}",
    }


def gcp_settings(urls: Mapping[str, str]) -> dict[str, Any]:
    """Return those of the other one; its machines have a store of their own."""
    from cloudwhale_providers.sandbox.compute import places

    return {
        "project": places.PROJECT,
        "regions": list(places.REGIONS),
        "service_account": places.MACHINE_ACCOUNT,
        "endpoint": urls[GCP],
        "mailbox": GCP_MAILBOX,
    }


SETTINGS = {AWS: settings, GCP: gcp_settings}


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
    }
    return found | _shared(clock)


def gcp_reached(store: str, clock: str) -> dict[str, str]:
    """Return the environment of a machine of the other cloud: its metadata service has the rest."""
    return {"STORAGE_EMULATOR_HOST": store, "GOOGLE_ALLOW_HTTP": "true"} | _shared(clock)


def _shared(clock: str) -> dict[str, str]:
    found = {"NO_PROXY": HERE, "no_proxy": HERE}
    return found | ({"CLOUDWHALE_CLOCK": clock} if clock else {})


def _surrounded(folder: Path, told: record.Record) -> dict[str, str]:
    """Return the environment of a controller inside, for each cloud that there is."""
    found: dict[str, str] = {}
    if AWS in told.urls:
        found |= _without(_OTHERS, _ENDPOINTS) | reached(told.urls[AWS], told.clock)
    if GCP in told.urls:
        key = {"GOOGLE_APPLICATION_CREDENTIALS": str((folder / CREDENTIALS).absolute())}
        found |= (
            _without(_OTHERS_GCP, _GCLOUD) | gcp_reached(told.urls[GCP_STORE], told.clock) | key
        )
    return found


def _without(others: Sequence[str], begin: str) -> dict[str, str]:
    """Return what leads out of the box, to be taken away; `begin`: so others of that begin."""
    strange = [name for name in os.environ if name.startswith(begin) or name in others]
    return dict.fromkeys(strange, "")
