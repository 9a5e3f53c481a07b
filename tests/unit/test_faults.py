"""Faults as text and from a seed."""

import math

import pytest

from cloudwhale.simulation import faults as f
from cloudwhale.spi.errors import SpecError


def test_faults_are_read_with_units_and_in_any_number() -> None:
    found = f.parse_faults("lost:node=n1,at=1h,for=10m; controller:at=90;price:at=1d,times=2;")
    assert found == (
        f.MachineLost("n1", 3600.0, 600.0),
        f.ControllerRestarted(90.0),
        f.PriceMoved(86400.0, 2.0),
    )


def test_nothing_is_no_fault() -> None:
    assert f.parse_faults(" ") == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lots:at=1", "'lots' is no kind of fault.*Kinds: lost, agent"),
        ("lost:at=1", "'lost:at=1' lacks node.*For example lost:node=n1,at=1h"),
        ("lost:node=n1,at=soon", "'at=soon' of .* is no number.*600, 10m"),
        ("lost:node=n1,at=-5", "is no number of 0 or more"),
        ("lost:node=n1,at=nan", "is no number of 0 or more"),
        ("lost:node=n1,where=1", "'where=1' of .* is not understood.*lost knows node, at, for"),
        ("lost:node", "'node' of 'lost:node' is not understood"),
        ("slow-boot:share=5", "has a share above 1.*For example slow-boot:share=0.3"),
        ("estimates:by=0", "has a factor below 1.*estimates:by=10"),
    ],
)
def test_a_text_that_is_wrong_is_told_where_and_what_can_stand_there(text: str, says: str) -> None:
    with pytest.raises(SpecError, match=f"(?s){says}"):
        f.parse_faults(text)


def test_every_kind_can_be_written() -> None:
    for kind, made in f.KINDS.items():
        words = {"node": "node=n1", "at": "at=1", "for_s": "for=2", "by_s": "by=3"}
        words |= {"times": "times=2", "per_h": "per-h=1", "share": "share=0.5", "by": "by=3"}
        names = made.__dataclass_fields__
        text = f"{kind}:" + ",".join(words[name] for name in names if name in words)
        (found,) = f.parse_faults(text)
        assert isinstance(found, made)


def test_random_faults_are_the_seeds_and_lie_within_the_play() -> None:
    found = f.random_faults(3, ["a", "b"], 1000.0, f.Often(lost=3, agents=2))
    assert found == f.random_faults(3, ["a", "b"], 1000.0, f.Often(lost=3, agents=2))
    assert found != f.random_faults(4, ["a", "b"], 1000.0, f.Often(lost=3, agents=2))
    times = [getattr(one, "at", math.inf) for one in found]
    assert times == sorted(times) and all(0 <= at <= 1000 for at in times)
    assert sum(isinstance(one, f.MachineLost) for one in found) == 3
