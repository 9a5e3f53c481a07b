"""Secret values: taken from the submitter's environment, sealed, and opened by no one else."""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from cloudwhale.mailbox import sealing
from cloudwhale.spi.errors import NotThere, SettingsError, StoreUnusable

KEY_BYTES = 32  # what NaCl's secret box takes
KEY_FILE = "secret.key"


def load_key(home: Path) -> bytes:
    """Return this home's key, made on the first call; raise SettingsError when others can read it.

    Two processes that both come first agree: the key appears whole or not at all.
    """
    path = home / KEY_FILE
    try:
        if not path.exists():
            _make(path)
        return _read(path)
    except OSError as error:
        raise StoreUnusable(
            f"the key {path} cannot be used: {error.strerror}",
            f"Make {home} a folder that you can write to, or set CLOUDWHALE_HOME.",
        ) from error


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        pass  # another process was first; its key counts
    finally:
        draft.unlink()


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SettingsError(
                f"the key {path} can be used by others (mode {stat.S_IMODE(mode):04o})",
                f"chmod 600 {path}, and change the secrets that were sealed with it.",
            )
        key = file.read(KEY_BYTES + 1)
    if len(key) != KEY_BYTES:
        raise SettingsError(
            f"the key {path} is damaged: it has not {KEY_BYTES} bytes",
            "Restore it from a copy; or remove it, and submit the jobs with secrets again.",
        )
    return key


def collected(names: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the values of secrets; raise NotThere for the first that is not set, or empty."""
    values: dict[str, str] = {}
    for name in names:
        if not environment.get(name):
            raise NotThere(
                f"the secret {name} is not set in your environment",
                f"Run `export {name}=...` first, or take it out of `secrets`.",
                key="secrets",
                word=name,
            )
        values[name] = _sealable(name, environment[name])
    return values


def _sealable(name: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise NotThere(
            f"the secret {name} holds bytes that are not UTF-8",
            f"Encode it, `export {name}=$(base64 -w0 FILE)`, and decode it in the job.",
            key="secrets",
            word=name,
        ) from error
    return value


def seal(key: bytes, value: str) -> bytes:
    """Return a value sealed with this home's key; twice the same value gives different bytes."""
    from nacl.secret import SecretBox

    return bytes(SecretBox(key).encrypt(value.encode()))


def unseal(key: bytes, sealed: bytes) -> str:
    """Return a sealed value; raise SettingsError when it was sealed with another key."""
    from nacl.exceptions import CryptoError
    from nacl.secret import SecretBox

    try:
        return SecretBox(key).decrypt(sealed).decode()
    except (CryptoError, ValueError) as error:
        raise SettingsError(
            f"a secret was sealed with another key than this home's {KEY_FILE}, or was damaged",
            "Restore the key, or submit the job again.",
        ) from error


def seal_for(public_key: str, value: str) -> str:
    """Return a value that only the owner of a base64 public key can open, as base64."""
    try:
        return sealing.seal(value, public_key)
    except sealing.SealBroken as error:
        raise StoreUnusable(
            f"{public_key!r} is not the public key of an agent: {error}",
            "Restart the agent; it publishes its key when it joins.",
        ) from error
