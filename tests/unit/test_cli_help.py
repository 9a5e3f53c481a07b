"""What the commands say of themselves."""

import pytest
from typer.testing import CliRunner

from cloudwhale.cli import running
from cloudwhale.cli.app import whole_app
from cloudwhale.cli.wishes import RunOptions

COMMANDS = (
    "run submit plan attach cancel pause resume ps logs explain replay nodes simulate offers "
    "rehearse doctor version receipt morning cost budget suggest night notify controller"
).split()
APP = whole_app()


def said(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(APP, words)
    assert done.exit_code == code
    return done.output


def test_help_lists_every_command_and_fits_eighty_columns() -> None:
    lines = said("--help").splitlines()
    listed = {line.split()[0] for line in lines if line.startswith("  ")}
    assert set(COMMANDS) <= listed
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines[1:] if line.endswith("...")]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    _, _, examples = said(command, "--help").partition("Examples:")
    assert f"cloudwhale {command}" in examples


@pytest.mark.parametrize("command", COMMANDS[:-1])
def test_every_command_but_the_service_can_answer_in_json(command: str) -> None:
    assert "--json" in said(command, "--help")


@pytest.mark.parametrize(
    "words", [(), ("frobnicate",), ("run",), ("ps", "--frob"), ("ps", "--state", "asleep")]
)
def test_wrong_usage_ends_with_two(words: tuple[str, ...]) -> None:
    assert said(*words, code=2)


@pytest.mark.parametrize("words", [("b.yaml",), ("b.yaml", "--", "--epochs", "2")])
def test_a_second_file_does_not_pass_for_a_word_of_the_jobs_command(words: tuple[str, ...]) -> None:
    assert "b.yaml is too much" in " ".join(said("run", "a.yaml", "-y", *words, code=2).split())


@pytest.mark.parametrize(
    "words",
    [("a.yaml", "-y", "--", "b.yaml", "--lr=1"), ("-y", "--", "a.yaml", "b.yaml", "--lr=1")],
)
def test_words_after_dashes_are_the_jobs(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[RunOptions] = []

    def noted(options: RunOptions) -> int:
        given.append(options)
        return 0

    monkeypatch.setattr(running, "run", noted)
    said("run", *words)
    assert given[0].wishes.args == ("b.yaml", "--lr=1")


def test_states_on_the_command_line_are_those_of_jobs() -> None:
    from cloudwhale.cli.words import State
    from cloudwhale.model.job import JobState

    assert [state.value for state in State] == [state.value for state in JobState]
