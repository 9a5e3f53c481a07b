"""A launch through a driver of libcloud: once, whatever answers are lost, found by its name."""

from typing import Any

import pytest
from renting_libcloud import (
    BIG,
    NOW,
    DummyCloud,
    LastingDummy,
    LookingDummy,
    a_clock,
    a_provider,
    a_request,
    an_offer,
)

from cloudwhale.spi.errors import Denied, NoCapacity, QuotaExceeded, TryAnother, Unreachable
from cloudwhale_providers.libcloud.launching import SETTLES_S


class Troubled(Exception):
    """What libcloud's drivers raise, as far as anybody looks at it."""

    def __init__(self, code: int, says: str) -> None:
        super().__init__(says)
        self.code = code


def failing(cloud: DummyCloud, verb: str, error: Exception, after: bool = False) -> None:
    """Let the next call of a verb fail, before or after it is done."""

    def fault(name: str, do: Any) -> Any:
        if name != verb:
            return do()
        cloud.fault = lambda name, do: do()
        if after:
            do()
        raise error

    cloud.fault = fault


def test_a_machine_is_told_its_node_its_lease_and_its_keys() -> None:
    cloud = DummyCloud()
    a_provider(cloud).launch(a_request())
    (node,) = cloud.ours()
    told = cloud.told[node.name]
    assert told.startswith("#!/bin/sh\nshutdown -h +30\n")
    for word in ("TOLD_NODE='rent-7-1'", "TOLD_LEASE='1:3480'", "TOLD_GPUS='0'"):
        assert word in told
    assert "AWS_SECRET_ACCESS_KEY='dummy/secret+key'" in told


def test_what_a_shell_would_take_for_something_else_is_told_to_nobody() -> None:
    cloud = DummyCloud()
    provider = a_provider(cloud, environment={"AWS_ACCESS_KEY_ID": "a'; reboot", "X": "1"})
    with pytest.raises(Denied, match=r"AWS_ACCESS_KEY_ID.* cannot be said"):
        provider.launch(a_request())
    assert not cloud.ours()


def test_an_answer_that_is_lost_is_found_by_the_next_launch() -> None:
    cloud, clock = DummyCloud(), a_clock()
    provider = a_provider(cloud, clock)
    failing(cloud, "create_node", TimeoutError("timed out"), after=True)
    with pytest.raises(Unreachable, match="timed out"):
        provider.launch(a_request())
    assert provider.launch(a_request()).id == cloud.ours()[0].id
    assert cloud.created == 1


def test_an_answer_that_is_lost_is_found_by_another_process() -> None:
    cloud = DummyCloud()
    failing(cloud, "create_node", ConnectionResetError("reset"), after=True)
    with pytest.raises(Unreachable):
        a_provider(cloud).launch(a_request())
    a_provider(cloud).launch(a_request())
    assert cloud.created == 1


def test_after_a_lost_answer_no_other_machine_is_made_until_lists_have_settled() -> None:
    cloud, clock = DummyCloud(), a_clock()
    provider = a_provider(cloud, clock)
    failing(cloud, "create_node", Troubled(502, "Bad Gateway"))
    for _ in range(3):
        with pytest.raises(Unreachable):
            provider.launch(a_request())
    assert cloud.created == 0 and cloud.verbs.count("create_node") == 1
    clock.advance_to(NOW + SETTLES_S)
    provider.launch(a_request())
    assert cloud.created == 1


def test_of_two_machines_of_one_launch_the_one_that_was_answered_with_stays() -> None:
    cloud = DummyCloud()
    provider = a_provider(cloud)
    hidden: list[Any] = []
    failing(cloud, "create_node", TimeoutError(), after=True)
    with pytest.raises(Unreachable):
        a_provider(cloud).launch(a_request())
    hidden.append(cloud.nodes.pop())  # no list has it yet
    kept = provider.launch(a_request())
    cloud.nodes += hidden
    assert [one.id for one in provider.machines()].count(kept.id) == 1
    assert [node.id for node in cloud.ours()] == [kept.id]


def test_of_two_machines_of_one_launch_a_new_process_keeps_the_older() -> None:
    cloud = DummyCloud()
    a_provider(cloud).launch(a_request())
    hidden = cloud.nodes.pop()
    a_provider(cloud).launch(a_request())
    cloud.nodes.append(hidden)
    again = a_provider(cloud).launch(a_request())
    assert again.id == hidden.id == cloud.ours()[0].id and len(cloud.ours()) == 1


class Christening(LastingDummy):
    """A driver that calls its machines as it likes, as the dummy itself does."""

    def create_node(self, name: str, size: Any, image: Any, ex_userdata: str = "") -> Any:
        node = super().create_node(name, size, image, ex_userdata)
        node.name = f"dummy-{node.id}"
        return node


def test_a_driver_that_names_machines_itself_is_refused_and_leaves_none() -> None:
    cloud = DummyCloud()
    cloud.makes = Christening
    before = len(cloud.nodes)
    with pytest.raises(Denied, match="Nobody would find its machines again"):
        a_provider(cloud).launch(a_request())
    assert cloud.created == 1 and len(cloud.nodes) == before


