"""docs/aws.md: its settings are those that there are, and its examples are read."""

import re
import shlex
import tomllib
from pathlib import Path

from cloudwhale.settings import Settings
from cloudwhale_providers.aws.policies import NAMES
from cloudwhale_providers.aws.settings import WANTED, AwsSettings, read

HOUSE = Path(__file__).parents[2]
PAGE = (HOUSE / "docs" / "aws.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_table_names_every_setting_with_its_default() -> None:
    table = PAGE.partition("## Settings of")[2].partition("## ")[0]
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| (.*?) \|", table, re.MULTILINE))
    assert set(rows) == set(AwsSettings.model_fields) == set(WANTED)
    assert rows["pin_zone"] == "`false`"


def test_the_settings_that_are_shown_are_read() -> None:
    (text,) = blocks("toml")
    found = tomllib.loads(text)
    options = read(found["clouds"]["aws"])
    assert options.instance_profile == "cloudwhale-machine"
    assert Settings.model_validate({"home": Path("/nowhere"), **found}).mailbox.startswith("s3://")


def test_roles_are_called_as_the_policies_call_them() -> None:
    policy = (HOUSE / "infra/aws/controller-policy.json").read_text(encoding="utf-8")
    for name in ("cloudwhale-machine", "cloudwhale-stops"):
        assert f"role/{name}" in policy
        assert f"--role-name {name}" in PAGE


def test_the_files_that_commands_name_are_there() -> None:
    named = set(re.findall(r"file://filled/([a-z-]+\.json)", PAGE))
    assert named == {f"{name}.json" for name in NAMES}
    assert "infra/aws/*.json" in PAGE


def test_every_file_for_an_account_is_told_of() -> None:
    told = (HOUSE / "infra" / "README.md").read_text(encoding="utf-8")
    there = [file.name for file in (HOUSE / "infra" / "aws").glob("*.json")]
    assert [name for name in there if f"`aws/{name}`" not in told] == []
    for path in re.findall(r"\]\((\.\./[^)#]+)", PAGE):
        assert (HOUSE / "docs" / path).exists(), path


def test_commands_can_be_given_to_a_shell() -> None:
    for text in blocks("sh"):
        assert shlex.split(text, comments=True)
