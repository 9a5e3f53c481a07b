"""The roles that ship, and who gets them on what: the public names."""

from cloudwhale_providers.gcp.policies.shipped import (
    NAMES,
    Binding,
    Name,
    Places,
    bindings,
    permissions,
    role,
    role_id,
)

__all__ = [
    "NAMES", "Binding", "Name", "Places", "bindings", "permissions", "role", "role_id",
]  # fmt: skip
