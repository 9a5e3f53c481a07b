"""Settings with which machines could be rented and never meet their controller."""

from pathlib import Path

import pytest

from cloudwhale import plugins
from cloudwhale.control.abroad import must_reach
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import SettingsError


def settings(**fields: object) -> Settings:
    return Settings.model_validate({"home": Path("/nowhere"), **fields})


@pytest.fixture(autouse=True)
def _aws_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def names(group: str) -> tuple[str, ...]:
        return ("aws", "local")

    monkeypatch.setattr(plugins, "names", names)


def wrong_with(**fields: object) -> str:
    """Return what is wrong with settings and how that is mended; empty for those that will do."""
    try:
        must_reach(settings(**fields))
    except SettingsError as error:
        return f"{error.says} {error.remedy}"
    return ""


@pytest.mark.parametrize("mailbox", ["", "file:///data/mailbox", "memory://"])
def test_a_mailbox_on_this_host_is_refused_only_where_machines_are_rented(mailbox: str) -> None:
    says = wrong_with(clouds={"aws": {}}, mailbox=mailbox)
    assert "cannot reach the mailbox" in says and "s3://" in says
    assert wrong_with(mailbox=mailbox) == ""


def test_rented_machines_can_reach_a_bucket_and_no_folder_of_this_host() -> None:
    reached = {
        mailbox: not wrong_with(clouds={"aws": {}}, mailbox=mailbox)
        for mailbox in ("s3://team/whale", "file:///team/whale")
    }
    assert reached == {"s3://team/whale": True, "file:///team/whale": False}


@pytest.mark.parametrize(("name", "hint"), [("awss", "[clouds.aws]"), ("local", "Installed: aws")])
def test_a_cloud_that_nobody_provides_is_named_with_those_that_there_are(
    name: str, hint: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        must_reach(settings(clouds={name: {}}, mailbox="s3://team/whale"))
    assert f"[clouds.{name}]" in refused.value.says
    assert hint in refused.value.remedy


def test_a_region_that_a_cloud_does_not_have_is_refused_with_those_spelled_like_it() -> None:
    with pytest.raises(SettingsError, match="no region 'us-esat-1'") as refused:
        must_reach(settings(clouds={"aws": {"regions": ["us-esat-1"]}}, mailbox="s3://team/whale"))
    assert "cloudwhale.toml, [clouds.aws]" in refused.value.says
    assert "us-east-1" in refused.value.remedy
