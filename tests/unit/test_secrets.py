"""Secrets: who can open them, and what is said when somebody cannot."""

import base64
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from nacl.public import PrivateKey, SealedBox

from cloudwhale.control.secrets import KEY_BYTES, collected, load_key, seal, seal_for, unseal
from cloudwhale.spi.errors import SettingsError, SpecError, StoreUnusable


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    key = load_key(home)
    assert len(key) == KEY_BYTES
    assert load_key(home) == key
    assert [path.name for path in home.iterdir()] == ["secret.key"]
    assert stat.S_IMODE((home / "secret.key").stat().st_mode) == 0o600
    assert load_key(tmp_path / "other") != key


def test_all_who_come_first_get_the_same_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(load_key, [tmp_path] * 32))
    assert len(keys) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret.key"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_key_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    load_key(tmp_path)
    (tmp_path / "secret.key").chmod(mode)
    with pytest.raises(SettingsError, match=f"can be used by others .mode 0{mode:o}") as caught:
        load_key(tmp_path)
    assert "chmod 600" in caught.value.remedy


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_damaged_key_is_refused(tmp_path: Path, size: int) -> None:
    (tmp_path / "secret.key").touch(0o600)
    (tmp_path / "secret.key").write_bytes(bytes(size))
    with pytest.raises(SettingsError, match="is damaged") as caught:
        load_key(tmp_path)
    assert "Restore" in caught.value.remedy


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnusable, match="secret.key cannot be used: ") as caught:
        load_key(tmp_path / "file")
    assert "CLOUDWHALE_HOME" in caught.value.remedy


@pytest.mark.parametrize("value", ["", "token", "täst\n\0", "x" * 100_000])
def test_what_was_sealed_is_opened_with_the_key_alone(value: str) -> None:
    key, other = bytes(range(32)), bytes(32)
    sealed = seal(key, value)
    assert unseal(key, sealed) == value
    assert sealed != seal(key, value)
    assert not value or value.encode() not in sealed
    with pytest.raises(SettingsError, match="another key") as caught:
        unseal(other, sealed)
    assert "submit the job again" in caught.value.remedy
    with pytest.raises(SettingsError):
        unseal(key, sealed[:-1] + bytes([sealed[-1] ^ 1]))
    with pytest.raises(SettingsError):
        unseal(key, b"short")


def test_an_agent_alone_opens_what_was_sealed_for_it() -> None:
    agent = PrivateKey.generate()
    public = base64.b64encode(bytes(agent.public_key)).decode()
    sealed = seal_for(public, "täst")
    assert SealedBox(agent).decrypt(base64.b64decode(sealed)).decode() == "täst"


@pytest.mark.parametrize("public", ["", "no base64!", base64.b64encode(b"short").decode()])
def test_what_is_no_public_key_is_refused(public: str) -> None:
    with pytest.raises(StoreUnusable, match="is not the public key of an agent") as caught:
        seal_for(public, "x")
    assert "Restart the agent" in caught.value.remedy


def test_secrets_are_taken_from_the_environment() -> None:
    assert collected(["A", "B"], {"A": "1", "B": "2", "C": "3"}) == {"A": "1", "B": "2"}


@pytest.mark.parametrize("environment", [{}, {"TOKEN": ""}])
def test_a_secret_that_is_absent_is_named(environment: dict[str, str]) -> None:
    with pytest.raises(SpecError, match="the secret TOKEN is not set") as caught:
        collected(["TOKEN"], environment)
    assert "export TOKEN=" in caught.value.remedy


def test_a_secret_of_raw_bytes_is_refused() -> None:
    with pytest.raises(SpecError, match="TOKEN holds bytes that are not UTF-8") as caught:
        collected(["TOKEN"], {"TOKEN": "caf\udce9"})
    assert "base64" in caught.value.remedy
