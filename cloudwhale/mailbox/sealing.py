"""Secrets inside orders: sealed by the controller to one agent, opened by that agent alone."""

import base64
import binascii

SEALED_KEY_BYTES = 32
_ANY_BYTES = ("utf-8", "surrogateescape")  # an environment may hold bytes that are no text


class SealBroken(ValueError):
    """A value was not sealed to this key, or was changed on its way."""


def new_key_pair() -> tuple[str, str]:
    """Make a key pair; return the private and the public half, base64."""
    from nacl.public import PrivateKey

    private = PrivateKey.generate()
    return _text(bytes(private)), _text(bytes(private.public_key))


def seal(value: str, public_key: str) -> str:
    """Return a value that only the holder of the private half can read, base64.

    Raise SealBroken when the key is none.
    """
    from nacl.public import PublicKey, SealedBox

    return _text(SealedBox(PublicKey(_key(public_key))).encrypt(value.encode(*_ANY_BYTES)))


def unseal(sealed: str, private_key: str) -> str:
    """Return the value; raise SealBroken when it was sealed to another key or is damaged."""
    from nacl.exceptions import CryptoError
    from nacl.public import PrivateKey, SealedBox

    try:
        body = base64.b64decode(sealed, validate=True)
        return SealedBox(PrivateKey(_key(private_key))).decrypt(body).decode(*_ANY_BYTES)
    except (CryptoError, binascii.Error) as error:
        raise SealBroken("the value was not sealed to this key") from error


def _key(text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise SealBroken("the key is not base64") from error
    if len(key) != SEALED_KEY_BYTES:
        raise SealBroken(f"the key has {len(key)} bytes instead of {SEALED_KEY_BYTES}")
    return key


def _text(body: bytes) -> str:
    return base64.b64encode(body).decode()
