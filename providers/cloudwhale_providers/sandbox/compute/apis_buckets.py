"""Cloud Storage's JSON API: the buckets themselves; objects are read and written by its XML API."""

from collections.abc import Callable, Mapping
from typing import Any

from cloudwhale_providers.sandbox.compute.calls import Call, Does
from cloudwhale_providers.sandbox.compute.permits import Permits
from cloudwhale_providers.sandbox.compute.places import PROJECT_NUMBER, REGIONS
from cloudwhale_providers.sandbox.compute.policies import Policies, held, must
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused
from cloudwhale_providers.sandbox.compute.wording import Words, fingerprint
from cloudwhale_providers.sandbox.names import GCP_BUCKET

OTHERS = frozenset({"cloudwhale", "team-data"})
"""Buckets of others: names are taken in the whole world."""
UNIFORM = {"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced"}
SOFT_DELETE_S = 604_800
"""Cloud Storage docs, "Soft delete": seven days, where nobody says otherwise."""


class Buckets:
    """Answers the methods of buckets."""

    def __init__(self, permits: Permits) -> None:
        self._permits = permits
        self.policies = Policies()
        self.buckets: dict[str, Words] = {}
        self.on_made: Callable[[str, str], object] = lambda name, region: None
        """Called with name and place of a bucket that was made: whoever keeps objects hears it."""
        own = {"location": REGIONS[0].upper(), "iamConfiguration": UNIFORM}
        self._make(GCP_BUCKET, {**own, "softDeletePolicy": {"retentionDurationSeconds": "0"}})

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method."""
        begin = "storage.buckets."
        return {
            f"{begin}get": self.get,
            f"{begin}insert": self.insert,
            f"{begin}patch": self.patch,
            f"{begin}getIamPolicy": self.get_policy,
            f"{begin}setIamPolicy": self.set_policy,
            f"{begin}testIamPermissions": self.test,
        }

    def get(self, call: Call) -> Words:
        """Return a bucket; raise Refused."""
        return self._told(self._name(call, "get"))

    def insert(self, call: Call) -> Words:
        """Make a bucket; raise Refused."""
        name, project = str(call.body["name"]), call.query["project"]
        must(self._permits, call, "storage.buckets.create", f"projects/{project}")
        if name in self.buckets or name in OTHERS:
            whose = "you already own it" if name in self.buckets else "it is not available"
            says = f"Your previous request to create the named bucket succeeded and {whose}."
            raise GoogleRefused("conflict", says, 409)
        self._make(name, call.body)
        self.on_made(name, str(self.buckets[name]["location"]).lower())
        return self._told(name)

    def patch(self, call: Call) -> Words:
        """Change a bucket; raise Refused."""
        name = self._name(call, "update")
        _merge(self.buckets[name], call.body)
        self.buckets[name]["metageneration"] = str(int(self.buckets[name]["metageneration"]) + 1)
        return self._told(name)

    def get_policy(self, call: Call) -> Words:
        """Return who may what there."""
        name = self._name(call, "getIamPolicy")
        version = int(call.query.get("optionsRequestedPolicyVersion", "1"))
        return {"kind": "storage#policy", **self.policies.get(_path(name), version)}

    def set_policy(self, call: Call) -> Words:
        """Say it anew; raise Refused."""
        name = self._name(call, "setIamPolicy")
        has_conditions = any(one.get("condition") for one in call.body.get("bindings") or ())
        access: Mapping[str, Any] = self.buckets[name]["iamConfiguration"]
        if has_conditions and not access["uniformBucketLevelAccess"]["enabled"]:
            says = "Conditions need uniform bucket-level access."
            raise GoogleRefused("invalid", says, 412)
        return {"kind": "storage#policy", **self.policies.set(_path(name), call.body)}

    def test(self, call: Call) -> Words:
        """Return which of some permissions who asks has."""
        name = self._name(call, "")
        found = held(self._permits, call, call.repeated.get("permissions", ()), _path(name))
        return {"kind": "storage#testIamPermissionsResponse", **found}

    # -- what is kept ------------------------------------------------------------------------

    def _name(self, call: Call, verb: str) -> str:
        name = call.path["bucket"]
        if name in OTHERS:
            says = f"{call.caller.email} does not have storage.buckets.get access to {name}."
            raise GoogleRefused("forbidden", says)
        if name not in self.buckets:
            raise GoogleRefused("notFound", "The specified bucket does not exist.")
        if verb:
            must(self._permits, call, f"storage.buckets.{verb}", _path(name))
        return name

    def _make(self, name: str, said: Mapping[str, Any]) -> None:
        place = str(said.get("location") or "US").upper()
        self.buckets[name] = {
            "kind": "storage#bucket", "id": name, "name": name, "projectNumber": PROJECT_NUMBER,
            "metageneration": "1", "location": place, "storageClass": "STANDARD",
            "locationType": "region" if "-" in place else "multi-region",
            "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": False}},
            "softDeletePolicy": {"retentionDurationSeconds": str(SOFT_DELETE_S)},
        }  # fmt: skip
        _merge(self.buckets[name], {key: one for key, one in said.items() if key != "location"})

    def _told(self, name: str) -> Words:
        return {**self.buckets[name], "etag": fingerprint(self.buckets[name])}


def _merge(into: Words, said: Mapping[str, Any]) -> None:
    """Change what is said; None takes away (JSON merge patch, RFC 7386)."""
    for key, value in said.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            inner: Words = dict(into[key])
            _merge(inner, value)  # pyright: ignore[reportUnknownArgumentType]
            into[key] = inner
        else:
            into[key] = value


def _path(name: str) -> str:
    return f"projects/_/buckets/{name}"
