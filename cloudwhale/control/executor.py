"""Carries out one checked plan: an effect for each step that needs one; it never chooses."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from cloudwhale.control.carrying import Carried, Carrying
from cloudwhale.control.doors import Doors
from cloudwhale.control.effects import Effect, Effects, Key
from cloudwhale.control.hiring import TELL, Hiring, LeaseTold, Where
from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.control.orders import (
    gang_seat,
    introduce_order,
    lease_order,
    leave_order,
    of_rank,
    start_order,
    stop_order,
    stray_order,
)
from cloudwhale.control.reports import Stray
from cloudwhale.control.secrets import seal_for, unseal
from cloudwhale.mailbox.box import orders_to
from cloudwhale.mailbox.documents import Order
from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.job import HOLDS_A_PLACE, Checkpoint, Job
from cloudwhale.model.node import Node
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import Instant
from cloudwhale.model.world import World
from cloudwhale.planning.ganging import restored
from cloudwhale.reporting.figures import size
from cloudwhale.spi.errors import CloudwhaleError, SettingsError
from cloudwhale.spi.provider import LaunchRequest, Provider
from cloudwhale.spi.store import JobQuery, Store

FORGET = "forget"
KEEP_ORDERS = 1000  # obeyed orders kept for a person who looks for what happened


class SecretUnusable(CloudwhaleError):
    """A job's secret cannot be opened: the job is parked until somebody gives it again."""


@dataclass(frozen=True, slots=True)
class Posted:
    """An order lies in a mailbox under this number."""

    node: str
    number: int
    carried: Carried | None = None
    """What was copied before it, so that its job goes on from there."""


