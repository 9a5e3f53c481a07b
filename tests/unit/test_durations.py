"""How long a job is expected to run when its file does not say it."""

from collections.abc import Mapping

from makers import a_spec

from cloudwhale.planning.durations import Durations, Expected

HISTORY: Mapping[tuple[str, str], tuple[float, ...]] = {
    ("nlp", "train"): (10.0, 1000.0, 30.0),
    ("nlp", "tok"): (1.0, 2.0, 4.0),
    ("vision", "train"): (5.0,),
}


def expected(name: str, project: str, **fields: float) -> Expected:
    return Durations(HISTORY).of(a_spec(name, project=project, **fields))


def test_what_the_file_says_holds() -> None:
    said = expected("train", "nlp", duration_s=7.0)
    assert (said.length_s, said.source, said.is_guessed) == (7.0, "file", False)


def test_else_the_median_of_the_family_is_taken() -> None:
    assert expected("train", "nlp") == Expected(length_s=30.0, source="family", samples=3)


def test_a_new_name_takes_the_median_of_its_project_alone() -> None:
    assert expected("new", "nlp") == Expected(length_s=7.0, source="project", samples=6)
    assert expected("new", "vision") == Expected(length_s=5.0, source="project", samples=1)


def test_of_what_nothing_is_known_an_hour_is_expected() -> None:
    unknown = expected("train", "new")
    assert (unknown.length_s, unknown.source, unknown.is_guessed) == (3600.0, "nothing", True)
