"""When how many devices are free: slots, room that is kept, copies."""

from cloudwhale_policies.waiting.timetable import Slot, Timetable


def a_table(**free: float) -> Timetable:
    return Timetable(free)


def test_what_is_free_starts_now() -> None:
    assert a_table(a=2.0).earliest(1.0, 10.0, ["a"]) == Slot("a", 0.0, 1.0)


def test_a_job_starts_when_enough_has_been_released() -> None:
    table = a_table(a=0.0)
    table.release("a", 5.0, 1.0)
    table.release("a", 9.0, 1.0)
    assert table.earliest(2.0, 10.0, ["a"]) == Slot("a", 9.0, 0.0)


def test_more_than_a_node_ever_has_has_no_slot() -> None:
    assert a_table(a=4.0).earliest(8.0, 10.0, ["a"]) is None


def test_a_node_that_is_not_there_has_no_slot() -> None:
    assert a_table(a=4.0).earliest(1.0, 10.0, ["b"]) is None


def test_a_short_job_passes_room_that_is_kept_and_a_long_one_starts_after_it() -> None:
    table = a_table(a=2.0)
    table.reserve(Slot("a", 10.0, 0.0), 2.0, 20.0)
    assert table.earliest(1.0, 10.0, ["a"]) == Slot("a", 0.0, 1.0)
    assert table.earliest(1.0, 11.0, ["a"]) == Slot("a", 30.0, 1.0)


def test_room_that_is_kept_is_free_again_after_its_end() -> None:
    table = a_table(a=2.0)
    table.reserve(Slot("a", 10.0, 0.0), 2.0, 20.0)
    assert [table.free_at("a", at_s) for at_s in (0.0, 10.0, 29.0, 30.0)] == [2.0, 0.0, 0.0, 2.0]


def test_room_that_is_kept_for_good_never_is_free_again() -> None:
    table = a_table(a=2.0)
    table.reserve(Slot("a", 10.0, 0.0), 2.0, float("inf"))
    assert table.earliest(1.0, 11.0, ["a"]) is None


def test_a_copy_is_changed_alone() -> None:
    table = a_table(a=2.0)
    table.copy().reserve(Slot("a", 0.0, 0.0), 2.0, 20.0)
    assert table.free_at("a", 0.0) == 2.0


def test_of_equal_starts_that_node_is_taken_that_is_busy_for_long_anyway() -> None:
    table = a_table(a=1.0, b=1.0)
    table.release("b", 100.0, 7.0)
    assert table.earliest(1.0, 50.0, ["a", "b"]) == Slot("b", 0.0, 0.0)


def test_then_the_one_that_leaves_least_beside_it_then_the_first() -> None:
    table = a_table(a=4.0, b=2.0, c=2.0)
    assert table.earliest(1.0, 50.0, ["a", "b", "c"]) == Slot("b", 0.0, 1.0)


def test_where_something_else_is_short_it_starts_after_somebody_has_left() -> None:
    table = a_table(a=4.0)
    table.release("a", 7.0, 1.0)
    assert table.earliest(1.0, 50.0, ["a"], elsewhere_than=()) == Slot("a", 7.0, 4.0)
    assert table.earliest(1.0, 50.0, ["a"], elsewhere_than=("a",)) == Slot("a", 0.0, 3.0)


def test_where_something_else_is_short_and_nobody_leaves_there_is_no_slot() -> None:
    assert a_table(a=4.0).earliest(1.0, 50.0, ["a"], elsewhere_than=()) is None


def test_an_opening_begins_now_or_is_none() -> None:
    table = a_table(a=2.0, b=0.0)
    table.release("b", 5.0, 4.0)
    assert table.opening(2.0, 10.0, ["a", "b"]) == Slot("a", 0.0, 0.0)
    assert table.opening(3.0, 10.0, ["a", "b"]) is None


def test_an_opening_is_none_where_room_is_kept_before_its_end() -> None:
    table = a_table(a=2.0)
    table.reserve(Slot("a", 5.0, 0.0), 2.0, 10.0)
    assert table.opening(1.0, 6.0, ["a"]) is None
