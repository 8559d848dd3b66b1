"""Only what we sealed, for that very place, can be unsealed."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.state.store.encryption import encrypted
from gateway.state.store.sealing import CHECKED, Sealing

KEY, OTHER_KEY = (base64.b64encode(bytes([byte]) * 32).decode() for byte in (1, 2))

SEALINGS = [CHECKED, encrypted(KEY)]


@pytest.mark.parametrize("sealing", SEALINGS)
@given(value=st.binary(max_size=200), place=st.binary(max_size=20))
def test_what_was_sealed_comes_back(sealing: Sealing, value: bytes, place: bytes) -> None:
    assert sealing.unseal(place, sealing.seal(place, value)) == value


@pytest.mark.parametrize("sealing", SEALINGS)
@given(data=st.data(), value=st.binary(max_size=50))
def test_one_changed_byte_makes_a_value_foreign(sealing: Sealing, data: st.DataObject, value: bytes) -> None:
    sealed = bytearray(sealing.seal(b"place", value))
    position = data.draw(st.integers(0, len(sealed) - 1))
    sealed[position] ^= data.draw(st.integers(1, 255))
    assert sealing.unseal(b"place", bytes(sealed)) is None


@pytest.mark.parametrize("sealing", SEALINGS)
@given(foreign=st.binary(max_size=100))
def test_foreign_bytes_are_no_value(sealing: Sealing, foreign: bytes) -> None:
    assert sealing.unseal(b"place", foreign) is None
    assert sealing.unseal(b"elsewhere", sealing.seal(b"place", foreign)) is None


def test_plain_values_are_not_read_once_encryption_is_on() -> None:
    assert encrypted(KEY).unseal(b"place", CHECKED.seal(b"place", b"planted")) is None
    assert CHECKED.unseal(b"place", encrypted(KEY).seal(b"place", b"secret")) is None


def test_keys_rotate_first_one_encrypts_all_decrypt() -> None:
    old = encrypted(KEY).seal(b"place", b"words")
    rotated = encrypted(f"{OTHER_KEY}, {KEY}")
    assert rotated.unseal(b"place", old) == b"words"
    assert encrypted(OTHER_KEY).unseal(b"place", rotated.seal(b"place", b"words")) == b"words"
    assert encrypted(OTHER_KEY).unseal(b"place", old) is None


def test_a_key_in_url_safe_base64_is_as_good() -> None:
    raw = bytes([0xFB, 0xEF] * 16)
    plain, url_safe = base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()
    assert plain != url_safe
    assert encrypted(url_safe).unseal(b"", encrypted(plain).seal(b"", b"words")) == b"words"


@pytest.mark.parametrize("key", ["hunter2", base64.b64encode(bytes(16)).decode(), f"{KEY},", "ключ" * 11])
def test_a_bad_key_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(ValueError, match="32 bytes in base64") as refusal:
        encrypted(key)
    assert key not in str(refusal.value)
