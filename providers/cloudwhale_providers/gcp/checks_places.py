"""What regions have for machines: a network with a way out, an image, quotas."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cloudwhale.model.offer import Offer
from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale_providers.gcp import names, quotas
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.asking import listed, says_that_it_is_gone
from cloudwhale_providers.gcp.images import Images
from cloudwhale_providers.gcp.settings import regions as meant
from cloudwhale_providers.rows import HERE, Found, failed


@dataclass(frozen=True, slots=True)
class Places:
    """The regions that machines may stand in."""

    found: Sequence[Found] = ()
    """What is to be said of them."""
    usable: Sequence[str] = ()
    limits: Mapping[str, quotas.Quotas] = field(default_factory=dict[str, quotas.Quotas])
    """By region, as far as they are told."""


def regions(account: Account, offers: Sequence[Offer]) -> Places:
    """Return where machines may stand, and what is wrong with that."""
    wanted = sorted(set(meant(account.options, {one.region for one in offers})))
    try:
        told = {
            str(one["name"]): one
            for one in listed(
                account.calls, "compute", "regions.list", project=account.project,
                fields="nextPageToken,items(name,status,quotas)",
            )
        }  # fmt: skip
    except CloudwhaleError as error:
        return Places((failed(error, "Allow compute.regions.list."),), wanted)
    up = [one for one in wanted if told.get(one, {}).get("status", "UP") == "UP" and one in told]
    found = [_absent(one) for one in account.options.regions if one in wanted and one not in up]
    if up:
        found.insert(0, Found("ok", ", ".join(up)))
    elif not found:
        found.append(
            Found(
                "failed",
                "none of the regions that are listed is there and named in `regions`",
                "Name others in `regions` of [clouds.gcp], or `cloudwhale catalog update`.",
            )
        )
    return Places(found, up, {one: quotas.read(told[one]) for one in up})


def _absent(region: str) -> Found:
    return Found(
        "failed",
        f"{region} is named in `regions`, and the project cannot use it",
        "`gcloud compute regions list` lists those it can; remove it from `regions` of "
        "[clouds.gcp].",
    )


# -- networks ---------------------------------------------------------------------------------


def network(account: Account, region: str) -> Found:
    """Return whether machines have somewhere to stand there, and reach their mailbox."""
    try:
        subnet = _subnetwork(account, region)
    except CloudwhaleError as error:
        if says_that_it_is_gone(error):
            return _no_network(account)
        return failed(error, "Allow compute.networks.get and compute.subnetworks.list.")
    if subnet is None:
        return Found(
            "failed",
            f"the network {account.options.network} has no subnetwork",
            f"`gcloud compute networks subnets create cloudwhale --project={account.project} "
            f"--network={account.options.network} --region={HERE} --range=10.200.0.0/20`, or leave "
            f"{HERE} out of `regions`.",
        )
    if account.options.external_address:
        return Found("ok", f"{names.last(subnet.get('selfLink'))}, with addresses of their own")
    return _without_addresses(account, region, subnet)


def _subnetwork(account: Account, region: str) -> Mapping[str, Any] | None:
    """Return the subnetwork that machines stand in; None: there is none. Raise CloudwhaleError."""
    options = account.options
    own = options.subnetwork.rpartition("/")[2]
    if not own:
        account.compute("networks.get", network=options.network.rpartition("/")[2])
    found = listed(
        account.calls, "compute", "subnetworks.list", project=account.project, region=region
    )
    for one in found:
        if own in ("", one.get("name")) and (
            own or names.last(one.get("network")) == names.last(options.network)
        ):
            return one
    return None


def _no_network(account: Account) -> Found:
    name = account.options.network
    return Found(
        "failed",
        f"the project has no network {name}",
        f"`gcloud compute networks create {name} --project={account.project} --subnet-mode=auto`, "
        "or name another in `network` of [clouds.gcp].",
    )


def _without_addresses(account: Account, region: str, subnet: Mapping[str, Any]) -> Found:
    """Return how machines without addresses of their own reach what they need."""
    try:
        routers = list(
            listed(account.calls, "compute", "routers.list", project=account.project, region=region)
        )
    except CloudwhaleError as error:
        return Found(
            "warning", f"whether there is Cloud NAT cannot be seen: {error.says}",
            "Allow compute.routers.list, which only `doctor` asks for.",
        )  # fmt: skip
    here = names.last(subnet.get("network"))
    if any(one.get("nats") and names.last(one.get("network")) == here for one in routers):
        return Found("ok", f"{subnet.get('name')}, behind Cloud NAT")
    nat = (
        f"`gcloud compute routers create cloudwhale --project={account.project} --network={here} "
        f"--region={HERE}` and `gcloud compute routers nats create cloudwhale "
        f"--router=cloudwhale --region={HERE} --auto-allocate-nat-external-ips "
        "--nat-all-subnet-ip-ranges`"
    )
    if subnet.get("privateIpGoogleAccess"):
        says = "machines reach Google alone: images of containers from elsewhere cannot be pulled"
        return Found("warning", says, nat)
    return Found(
        "failed",
        "machines without addresses reach nothing there: neither Cloud NAT nor Private Google "
        "Access",
        f"{nat}; or set `external_address = true` in [clouds.gcp].",
    )


# -- images and quotas ------------------------------------------------------------------------


def image(images: Images, has_gpus: bool) -> Found:
    """Return which image machines boot from."""
    try:
        found = images.image(has_gpus)
    except CloudwhaleError as error:
        return failed(error)
    return Found("ok", f"{names.last(found.link)}, with a disk of {found.least_gib:g} GiB at least")


def quota_rows(
    project: str, told: Mapping[str, Any], places: Places, offers: Sequence[Offer]
) -> Sequence[Found]:
    """Return what quotas hold back; `told`: the project, as Compute Engine describes it."""
    wide = quotas.read(told)
    wanted = [one for one in offers if one.region in places.usable]
    gpus = wide.get(quotas.GPUS)
    if gpus is not None and gpus.limit == 0 and any(one.facts.devices for one in wanted):
        command = quotas.raise_command(quotas.GPUS, "", project, 1)
        return [
            Found(
                "failed",
                f"{quotas.GPUS} is 0: the project may run no GPU anywhere, as new ones may",
                f"`{command}`; an answer takes hours to days.",
            )
        ]
    short = list(_short(project, places, wanted))
    is_open = len(short) < len({_metric(one, places) for one in wanted})
    if short and not is_open:
        short = [Found("failed", one.says, one.remedy) for one in short]
    if short:
        return short
    return [Found("ok", "each holds at least one machine, as far as Google tells")]


def _metric(offer: Offer, places: Places) -> str:
    return quotas.drawn_from(offer, places.limits.get(offer.region, {}))


def _short(project: str, places: Places, offers: Iterable[Offer]) -> Iterable[Found]:
    """Yield the quotas that do not hold the smallest machine, with the regions where."""
    lacking: dict[str, dict[str, float]] = {}
    least: dict[str, float] = {}
    for one in offers:
        metric = _metric(one, places)
        known = places.limits.get(one.region, {}).get(metric)
        least[metric] = min(least.get(metric, one.quota_units), one.quota_units)
        if known is not None and known.limit < least[metric]:
            lacking.setdefault(metric, {})[one.region] = known.limit
    for metric, where in sorted(lacking.items()):
        limits = " or ".join(sorted({f"{one:g}" for one in where.values()}))
        command = quotas.raise_command(metric, min(where), project, least[metric])
        others = " Likewise in the others." if len(where) > 1 else ""
        yield Found(
            "warning",
            f"{metric} is {limits} in {', '.join(sorted(where))}; the smallest machine takes "
            f"{least[metric]:g}",
            f"`{command}`{others}",
        )
