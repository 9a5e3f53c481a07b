"""What a job of a dry run could have had instead of what it gets."""

from cloudwhale.control.preview_machines import Seated, called
from cloudwhale.control.preview_places import Places
from cloudwhale.control.previewed import Rival
from cloudwhale.model.job import Job
from cloudwhale.model.units import NOTHING, Instant, MicroUsd
from cloudwhale.planning.releases import run_s
from cloudwhale.planning.stock import Option
from cloudwhale.reporting.figures import cents, moment, roughly


def runner_up(places: Places, job: Job, seat: Seated) -> Rival | None:
    """Return the best place beside the one that was chosen for a job that is rented for.

    The cheapest other machine for it alone that is in time; else the owned node that is free first.
    """
    if places.stock is not None:
        for option in places.in_time(places.stock, job):
            offer = option.offer
            same = (offer.type, offer.market) == (seat.offer.type, seat.offer.market)
            if same and seat.alone:
                continue
            ends_at = places.ends_at(option)
            return Rival(
                where=called(offer),
                says=_lost(option, ends_at, seat, places.worst(job, option)),
                offer=offer.id,
                cost=option.cost,
                ends_at=ends_at,
            )
    return _at_home(places, job)


def instead(places: Places, job: Job) -> Rival | None:
    """Return the cheapest that could be rented for a job that is not rented for."""
    option = next(places.options(job), None)
    if option is None:
        return None
    return Rival(
        where=called(option.offer),
        says=f"would cost {cents(option.cost)} USD",
        offer=option.offer.id,
        cost=option.cost,
        ends_at=places.ends_at(option),
    )


def _at_home(places: Places, job: Job) -> Rival | None:
    """Return the owned node that could run a job first, once others have left it."""
    start = places.profile.earliest(job, places.homes(job))
    if start is None:
        return None
    took_s = run_s(job, start.placement, start.free, places.trial.durations)
    return Rival(
        where=start.node,
        says=f"free about {moment(start.at, places.now)}",
        cost=NOTHING,
        ends_at=start.at + took_s,
    )


def _lost(option: Option, ends_at: Instant, seat: Seated, worst: MicroUsd | None) -> str:
    """Say what the best of the others would cost, and how much dearer or later that is."""
    more, later_s = MicroUsd(option.cost - seat.cost), ends_at - seat.fields["ends_at"]
    alone = "" if seat.alone else " alone"
    dearer = f"{cents(more)} USD more" if more > 0 else "no dearer for this job"
    if more < 0 and seat.alone and worst is not None and worst > seat.fields["worst"]:
        dearer = f"{cents(MicroUsd(-more))} USD less, but {cents(worst)} at worst"
    later = f", {roughly(later_s)} later" if later_s >= 60 else ""
    return f"{cents(option.cost)} USD{alone}, {dearer}{later}"
