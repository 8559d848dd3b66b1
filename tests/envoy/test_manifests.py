"""The manifests for Kubernetes are valid, and say the same as the configuration that runs in tests."""

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config import parse
from tests.envoy.setting import CONFIGURATION, ENVOY

FOLDER = CONFIGURATION.parent
OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
Value = Any


def documents(name: str) -> list[Value]:
    return list(yaml.safe_load_all((FOLDER / name).read_text("utf-8")))


def published() -> Value:
    return yaml.safe_load(CONFIGURATION.read_text("utf-8"))


def with_istio_patches(whole: Value) -> Value:
    """Apply each patch of an EnvoyFilter as Istio's MERGE does."""
    (manifest,) = documents("istio.yaml")
    for patch in manifest["spec"]["configPatches"]:
        value = patch["patch"]["value"]
        hosts = _hosts(whole)
        place = {
            "VIRTUAL_HOST": hosts[0],
            "HTTP_ROUTE": hosts[0]["routes"][0],
            "CLUSTER": whole["static_resources"]["clusters"][0],
        }
        _merge(place[patch["applyTo"]], value)
    return whole


def with_gateway_patches(whole: Value) -> Value:
    """Apply each JSON patch of an EnvoyPatchPolicy."""
    (manifest,) = documents("envoy-gateway-retry.yaml")
    clusters = whole["static_resources"]["clusters"]
    for patch in manifest["spec"]["jsonPatches"]:
        operation = patch["operation"]
        if operation["path"] == "":
            clusters.append(operation["value"])
            continue
        place: Value = {"virtual_hosts": _hosts(whole)} if "route" in patch["type"] else clusters[0]
        *parents, last = operation["path"].strip("/").split("/")
        for name in parents:
            place = place[int(name)] if name.isdigit() else place[name]
        place[last] = operation["value"]
    return whole


def _hosts(whole: Value) -> Value:
    chain = whole["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    return chain["route_config"]["virtual_hosts"]


def _merge(into: Value, value: Value) -> None:
    for name, each in value.items():
        if isinstance(each, dict) and isinstance(into.get(name), dict):
            _merge(into[name], each)
        else:
            into[name] = each


def bare() -> Value:
    """The published configuration without anything of ours: what a mesh has before."""
    whole = published()
    folded = whole["static_resources"]["clusters"][0]
    for name in ("typed_extension_protocol_options", "circuit_breakers", "per_connection_buffer_limit_bytes"):
        del folded[name]
    (host,) = _hosts(whole)
    del host["include_request_attempt_count"], host["routes"][0]["route"]["retry_policy"]
    whole["static_resources"]["clusters"] = [folded, whole["static_resources"]["clusters"][1]]
    return whole


@pytest.mark.skipif(not ENVOY.exists(), reason="envoy is not installed: run `make envoy`")
@pytest.mark.parametrize(
    ("name", "whole"),
    [("published", published()), ("Istio", with_istio_patches(bare())), ("Envoy Gateway", with_gateway_patches(bare()))],
)  # fmt: skip
async def test_envoy_accepts_the_configuration(tmp_path: Path, name: str, whole: Value) -> None:
    if name == "Istio":  # a mesh makes the cluster of a service itself
        cluster = copy.deepcopy(published()["static_resources"]["clusters"][2])
        cluster["name"] = "outbound|8789||turnfold-extproc.models.svc.cluster.local"
        whole["static_resources"]["clusters"].append(cluster)
    assert (await accepted(tmp_path, whole)) == ""
    filters(whole)[1]["typed_config"]["failure_mode_alow"] = True
    assert "failure_mode_alow" in await accepted(tmp_path, whole)


async def accepted(folder: Path, whole: Value) -> str:
    """Return what Envoy has against a configuration; empty for nothing."""
    (folder / "envoy.yaml").write_text(yaml.safe_dump(whole))
    process = await asyncio.create_subprocess_exec(
        str(ENVOY), "--mode", "validate", "-c", str(folder / "envoy.yaml"), "-l", "error",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said = (await process.communicate())[0].decode()
    return said if process.returncode else ""


def filters(whole: Value) -> Value:
    return whole["static_resources"]["clusters"][0]["typed_extension_protocol_options"][OPTIONS]["http_filters"]


@pytest.mark.parametrize("patched", [with_istio_patches, with_gateway_patches])
def test_a_mesh_filters_and_retries_as_the_published_configuration_does(patched: Any) -> None:
    whole, known = patched(bare()), published()
    names = filters(whole)[1]["typed_config"]["grpc_service"]["envoy_grpc"]
    names["cluster_name"] = "turnfold"

    assert filters(whole) == filters(known)
    assert _hosts(whole)[0]["include_request_attempt_count"] is True
    routes = [_hosts(each)[0]["routes"][0]["route"]["retry_policy"] for each in (whole, known)]
    assert routes[0] == routes[1]


def test_envoy_gateways_simple_policy_buffers_requests_and_lets_errors_be_read() -> None:
    policy = documents("envoy-gateway.yaml")[0]["spec"]
    (processor,) = policy["extProc"]
    known = filters(published())[1]["typed_config"]
    assert processor["failOpen"] == known["failure_mode_allow"]
    assert processor["messageTimeout"] == known["message_timeout"]
    assert processor["processingMode"]["allowModeOverride"] is known["allow_mode_override"]
    assert processor["processingMode"]["request"]["body"].upper() == known["processing_mode"]["request_body_mode"]
    services = {each["metadata"]["name"]: each for each in documents("processor.yaml") if each["kind"] == "Service"}
    (backend,) = processor["backendRefs"]
    assert backend["port"] in [port["port"] for port in services[backend["name"]]["spec"]["ports"]]


@pytest.mark.parametrize("version", ["1.27", "1.37"])
@pytest.mark.parametrize("manifest", documents("processor.yaml"), ids=lambda each: each["kind"])
def test_the_processors_manifests_are_valid_by_the_schema(manifest: Value, version: str) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    validator.validate(manifest, version, strict=True)


def test_a_processor_drains_before_it_is_killed() -> None:
    found = {each["kind"]: each for each in documents("processor.yaml")}
    settings = parse(found["ConfigMap"]["data"]["turnfold.yaml"], {"TURNFOLD_ADMIN_TOKEN": "t" * 32}, "configmap")
    pod = found["Deployment"]["spec"]["template"]["spec"]
    arguments = pod["containers"][0]["args"]
    notice = float(arguments[arguments.index("--notice") + 1])
    probe = pod["containers"][0]["readinessProbe"]
    assert notice >= probe["periodSeconds"] * probe["failureThreshold"]
    assert pod["terminationGracePeriodSeconds"] > notice + settings.server.shutdown_grace_s
