"""Lets the troubles of a night befall its house, each at its time."""

from collections.abc import Callable
from functools import partial

from night_house import House
from night_machines import NightMachine
from night_values import BEGAN_AT, Trouble

from cloudwhale.model import event as e
from cloudwhale.model.job import JobState

LEAST_S = 0.1


def befall(house: House) -> None:
    """Let everything that goes wrong be due."""
    for trouble in house.night.troubles:
        house.later(BEGAN_AT + trouble.at, partial(DEEDS[trouble.kind], house, trouble))


def _over(house: House, trouble: Trouble, do: Callable[[], None]) -> None:
    """Let something happen when a trouble is over."""
    house.later(house.true + max(LEAST_S, trouble.for_s), do)


# -- the provider --------------------------------------------------------------------------


def _calls(how: str) -> Callable[[House, Trouble], None]:
    def deed(house: House, one: Trouble) -> None:
        waiting = house.weather.failing.setdefault(one.word, [])
        waiting.append((how, one.by))

        def ends() -> None:
            if waiting:
                waiting.pop(0)

        _over(house, one, ends)

    return deed


def _counted(name: str) -> Callable[[House, Trouble], None]:
    """Something of the weather is so for a while; two at once end one after the other."""

    def deed(house: House, one: Trouble) -> None:
        weather = house.weather
        setattr(weather, name, getattr(weather, name) + 1)

        def ends() -> None:
            setattr(weather, name, getattr(weather, name) - 1)
            house.stir()

        _over(house, one, ends)

    return deed


def _paced(name: str) -> Callable[[House, Trouble], None]:
    def deed(house: House, one: Trouble) -> None:
        spans: list[float] = getattr(house.weather, name)
        spans.append(one.by)
        _over(house, one, lambda: spans.remove(one.by))

    return deed


def _price(house: House, one: Trouble) -> None:
    shelf = house.night.shelves[one.who % len(house.night.shelves)]
    house.cloud.change(shelf.id, house.true, times=one.by)
    _over(house, one, lambda: house.cloud.change(shelf.id, house.true, times=1.0 / one.by))


def _drought(house: House, one: Trouble) -> None:
    """None of a market, or of a zone, can be had."""
    first = house.night.shelves[one.who % len(house.night.shelves)]
    for shelf in house.night.shelves:
        if shelf.zone == first.zone and shelf.market == first.market:
            house.cloud.change(shelf.id, house.true, dry_s=one.for_s)


def _boot(house: House, one: Trouble) -> None:
    boots = house.weather.boots
    boots.append(one.word)
    _over(house, one, lambda: boots.remove(one.word) if one.word in boots else None)


def _taken(house: House, one: Trouble) -> None:
    living = [each for each in house.cloud.living if each.shelf.offer.market == "spot"]
    if living:
        house.cloud.take(living[one.who % len(living)], house.true, one.word)


# -- machines ------------------------------------------------------------------------------


def _a_machine(house: House, one: Trouble, *, rented: bool = False) -> NightMachine | None:
    """Return one of those that are there: rented ones rather than our own."""
    there = [each for each in house.rented if each.agent_alive]
    if not rented:
        there += [each for each in house.machines.values() if not each.is_lost]
    return there[one.who % len(there)] if there else None


def _cut_off(house: House, one: Trouble) -> None:
    machine = _a_machine(house, one)
    if machine is None or machine.is_cut:
        return
    machine.cut(house.true)
    _over(house, one, lambda: machine.join(house.true))


def _agent_killed(house: House, one: Trouble) -> None:
    machine = _a_machine(house, one)
    if machine is None:
        return
    machine.dies(house.true)

    def again() -> None:
        if not machine.has_ended and house.is_there(machine):
            machine.start_agent(house.true)

    if machine.is_rented:
        _over(house, one, again)


