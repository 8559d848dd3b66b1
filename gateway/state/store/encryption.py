"""Encryption of stored values at rest, because summaries contain users' words. Needs the extra ``encryption``."""

import base64
import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.state.store.sealing import Sealing

ENCRYPTED: Final = b"TF1e"
NONCE_BYTES: Final = 12
"""The standard nonce of AES-GCM (NIST SP 800-38D)."""
KEY_BYTES: Final = 32
"""The key of AES-256."""


def encrypted(keys: str) -> Sealing:
    """Seal with AES-256-GCM; the first of the comma-separated base64 keys encrypts, all of them decrypt.

    Unencrypted values are not read any more: otherwise anyone with write access to the store could plant values. Keys
    that are not 32 bytes in base64 (``openssl rand -base64 32``) raise ValueError.
    """
    ciphers = [AESGCM(_key(text)) for text in keys.split(",")]

    def seal(name: bytes, value: bytes) -> bytes:
        # Random nonces are safe for 2**32 values under one key: a year at a hundred writes a second.
        nonce = os.urandom(NONCE_BYTES)
        return ENCRYPTED + nonce + ciphers[0].encrypt(nonce, value, name)

    def unseal(name: bytes, sealed: bytes) -> bytes | None:
        if not sealed.startswith(ENCRYPTED):
            return None
        nonce, secret = sealed[len(ENCRYPTED) :][:NONCE_BYTES], sealed[len(ENCRYPTED) + NONCE_BYTES :]
        for cipher in ciphers:
            try:
                return cipher.decrypt(nonce, secret, name)
            except (InvalidTag, ValueError):
                continue
        return None

    return Sealing(seal, unseal)


def _key(text: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), altchars=b"-_" if set(text) & set("-_") else None, validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        # The text itself is a secret, even when it is invalid.
        raise ValueError("store.encryption_key is not 32 bytes in base64: make one with `openssl rand -base64 32`")
    return key
