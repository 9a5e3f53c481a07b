"""The verbs of EC2 that the sandbox answers itself; all others are moto's."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.model.units import Instant
from cloudwhale.spi.prices import Market
from cloudwhale_providers.sandbox.endpoint import fleets, launching
from cloudwhale_providers.sandbox.endpoint.estate import USER, Estate, Record
from cloudwhale_providers.sandbox.endpoint.fields import each, inner
from cloudwhale_providers.sandbox.endpoint.listing import Listing, named_ones
from cloudwhale_providers.sandbox.endpoint.market import Prices, SpotHistory
from cloudwhale_providers.sandbox.endpoint.messages import Answer
from cloudwhale_providers.sandbox.endpoint.moto_machines import CODES
from cloudwhale_providers.sandbox.endpoint.query import Query
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.endpoint.regions import Region
from cloudwhale_providers.sandbox.endpoint.room import Room
from cloudwhale_providers.sandbox.endpoint.specs import Spec, merged, spec
from cloudwhale_providers.sandbox.endpoint.tokens import Tokens

Asked = Mapping[str, Any]


@dataclass(slots=True)
class Fleet:
    """A fleet that was: those of type `instant` only remember what they have made."""

    id: str
    asked: Asked
    at: Instant
    answer: dict[str, Any]
    state: str = "active"


@dataclass(frozen=True, slots=True)
class Cloud:
    """What the verbs work with."""

    estate: Estate
    prices: Prices
    room: Room
    query: Query


class Ec2:
    """Answers one verb at a time; whoever calls it holds the endpoint's turn."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._listing = Listing(cloud.query)
        self._history = SpotHistory(cloud.prices)
        self._tokens = Tokens("IdempotentParameterMismatch")
        self._fleets: dict[tuple[str, str], Fleet] = {}
        self._numbers = itertools.count(1)
        self._verbs: Mapping[str, Callable[[Region, Asked, Instant], Answer]] = {
            "CreateFleet": self._create_fleet,
            "DeleteFleets": self._delete_fleets,
            "DescribeFleets": self._describe_fleets,
            "DescribeInstances": self._describe_instances,
            "DescribeSpotPriceHistory": self._describe_spot_price_history,
            "RunInstances": self._run_instances,
            "StartInstances": _not_here,
            "StopInstances": _not_here,
            "TerminateInstances": self._terminate_instances,
        }

    def knows(self, action: str) -> bool:
        """Say whether a verb is answered here."""
        return action in self._verbs

    def answer(self, region: Region, form: Mapping[str, str], now: Instant) -> Answer:
        """Return an answer; raise Refused."""
        action, token = form["Action"], form.get("ClientToken", "")
        asked = self._cloud.query.read(form)
        words = {key: value for key, value in asked.items() if key != "ClientToken"}

        def do() -> Answer:
            return self._verbs[action](region, asked, now)

        return self._tokens.once((region.name, action), token, words, do)

    def fleet_tags(self, region: Region, name: str) -> Mapping[str, str]:
        """Return the tags of a fleet; none for what is not there."""
        fleet = self._fleets.get((region.name, name))
        if fleet is None:
            return {}
        return {str(tag["Key"]): str(tag["Value"]) for tag in _fleet(fleet)["Tags"]}

    # -- launching ---------------------------------------------------------------------------

    def _create_fleet(self, region: Region, asked: Asked, now: Instant) -> Answer:
        if asked.get("Type") != "instant":
            raise Refused("UnsupportedOperation", "the sandbox has fleets of type instant only")
        market = fleets.market_of(asked)
        errors: list[dict[str, Any]] = []
        found: list[fleets.Choice] = []
        for one in fleets.choices(region, asked, market):
            if isinstance(one, fleets.Choice):
                found.append(one)
            else:
                errors.append(_error(one[0], market, one[1]))
        _unless_dry(asked)
        tried = fleets.ordered(found, asked, self._cloud.prices, now)
        got = fleets.chosen(tried, asked, self._cloud.room, (region.zones_of, now))
        errors += [_error(one.named, market, refused) for one, refused in got.errors]
        number = next(self._numbers)
        fleet = f"fleet-{number:08x}-0000-4000-8000-{number:012x}"
        taken = [
            (one, self._launch(region, one.spec, now, {"aws:ec2:fleet-id": fleet, **_from(one)}))
            for one in got.taken
        ]
        rows = [_had(one, record) for one, record in taken]
        told = {"FleetId": fleet, "Errors": errors, "Instances": rows}
        self._fleets[region.name, fleet] = Fleet(fleet, asked, now, told)
        return self._cloud.query.write("CreateFleet", told)

    def _run_instances(self, region: Region, asked: Asked, now: Instant) -> Answer:
        named, data = asked.get("LaunchTemplate"), dict(asked)
        own = {}
        if named:
            template, version = region.template(named)
            data = merged(version.data, asked)
            data["TagSpecifications"] = version.data.get("TagSpecifications")
            own = _template_tags(template.id, str(version.number))
        else:
            data["TagSpecifications"] = None
        options = inner(data, "InstanceMarketOptions")
        market: Market = "spot" if options.get("MarketType") == "spot" else "on-demand"
        one = spec(region, data, asked.get("TagSpecifications"), market)
        _unless_dry(asked)
        taken = self._count(region, one, asked, now)
        token = str(asked.get("ClientToken") or "")
        made = [self._launch(region, one, now, own, token) for _ in range(taken)]
        return self._listing.reservation(made)

    def _count(self, region: Region, one: Spec, asked: Asked, now: Instant) -> int:
        """Return how many of a launch can be had; raise Refused when that is too few."""
        least, most = int(asked.get("MinCount") or 1), int(asked.get("MaxCount") or 1)
        if not 1 <= least <= most:
            raise Refused("InvalidParameterValue", "MinCount must be 1 to MaxCount")
        wish = one.wish
        for taken in range(most):
            refused = self._cloud.room.refusal(wish, [wish] * taken, region.zones_of, now)
            if refused is not None:
                if taken < least:
                    raise refused
                return taken
        return most

    def _launch(
        self, region: Region, one: Spec, now: Instant, own: Mapping[str, str], token: str = ""
    ) -> Record:
        wish = one.wish
        price = self._cloud.prices.price(wish.type, wish.zone, wish.market, now)
        one = one.tagged(own)
        made, instance = launching.make(region, one, now, price)
        return self._cloud.estate.add(
            lambda number: launching.record(made, instance, number, one, token)
        )

    # -- ending ------------------------------------------------------------------------------

    def _terminate_instances(self, region: Region, asked: Asked, now: Instant) -> Answer:
        records = named_ones(self._seen(region), each(asked, "InstanceIds"))
        _unless_dry(asked)
        rows = [self._terminated(one, now) for one in records]
        return self._cloud.query.write("TerminateInstances", {"TerminatingInstances": rows})

    def _terminated(self, one: Record, now: Instant) -> dict[str, Any]:
        before = one.instance.state
        self._cloud.estate.end(one, USER, now)
        after = one.instance.state
        return {
            "InstanceId": one.instance.id,
            "CurrentState": {"Code": CODES[after], "Name": after},
            "PreviousState": {"Code": CODES[before], "Name": before},
        }

    def _delete_fleets(self, region: Region, asked: Asked, now: Instant) -> Answer:
        done: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        for name in each(asked, "FleetIds"):
            fleet = self._fleets.get((region.name, name))
            if fleet is None:
                error = {"Code": "fleetIdDoesNotExist", "Message": "The fleet does not exist"}
                errors.append({"FleetId": name, "Error": error})
                continue
            if not asked.get("TerminateInstances"):
                says = "NoTerminateInstances is not supported for a fleet of type instant."
                raise Refused("InvalidParameterCombination", says)
            before, fleet.state = fleet.state, "deleted_terminating"
            for machine in _machines(fleet):
                record = self._cloud.estate.get(machine)
                if record is not None:
                    self._cloud.estate.end(record, USER, now)
            row = {"FleetId": name, "CurrentFleetState": fleet.state, "PreviousFleetState": before}
            done.append(row)
        told = {"SuccessfulFleetDeletions": done, "UnsuccessfulFleetDeletions": errors}
        return self._cloud.query.write("DeleteFleets", told)

    # -- describing --------------------------------------------------------------------------

    def _describe_instances(self, region: Region, asked: Asked, now: Instant) -> Answer:
        return self._listing.answer(self._seen(region), asked)

    def _describe_spot_price_history(self, region: Region, asked: Asked, now: Instant) -> Answer:
        told = self._history.answer(region.name, asked, now)
        return self._cloud.query.write("DescribeSpotPriceHistory", told)

    def _describe_fleets(self, region: Region, asked: Asked, now: Instant) -> Answer:
        """Return fleets that are named: those of type `instant` are listed no other way."""
        rows: list[dict[str, Any]] = []
        for name in each(asked, "FleetIds"):
            fleet = self._fleets.get((region.name, name))
            if fleet is None:
                raise Refused("InvalidFleetId.NotFound", f"The fleet ID '{name}' does not exist")
            rows.append(_fleet(fleet))
        return self._cloud.query.write("DescribeFleets", {"Fleets": rows})

    def _seen(self, region: Region) -> Sequence[Record]:
        return [
            one for one in self._cloud.estate if one.is_seen and one.instance.region == region.name
        ]


