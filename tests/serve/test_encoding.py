"""Encodings: what can be read along is asked for, and nothing else."""

import pytest

from gateway.serve.incoming.encoding import readable_encodings


@pytest.mark.parametrize(
    ("offered", "kept"),
    [
        ("gzip, deflate, br, zstd", "gzip, deflate, zstd"),
        ("br", "identity"),
        ("", "identity"),
        ("GZIP;q=0.5, *;q=0", "gzip;q=0.5"),
        ("identity", "identity"),
    ],
)
def test_only_encodings_that_can_be_read_along_are_asked_for(offered: str, kept: str) -> None:
    assert readable_encodings(offered) == kept
