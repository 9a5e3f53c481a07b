"""Claims this agent's node before it does anything: two agents of one name would share orders."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.agent.place import Kept, Place
from cloudwhale.agent.shim_processes import boot_id, started_at
from cloudwhale.mailbox.box import folder_of
from cloudwhale.mailbox.claims import SKEW_S, Claim, Claims, Held, free_after_s
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.units import Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import CloudwhaleError, SettingsError

PROBE = "clocks"
"""Folder of the objects that the store's clock is asked with."""


class NameTaken(SettingsError):
    """Another agent is this node."""


class ClockDiffers(CloudwhaleError):
    """This host's clock and the store's are too far apart for leases to mean anything."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Who wants to be which node."""

    node: str
    agent: str
    lease_s: Seconds
    door: str = ""
    """See `mailbox.box.folder_of`."""

    @property
    def folder(self) -> str:
        """Return what the node's folders in the mailbox are called."""
        return folder_of(self.node, self.door)


class Standing:
    """A claim that this agent has made."""

    def __init__(self, claims: Claims, number: int) -> None:
        self._claims = claims
        self.number = number

    def stands(self) -> bool:
        """Say whether nobody has claimed the node since; raises StoreUnusable."""
        return self._claims.stands(self.number)


def claim(wanted: Wanted, place: Place, objects: Objects, clock: Clock) -> Standing:
    """Become the node, or raise NameTaken, ClockDiffers, StoreUnusable or OSError.

    One create and one look at it when nobody else was here since this place's last agent.
    """
    kept = place.claimed()
    claims = Claims(objects, wanted.folder)
    mine = _mine(wanted, kept.place, clock)
    asked_at = clock.now()
    number = claims.make(mine, kept.number)
    since = kept.since
    if number is None:
        newest = claims.newest()
        if newest is None or newest.claim is None or newest.claim.place != kept.place:
            _refuse_if_alive(wanted, newest, claims, _store_now(objects, wanted, kept, clock))
            place.forget_read_to()
            since = 0
        asked_at = clock.now()
        number = claims.make(mine, newest.number if newest else 0)
    if number is None:
        raise _taken(wanted, "another agent has claimed it at this moment")
    place.keep_claimed(Kept(kept.place, number, since or number))
    if since and since < number - 1 == kept.number:
        claims.forget(kept.number)  # the first of a row stays: others see by it who was here
    _refuse_if_clock_differs(claims.made_at(number), asked_at, clock.now())
    return Standing(claims, number)


def _mine(wanted: Wanted, place: str, clock: Clock) -> Claim:
    pid = os.getpid()
    return Claim(
        at=clock.now(), place=place, host=socket.gethostname(), agent=wanted.agent,
        lease_s=wanted.lease_s, boot=_system(), pid=pid, began=started_at(pid) or 0,
    )  # fmt: skip


def _system() -> str:
    """Return what tells this running system, and the processes that can be seen here, apart."""
    boot = boot_id()
    try:
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}" if boot else ""
    except OSError:
        return ""


def _lives(other: Claim) -> bool:
    """Say whether the process of a claim of this host runs; one that waits to be collected not."""
    if started_at(other.pid) != other.began:
        return False
    try:
        stat = Path(f"/proc/{other.pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def _refuse_if_alive(wanted: Wanted, held: Held | None, claims: Claims, now: float) -> None:
    """Raise NameTaken unless the node's agent is gone, or silent for longer than its lease."""
    if held is None:
        return
    other = held.claim
    if other is not None and other.boot and other.boot == _system():
        # Its process can be seen from here: no need to guess. What it left, our folder's closing
        # of each attempt kills.
        if not _lives(other):
            return
        raise _taken(wanted, f"process {other.pid} of this host is its agent")
    word = claims.last_word(held)
    if word.left:
        return
    silent_s, free_s = max(0.0, now - word.at), free_after_s(other, wanted.lease_s)
    if silent_s <= free_s:
        who = "an agent of another version" if other is None else f"the agent on {other.host}"
        raise _taken(
            wanted,
            f"{who} was heard {silent_s:.0f} s ago",
            f", or when that machine is gone for good, wait {free_s - silent_s:.0f} s",
        )


def _taken(wanted: Wanted, why: str, otherwise: str = "") -> NameTaken:
    return NameTaken(
        f"the node {wanted.node} is taken: {why}",
        f"Choose another name with --node{otherwise}.",
    )


def _store_now(objects: Objects, wanted: Wanted, kept: Kept, clock: Clock) -> float:
    """Return the time by the store's clock, to within a request."""
    key = f"{PROBE}/{wanted.folder}-{kept.place}"
    objects.put_chunks(key, [b"?"])
    at = objects.modified_at(key)
    objects.delete([key])
    return clock.now() if at is None else at


def _refuse_if_clock_differs(made_at: float | None, before: float, after: float) -> None:
    """Raise ClockDiffers when the store's time of the claim is too far from ours of making it."""
    if made_at is None:
        return  # a store that does not tell
    ahead_s = max(before - made_at, 0.0) - max(made_at - after, 0.0)
    if abs(ahead_s) > SKEW_S:
        way = "ahead of" if ahead_s > 0 else "behind"
        raise ClockDiffers(
            f"this host's clock is {abs(ahead_s):.0f} s {way} the mailbox's; "
            f"more than {SKEW_S:g} s is not borne",
            "Let the clock be set (`timedatectl set-ntp true`), then start the agent again.",
        )