def _not_here(region: Region, asked: Asked, now: Instant) -> Answer:
    raise Refused("UnsupportedOperation", "Machines of the sandbox run once, until they end.")


def _unless_dry(asked: Asked) -> None:
    if asked.get("DryRun"):
        says = "Request would have succeeded, but DryRun flag is set."
        raise Refused("DryRunOperation", says, 412)


def _template_tags(template: str, version: str) -> dict[str, str]:
    return {"aws:ec2launchtemplate:id": template, "aws:ec2launchtemplate:version": version}


def _from(one: fleets.Choice) -> dict[str, str]:
    return _template_tags(str(one.template["LaunchTemplateId"]), str(one.template["Version"]))


def _error(named: Mapping[str, Any], market: str, refused: Refused) -> dict[str, Any]:
    return {
        "LaunchTemplateAndOverrides": named,
        "Lifecycle": market,
        "ErrorCode": refused.code,
        "ErrorMessage": refused.says,
    }


def _had(one: fleets.Choice, record: Record) -> dict[str, Any]:
    return {
        "LaunchTemplateAndOverrides": one.named,
        "Lifecycle": record.instance.market,
        "InstanceIds": [record.instance.id],
        "InstanceType": record.instance.type,
    }


def _machines(fleet: Fleet) -> list[str]:
    return [machine for row in fleet.answer["Instances"] for machine in row["InstanceIds"]]


def _fleet(fleet: Fleet) -> dict[str, Any]:
    tags = [
        tag
        for one in each(fleet.asked, "TagSpecifications")
        if one.get("ResourceType") == "fleet"
        for tag in each(one, "Tags")
    ]
    return {
        "FleetId": fleet.id,
        "FleetState": fleet.state,
        "CreateTime": fleet.at,
        "Type": "instant",
        "Tags": tags,
        "Errors": fleet.answer["Errors"],
        "Instances": fleet.answer["Instances"],
    }
