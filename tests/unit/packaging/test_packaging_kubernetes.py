"""The manifests for Kubernetes meet its schemas, keep the same walls as docker-compose.yml, and fit together.

There is no schema of KubeRay's resources among the packages, so that a RayCluster is checked by what is asserted here,
and the pods in it by Kubernetes' schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from loopwright.version import VERSION
from service.settings import Settings

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "kubernetes"
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
RESOURCES: list[dict[str, Any]] = [
    resource for file in KUSTOMIZATION["resources"] for resource in yaml.safe_load_all((FOLDER / file).read_text())
]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
(RAY,) = (resource for resource in RESOURCES if resource["kind"] == "RayCluster")
HEAD = f"{RAY['metadata']['name']}-head-svc:6379"
"""As KubeRay names the service of a cluster's head."""
KUBERNETES = "1.32"
SECRET_KEYS = {"database-url", "owner-database-url", "token", "ray-token"}


def named(resource: dict[str, Any]) -> str:
    return f"{resource['kind']} {resource['metadata']['name']}"


def validate(resource: dict[str, Any]) -> None:
    kubernetes_validate.validate(resource, KUBERNETES, strict=True)


def templates() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each pod's template with a name."""
    for resource in RESOURCES:
        if resource["kind"] in ("Deployment", "Job"):
            yield resource["metadata"]["name"], resource["spec"]["template"]
    yield "head", RAY["spec"]["headGroupSpec"]["template"]
    for group in RAY["spec"]["workerGroupSpecs"]:
        yield group["groupName"], group["template"]


PODS = dict(templates())


def container(name: str) -> dict[str, Any]:
    (found,) = PODS[name]["spec"]["containers"]
    return dict(found)


def component(name: str) -> str:
    return str(PODS[name]["metadata"]["labels"]["app.kubernetes.io/component"])


@pytest.mark.parametrize("resource", [each for each in RESOURCES if each is not RAY], ids=named)
def test_a_resource_meets_the_schema(resource: dict[str, Any]) -> None:
    validate(resource)


@pytest.mark.parametrize("name", sorted(PODS))
def test_a_pod_meets_the_schema(name: str) -> None:
    template = deepcopy(PODS[name])
    validate(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **template["metadata"]},
            **{"spec": template["spec"]},
        }
    )


def test_the_schema_refuses_a_mistake() -> None:
    wrong = deepcopy(next(resource for resource in RESOURCES if resource["kind"] == "Deployment"))
    wrong["spec"]["template"]["spec"]["containers"][0]["livenessprobe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        validate(wrong)


def test_every_file_is_listed_and_every_resource_is_there_once() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*KUSTOMIZATION["resources"], "kustomization.yaml"}
    names = [named(resource) for resource in RESOURCES]
    assert len(set(names)) == len(names)
    assert {resource["kind"] for resource in RESOURCES} == {
        *(
            "ConfigMap",
            "Deployment",
            "Job",
            "Namespace",
            "NetworkPolicy",
            "PodDisruptionBudget",
            "RayCluster",
            "Service",
        )
    }


