"""The deployment files are valid, and agree with each other and with the configuration."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config import Settings, parse

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
NEWEST, OLDEST = "1.37", "1.27"
"""What the manifests are checked against: the newest schemas at hand, and the oldest that clouds still run."""
ENVIRON = {"TURNFOLD_ADMIN_TOKEN": "t" * 32, "OPENAI_API_KEY": "k"}

Manifest = dict[str, Any]


def manifests() -> list[Manifest]:
    files = sorted(path for path in KUBERNETES.glob("*.yaml") if path.name != "kustomization.yaml")
    return [document for path in files for document in yaml.safe_load_all(path.read_text())]


def named(kind: str, name: str = "turnfold") -> Manifest:
    (found,) = (each for each in manifests() if each["kind"] == kind and each["metadata"]["name"] == name)
    return found


def identity(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("manifest", manifests(), ids=identity)
def test_every_manifest_is_valid_by_the_schema(manifest: Manifest, version: str) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    validator.validate(manifest, version, strict=True)


def test_the_schema_would_notice_a_wrong_manifest() -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    wrong = named("Deployment")
    wrong["spec"]["replica"] = 2
    with pytest.raises(validator.ValidationError):
        validator.validate(wrong, NEWEST, strict=True)


def test_kustomize_applies_every_manifest() -> None:
    listed = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == sorted(
        path.name for path in KUBERNETES.glob("*.yaml") if path.name != "kustomization.yaml"
    )


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_builds_what_the_manifests_say(tmp_path: Path) -> None:
    command = ["kubectl", "kustomize", str(KUBERNETES)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "HOME": str(tmp_path)}
    )
    assert done.returncode == 0, done.stderr
    built = [identity(each) for each in yaml.safe_load_all(done.stdout)]
    assert len(built) == len(manifests())
    assert {name for name in built if "-" not in name} <= set(map(identity, manifests()))


def test_whatever_selects_pods_selects_the_gateways() -> None:
    labels = named("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert named("Service")["spec"]["selector"] == labels
    assert named("Service", "turnfold-admin")["spec"]["selector"] == labels
    assert named("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert named("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels
    assert named("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["name"] == named("Deployment")["metadata"]["name"]


def test_a_pod_may_end_its_streams_before_it_is_killed() -> None:
    pod = named("Deployment")["spec"]["template"]["spec"]
    stopping = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > stopping + kubernetes_settings().server.shutdown_grace_s


def test_the_probes_and_ports_are_the_gateways_own() -> None:
    container = named("Deployment")["spec"]["template"]["spec"]["containers"][0]
    settings = kubernetes_settings()
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == {
        "http": settings.server.port,
        "admin": settings.admin.port,
    }
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"


def kubernetes_settings() -> Settings:
    return parse(named("ConfigMap")["data"]["turnfold.yaml"], ENVIRON, "configmap.yaml")


def test_both_configurations_are_accepted_and_share_one_store() -> None:
    services = {each["metadata"]["name"] for each in manifests() if each["kind"] == "Service"}
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    settings = parse((DEPLOY / "turnfold.yaml").read_text(), ENVIRON, "turnfold.yaml")
    for given, hosts in ((kubernetes_settings(), services), (settings, set(compose))):
        scheme, _, host = given.store.url.partition("://")
        assert scheme == "redis"
        assert host.partition(":")[0] in hosts
        assert given.server.host == given.admin.host == "0.0.0.0"


def test_secrets_hold_placeholders_only() -> None:
    assert set(named("Secret")["stringData"].values()) <= {"", "replace-me"}


def test_the_compose_file_is_valid_by_its_specification() -> None:
    specification = pytest.importorskip("compose_spec", reason="compose-spec is not installed")
    resolved = yaml.safe_load((DEPLOY / "compose.yaml").read_text())

    def check(content: Manifest) -> None:
        composed = specification.PyCompose.from_yaml(yaml.safe_dump(content))
        composed.validate()
        composed.to_spec()

    check(resolved)
    resolved["services"]["nginx"]["porst"] = ["8080:8080"]
    with pytest.raises(ValueError, match="porst"):
        check(resolved)


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_nginx_accepts_its_configuration(tmp_path: Path) -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    for name in yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]:
        text = text.replace(f"{name}:", "127.0.0.1:")
    assert "gateway-" not in text, "nginx names only services that there are"
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid;\nerror_log stderr;\n" + text)
    checked = subprocess.run(
        ["nginx", "-t", "-p", str(tmp_path), "-c", "nginx.conf"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
