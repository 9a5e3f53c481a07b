"""Answers the methods of instances."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.compute.calls import Call, Does
from cloudwhale_providers.sandbox.compute.catalogue import catalogue
from cloudwhale_providers.sandbox.compute.disks import Disks
from cloudwhale_providers.sandbox.compute.lists import aggregated, listed
from cloudwhale_providers.sandbox.compute.machines import Machines
from cloudwhale_providers.sandbox.compute.making import (
    USER_DATA,
    keep_disks,
    metadata_words,
    path_of_wish,
    record,
    tags_of,
)
from cloudwhale_providers.sandbox.compute.places import PROJECT
from cloudwhale_providers.sandbox.compute.records import Record
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused, not_found
from cloudwhale_providers.sandbox.compute.room import GcpMarket, Room
from cloudwhale_providers.sandbox.compute.timing import timing
from cloudwhale_providers.sandbox.compute.wishes import Things, Wish, items_of, labels_of, read
from cloudwhale_providers.sandbox.compute.wording import Words, fingerprint, number
from cloudwhale_providers.sandbox.endpoint.weather_values import Weather


@dataclass(frozen=True, slots=True)
class Estate:
    """What instances are made of."""

    machines: Machines
    disks: Disks
    room: Room
    market: GcpMarket
    things: Things
    weather: Weather


QUOTA = "QUOTA_EXCEEDED"
"""What this fails with is never listed, not even for a while."""


class Instances:
    """Answers the methods of instances."""

    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        self._machines, self._operations = estate.machines, estate.machines.operations
        self._launches = 0
        estate.machines.on_gone = self._gone

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method."""
        does: dict[str, Does] = {
            "get": lambda call: self._named(call).words(),
            "list": self.list,
            "aggregatedList": self.aggregate,
            "insert": self.insert,
            "delete": self.delete,
            "stop": self.stop,
            "setMetadata": self.set_metadata,
            "setLabels": self.set_labels,
            "setScheduling": self.set_scheduling,
            "getSerialPortOutput": self.serial,
        }
        return {f"compute.instances.{name}": do for name, do in does.items()}

    # -- reading -----------------------------------------------------------------------------

    def list(self, call: Call) -> Words:
        """Return the machines of a zone."""
        found = [one.words() for one in self._seen(call) if one.instance.zone == call.zone]
        return listed(call, "instance", found)

    def aggregate(self, call: Call) -> Words:
        """Return all machines."""
        found: dict[str, list[Words]] = {f"zones/{zone}": [] for zone in catalogue().zones}
        for one in self._seen(call):
            found[f"zones/{one.instance.zone}"].append(one.words())
        return aggregated(call, "instance", "instances", found)

    def serial(self, call: Call) -> Words:
        """Return what a machine's console has shown: nothing, as nobody keeps it here."""
        start, path = call.query.get("start", "0"), self._named(call).path
        return {
            "kind": "compute#serialPortOutput", "contents": "", "start": start, "next": start,
            "selfLink": f"https://www.googleapis.com/compute/v1/{path}/serialPort",
        }  # fmt: skip

    # -- making and ending -------------------------------------------------------------------

    def insert(self, call: Call) -> Words:
        """Begin to make a machine; raise Refused for what is wrong at once."""
        estate = self._estate
        for word in ("sourceInstanceTemplate", "sourceMachineImage"):
            if word in call.query:
                raise GoogleRefused("invalid", f"{word} is not known to the sandbox.")
        twin = self._machines.get(call.zone, str(call.body.get("name", "")))
        if twin is not None:
            raise GoogleRefused("alreadyExists", f"The resource '{twin.path}' already exists")
        wish = read(call.body, call.zone, estate.things, call.now)
        path = path_of_wish(wish)
        done_at = call.now + estate.weather.operation_s
        failure = estate.room.failure(wish, call.now)
        if failure is not None and failure.code == QUOTA:
            return self._operations.begin(
                call, (path, number(path, call.now)), done_at, failure
            ).words()
        made = self._made(wish, call)
        failure = failure or self._machines.stillborn(made.instance)
        if failure is None:
            self._machines.add(made, call.now)
        operation = self._operations.begin(call, made.target, done_at, failure)
        if failure is not None:
            made.leaves_disks = estate.weather.leaves_disks
            self._machines.doom(made, failure, done_at)
        return operation.words()

    def _made(self, wish: Wish, call: Call) -> Record:
        self._launches += 1
        price = self._estate.market.price(wish.kind.name, wish.zone, wish.market, call.now)
        made = record(wish, self._launches, call.now, price)
        keep_disks(wish, self._estate.disks, call.now, made.path)
        return made

    def delete(self, call: Call) -> Words:
        """Begin to delete a machine."""
        found = self._named(call)
        gone_at = self._machines.delete(found, call.now)
        return self._operations.begin(call, found.target, gone_at).words()

    def stop(self, call: Call) -> Words:
        """Begin to stop a machine; its disks stay."""
        found = self._named(call)
        if found.status != "RUNNING":
            says = f"The resource '{found.path}' is not ready"
            raise GoogleRefused("resourceNotReady", says)
        return self._operations.begin(
            call, found.target, self._machines.stop(found, call.now)
        ).words()

    # -- changing ----------------------------------------------------------------------------

    def set_metadata(self, call: Call) -> Words:
        """Put metadata in place of what a machine has."""
        found = self._named(call)
        _check_print(call.body.get("fingerprint"), found.facts["metadata"]["fingerprint"])
        items = items_of(call.body)
        found.facts["metadata"] = metadata_words(items)
        self._machines.change(found, tags=tags_of(items), user_data=items.get(USER_DATA, ""))
        return self._done(call, found)

    def set_labels(self, call: Call) -> Words:
        """Put labels in place of those that a machine has."""
        found = self._named(call)
        _check_print(call.body.get("labelFingerprint"), found.facts["labelFingerprint"])
        labels = labels_of(call.body.get("labels") or {}, "labels")
        found.facts |= {"labels": labels, "labelFingerprint": fingerprint(labels)}
        return self._done(call, found)

    def set_scheduling(self, call: Call) -> Words:
        """Change how long a machine may run: only of one that is stopped."""
        found = self._named(call)
        if found.status != "TERMINATED":
            says = (
                "Scheduling can only be changed while the instance is TERMINATED; it is "
                f"{found.status}."
            )
            raise GoogleRefused("invalid", says)
        has_gpus = "guestAccelerators" in found.facts
        times = timing(call.body, has_gpus, self._estate.weather, call.now)
        found.facts["scheduling"] = dict(times.words)
        found.runs_for_s, found.then = times.runs_for_s, times.then
        return self._done(call, found)

    # -- one machine -------------------------------------------------------------------------

    def _done(self, call: Call, found: Record) -> Words:
        done_at = call.now + self._estate.weather.operation_s
        return self._operations.begin(call, found.target, done_at).words()

    def _seen(self, call: Call) -> Sequence[Record]:
        """Return the machines that a list shows: new ones not at once."""
        since = call.now - self._estate.weather.unseen_s
        return [one for one in self._machines if one.made_at <= since]

    def _named(self, call: Call) -> Record:
        name = call.path["instance"]
        found = self._machines.get(call.zone, name)
        if found is None:
            raise not_found(f"projects/{PROJECT}/zones/{call.zone}/instances/{name}")
        return found

    def _gone(self, found: Record, at: Instant) -> None:
        self._estate.disks.leave(found.path, at, they_stay=found.leaves_disks)


def _check_print(said: Any, now: str) -> None:
    if said != now:
        says = "Supplied fingerprint does not match current metadata fingerprint."
        raise GoogleRefused("conditionNotMet", says)
