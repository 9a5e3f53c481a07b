"""Values: one that is made of another is of its own fields alone."""

from cloudwhale.model.job import JobSpec, Resources
from cloudwhale.model.node import Facts


def test_what_was_worked_out_of_the_old_fields_is_not_taken_over() -> None:
    spec = JobSpec(name="train", command="true")
    before = spec.demand
    changed = spec.but(market="on-demand", resources=Resources(cpu=7))
    assert changed.demand != before
    assert changed.demand == JobSpec.model_validate(changed.model_dump()).demand
    assert spec.but(name="other").demand == before


def test_positions_of_devices_are_those_of_the_devices() -> None:
    facts = Facts(cpu=1, memory_gib=1, disk_gib=1)
    assert facts.positions == {}
    assert "positions" not in vars(facts.but(version="2"))