@pytest.mark.parametrize("name", sorted(PODS))
def test_a_pod_runs_without_privileges_and_cannot_change_its_image(name: str) -> None:
    pod = PODS[name]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert (
        f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
        == (COMPOSE["services"]["api"]["user"])
    )
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(name)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "memory" in container(name)["resources"]["limits"]
    assert all("sizeLimit" in volume["emptyDir"] for volume in pod["volumes"])
    assert {mount["name"] for mount in container(name)["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def secrets_of(name: str) -> set[str]:
    references = [each["valueFrom"]["secretKeyRef"] for each in container(name)["env"] if "valueFrom" in each]
    assert all(reference["name"] == "loopwright" for reference in references)
    return {reference["key"] for reference in references}


def test_each_pod_has_the_secrets_that_it_needs() -> None:
    assert {name: secrets_of(name) for name in PODS} == {
        "loopwright-migrate": {"owner-database-url"},
        "loopwright-api": {"database-url", "token"},
        "loopwright-controller": {"database-url", "ray-token"},
        "head": {"ray-token"},
        "cpu": {"ray-token"},
        "gpu": {"ray-token"},
    }
    assert set().union(*map(secrets_of, PODS)) == SECRET_KEYS
    assert not [resource for resource in RESOURCES if resource["kind"] == "Secret"]


def test_settings_are_the_services() -> None:
    (settings,) = (resource for resource in RESOURCES if resource["kind"] == "ConfigMap")
    own = {f"LOOPWRIGHT_{field.upper()}": field for field in Settings.model_fields}
    given = {own[name]: value for name, value in settings["data"].items()}
    assert Settings(**given).log_format == "json"
    for name in PODS:
        assert {each["name"] for each in container(name)["env"] if each["name"].startswith("LOOPWRIGHT")} <= own.keys()
    for name in ("loopwright-api", "loopwright-controller"):
        assert container(name)["envFrom"] == [{"configMapRef": {"name": settings["metadata"]["name"]}}]


def test_commands_are_those_of_docker_compose() -> None:
    services = COMPOSE["services"]
    assert container("loopwright-api")["command"] == services["api"]["command"]
    assert container("loopwright-migrate")["command"] == services["migrate"]["command"]
    command = [part.replace("ray-head:6379", HEAD) for part in services["controller"]["command"]]
    assert container("loopwright-controller")["command"] == command


def test_the_cluster_is_of_the_locked_ray_and_its_head_does_no_work() -> None:
    assert (RAY["apiVersion"], RAY["spec"]["rayVersion"]) == ("ray.io/v1", version("ray"))
    assert RAY["spec"].keys() == {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
    assert RAY["spec"]["headGroupSpec"].keys() == {"rayStartParams", "template"}
    assert RAY["spec"]["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0", "include-dashboard": "false"}
    for name in ("head", "cpu", "gpu"):
        # KubeRay says what runs in these.
        assert "command" not in container(name)
        for probe in ("readinessProbe", "livenessProbe"):
            assert HEAD in container(name)[probe]["exec"]["command"]
    assert {"name": "LOOPWRIGHT_RAY_ADDRESS", "value": HEAD} in container("loopwright-controller")["env"]


def test_groups_of_workers_can_be_scaled_and_have_nodes_and_cores_of_their_own() -> None:
    groups = {group["groupName"]: group for group in RAY["spec"]["workerGroupSpecs"]}
    assert groups.keys() == {"cpu", "gpu"}
    for name, group in groups.items():
        assert group.keys() == {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
        resources = container(name)["resources"]
        assert resources["requests"] == resources["limits"]
        assert str(resources["limits"]["cpu"]).isdecimal()
        (alone,) = PODS[name]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert alone["topologyKey"] == "kubernetes.io/hostname"
        assert alone["labelSelector"]["matchLabels"] == {"app.kubernetes.io/part-of": "loopwright"}
    assert "nvidia.com/gpu" in container("gpu")["resources"]["limits"]
    assert "nvidia.com/gpu" not in container("cpu")["resources"]["limits"]


def test_the_api_is_probed_served_and_not_evicted_as_a_whole() -> None:
    labels = PODS["loopwright-api"]["metadata"]["labels"]
    api = container("loopwright-api")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert api[probe]["httpGet"]["path"] == "/healthz"
    by_kind = {resource["kind"]: resource for resource in RESOURCES if resource["metadata"]["name"] == "loopwright-api"}
    assert by_kind["Service"]["spec"]["selector"] == labels
    assert by_kind["Service"]["spec"]["type"] == "ClusterIP"
    assert by_kind["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert by_kind["PodDisruptionBudget"]["spec"]["minAvailable"] < by_kind["Deployment"]["spec"]["replicas"]
    assert by_kind["Deployment"]["spec"]["selector"]["matchLabels"] == labels


def chosen(selector: dict[str, Any]) -> set[str]:
    """The components whose pods a selector chooses."""
    found = set()
    for name in PODS:
        labels = PODS[name]["metadata"]["labels"]
        matches = selector.get("matchLabels", {}).items() <= labels.items() and all(
            rule["operator"] == "In" and labels[rule["key"]] in rule["values"]
            for rule in selector.get("matchExpressions", ())
        )
        if matches:
            found.add(component(name))
    return found


def test_who_measures_reaches_no_database_and_nothing_outside() -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in RESOURCES if each["kind"] == "NetworkPolicy"}
    everybody = {component(name) for name in PODS}
    assert policies["nobody"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert chosen(policies["names"]["podSelector"]) == everybody
    assert chosen(policies["to-database"]["podSelector"]) == {"api", "controller", "migrate"}
    assert chosen(policies["to-api"]["podSelector"]) == {"api"}
    ray = {"controller", "ray-head", "ray-worker"}
    assert chosen(policies["ray"]["podSelector"]) == ray
    for direction, ends in (("ingress", "from"), ("egress", "to")):
        ((end,),) = (rule[ends] for rule in policies["ray"][direction])
        assert end.keys() == {"podSelector"}
        assert chosen(end["podSelector"]) == ray
    outside = [name for name, spec in policies.items() if "ipBlock" in str(spec)]
    assert outside == ["to-database"]


def test_images_are_those_of_docker_compose() -> None:
    services = COMPOSE["services"]
    tags = {image["name"]: image["newTag"] for image in KUSTOMIZATION["images"]}
    assert tags == {"loopwright": VERSION, "loopwright-gpu": VERSION}
    assert {f"{name}:{tag}" for name, tag in tags.items()} == {
        services[each]["image"] for each in ("api", "gpu-worker")
    }
    assert {container(name)["image"] for name in PODS} == {services[each]["image"] for each in ("api", "gpu-worker")}
    assert container("gpu")["image"] == services["gpu-worker"]["image"]


def test_heads_give_a_machine_up_that_does_not_answer_as_documented() -> None:
    names = ["RAY_health_check_period_ms", "RAY_health_check_timeout_ms"]
    environment = {each["name"]: each.get("value") for each in container("head")["env"]}
    values = [environment[name] for name in names]
    assert values == [COMPOSE["services"]["ray-head"]["environment"][name] for name in names]
    guide = (ROOT / "docs" / "operations.md").read_text()
    assert all(f"`{name}={value}`" in guide for name, value in zip(names, values, strict=True))