class Executor:
    """Turns steps into effects; a request id per step makes repeating harmless."""

    def __init__(
        self,
        store: Store,
        mailboxes: Mailboxes,
        providers: Mapping[str, Provider],
        key: Callable[[], bytes],
        where: Where,
    ) -> None:
        self._store = store
        self._mailboxes = mailboxes
        self._providers = providers
        self._key = key
        self._where = where
        self._hiring = Hiring(providers, mailboxes, where)
        self._carrying = Carrying(mailboxes)
        self.doors = Doors()
        self._last_order: dict[str, int] = {}

    def carry_out(self, plan: p.Plan, world: World, effects: Effects, epoch: int) -> None:
        """Start the effects of a plan's steps; one that no longer fits is dropped."""
        for step in plan.steps:
            for effect in self._effects(step, world, epoch):
                effects.start(effect, world.now)

    def _effects(self, step: p.Step, world: World, epoch: int) -> Iterator[Effect]:
        if isinstance(step, p.Place):
            job = world.jobs[step.job].but(attempt=step.attempt, placement=step.placement)
            ranks = range(len(step.placement.members))
            found = [self._post_start(job, world, epoch, rank) for rank in ranks]
        else:
            found = [self._effect(step, world, epoch)]
        yield from (effect for effect in found if effect is not None)

    def _effect(self, step: p.Step, world: World, epoch: int) -> Effect | None:
        match step:
            case p.PostStart():
                return self._post_start(world.jobs[step.job], world, epoch, step.rank)
            case p.PostStop():
                return self._post_stop(world.jobs[step.job], world, epoch, step.rank)
            case p.ForgetSaves():
                return self._forget(step)
            case p.WakeAgent():
                return self._wake(world.nodes[step.node], epoch)
            case p.TellLease():
                return self._tell(step.rental, epoch, world.now)
            case _:
                return self._hire(step, world)

    def _hire(self, step: p.Step, world: World) -> Effect | None:
        match step:
            case p.Rent():
                return self._hiring.launch(step.rental, world.jobs)
            case p.Launch():
                return self._hiring.launch(world.rentals[step.rental], world.jobs)
            case p.Renew():
                return self._hiring.extend(step.rental)
            case p.Extend():
                return self._hiring.extend(world.rentals[step.rental])
            case p.Terminate():
                return self._hiring.terminate(world.rentals[step.rental])
            case p.Settle():
                return self._hiring.sweep(step.rental)
            case _:
                return None

    def _post_start(self, job: Job, world: World, epoch: int, rank: int) -> Effect | None:
        place = job.placement
        node = world.nodes.get(place.nodes[rank]) if place is not None else None
        if place is None or node is None:
            return None
        kept: Mapping[str, bytes] = self._store.sealed(job.run) if job.spec.secrets else {}
        seat = gang_seat(job, rank, world.nodes.get(place.node))

        def order() -> Order:
            sealed = self._sealed(job, node, kept)
            plain = start_order(job, node, sealed, fence=epoch, at=world.now)
            return plain if seat is None else of_rank(plain, job, seat)

        posted = self._post(Key("start", job.id, job.attempt, rank), node.id, order)
        restore = job.checkpoint if seat is None else restored(job, rank)
        return self._after_carrying(posted, job, node.id, restore)

    def _after_carrying(
        self, posted: Effect, job: Job, node: str, restore: Checkpoint | None
    ) -> Effect:
        """Return an order's effect that brings first what the order names.

        That may take long: whoever is wanted there no more by then is not started.
        """
        provider = self.doors.provider(node)
        if not self._carrying.is_needed(job, provider, restore):
            return posted

        def post() -> Posted | Carried | None:
            self._carrying.carry(job, node, provider, restore)
            if not self._is_wanted(job):
                return self._carrying.carried(restore)
            done = posted.do()
            assert isinstance(done, Posted)
            return replace(done, carried=self._carrying.carried(restore))

        return Effect(posted.key, post, is_slow=True, lane=f"orders of {provider}")

    def _is_wanted(self, job: Job) -> bool:
        """Say whether an attempt is still to be begun."""
        found = self._store.jobs(JobQuery(names_or_ids=(job.id,), limit=1))
        now = next((one for one in found if one.id == job.id), None)
        is_its = now is not None and now.attempt == job.attempt and now.state in HOLDS_A_PLACE
        return is_its and now is not None and now.wish is None

    def notes(self, plan: p.Plan, world: World) -> Iterator[e.Noted]:
        """Yield to jobs that are placed away from what they have saved that it is brought."""
        for step in plan.steps:
            job = world.jobs[step.job] if isinstance(step, p.Place) else None
            if not isinstance(step, p.Place) or job is None or job.checkpoint is None:
                continue
            provider = self.doors.provider(step.placement.node)
            if self._carrying.is_elsewhere(job, provider):
                left = "our own mailbox" if job.saved_from is None else job.saved_from.provider
                says = (
                    f"its checkpoint {job.checkpoint.name} is brought from {left} "
                    f"({size(job.checkpoint.size_bytes)}) before it starts"
                )
                reason = Reason(code=Code.TRANSFERS, says=says)
                yield e.Noted(at=world.now, subject=job.id, reason=reason)

    def _post_stop(self, job: Job, world: World, epoch: int, rank: int) -> Effect | None:
        if job.placement is None:
            return None
        order = stop_order(job, fence=epoch, at=world.now)
        node = job.placement.nodes[rank]
        return self._post(Key("stop", job.id, job.attempt, rank), node, lambda: order)

    def _forget(self, step: p.ForgetSaves) -> Effect:
        """Return the removal of checkpoints, manifest first; what stays is only wasted room."""

        def forget_in(store: str) -> None:
            objects = self._mailboxes.of(store)
            for manifest in step.manifests:
                objects.delete([manifest])
                objects.delete(objects.keys(manifest.rpartition("/")[0]))

        def forget() -> None:
            for store in self._mailboxes.names:  # they may have been copied
                forget_in(store)

        lane = "" if self._mailboxes.is_one else FORGET  # it asks all stores
        return Effect(Key(FORGET, step.manifests[-1], step.attempt), forget, lane=lane)

    def _tell(self, rental: Rental, epoch: int, now: Instant) -> Effect | None:
        """Return the effect that tells an agent of its lease, in seconds from its posting on."""
        if rental.node is None:
            return None
        clock = self._where.clock

        def order() -> Order:
            # Never before the round: a wall clock that was set back would make a lease longer.
            at = now if clock is None else max(now, clock.now())
            return lease_order(rental, fence=epoch, at=at)

        posted = self._post(Key(TELL, rental.id, rental.lease.number), rental.node, order)

        def tell() -> LeaseTold:
            posted.do()
            return LeaseTold(rental.lease)

        return Effect(posted.key, tell, lane=posted.lane)

    def starts(self, node: Node) -> bool:
        """Say whether we can start a node's agent again when it has gone."""
        return node.provider in self._providers

    def leave(self, node: str, epoch: int, at: Instant, agent: str = "") -> Effect:
        """Return the effect that lets a node's agent go; `agent`: that incarnation alone."""
        order = leave_order(fence=epoch, at=at, agent=agent)
        return self._post(Key("leave", node), node, lambda: order)

    def introduce(self, node: str, epoch: int, at: Instant) -> Effect:
        """Return the effect that makes the agent of a node that nobody knows say who it is."""
        order = introduce_order(fence=epoch, at=at)
        return self._post(Key("introduce", node), node, lambda: order)

    def end_stray(self, stray: Stray, epoch: int, at: Instant) -> Effect:
        """Return the effect that ends an attempt nobody counts on any more."""
        order = stray_order(stray.job, stray.attempt, fence=epoch, at=at)
        return self._post(Key("end", stray.job, stray.attempt), stray.node, lambda: order)

    def _sealed(self, job: Job, node: Node, kept: Mapping[str, bytes]) -> Mapping[str, str]:
        """Return the job's secrets sealed to its node; raise SecretUnusable for a lost one."""
        if not job.spec.secrets:
            return {}
        try:
            key = self._key()
            return {
                name: seal_for(node.public_key, unseal(key, kept[name]))
                for name in job.spec.secrets
            }
        except KeyError as error:
            name = error.args[0]
            raise SecretUnusable(
                f"the secret {name} of {job.id} is not kept any more",
                f"Run `export {name}=...` and `cloudwhale resume {job.id}`.",
            ) from error
        except SettingsError as error:
            names = " and ".join(job.spec.secrets)
            raise SecretUnusable(
                f"{names} of {job.id}: {error.says}",
                f"Set {names} in your environment and run `cloudwhale resume {job.id}`.",
            ) from error

    def _post(self, key: Key, node: str, order: Callable[[], Order]) -> Effect:
        folder, provider = self.doors.folder(node), self.doors.provider(node)

        def post() -> Posted:
            box = orders_to(self._mailboxes.of(provider), folder)
            body = order().model_dump_json().encode()
            after = self._last_order.get(node)
            number = box.post(body, box.newest() if after is None else after)
            self._last_order[node] = max(number, self._last_order.get(node, 0))
            if number > KEEP_ORDERS:
                box.forget(number - KEEP_ORDERS, number - KEEP_ORDERS)
            return Posted(node, number)

        return Effect(key, post, lane=self._mailboxes.name_of(provider))

    def _wake(self, node: Node, epoch: int) -> Effect | None:
        if not self.starts(node):
            return None  # nobody here can start it: it comes by itself, or not
        request = LaunchRequest(
            request_id=f"wake-{node.id}-{epoch}",
            node=node.id,
            offer=None,
            mailbox=self._where.mailbox_of(node.provider),
            home=self._where.home,
        )
        return Effect(Key("wake", node.id), lambda: self._providers[node.provider].launch(request))
