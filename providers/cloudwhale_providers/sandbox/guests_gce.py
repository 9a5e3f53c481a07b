"""From an instance of Compute Engine to a machine of the hypervisor."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.dialect_gce import Gce
from cloudwhale_providers.sandbox.endpoint.machines import Instance
from cloudwhale_providers.sandbox.guests import fittings_of, identity, mailbox_of
from cloudwhale_providers.sandbox.hypervisor import Guest
from cloudwhale_providers.sandbox.told_gce import Bearer, Known

if TYPE_CHECKING:
    from cloudwhale_providers.sandbox.compute import Compute


def guest(
    instance: Instance,
    compute: "Compute",
    environment: Mapping[str, str],
    now: Callable[[], Instant],
) -> Guest:
    """Return a machine that is to run, with endpoints and clock of its own.

    Raise ValueError for a type that nobody knows.
    """

    def newest() -> Instance:
        return compute.instance(instance.id) or instance

    def bearer() -> Bearer | None:
        found = compute.credentials_of(instance.id)
        return None if found is None else Bearer(found.text, found.left_s)

    def known() -> Known:
        return Known(attributes(compute, instance.id), instance.profile, bearer)

    return Guest(
        who=identity(instance, instance.tags),
        launched_at=instance.launched_at,
        mailbox=mailbox_of(instance.user_data),
        fittings=fittings_of(instance),
        dialect=Gce(newest, known),
        environment=environment,
    )


def attributes(compute: "Compute", machine: str) -> dict[str, str]:
    """Return the metadata attributes of an instance, as they are now; empty: there is none."""
    services = compute.services
    with services.turn:
        found = services.machines.known(machine)
        items = [] if found is None else list(found.facts["metadata"].get("items") or ())
    return {str(one["key"]): str(one["value"]) for one in items}
