"""Folders of the mailbox behind doors: whose they are, and who is never taken for somebody else."""

import pytest
from clouding import an_offer
from makers import a_node, a_world

from cloudwhale.control.arrivals import Arrivals
from cloudwhale.control.boots import Boots, Tidings
from cloudwhale.control.doors import Doors
from cloudwhale.control.hired import Hired
from cloudwhale.control.hiring import Hiring, Launched, Where
from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.control.reports import Reading
from cloudwhale.control.watcher import Mail, Watcher
from cloudwhale.mailbox.box import boot_of, folder_of, forget_node, inbox_from, node_in, orders_to
from cloudwhale.mailbox.documents import BootTold, Joined
from cloudwhale.mailbox.objects import Objects, open_objects
from cloudwhale.model import event as e
from cloudwhale.model.node import Facts, NodeState
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.spi.provider import Machine

NAME, DOOR = "rent-1-1", "AROA0123456789ABCDEF0:i-0123456789abcdef0"
RENTAL = Rental(
    id=NAME, node=NAME, payer="run-1", offer="big", reserved=micro_usd(2), taken=an_offer(),
    lease=Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0), jobs={"j": "p"},
)  # fmt: skip
BOOTING = RENTAL.but(state=RentalState.BOOTING, machine="i-1", requested_at=1.0, door=DOOR)
NODE = a_node(NAME, owned=False, state=NodeState.EXPECTED)
SAID = Joined(at=5.0, agent="a", facts=Facts(cpu=1.0, memory_gib=1.0, disk_gib=1.0), public_key="k")


@pytest.fixture
def objects() -> Objects:
    return open_objects("memory://")


def said(objects: Objects, folder: str) -> None:
    """Let an agent join in a folder."""
    box = inbox_from(objects, folder)
    box.post(SAID.model_dump_json().encode(), box.newest())


def read(objects: Objects, *rentals: Rental) -> list[str]:
    """Return whose documents a controller reads that knows of some rentals."""
    watcher = Watcher(Mailboxes(objects), {}, {})
    watcher.doors.know(rentals)
    found: list[str] = []
    for look in watcher.looks([a_node("gpu"), NODE], 5.0, rung=True):
        match look.do():
            case Mail() as mail if watcher.mail_came(mail, Reading(a_world([], [NODE]), 5.0), 5.0):
                found.append(mail.node)
            case _:
                pass
    return found


@pytest.mark.parametrize("door", ["", DOOR])
def test_a_folder_tells_whose_it_is(door: str) -> None:
    assert node_in(folder_of(NAME, door)) == NAME


def test_no_folder_behind_a_door_is_below_that_of_another_one() -> None:
    own, others = folder_of(NAME, DOOR), folder_of("rent-2", f"{DOOR}1")
    assert not others.startswith(own) and not own.startswith(others)
    assert own.startswith(f"@{DOOR}@"), "what a policy's pattern begins with"


@pytest.mark.parametrize("url", ["memory://", "file"])
def test_a_folder_behind_a_door_is_found_read_and_forgotten(
    url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    objects = open_objects(tmp_path_factory.mktemp("mailbox").as_uri() if url == "file" else url)
    folder = folder_of(NAME, DOOR)
    said(objects, folder)
    said(objects, NAME)
    assert objects.folders("inbox") == sorted([folder, NAME])
    assert inbox_from(objects, folder).newest() == 1
    forget_node(objects, folder)
    assert objects.keys(f"inbox/{folder}") == []
    assert inbox_from(objects, NAME).newest() == 1, "the other one stays"


def test_a_machine_is_read_behind_its_door_and_an_owned_node_by_its_name(objects: Objects) -> None:
    said(objects, folder_of(NAME, DOOR))
    said(objects, "gpu")
    assert read(objects, BOOTING) == ["gpu", NAME]


def test_who_writes_behind_another_door_is_not_the_machine(objects: Objects) -> None:
    said(objects, folder_of(NAME, "AROA:i-2"))
    said(objects, NAME)
    assert read(objects, BOOTING) == []


def test_nobody_behind_a_door_is_an_owned_node_or_one_that_comes_by_itself(
    objects: Objects,
) -> None:
    for name in ("gpu", "ghost"):
        said(objects, folder_of(name, "AROA:i-2"))
    assert read(objects) == []
    look = Arrivals(objects).look((), 5.0)
    assert look is not None
    assert look.do().heard == ()  # type: ignore[attr-defined]


def test_a_rental_without_a_door_is_called_by_its_name(objects: Objects) -> None:
    doors = Doors()
    doors.know([BOOTING])
    assert doors.folder(NAME) == folder_of(NAME, DOOR) and doors.folder("gpu") == "gpu"
    doors.know([BOOTING.but(door="")])
    assert doors.folder(NAME) == NAME


@pytest.mark.parametrize("listed", [True, False])
def test_the_door_of_a_machine_is_known_with_the_machine_whoever_tells_of_it(
    listed: bool,
) -> None:
    machine = Machine(id="i-1", node=NAME, state="starting", owned=False, door=DOOR)
    hired = Hired(a_world([], [], rentals={NAME: RENTAL}), 5.0)
    came = hired.seen("cloud", [machine]) if listed else hired.told(NAME, Launched(machine))
    changed = [one.rental for one in came if isinstance(one, e.RentalChanged)]
    assert changed and {one.door for one in changed} == {DOOR}


def test_a_boot_is_read_behind_the_door(objects: Objects) -> None:
    told = BootTold(at=2.0, phase="docker", state="begun").model_dump_json().encode()
    boot_of(objects, folder_of(NAME, DOOR)).post(told, 0)
    world = a_world([], [NODE], rentals={NAME: BOOTING})
    (look,) = Boots(Mailboxes(objects)).looks(world, 5.0)
    came = look.do()
    assert isinstance(came, Tidings) and came.bodies == (told,)


def test_of_a_machine_that_is_back_nothing_is_left_behind_its_door_or_before_it(
    objects: Objects,
) -> None:
    for folder in (NAME, folder_of(NAME, DOOR), folder_of("rent-2", "AROA:i-2")):
        orders_to(objects, folder).post(b"{}", 0)
    sweep = Hiring({}, Mailboxes(objects), Where("m", "/")).sweep(BOOTING)
    assert sweep is not None
    sweep.do()
    assert objects.folders("orders") == [folder_of("rent-2", "AROA:i-2")]
