"""Our machines at EC2 from their launch on: listed, moved, ended, forgotten; others' left alone."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from renting_aws import NOW, OURS, a_clock, a_provider, a_request, an_offer
from small_aws import SmallAws
from small_schedules import refused

from cloudwhale.model.units import micro_usd
from cloudwhale.spi.errors import Denied, Unreachable


@pytest.fixture
def aws() -> SmallAws:
    return SmallAws(a_clock())


def test_a_machine_is_billed_from_its_launch_at_the_price_of_its_zone(aws: SmallAws) -> None:
    aws.prices = {"us-east-1a": "0.31"}
    machine = a_provider(aws).launch(a_request())
    assert machine.billed_from == NOW and machine.billed_to is None
    assert machine.price_usd_h == micro_usd("0.31") and machine.zone == "us-east-1a"


def test_a_machine_on_demand_is_billed_as_it_was_offered(aws: SmallAws) -> None:
    offer = an_offer(market="on-demand")
    assert a_provider(aws).launch(a_request(offer=offer)).price_usd_h is None


def test_a_price_is_that_of_the_launch_also_for_another_process(aws: SmallAws) -> None:
    a_provider(aws).launch(a_request())
    aws.prices = {"us-east-1a": "0.9"}
    asked: list[Any] = []
    (machine,) = a_provider(aws).machines()
    asked = aws.words_of("describe_spot_price_history")
    assert asked[-1]["StartTime"] == asked[-1]["EndTime"]
    assert machine.price_usd_h == micro_usd("0.9")  # the small AWS has one price for all times


@pytest.mark.parametrize(
    ("state", "ours"),
    [
        ("pending", "starting"), ("running", "running"), ("shutting-down", "stopping"),
        ("stopping", "stopping"), ("stopped", "stopping"), ("terminated", "gone"),
    ],
)  # fmt: skip
def test_states_are_told_in_our_words(aws: SmallAws, state: str, ours: str) -> None:
    provider = a_provider(aws)
    aws.boxes[provider.launch(a_request()).id].state = state
    assert [one.state for one in provider.machines()] == [ours]


def test_a_bill_ends_when_ec2_says_so(aws: SmallAws) -> None:
    provider = a_provider(aws)
    machine = provider.launch(a_request())
    aws.clock.advance_to(NOW + 100)
    aws.end(machine.id)
    aws.clock.advance_to(NOW + 500)
    (seen,) = provider.machines()
    assert seen.billed_to == NOW + 100 and "UserInitiatedShutdown" in seen.says


def test_a_bill_ends_when_the_end_is_first_seen_where_ec2_does_not_say(aws: SmallAws) -> None:
    provider = a_provider(aws)
    aws.end(provider.launch(a_request()).id, "Server.SpotInstanceTermination")
    aws.clock.advance_to(NOW + 60)
    assert provider.machines()[0].billed_to == NOW + 60
    aws.clock.advance_to(NOW + 90)
    assert provider.machines()[0].billed_to == NOW + 60


def test_machines_of_others_are_not_ours(aws: SmallAws) -> None:
    aws.plant("us-east-1", {"cloudwhale:installation": "lab-2", "cloudwhale:node": "n"})
    aws.plant("us-east-1", {})
    assert list(a_provider(aws).machines()) == []


def test_a_machine_of_others_is_not_ended_whatever_is_asked(aws: SmallAws) -> None:
    box = aws.plant("us-east-1", {"cloudwhale:installation": "lab-2", "cloudwhale:node": "n"})
    a_provider(aws).terminate(box.id)
    assert box.state == "running"


def test_a_list_of_many_pages_is_read_to_its_end(aws: SmallAws) -> None:
    own = {"cloudwhale:installation": OURS}
    for number in range(1001):
        aws.plant("us-east-1", {**own, "cloudwhale:node": f"n{number}"})
    assert len(a_provider(aws).machines()) == 1001


def test_who_asks_within_a_second_shares_one_list(aws: SmallAws) -> None:
    provider = a_provider(aws)
    provider.machines()
    threads = [threading.Thread(target=provider.machines) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(aws.words_of("describe_instances")) == 1
    aws.clock.advance_to(NOW + 1)
    provider.machines()
    assert len(aws.words_of("describe_instances")) == 2


def test_what_was_ended_is_seen_in_the_next_list(aws: SmallAws) -> None:
    provider = a_provider(aws)
    machine = provider.launch(a_request())
    assert provider.machines()[0].state == "running"
    provider.terminate(machine.id)
    assert provider.machines()[0].state == "gone"


def test_a_region_that_does_not_answer_keeps_its_machines(aws: SmallAws) -> None:
    provider = a_provider(aws, regions=["us-east-1", "eu-west-1"])
    provider.launch(a_request())
    provider.machines()

    def fault(service: str, verb: str, do: Any) -> Any:
        if aws.asked[-1][0] == "us-east-1" and verb == "describe_instances":
            raise refused("RequestLimitExceeded", status=503)
        return do()

    aws.fault = fault
    aws.clock.advance_to(NOW + 5)
    assert [one.node for one in provider.machines()] == ["rental-1"]


def test_no_list_at_all_is_an_error(aws: SmallAws) -> None:
    aws.refusals["describe_instances"] = refused("RequestLimitExceeded", status=503)
    with pytest.raises(Unreachable):
        a_provider(aws).machines()


# -- lists that are late -------------------------------------------------------------------------


def _late(aws: SmallAws) -> None:
    """Let EC2 list nothing that is made from now on."""

    def fault(service: str, verb: str, do: Any) -> Any:
        answer = do()
        if verb == "create_fleet":
            aws.unseen |= set(aws.boxes)
        return answer

    aws.fault = fault


def test_a_launch_that_is_not_listed_yet_is_not_gone(aws: SmallAws) -> None:
    provider = a_provider(aws)
    _late(aws)
    machine = provider.launch(a_request())
    assert machine.state == "starting" and machine.billed_from == NOW
    assert [one.id for one in provider.machines()] == [machine.id]
    aws.unseen.clear()
    aws.clock.advance_to(NOW + 2)
    assert [one.state for one in provider.machines()] == ["running"]


def test_a_machine_that_is_not_listed_yet_is_not_taken_for_ended(aws: SmallAws) -> None:
    provider = a_provider(aws)
    _late(aws)
    machine = provider.launch(a_request())
    with pytest.raises(Unreachable):
        provider.terminate(machine.id)
    aws.unseen.clear()
    provider.terminate(machine.id)
    assert not aws.running


def test_a_machine_that_is_listed_nowhere_is_gone_after_a_while(aws: SmallAws) -> None:
    provider = a_provider(aws)
    _late(aws)
    provider.launch(a_request())
    aws.clock.advance_to(NOW + 301)
    assert list(provider.machines()) == []


def test_an_unknown_machine_is_not_gone_while_a_region_is_silent(aws: SmallAws) -> None:
    provider = a_provider(aws, regions=["us-east-1", "eu-west-1"])

    def fault(service: str, verb: str, do: Any) -> Any:
        if aws.asked[-1][0] == "eu-west-1":
            raise refused("InternalError", status=500)
        return do()

    aws.fault = fault
    with pytest.raises(Unreachable, match="not every region"):
        provider.terminate("i-0123")


def test_a_machine_in_a_region_that_the_settings_name_no_more_is_ended_all_the_same(
    aws: SmallAws,
) -> None:
    before = a_provider(aws, regions=["us-east-1", "eu-west-1"])
    machine = before.launch(a_request(offer=an_offer("eu-west-1a")))
    provider = a_provider(aws, regions=["us-east-1"])
    assert not provider.machines()
    provider.terminate(machine.id)
    assert not aws.running


# -- stops ---------------------------------------------------------------------------------------


def test_a_stop_is_moved_and_the_answer_is_the_one_in_force(aws: SmallAws) -> None:
    provider = a_provider(aws)
    machine = provider.launch(a_request())
    assert provider.extend(machine.id, NOW + 7200.9) == NOW + 7200
    (schedule,) = aws.schedules.values()
    assert schedule["ScheduleExpression"] == "at(2027-01-15T10:00:00)"
    assert schedule["Target"] == aws.words_of("create_schedule")[0]["Target"]
    assert provider.machines()[0].stop_at == NOW + 7200


def test_a_stop_that_is_missing_is_made_when_it_is_moved(aws: SmallAws) -> None:
    provider = a_provider(aws)
    machine = provider.launch(a_request())
    aws.schedules.clear()
    assert provider.extend(machine.id, NOW + 7200) == NOW + 7200
    assert len(aws.schedules) == 1


def test_a_stop_whose_move_is_refused_stays_where_it_was(aws: SmallAws) -> None:
    provider = a_provider(aws)
    machine = provider.launch(a_request())
    aws.refusals["update_schedule"] = refused("AccessDeniedException")
    with pytest.raises(Denied):
        provider.extend(machine.id, NOW + 7200)
    (schedule,) = aws.schedules.values()
    assert schedule["ScheduleExpression"] == "at(2027-01-15T09:00:00)"


def test_the_stop_of_a_machine_that_has_ended_is_fixed(aws: SmallAws) -> None:
    provider = a_provider(aws)
    machine = provider.launch(a_request())
    provider.terminate(machine.id)
    provider.machines()
    assert provider.extend(machine.id, NOW + 7200) == "fixed"


def test_the_stop_of_an_unlisted_machine_cannot_be_moved_yet(aws: SmallAws) -> None:
    with pytest.raises(Unreachable):
        a_provider(aws).extend("i-0123", NOW + 7200)


def test_without_a_role_the_machine_keeps_its_own_watch(aws: SmallAws) -> None:
    provider = a_provider(aws, scheduler_role="")
    machine = provider.launch(a_request())
    assert provider.extend(machine.id, NOW + 7200) == NOW + 7200
    assert not aws.schedules


def test_a_stop_is_removed_once_its_machine_is_seen_to_have_ended(aws: SmallAws) -> None:
    provider = a_provider(aws)
    machine = provider.launch(a_request())
    provider.terminate(machine.id)
    assert len(aws.schedules) == 1
    provider.machines()
    assert not aws.schedules
    aws.clock.advance_to(NOW + 60)
    provider.machines()
    assert len(aws.words_of("delete_schedule")) == 1


def test_a_stop_that_cannot_be_removed_is_removed_the_next_time(aws: SmallAws) -> None:
    provider = a_provider(aws)
    provider.terminate(provider.launch(a_request()).id)
    aws.refusals["delete_schedule"] = refused("ThrottlingException", status=429)
    assert provider.machines()[0].state == "gone"
    aws.refusals.clear()
    aws.clock.advance_to(NOW + 60)
    provider.machines()
    assert not aws.schedules


def test_the_cloud_ends_a_machine_when_everybody_else_is_dead(aws: SmallAws) -> None:
    a_provider(aws).launch(a_request())
    aws.clock.advance_to(NOW + 3600)
    aws.fire()
    assert not aws.running and not aws.schedules


def test_a_machine_is_ended_as_often_as_one_likes(aws: SmallAws) -> None:
    provider = a_provider(aws)
    machine = provider.launch(a_request())
    for _ in range(3):
        provider.terminate(machine.id)
        provider.machines()
    assert not aws.running


def test_a_machine_that_somebody_protects_is_told_with_the_command(aws: SmallAws) -> None:
    provider = a_provider(aws)
    machine = provider.launch(a_request())
    aws.refusals["terminate_instances"] = refused("OperationNotPermitted")
    with pytest.raises(Denied, match="no-disable-api-termination"):
        provider.terminate(machine.id)


class Killed(BaseException):
    """The process ends here."""


def test_a_stop_that_was_never_set_is_set_by_whoever_looks(aws: SmallAws) -> None:
    def fault(service: str, verb: str, do: Any) -> Any:
        if verb == "create_schedule":
            raise Killed
        return do()

    aws.fault = fault
    with pytest.raises(Killed):
        a_provider(aws).launch(a_request())
    aws.fault = None
    (box,), after = aws.running, a_provider(aws)
    after.machines()
    ((_, _, name),) = aws.schedules
    assert (
        name == "rental-1"
        and box.id in aws.schedules["us-east-1", f"cloudwhale-{OURS}", name]["Target"]["Input"]
    )
    aws.clock.advance_to(NOW + 5)
    after.machines()
    assert len(aws.words_of("create_schedule")) == 2  # looked at once


def test_a_machine_without_a_stop_whose_time_is_over_is_ended_by_whoever_looks(
    aws: SmallAws,
) -> None:
    a_provider(aws).launch(a_request())
    aws.schedules.clear()
    aws.clock.advance_to(NOW + 4000)
    a_provider(aws).machines()
    assert not aws.running


def test_a_list_is_given_although_a_missing_stop_cannot_be_set(aws: SmallAws) -> None:
    a_provider(aws).launch(a_request())
    aws.schedules.clear()
    aws.refusals["create_schedule"] = refused("ThrottlingException", status=429)
    after = a_provider(aws)
    assert [one.node for one in after.machines()] == ["rental-1"]
    aws.refusals.clear()
    aws.clock.advance_to(NOW + 5)
    after.machines()
    assert len(aws.schedules) == 1


def test_a_machine_that_tags_do_not_reach_yet_has_no_fixed_stop(aws: SmallAws) -> None:
    provider = a_provider(aws)
    machine = provider.launch(a_request())
    aws.refusals["create_tags"] = refused("InvalidInstanceID.NotFound")
    with pytest.raises(Unreachable):
        provider.extend(machine.id, NOW + 7200)


def test_a_price_that_nobody_says_is_asked_for_once_a_minute(aws: SmallAws) -> None:
    provider = a_provider(aws)
    provider.launch(a_request())
    after = a_provider(aws)
    aws.refusals["describe_spot_price_history"] = refused("UnauthorizedOperation")
    before = len(aws.words_of("describe_spot_price_history"))
    for second in range(30):
        aws.clock.advance_to(NOW + 2 * second)
        assert after.machines()[0].price_usd_h is None
    assert len(aws.words_of("describe_spot_price_history")) == before + 1
    aws.refusals.clear()
    aws.clock.advance_to(NOW + 120)
    assert after.machines()[0].price_usd_h is not None


@pytest.mark.parametrize("for_s", [0.1, 61.0])
def test_who_lists_a_machine_while_its_price_is_asked_for_is_told_it_too(
    aws: SmallAws, for_s: float
) -> None:
    a_provider(aws).launch(a_request())
    provider, slow = a_provider(aws), ["describe_spot_price_history"]

    def fault(service: str, verb: str, do: Callable[[], Any]) -> Any:
        if verb in slow:
            slow.clear()
            aws.clock.advance_to(NOW + for_s)
            assert provider.machines()[0].price_usd_h is not None, "somebody else asks meanwhile"
        return do()

    aws.fault = fault
    before = aws.clock.now()
    (one,) = provider._listing.all()  # pyright: ignore[reportPrivateUsage]
    machine = provider._known.machine(one)  # pyright: ignore[reportPrivateUsage]
    assert machine.price_usd_h is not None
    assert aws.clock.now() > before
