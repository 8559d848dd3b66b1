"""Anthropic's Messages API gets the key in its own header, chat completions as a bearer token."""

import pytest
from multidict import CIMultiDict

from gateway.config import Upstream
from gateway.upstream.client import UpstreamCall, target

VERSION = {"anthropic-version": "2023-06-01"}


@pytest.mark.parametrize(
    ("key", "given", "expected"),
    [
        ("sk-ant-api", VERSION, {**VERSION, "x-api-key": "sk-ant-api"}),
        ("sk-ant-oat01", VERSION, {**VERSION, "authorization": "Bearer sk-ant-oat01"}),
        ("sk-ant-api", {}, {"authorization": "Bearer sk-ant-api"}),
        ("", {"x-api-key": "own"}, {"x-api-key": "own"}),
        ("sk-ant-api", {"x-api-key": "own", "authorization": "Bearer own", **VERSION}, {**VERSION, "x-api-key": "sk-ant-api"}),
    ],
)  # fmt: skip
def test_the_key_goes_where_the_api_looks_for_it(key: str, given: dict[str, str], expected: dict[str, str]) -> None:
    upstream = target(Upstream("claude", "anthropic", "https://api.anthropic.com", key))

    assert dict(upstream.authorised(CIMultiDict(given))) == expected


@pytest.mark.parametrize(
    "base", ["https://api.anthropic.com", "https://api.anthropic.com/v1", "https://api.anthropic.com/v1/"]
)
def test_the_path_is_never_doubled(base: str) -> None:
    upstream = target(Upstream("claude", "anthropic", base, ""))

    assert str(upstream.url(UpstreamCall("POST", "/messages", "", "m"))) == "https://api.anthropic.com/v1/messages"
