"""Azure: OpenAI's dialect with the deployment in the path and the key in its own header."""

import re
from typing import Final
from urllib.parse import quote, urlsplit

from msgspec.structs import replace

from providers.openai import OPENAI, join
from providers.record import Endpoint

API_VERSION: Final = "2024-10-21"
"""The latest generally available version, as a date. The v1 API does not need one."""


DEPLOYED: Final = (
    "/chat/completions", "/completions", "/embeddings", "/audio/transcriptions", "/audio/translations", "/audio/speech",
    "/images/generations", "/images/edits",
)  # fmt: skip
"""Endpoints that stand below a deployment; Responses, files and others stand directly below ``/openai``. A longer one stands before its
own ending."""
REALTIME: Final = "/realtime"
"""The endpoint whose deployment stands in the query:
https://learn.microsoft.com/en-us/azure/ai-foundry/openai/how-to/realtime-audio-websockets."""
DATED: Final = re.compile(r"(?:^|&)api-version=\d[^&]*")
"""A dated version of the older API, which the v1 API refuses."""


def deployment(endpoint: Endpoint, path: str, query: str, model: str) -> str:
    """Return the URL for the addressing scheme that the base URL uses.

    A base URL that ends in ``/v1`` is the v1 API: the path is appended. A base URL that names its deployment
    (``.../deployments/NAME``), or that is the model-inference endpoint (``.../models``), also gets the path unchanged.
    Every other base URL is a resource: the deployment is the option ``deployment`` or else the model, for the endpoints
    that have one. A socket of the Realtime API has it in its query.
    """
    base = urlsplit(endpoint.base_url)
    below = base.path.rstrip("/")
    if below.endswith("/v1"):
        return join(endpoint, path, DATED.sub("", query).removeprefix("&"), model)
    version = endpoint.options.get("api_version") or API_VERSION
    if "api-version=" not in query and "api-version=" not in base.query:
        query = "&".join(part for part in (query, f"api-version={version}") if part)
    if "/deployments/" in below or below.endswith("/models"):
        return join(endpoint, path, query, model)
    name = endpoint.options.get("deployment") or model
    prefix = "" if below.endswith("/openai") else "/openai"
    if name and path.rstrip("/") in DEPLOYED:
        prefix += f"/deployments/{quote(name, safe='')}"
    if name and path == REALTIME:
        parts = [part for part in query.split("&") if part and not part.startswith("model=")]
        query = "&".join([*parts, f"deployment={quote(name, safe='')}"])
    return join(endpoint, prefix + path, query, model)


def api_key(key: str) -> dict[str, str]:
    """Put the key into ``api-key``; an Entra ID token (a JWT) is sent as a bearer token."""
    return {"authorization": f"Bearer {key}"} if key.startswith("eyJ") else {"api-key": key}


AZURE: Final = replace(
    OPENAI,
    name="azure",
    locate=deployment,
    authorize=api_key,
    credential_headers=("authorization", "api-key", "x-api-key"),
    versioned=True,
)
