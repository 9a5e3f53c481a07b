"""Which time zone days and months are told in."""

from pathlib import Path

import pytest

from cloudwhale.control.zones import zone_here
from cloudwhale.host.zone import zone_of_host
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import SettingsError


def settings(tmp_path: Path, zone: str = "") -> Settings:
    return Settings(home=tmp_path, timezone=zone)


def test_what_is_asked_for_holds_over_the_settings_and_those_over_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Pacific/Apia")
    assert zone_here(settings(tmp_path)) == "Pacific/Apia"
    assert zone_here(settings(tmp_path, "Asia/Kolkata")) == "Asia/Kolkata"
    assert zone_here(settings(tmp_path, "Asia/Kolkata"), "Europe/Berlin") == "Europe/Berlin"


@pytest.mark.parametrize("name", ["Mars/Base", "../../etc/passwd", "/etc/passwd", "", "\0", "🐳"])
def test_a_zone_that_nobody_knows_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        zone_here(settings(tmp_path), name)
    assert repr(name) in caught.value.says
    assert "Europe/Berlin" in caught.value.remedy


def test_a_wrong_setting_is_named_as_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="setting timezone: 'Nowhere'"):
        zone_here(settings(tmp_path, "Nowhere"))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("berlin", "Europe/Berlin"), ("europe/berlin", "Europe/Berlin"),
        ("New York", "America/New_York"), ("Europe/Berln", "Europe/Berlin"),
    ],
)  # fmt: skip
def test_a_zone_that_was_nearly_right_is_offered(tmp_path: Path, typed: str, meant: str) -> None:
    with pytest.raises(SettingsError) as caught:
        zone_here(settings(tmp_path), typed)
    assert caught.value.remedy == f"Did you mean {meant}?"


def test_the_zone_of_a_host_is_where_localtime_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TZ", raising=False)
    (tmp_path / "zoneinfo" / "Europe").mkdir(parents=True)
    (tmp_path / "zoneinfo" / "Europe" / "Berlin").touch()
    link = tmp_path / "localtime"
    link.symlink_to(tmp_path / "zoneinfo" / "Europe" / "Berlin")
    named = tmp_path / "timezone"
    assert zone_of_host(link, named) == "Europe/Berlin"
    named.write_text("Asia/Kolkata\n")
    assert zone_of_host(tmp_path / "none", named) == "Asia/Kolkata"
    assert zone_of_host(tmp_path / "none", tmp_path / "neither") == "UTC"


def test_a_zone_in_the_environment_that_is_none_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "EST5EDT4,M3.2.0,M11.1.0")
    assert zone_of_host(tmp_path / "none", tmp_path / "neither") == "UTC"