@pytest.mark.parametrize(
    ("error", "raised", "says"),
    [
        (Troubled(403, "Quota exceeded for cores: 8 of 8 used"), QuotaExceeded, "Quota exceeded"),
        (Troubled(400, "droplet limit exceeded"), QuotaExceeded, "limit"),
        (Troubled(500, "No valid host was found"), Unreachable, "No valid host"),
        (Troubled(409, "Not enough capacity in this zone"), NoCapacity, "capacity"),
        (Troubled(503, "this plan is out of stock"), NoCapacity, "out of stock"),
        (Troubled(403, "not allowed"), Denied, "not allowed"),
        (Troubled(401, "who are you"), Denied, "who are you"),
        (Troubled(422, "image is retired"), Denied, "retired"),
        (Troubled(429, "rate limit exceeded"), Unreachable, "rate"),
        (Exception("nobody knows"), Unreachable, "nobody knows"),
        (KeyError("server"), Unreachable, "server"),
    ],
)  # fmt: skip
def test_what_a_driver_raises_says_what_to_do_next(
    error: Exception, raised: type[Exception], says: str
) -> None:
    cloud = DummyCloud()
    failing(cloud, "create_node", error)
    with pytest.raises(raised, match=says):
        a_provider(cloud).launch(a_request())


def test_after_a_refusal_the_next_launch_asks_at_once() -> None:
    cloud = DummyCloud()
    provider = a_provider(cloud)
    failing(cloud, "create_node", Troubled(409, "not enough capacity"))
    with pytest.raises(NoCapacity):
        provider.launch(a_request())
    assert provider.launch(a_request()).state == "running"


def test_a_machine_that_was_made_and_failed_is_removed_and_another_offer_tried() -> None:
    cloud = DummyCloud()
    provider = a_provider(cloud)
    provider.launch(a_request())
    cloud.ours()[0].state = "error"
    with pytest.raises(NoCapacity, match="made and failed"):
        provider.launch(a_request())
    assert not cloud.ours()


def test_a_launch_whose_time_is_over_makes_nothing_and_ends_what_it_had_made() -> None:
    cloud, clock = DummyCloud(), a_clock()
    a_provider(cloud, clock).launch(a_request())
    clock.advance_to(NOW + 3600)
    with pytest.raises(TryAnother):
        a_provider(cloud, clock).launch(a_request())
    assert not cloud.ours()


def test_a_size_or_an_image_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(Denied, match=r"no 'Windows 95'(.|\n)*Ubuntu 9.10"):
        a_provider(DummyCloud(), image="Windows 95").launch(a_request())
    gone = an_offer().but(type="Huge")
    with pytest.raises(Denied, match=r"no 'Huge'(.|\n)*XXL Big"):
        a_provider(DummyCloud()).launch(a_request(offer=gone))


class Without(LastingDummy):
    """A driver that lists no sizes."""

    def __init__(self, cloud: DummyCloud) -> None:
        super().__init__(cloud)
        self.list_sizes = list


def test_a_driver_that_lists_nothing_is_asked_again() -> None:
    cloud = DummyCloud()
    cloud.makes = Without
    with pytest.raises(Unreachable, match="lists no sizes"):
        a_provider(cloud).launch(a_request())


def test_a_quota_is_counted_by_what_runs() -> None:
    cloud = DummyCloud()
    provider = a_provider(cloud)
    assert {one.type: one.quota_left for one in provider.offers(NOW)} == {
        "Big": None, "XXL Big": 2.0,
    }  # fmt: skip
    provider.launch(a_request(offer=an_offer("XXL Big")))
    (dear,) = [one for one in provider.offers(NOW) if one.type == "XXL Big"]
    assert dear.quota_left == 1.0 and dear.quota == "dummy/XXL Big"
    again = a_provider(cloud)
    again.machines()
    assert {one.quota_left for one in again.offers(NOW)} == {None, 1.0}


def test_a_machine_has_a_stop_of_its_own_where_that_ends_its_bill() -> None:
    assert a_provider(DummyCloud()).stops == {"self"}
    assert a_provider(DummyCloud(), off_is_free=False).stops == frozenset()


def test_words_of_a_driver_are_passed_on_and_those_of_ours_join_them() -> None:
    taken: dict[str, Any] = {}

    class Nested(LookingDummy):
        def create_node(
            self, name: str, size: Any, image: Any, ex_userdata: str = "", **words: Any
        ) -> Any:
            taken.update(words)
            return super().create_node(name, size, image)

    cloud = DummyCloud()
    cloud.makes = Nested
    provider = a_provider(
        cloud, create={"attributes": {"keys": ["ada"]}}, user_data="attributes.user_data"
    )
    provider.launch(a_request())
    assert taken["attributes"]["keys"] == ["ada"]
    assert taken["attributes"]["user_data"].startswith("#!/bin/sh")


def test_a_size_is_offered_at_its_price_with_what_it_has() -> None:
    offer = an_offer("XXL Big")
    assert offer.id == "dummy/here/XXL Big/on-demand"
    assert offer.price_usd_h == offer.cap_usd_h == 2_400_000
    assert [one.model for one in offer.facts.devices] == ["L4"]
    assert offer.facts.cpu == BIG["cpu"] and offer.facts.disk_gib == BIG["disk_gib"]
