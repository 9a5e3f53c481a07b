"""Whom the settings tell: what a table may hold, and that no secret is shown."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cloudwhale.control.notifying.addresses import url_fault
from cloudwhale.control.notifying.targets import targets
from cloudwhale.model.notice import EVERY_KIND
from cloudwhale.settings import load
from cloudwhale.spi.errors import SettingsError

HOOK = "https://hooks.example/T0/secret-path"


def test_a_target_is_told_of_everything_unless_it_says() -> None:
    found = targets({"a": {"webhook": HOOK}, "b": {"slack": HOOK, "on": ["failed", "budget"]},
                     "c": {"command": "tell --loud 'a b'", "on": "all"}})  # fmt: skip
    assert found["a"].on == EVERY_KIND == found["c"].on
    assert found["b"].on == {"failed", "budget"}
    assert found["c"].command == ("tell", "--loud", "a b")


def test_mail_has_the_port_of_its_encryption() -> None:
    table = {"smtp": "mail.example", "from": "a@b.example", "to": "c@d.example"}
    ports = {
        tls: targets({"m": table | {"tls": tls}})["m"].port for tls in ("starttls", "implicit")
    }
    assert ports == {"starttls": 587, "implicit": 465}
    assert targets({"m": table | {"smtp": "[::1]:2525"}})["m"].host == "::1"


MAIL: dict[str, Any] = {"smtp": "mail.example", "from": "a@b.example", "to": ["c@d.example"]}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "no way"),
    ({"webhook": HOOK, "slack": HOOK}, "two ways"),
    ({"webhook": HOOK, "secret": "dummy-word"}, "unknown key 'secret'"),
    ({"webhook": HOOK, "on": []}, "on must be"),
    ({"webhook": HOOK, "on": ["failde"]}, "on must be"),
    ({"webhook": HOOK, "on": [["failed"]]}, "on must be"),
    ({"webhook": 5}, "webhook must be"),
    ({"webhook": "http://hooks.example/secret-path"}, "use https"),
    ({"webhook": "http://localhost.hooks.example/secret-path"}, "use https"),
    ({"webhook": "https://ann:secret-path@hooks.example/"}, "a name or a password"),
    ({"webhook": "ftp://hooks.example/secret-path"}, "none of the web"),
    ({"webhook": "https://hooks.example:port/secret-path"}, "is none"),
    ({"webhook": HOOK, "webhook_env": "HOOK"}, "webhook must be an address, or"),
    ({"webhook": HOOK, "secret_env": "A", "secret_file": "b"}, "there alone"),
    ({"webhook": HOOK, "secret_env": "not a name"}, "the name of a variable"),
    ({"command": []}, "command must be"),
    ({"command": "tell 'it"}, "command must be"),
    (MAIL | {"to": []}, "to must be"),
    (MAIL | {"to": ["a@b.example\r\nBcc: c@d.example"]}, "to must be"),
    (MAIL | {"from": "nobody"}, "from must be"),
    (MAIL | {"tls": "ssl3"}, "tls must be"),
    (MAIL | {"user": "ann"}, "user must be"),
    (MAIL | {"user": "ann", "password_env": "P", "tls": "none"}, "tls must be"),
    (MAIL | {"smtp": "mail.example:many"}, "smtp must be"),
    (MAIL | {"smtp": "smtp://mail.example/x"}, "smtp must be"),
]


@pytest.mark.parametrize(("table", "says"), WRONG)
def test_a_table_that_cannot_be_meant_is_refused_and_its_values_are_not_shown(
    table: Mapping[str, Any], says: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        targets({"ops": table})
    assert says in caught.value.says and "[notify.ops]" in caught.value.says
    assert "secret-path" not in str(caught.value) and "dummy-word" not in str(caught.value)


@pytest.mark.parametrize("name", ["all", "job:1", "", "a b", "x" * 64])
def test_a_target_has_a_plain_name(name: str) -> None:
    with pytest.raises(SettingsError):
        targets({name: {"webhook": HOOK}})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "[::1]", "LocalHost."])
def test_over_http_only_this_host_is_told(host: str) -> None:
    assert url_fault(f"http://{host}:8080/x") == ""
    assert url_fault("http://10.0.0.1/x") and url_fault("http://169.254.169.254/x")


def test_an_address_may_come_from_where_secrets_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPS_HOOK", f"{HOOK}\n")
    assert targets({"a": {"slack_env": "OPS_HOOK"}})["a"].address() == HOOK
    monkeypatch.setenv("OPS_HOOK", "http://hooks.example/secret-path")
    with pytest.raises(SettingsError) as caught:
        targets({"a": {"slack_env": "OPS_HOOK"}})["a"].address()
    assert "secret-path" not in str(caught.value)
    monkeypatch.delenv("OPS_HOOK")
    with pytest.raises(SettingsError, match="OPS_HOOK"):
        targets({"a": {"slack_env": "OPS_HOOK"}})["a"].address()


def test_a_file_of_a_secret_lies_beside_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "cloudwhale.toml").write_text(
        f'[notify.ops]\nwebhook = "{HOOK}"\nsecret_file = "hook.key"\n'
    )
    found = load(tmp_path, {"HOME": str(tmp_path / "user")})
    assert targets(found.notify)["ops"].secret.file == str(tmp_path / "hook.key")


@pytest.mark.parametrize("kind", ["folder", "empty", "binary", "large"])
def test_a_file_that_holds_no_secret_is_refused(tmp_path: Path, kind: str) -> None:
    kept = tmp_path / "key"
    if kind == "folder":
        kept.mkdir()
    else:
        kept.write_bytes({"empty": b"\n", "binary": b"\xff\xfe", "large": b"x" * 5000}[kind])
    kept.chmod(0o700 if kind == "folder" else 0o600)
    with pytest.raises(SettingsError):
        targets({"a": {"webhook": HOOK, "secret_file": str(kept)}})["a"].secret.read()
