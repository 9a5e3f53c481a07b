"""Machines behind a driver of libcloud: lists that lack what is there, ends, leftovers, others'."""

from types import SimpleNamespace
from typing import Any

import pytest
from renting_libcloud import (
    NOW,
    DummyCloud,
    LastingDummy,
    LookingDummy,
    a_clock,
    a_provider,
    a_request,
)

from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale.spi.provider import Machine, Provider
from cloudwhale_providers.libcloud.listing import MISSING_LISTS, MISSING_S, SHOWN_S


def states(provider: Provider) -> list[str]:
    """Return how the machines are that the provider lists."""
    return [one.state for one in provider.machines()]


def blind(cloud: DummyCloud) -> None:
    """Let lists be empty from now on."""
    cloud.fault = lambda verb, do: [] if verb == "list_nodes" else do()


def seeing(cloud: DummyCloud) -> None:
    """Let lists be whole again."""
    cloud.fault = lambda verb, do: do()


def test_one_empty_list_takes_no_machine_away() -> None:
    cloud, clock = DummyCloud(), a_clock()
    provider = a_provider(cloud, clock)
    machine = provider.launch(a_request())
    blind(cloud)
    for _ in range(10 * MISSING_LISTS):
        clock.advance_to(clock.now() + MISSING_S / (10 * MISSING_LISTS + 1))
        assert states(provider) == ["running"]
    seeing(cloud)
    clock.advance_to(clock.now() + 2 * MISSING_S)
    assert [one.id for one in provider.machines()] == [machine.id]
    blind(cloud)
    assert states(provider) == ["running"], "it is counted anew"


def test_what_several_lists_over_some_time_have_lacked_is_gone() -> None:
    cloud, clock = DummyCloud(), a_clock()
    provider = a_provider(cloud, clock)
    provider.launch(a_request())
    blind(cloud)
    for _ in range(MISSING_LISTS - 1):
        assert states(provider) == ["running"]
    clock.advance_to(NOW + MISSING_S)
    (gone,) = provider.machines()
    assert gone.state == "gone" and "not listed any more" in gone.says
    clock.advance_to(NOW + MISSING_S + SHOWN_S)
    assert states(provider) == []


def test_a_machine_that_a_list_lacks_is_asked_for_where_the_driver_can() -> None:
    cloud = DummyCloud()
    cloud.makes = LookingDummy
    provider = a_provider(cloud)
    provider.launch(a_request())
    blind(cloud)
    assert states(provider) == ["running"] and "get_node" in cloud.verbs
    cloud.nodes.clear()
    assert states(provider) == ["gone"]


def test_a_machine_that_is_not_found_is_gone() -> None:
    class NodeNotFoundError(Exception):
        """As some drivers say it."""

    cloud = DummyCloud()
    cloud.makes = LookingDummy
    provider = a_provider(cloud)
    provider.launch(a_request())
    cloud.nodes.clear()

    def fault(verb: str, do: Any) -> Any:
        if verb == "get_node":
            raise NodeNotFoundError("no such node")
        return do()

    cloud.fault = fault
    assert states(provider) == ["gone"]


def test_of_an_empty_list_nobody_learns_that_a_machine_has_ended() -> None:
    cloud, clock = DummyCloud(), a_clock()
    machine = a_provider(cloud, clock).launch(a_request())
    blind(cloud)
    provider = a_provider(cloud, clock)
    with pytest.raises(Unreachable, match="empty list may be an error"):
        provider.terminate(machine.id)
    assert len(cloud.ours()) == 1
    seeing(cloud)
    provider.terminate(machine.id)
    assert not cloud.ours()


def test_a_machine_that_lists_have_lacked_for_long_has_ended_for_another_process_too() -> None:
    cloud, clock = DummyCloud(), a_clock()
    provider = a_provider(cloud, clock)
    for step in range(2):
        clock.advance_to(NOW + step * MISSING_S)
        if not step:
            with pytest.raises(Unreachable):
                provider.terminate("1001")
    provider.terminate("1001")


def test_a_machine_that_no_list_has_is_ended_where_the_driver_can_look_for_it() -> None:
    cloud = DummyCloud()
    cloud.makes = LookingDummy
    machine = a_provider(cloud).launch(a_request())
    blind(cloud)
    a_provider(cloud).terminate(machine.id)
    assert not cloud.ours()