def _shim_killed(house: House, one: Trouble) -> None:
    machine = _a_machine(house, one)
    running = [] if machine is None else machine.running(house.true)
    if machine is not None and running:
        machine.kill_shim(running[one.who % len(running)][0], house.true)


def _hangs(house: House, one: Trouble) -> None:
    """A machine is without power or network, and its cloud says that it runs."""
    machine = _a_machine(house, one)
    if machine is None:
        return
    machine.lose(house.true)
    if not machine.is_rented:
        _over(house, one, lambda: machine.come_back(house.true))


def _disk_full(house: House, one: Trouble) -> None:
    machine = _a_machine(house, one)
    if machine is None or machine.is_full:
        return
    machine.fill(house.true, full=True)
    _over(house, one, lambda: machine.fill(house.true, full=False))


def _agent_clock(house: House, one: Trouble) -> None:
    machine = _a_machine(house, one)
    if machine is None:
        return
    machine.wall_s += one.by

    def right() -> None:
        machine.wall_s -= one.by

    _over(house, one, right)


# -- the controller ------------------------------------------------------------------------


def _controller_clock(house: House, one: Trouble) -> None:
    house.clock.ahead_s += one.by
    house.stir()

    def right() -> None:
        house.clock.ahead_s -= one.by
        house.stir()

    _over(house, one, right)


def _controller_killed(house: House, one: Trouble) -> None:
    """It dies at its n-th deed from now on, or after a minute; another begins later."""
    if house.controller is None:
        return
    controller = house.controller
    if one.word == "now":
        house.kill_controller()
    else:
        fuse = house.fuse
        fuse.left, fuse.after = one.by, one.word.endswith("after")
        fuse.of_writes = one.word.startswith("write")

    def ends() -> None:
        if house.controller is controller:
            house.kill_controller()
        if house.is_awake:
            house.raise_controller()

    _over(house, one, ends)


def _lid(house: House, one: Trouble) -> None:
    """The controller's host sleeps: nothing happens there, and its clock goes on."""
    if not house.is_awake:
        return
    house.is_awake = False

    def wakes() -> None:
        house.is_awake = True
        if house.controller is None:
            house.raise_controller()
        house.stir()

    _over(house, one, wakes)


def _person(house: House, one: Trouble) -> None:
    jobs = sorted(house.store.world(house.true).jobs.values(), key=lambda job: job.id)
    if not jobs:
        return
    job = jobs[one.who % len(jobs)]
    if one.word == "cancel":
        house.store.append([e.CancelAsked(at=house.true, job=job.id)])
        house.cancelled.add(job.id)
    elif job.state is not JobState.PAUSED:
        house.store.append([e.PauseAsked(at=house.true, job=job.id)])
        _over(house, one, lambda: _resume(house, job.id))
    house.stir()


def _resume(house: House, job: str) -> None:
    if job in house.store.world(house.true).jobs:
        house.store.append([e.ResumeAsked(at=house.true, job=job)])
        house.stir()


DEEDS: dict[str, Callable[[House, Trouble], None]] = {
    "call-fails-before": _calls("before"),
    "call-fails-after": _calls("after"),
    "denied": _counted("is_denied"),
    "provider-cut-off": _counted("no_provider"),
    "mailbox-cut-off": _counted("no_mailbox"),
    "mailbox-fails-after": _counted("mailbox_after"),
    "database-fails": _counted("no_database"),
    "answers-late": _paced("late_s"),
    "calls-slow": _paced("slow_s"),
    "agent-cut-off": _cut_off,
    "agent-killed": _agent_killed,
    "agent-clock": _agent_clock,
    "shim-killed": _shim_killed,
    "machine-hangs": _hangs,
    "disk-full": _disk_full,
    "taken": _taken,
    "price": _price,
    "drought": _drought,
    "boot": _boot,
    "controller-clock": _controller_clock,
    "controller-killed": _controller_killed,
    "lid": _lid,
    "person": _person,
}
