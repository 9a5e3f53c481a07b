"""What things are called at GCP: within its rules, the same for the same, unlike for others."""

import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from renting_aws import a_request

from cloudwhale_providers.gcp import names
from cloudwhale_providers.gcp.asking import Everywhere, everywhere

LEGAL = "[a-z]([-a-z0-9]{0,61}[a-z0-9])?"


def test_a_launch_has_one_name_and_one_token_however_often_it_is_repeated() -> None:
    name, token = names.machine_name("lab", "rental-1"), names.token("lab", "rental-1")
    assert names.machine_name("lab", "rental-1") == name and names.NAME.fullmatch(name)
    assert names.token("lab", "rental-1") == token == str(uuid.UUID(token))
    assert uuid.UUID(token).int != 0, "GCP refuses the zero UUID"


def test_two_installations_of_one_project_count_their_rentals_alike_and_never_meet() -> None:
    assert names.machine_name("lab", "rental-1") != names.machine_name("den", "rental-1")
    assert names.token("lab", "rental-1") != names.token("den", "rental-1")
    assert names.token("lab", "rental-1", "2") != names.token("lab", "rental-1")


@pytest.mark.parametrize("word", ["rental-1", "Ünïcode/Node.1", "A" * 200, "team.alpha", "x_y"])
def test_a_label_takes_any_word(word: str) -> None:
    found = names.label(word)
    assert 0 < len(found) <= 63 and found == found.lower()
    assert set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")


def test_words_that_are_spelled_alike_in_labels_stay_apart() -> None:
    assert len({names.label(word) for word in ("a.b", "a/b", "a-b", "A-B", "a b")}) == 5
    assert names.label("a-b") == "a-b"


def test_what_a_machine_is_to_know_comes_back_as_it_was() -> None:
    request = a_request("rental-1").but(node="Node.1", project="Team A")
    said = names.attributes_of("lab", request, now=0.0)
    thing = {"metadata": {"items": names.as_items(said)}}
    assert names.attributes(thing) == said
    assert said[names.NODE] == "Node.1" and said[names.REQUEST] == "rental-1"
    assert request.lease is not None
    assert said[names.LEASE] == f"1:{int(request.lease.away_until)}"


class Pages:
    """Answers with pages that a test wrote."""

    def __init__(self, *answers: Mapping[str, Any]) -> None:
        self._answers = list(answers)

    def call(self, service: str, method: str, **words: Any) -> Mapping[str, Any]:
        assert words["returnPartialSuccess"] is True
        return self._answers.pop(0)

    def project(self) -> str:
        return "p"


def test_zones_that_did_not_answer_are_told_apart_from_those_where_nothing_is() -> None:
    warning = {"code": "UNREACHABLE"}
    empty = {"code": "NO_RESULTS_ON_PAGE"}
    first = {
        "items": {
            "zones/a-b1-a": {"instances": [{"name": "one"}]},
            "zones/a-b1-b": {"warning": empty},
            "zones/a-b1-c": {"warning": warning},
        },
        "nextPageToken": "more",
    }
    second = {
        "items": {"zones/a-b1-a": {"instances": [{"name": "two"}]}},
        "unreachables": ["https://www.googleapis.com/compute/v1/projects/p/zones/a-b1-d"],
    }
    found = everywhere(Pages(first, second), "instances.aggregatedList", project="p")
    assert found == Everywhere(
        {"a-b1-a": [{"name": "one"}, {"name": "two"}], "a-b1-b": []},
        frozenset({"a-b1-c", "a-b1-d"}),
    )
