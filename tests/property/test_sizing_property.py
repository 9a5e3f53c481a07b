"""Sizes are never below what was used, nor above what was asked, and grow with evidence."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cloudwhale.model.job import GpuRequest, Resources, Span
from cloudwhale.model.peak import End, Peak
from cloudwhale.planning.growth import STEPS_GIB
from cloudwhale.planning.sizing import EVIDENCE, HEAD_ROOM, gpu_measured, size

ENDS: tuple[End, ...] = ("completed", "outgrew", "other")
GIB = st.floats(min_value=0.01, max_value=300.0)


@st.composite
def peaks(draw: st.DrawFn) -> Peak:
    had, used = draw(GIB), draw(st.none() | GIB)
    end = draw(st.sampled_from(ENDS))
    grown = had * draw(st.floats(1.1, 3.0)) if end == "outgrew" and draw(st.booleans()) else None
    return Peak(
        job="j", at=0.0, end=end, asked_gib=had, had_gib=had, used_gib=used, grown_gib=grown,
        host_asked_gib=had, host_used_gib=used, host_grown_gib=grown,
    )  # fmt: skip


FAMILY = st.lists(peaks(), max_size=20)


def asks(gib: float) -> Resources:
    return Resources(gpu=GpuRequest(count=1, memory_gib=Span(least=gib)), memory_gib=gib)


@given(FAMILY, GIB)
def test_a_smaller_size_has_evidence_and_head_room_above_all_that_was_used(
    family: list[Peak], asked: float
) -> None:
    found = size(asks(asked), family)
    new = asked if found is None else found.wants.gpu.memory_gib.least
    used = max((peak.used_gib or 0.0 for peak in family), default=0.0)
    done = [p for p in family if p.end == "completed" and p.used_gib is not None]
    if new < asked:
        assert new >= HEAD_ROOM * used and len(done) >= EVIDENCE
    assert new >= min(asked, used)


@given(FAMILY, GIB)
def test_only_an_oom_of_the_family_asks_for_more_and_then_for_what_was_grown_to(
    family: list[Peak], asked: float
) -> None:
    found = size(asks(asked), family)
    new = asked if found is None else found.wants.gpu.memory_gib.least
    grown = [peak.grown_gib for peak in family if peak.grown_gib is not None]
    if new > asked:
        assert grown and new >= max(grown)
    if grown and max(asked, *grown) <= max(STEPS_GIB):
        assert new >= min(max(grown), max(new, asked))


@given(FAMILY, peaks(), st.floats(1.0, 3.0), st.integers(0, 19))
def test_more_evidence_of_more_use_never_makes_a_smaller_size(
    family: list[Peak], another: Peak, times: float, at: int
) -> None:
    before = gpu_measured(family).size_gib(STEPS_GIB)
    assert gpu_measured([*family, another]).size_gib(STEPS_GIB) >= before
    if at < len(family) and family[at].used_gib is not None:
        more = replace(family[at], used_gib=family[at].used_gib * times)  # type: ignore[operator]
        assert gpu_measured([*family[:at], more, *family[at + 1 :]]).size_gib(STEPS_GIB) >= before
