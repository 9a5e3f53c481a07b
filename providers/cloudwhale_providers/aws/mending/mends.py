"""All that an account needs for machines, in order: bucket, roles, spot, who runs cloudwhale."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale.spi.provider import Amends
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.checks import who_is_refused
from cloudwhale_providers.aws.checks_bucket import REGION_WORDS, US_EAST_1, Bucket, bucket_of
from cloudwhale_providers.aws.checks_places import launches
from cloudwhale_providers.aws.checks_roles import IAM_REGION
from cloudwhale_providers.aws.images import Images
from cloudwhale_providers.aws.mending import documents
from cloudwhale_providers.aws.mending.allowing import Allowing
from cloudwhale_providers.aws.mending.buckets import BucketWants
from cloudwhale_providers.aws.mending.documents import Roles
from cloudwhale_providers.aws.mending.roles import RoleWants
from cloudwhale_providers.aws.mending.wants import Want, looking
from cloudwhale_providers.aws.rows import row
from cloudwhale_providers.aws.stopping import Pause

FOLDER = "cloudwhale"
"""Of the mailbox in a bucket that is made for it."""


class Mends:
    """Looks at an account for what it lacks; each look is new."""

    def __init__(
        self, account: Account, mailbox: str, environment: Mapping[str, str], pause: Pause
    ) -> None:
        self._account = account
        self._mailbox = mailbox
        self._environment = environment
        self._pause = pause

    def amends(self, whose: Callable[[], str], allow: str = "") -> Amends:
        """Return what is there, what can be made, and what the settings are to say then."""
        calls, options = self._account.calls, self._account.options
        try:
            number = str(calls.call(self.region, "sts", "get_caller_identity")["Account"])
        except CloudwhaleError as error:
            return Amends((row("credentials", who_is_refused(error)),))
        bucket = bucket_of(self._mailbox) or Bucket(f"cloudwhale-{number}", FOLDER)
        wanted = BucketWants(calls, bucket, number, self.region, whose)
        roles = self._roles()
        policy = documents.controller(bucket, number, roles)
        wants: list[Want] = [
            *wanted.wants(), *RoleWants(calls, bucket, number, roles, self._is_known).wants(),
        ]  # fmt: skip
        if allow:
            name = documents.name_for("cloudwhale-controller", bucket)
            wants += Allowing(calls, number, name, policy, allow).wants()
        looked = looking(self._pause)
        looked.look(wants)
        return Amends(
            rows=looked.rows,
            mendings=looked.mendings,
            mailbox="" if bucket_of(self._mailbox) else f"s3://{bucket.name}/{bucket.prefix}",
            settings={
                "regions": list(options.regions) or [self.region],
                "instance_profile": options.instance_profile or roles.profile,
                "scheduler_role": options.scheduler_role
                or f"arn:aws:iam::{number}:role/{roles.stops}",
            },
            policy=json.dumps(policy, indent=2),
        )

    @property
    def region(self) -> str:
        """Return where a bucket is made: where its client will look for it, which reads no file."""
        told = [self._environment.get(name, "") for name in REGION_WORDS]
        return next((one for one in told if one), US_EAST_1)

    def _roles(self) -> Roles:
        """Return what the roles are called: as the settings say, else as the policies do."""
        options = self._account.options
        profile = options.instance_profile.rpartition("/")[2] or documents.MACHINE
        stops = options.scheduler_role.rpartition("/")[2] or documents.STOPS
        return Roles(self._role_of(profile), profile, stops)

    def _role_of(self, profile: str) -> str:
        """Return the role in a profile; where there is none yet, it gets the profile's name."""
        words = {"InstanceProfileName": profile}
        try:
            answer = self._account.calls.call(IAM_REGION, "iam", "get_instance_profile", **words)
        except CloudwhaleError:
            return profile  # what is wrong is said by the row of the profile
        found: Sequence[Mapping[str, Any]] = answer["InstanceProfile"].get("Roles") or ()
        return str(found[0]["RoleName"]) if found else profile

    def _is_known(self, profile: str) -> bool:
        """Say whether EC2 takes a profile, as far as it can be asked: a dry run names it."""
        options = self._account.options.but(instance_profile=profile)
        account = replace(self._account, options=options)
        try:
            ami = Images(account.calls, account.clock, options.image).image(self.region).id
        except CloudwhaleError:
            return True  # there is a row of its own for images
        return "iaminstanceprofile" not in launches(account, self.region, ami).says.lower()
