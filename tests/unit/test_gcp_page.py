"""docs/gcp.md: its settings are those that there are, and its examples are read."""

import re
import shlex
import tomllib
from pathlib import Path

from cloudwhale.settings import Settings
from cloudwhale_providers.gcp.images import KNOWN
from cloudwhale_providers.gcp.policies import NAMES, permissions, role_id
from cloudwhale_providers.gcp.settings import WANTED, GcpSettings, read

HOUSE = Path(__file__).parents[2]
PAGE = (HOUSE / "docs" / "gcp.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_table_names_every_setting_with_its_default() -> None:
    table = PAGE.partition("## Settings of")[2].partition("## ")[0]
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| (.*?) \|", table, re.MULTILINE))
    assert set(rows) == set(GcpSettings.model_fields) == set(WANTED)
    assert rows["external_address"] == "`true`" and rows["network"] == '`"default"`'
    assert [name for name in KNOWN if f"`{name}`" not in table] == []


def test_the_settings_that_are_shown_are_read() -> None:
    (text,) = blocks("toml")
    found = tomllib.loads(text)
    assert read(found["clouds"]["gcp"]).service_account.startswith("cloudwhale-machine@")
    assert Settings.model_validate({"home": Path("/nowhere"), **found}).mailbox.startswith("gs://")


def test_roles_are_made_from_the_files_and_called_as_they_are_given() -> None:
    by_hand = PAGE.partition("## By hand")[2].partition("## ")[0]
    (loop,) = re.findall(r"for role in (.*?); do", by_hand)
    assert loop.split() == [name for name in NAMES if name != "setup"]
    for name in ("controller", "acting", "mailbox", "machine-bucket"):
        assert f"$roles/{role_id(name)}" in by_hand


def test_every_permission_is_told_of() -> None:
    told = PAGE.partition("## What each permission is for")[2].partition("## ")[0]
    named = set(re.findall(r"`([a-zA-Z.]+)`", told))
    wanted = {one.removeprefix("compute.") for one in permissions("controller")}
    wanted |= set(permissions("acting"))
    assert wanted - named == set()


def test_every_file_for_a_project_is_told_of_and_every_link_leads_somewhere() -> None:
    told = (HOUSE / "infra" / "README.md").read_text(encoding="utf-8")
    there = [file.name for file in (HOUSE / "infra" / "gcp").glob("*.json")]
    assert [name for name in there if f"`gcp/{name}`" not in told] == []
    for path in re.findall(r"\]\((\.\./[^)#]+)", PAGE):
        assert (HOUSE / "docs" / path).exists(), path


def test_commands_can_be_given_to_a_shell() -> None:
    for text in blocks("sh"):
        assert shlex.split(text, comments=True)
