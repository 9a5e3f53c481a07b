"""IAM: service accounts and the project's own roles."""

from collections.abc import Mapping

from cloudwhale_providers.sandbox.compute.calls import Call, Does
from cloudwhale_providers.sandbox.compute.permits import Permits
from cloudwhale_providers.sandbox.compute.places import (
    DEFAULT_ACCOUNT,
    MACHINE_ACCOUNT,
    PROJECT,
    USER_ACCOUNT,
)
from cloudwhale_providers.sandbox.compute.policies import Policies, held, must
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused
from cloudwhale_providers.sandbox.compute.wording import Words, fingerprint, number

DELETED = "deleted"


class People:
    """Answers the methods of service accounts and of roles."""

    def __init__(self, permits: Permits) -> None:
        self._permits = permits
        self.policies = Policies()
        self.accounts = {MACHINE_ACCOUNT, USER_ACCOUNT, DEFAULT_ACCOUNT}
        """Their e-mails."""
        self.disabled: set[str] = set()
        self.roles: dict[str, Words] = {}
        """The project's own, by id."""

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method."""
        accounts, roles = "iam.projects.serviceAccounts.", "iam.projects.roles."
        return {
            f"{accounts}get": self.get,
            f"{accounts}create": self.create,
            f"{accounts}getIamPolicy": self.get_policy,
            f"{accounts}setIamPolicy": self.set_policy,
            f"{accounts}testIamPermissions": self.test,
            f"{roles}get": self.get_role,
            f"{roles}create": self.create_role,
            f"{roles}patch": self.patch_role,
            f"{roles}undelete": self.undelete_role,
        }

    # -- service accounts --------------------------------------------------------------------

    def get(self, call: Call) -> Words:
        """Return an account; raise Refused."""
        return self._account(self._email(call, "get"))

    def create(self, call: Call) -> Words:
        """Make an account; raise Refused."""
        must(self._permits, call, "iam.serviceAccounts.create", f"projects/{PROJECT}")
        email = f"{call.body['accountId']}@{PROJECT}.iam.gserviceaccount.com"
        if email in self.accounts:
            says = f"Service account {call.body['accountId']} already exists within project."
            raise GoogleRefused("alreadyExists", says)
        self.accounts.add(email)
        return self._account(email)

    def get_policy(self, call: Call) -> Words:
        """Return who may what with an account."""
        email = self._email(call, "getIamPolicy")
        version = int(call.query.get("options.requestedPolicyVersion", "1"))
        return self.policies.get(_path(email), version)

    def set_policy(self, call: Call) -> Words:
        """Say it anew; raise Refused."""
        email = self._email(call, "setIamPolicy")
        return self.policies.set(_path(email), call.body.get("policy") or {})

    def test(self, call: Call) -> Words:
        """Return which of some permissions who asks has."""
        path = _path(self._email(call, ""))
        return held(self._permits, call, call.body.get("permissions") or (), path)

    def _email(self, call: Call, verb: str) -> str:
        email = call.path["serviceAccountsId"]
        if verb:
            must(self._permits, call, f"iam.serviceAccounts.{verb}", _path(email))
        if email not in self.accounts:
            raise GoogleRefused("notFound", f"Unknown service account {email}")
        return email

    def _account(self, email: str) -> Words:
        found: Words = {
            "name": _path(email), "projectId": PROJECT, "email": email, "displayName": "",
            "uniqueId": number(email), "oauth2ClientId": number(email),
            "etag": fingerprint({"email": email}),
        }  # fmt: skip
        return {**found, "disabled": True} if email in self.disabled else found

    # -- roles -------------------------------------------------------------------------------

    def get_role(self, call: Call) -> Words:
        """Return a role; raise Refused."""
        return self._role(call, "get")

    def create_role(self, call: Call) -> Words:
        """Make a role; raise Refused."""
        must(self._permits, call, "iam.roles.create", f"projects/{PROJECT}")
        name = str(call.body["roleId"])
        if name in self.roles:
            says = f"A role named {name} in projects/{PROJECT} already exists."
            raise GoogleRefused("alreadyExists", says)
        self.roles[name] = {
            **call.body.get("role", {}), "name": f"projects/{PROJECT}/roles/{name}",
        }  # fmt: skip
        return self._told(name)

    def patch_role(self, call: Call) -> Words:
        """Change a role; raise Refused."""
        found = self._role(call, "update")
        if found.get(DELETED):
            raise GoogleRefused("failedPrecondition", "You can't update a deleted role.", 400)
        mask = call.query.get("updateMask", "includedPermissions").split(",")
        name = call.path["rolesId"]
        self.roles[name] |= {key: call.body[key] for key in mask if key in call.body}
        return self._told(name)

    def undelete_role(self, call: Call) -> Words:
        """Bring a role back that was deleted less than a week ago."""
        self._role(call, "undelete")
        self.roles[call.path["rolesId"]].pop(DELETED, None)
        return self._told(call.path["rolesId"])

    def _role(self, call: Call, verb: str) -> Words:
        name = call.path["rolesId"]
        path = f"projects/{PROJECT}/roles/{name}"
        must(self._permits, call, f"iam.roles.{verb}", path)
        if name not in self.roles:
            raise GoogleRefused("notFound", f"The role named {path} was not found.")
        return self._told(name)

    def _told(self, name: str) -> Words:
        return {**self.roles[name], "etag": fingerprint(self.roles[name])}


def _path(email: str) -> str:
    return f"projects/{PROJECT}/serviceAccounts/{email}"
