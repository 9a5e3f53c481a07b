"""GPU models: what a name means, and how fast one is beside another."""

import pytest

from cloudwhale.model.gpus import FAMILIES, MODELS, canonical, speed, variants


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("A100", ("A100-40GB", "A100-80GB")),
        ("a100-80gb", ("A100-80GB",)),
        ("A100-20GB", ()),
        ("rtx 4090", ("RTX4090",)),
        ("NVIDIA GeForce RTX 3090 Ti", ("RTX3090TI",)),
        ("NVIDIA A100-SXM4-80GB", ("A100-80GB",)),
        ("NVIDIA H100 80GB HBM3", ("H100-80GB",)),
        ("Tesla V100-SXM2-16GB", ("V100-16GB",)),
        ("V100M32", ("V100-32GB",)),
        ("NVIDIA RTX A6000", ("A6000",)),
        ("NVIDIA RTX 6000 Ada Generation", ("RTX6000ADA",)),
        ("RTX PRO Server 6000", ("RTXPRO6000",)),
        ("T4g", ("T4G",)),
        ("abacus", ()),
        ("", ()),
    ],
)
def test_names_of_people_drivers_and_clouds_are_understood(
    name: str, meant: tuple[str, ...]
) -> None:
    assert variants(name) == meant


@pytest.mark.parametrize(
    ("name", "memory_gib", "model"),
    [
        ("NVIDIA H100 PCIe", 79.6, "H100-80GB"),
        ("NVIDIA H100 NVL", 93.6, "H100-94GB"),
        ("A100", 39.4, "A100-40GB"),
        ("Tesla T4", 14.6, "T4"),
        ("NVIDIA GH200 480GB", 95.0, "GH200"),
        ("abacus", 1.0, None),
    ],
)
def test_a_device_is_the_model_whose_memory_is_nearest(
    name: str, memory_gib: float, model: str | None
) -> None:
    assert canonical(name, memory_gib) == model


def test_every_canonical_name_means_itself_and_has_a_source() -> None:
    for name, model in MODELS.items():
        assert variants(name) == (name,)
        assert model.memory_gib > 0 and model.source
    assert all(MODELS[one].memory_gib for family in FAMILIES.values() for one in family)


def test_speeds_compare_as_the_measurements_that_are_named() -> None:
    assert speed("K80", "V100-16GB") == pytest.approx(0.25)
    assert speed("P100", "V100-16GB") == pytest.approx(0.81)
    assert speed("A100-80GB", "A100-80GB") == 1.0
    assert speed("T4", "abacus") is None


def test_speeds_lie_in_the_order_that_is_published() -> None:
    order = ["K80", "T4", "A10G", "RTX3090", "RTX4090", "A100-40GB", "A100-80GB", "H100-80GB"]
    factors = [speed(name, "A100-80GB") or 0.0 for name in order]
    assert factors == sorted(factors)
