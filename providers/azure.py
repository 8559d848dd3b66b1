"""Azure: OpenAI's dialect under another roof, with deployments in the path and a key in a header of its own."""

from dataclasses import replace
from typing import Final
from urllib.parse import quote, urlsplit

from providers.openai import OPENAI, join
from providers.record import Endpoint

API_VERSION: Final = "2024-10-21"
"""The last version that is generally available; the v1 API needs none."""


def deployment(endpoint: Endpoint, path: str, query: str, model: str) -> str:
    """Find the URL in whichever of Azure's addressing schemes the base URL shows.

    ``.../openai/v1`` is the v1 API: nothing to add. A base that names its deployment (``.../deployments/NAME``), or the
    model-inference endpoint (``.../models``), takes the path as it is. Everything else is a resource: the deployment is
    the option of that name or the model, and paths that belong to no deployment stay at the resource.
    """
    base = urlsplit(endpoint.base_url)
    below = base.path.rstrip("/")
    if below.endswith("/v1"):
        return join(endpoint, path, query, model)
    version = endpoint.options.get("api_version") or API_VERSION
    if "api-version=" not in query and "api-version=" not in base.query:
        query = "&".join(part for part in (query, f"api-version={version}") if part)
    if "/deployments/" in below or below.endswith("/models"):
        return join(endpoint, path, query, model)
    name = endpoint.options.get("deployment") or model
    prefix = "" if below.endswith("/openai") else "/openai"
    if name and not path.startswith("/models"):
        prefix += f"/deployments/{quote(name, safe='')}"
    return join(endpoint, prefix + path, query, model)


def api_key(key: str) -> dict[str, str]:
    """Carry the key in ``api-key``; an Entra ID token (a JWT) is a bearer token."""
    return {"authorization": f"Bearer {key}"} if key.startswith("eyJ") else {"api-key": key}


AZURE: Final = replace(
    OPENAI,
    name="azure",
    locate=deployment,
    authorize=api_key,
    credential_headers=("authorization", "api-key", "x-api-key"),
)