def test_a_driver_that_says_no_has_ended_nothing() -> None:
    class Stubborn(LastingDummy):
        def destroy_node(self, node: Any) -> Any:
            return False

    cloud = DummyCloud()
    cloud.makes = Stubborn
    provider = a_provider(cloud)
    machine = provider.launch(a_request())
    with pytest.raises(Unreachable, match="with no"):
        provider.terminate(machine.id)
    assert states(provider) == ["running"]


def test_an_end_whose_answer_is_lost_is_asked_for_again() -> None:
    cloud = DummyCloud()
    provider = a_provider(cloud)
    machine = provider.launch(a_request())

    def fault(verb: str, do: Any) -> Any:
        if verb == "destroy_node":
            seeing(cloud)
            do()
            raise TimeoutError("timed out")
        return do()

    cloud.fault = fault
    with pytest.raises(Unreachable):
        provider.terminate(machine.id)
    provider.terminate(machine.id)
    assert not cloud.ours()


@pytest.mark.parametrize(
    ("state", "ours"),
    [
        ("pending", "starting"), ("starting", "starting"), ("running", "running"),
        ("rebooting", "running"), ("unknown", "running"), ("stopped", "stopping"),
        ("stopping", "stopping"), ("error", "gone"), ("terminated", "gone"),
    ],
)  # fmt: skip
def test_states_are_told_in_our_words(state: str, ours: str) -> None:
    cloud = DummyCloud()
    provider = a_provider(cloud)
    provider.launch(a_request())
    cloud.ours()[0].state = state
    (machine,) = provider.machines()
    assert machine.state == ours
    assert ("the driver says" in machine.says) == (ours in ("stopping", "gone"))


def test_machines_of_others_are_shown_and_never_touched() -> None:
    cloud = DummyCloud()
    a_provider(cloud, installation="other").launch(a_request("rent-9-1"))
    ours = a_provider(cloud)
    (machine,) = cloud.ours()
    assert states(ours) == []
    (left,) = ours.leftovers(())
    assert (left.is_ours, left.installation, left.node) == (False, "other", "rent-9-1")
    with pytest.raises(Denied, match="of another installation"):
        ours.terminate(machine.id)
    with pytest.raises(Denied, match="of installation other"):
        ours.remove(left)
    assert len(cloud.ours()) == 1


def test_what_no_rental_lives_for_is_left_over_with_what_it_costs() -> None:
    cloud = DummyCloud()
    a_provider(cloud).launch(a_request())
    provider = a_provider(cloud)
    assert list(provider.leftovers({"rent-7-1"})) == []
    (left,) = provider.leftovers(())
    assert (left.what, left.node, left.usd_h) == ("instance", "rent-7-1", 1_200_000)
    provider.remove(left)
    provider.remove(left)
    assert not cloud.ours() and not provider.leftovers(())


def test_a_machine_that_failed_is_left_over_until_it_is_removed() -> None:
    cloud = DummyCloud()
    provider = a_provider(cloud)
    machine: Machine = provider.launch(a_request())
    cloud.ours()[0].state = "error"
    assert [one.id for one in provider.leftovers(())] == [machine.id]
    provider.terminate(machine.id)
    assert not cloud.nodes or not cloud.ours()


def test_a_volume_that_is_called_as_our_machines_are_is_left_over() -> None:
    volume = SimpleNamespace(id=7, name="cw-lab-01234567-rent-7-1")
    gone: list[Any] = []

    class Storing(LastingDummy):
        def __init__(self, cloud: DummyCloud) -> None:
            super().__init__(cloud)
            self.list_volumes = lambda: [] if gone else [volume]

        def destroy_volume(self, volume: Any) -> bool:
            gone.append(volume.id)
            return True

    cloud = DummyCloud()
    cloud.makes = Storing
    provider = a_provider(cloud)
    (left,) = provider.leftovers(())
    assert (left.what, left.id, left.is_ours) == ("volume", "7", True)
    provider.remove(left)
    assert gone == [7] and not provider.leftovers(())


def test_a_driver_without_volumes_leaves_none() -> None:
    assert list(a_provider(DummyCloud()).leftovers(())) == []


def test_an_end_that_is_moved_is_the_one_that_was_asked_for() -> None:
    assert a_provider(DummyCloud()).extend("1001", NOW + 7200) == NOW + 7200
