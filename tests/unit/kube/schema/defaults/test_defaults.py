"""Built-in kinds get the defaults of a Kubernetes 1.32 API server, and the input is not changed."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import ManifestError
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema import defaults
from argosy.kube.schema.defaults.pod import default_pull_policy
from support.schema_defaults import POD, SELECTOR, TEMPLATE, TEMPLATE_DEFAULTED, defaulted, manifest


def test_deployment_gets_the_defaults_of_a_real_server() -> None:
    deployment = defaulted(manifest("apps/v1", "Deployment", spec={"selector": SELECTOR, "template": TEMPLATE}))
    assert deployment["spec"] == {
        "replicas": 1,
        "selector": SELECTOR,
        "template": TEMPLATE_DEFAULTED,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    assert deployment["status"] == {}


def test_recreate_deployment_gets_no_rolling_update() -> None:
    spec = {"selector": SELECTOR, "template": TEMPLATE, "strategy": {"type": "Recreate"}, "replicas": 0}
    deployment = defaulted(manifest("apps/v1", "Deployment", spec=spec))
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert deployment["spec"]["replicas"] == 0


def test_service_gets_defaults_and_cluster_ip_as_on_a_real_server() -> None:
    service = defaulted(manifest("v1", "Service", spec={"selector": {"a": "b"}, "ports": [{"port": 80}]}))
    assert defaults.allocate_service(service, "10.0.0.172")["spec"] == {
        "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
        "selector": {"a": "b"},
        "clusterIP": "10.0.0.172",
        "clusterIPs": ["10.0.0.172"],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    assert service["status"] == {"loadBalancer": {}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"clusterIP": "None", "selector": {"a": "b"}}, ("None", ["IPv4"], "SingleStack")),
        ({"clusterIP": "None"}, ("None", ["IPv4", "IPv6"], "RequireDualStack")),
        ({"clusterIP": "10.0.0.9"}, ("10.0.0.9", ["IPv4"], "SingleStack")),
        ({"type": "ExternalName", "externalName": "a.b"}, (None, None, None)),
    ],
)
def test_cluster_ip_is_allocated_only_if_needed(spec: dict[str, Any], expected: tuple[Any, ...]) -> None:
    service_spec = defaults.allocate_service(defaulted(manifest("v1", "Service", spec=spec)), "10.0.0.1")["spec"]
    assert (
        service_spec.get("clusterIP"),
        service_spec.get("ipFamilies"),
        service_spec.get("ipFamilyPolicy"),
    ) == expected


def test_node_ports_are_shared_per_port_and_kept_on_update() -> None:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 80, "protocol": "UDP"}, {"name": "c", "port": 81}]
    service = defaulted(manifest("v1", "Service", spec={"type": "NodePort", "ports": ports}))
    numbers = iter(range(30000, 30100))
    allocated = defaults.allocate_service(service, "10.0.0.1", lambda: next(numbers))
    assert [port["nodePort"] for port in allocated["spec"]["ports"]] == [30000, 30000, 30001]
    assert allocated["spec"]["externalTrafficPolicy"] == "Cluster"
    again = defaults.keep_allocated_fields(service, allocated)
    assert again["spec"]["clusterIP"] == "10.0.0.1"
    assert [port.get("nodePort") for port in again["spec"]["ports"]] == [30000, 30000, 30001]
    to_cluster_ip = {**allocated, "spec": {**allocated["spec"], "type": "ClusterIP"}}
    after = defaults.keep_allocated_fields(to_cluster_ip, allocated)["spec"]
    assert all("nodePort" not in port for port in after["ports"])
    assert "externalTrafficPolicy" not in after


def test_client_ip_session_affinity_gets_a_timeout() -> None:
    service = defaulted(manifest("v1", "Service", spec={"sessionAffinity": "ClientIP"}))
    assert service["spec"]["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"), ("nginx:latest", "Always"), ("nginx:1.27", "IfNotPresent"), ("a.io:5000/b", "Always"),
        ("a.io:5000/b:v1", "IfNotPresent"), ("nginx@sha256:" + "0" * 64, "IfNotPresent"), ("", "IfNotPresent"),
        ("Not/An Image", "IfNotPresent"), ("localhost/x/y", "Always"), ("UPPER", "IfNotPresent"),
    ],
)  # fmt: skip
def test_image_pull_policy_default_depends_on_the_tag(image: str, policy: str) -> None:
    assert default_pull_policy(image) == policy


def test_pod_gets_defaults_that_pod_templates_do_not_get() -> None:
    container = {"name": "c", "image": "a:1", "resources": {"limits": {"cpu": 1, "memory": "1024Mi"}}}
    pod_spec = {"containers": [{**container, "ports": [{"containerPort": 80}]}], "hostNetwork": True}
    defaulted_spec = defaulted(manifest("v1", "Pod", spec=pod_spec))["spec"]
    assert defaulted_spec["enableServiceLinks"] is True
    assert defaulted_spec["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "1", "memory": "1Gi"},
    }
    assert defaulted_spec["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}]
    template = defaulted(manifest("v1", "PodTemplate", template={"spec": {"containers": [container]}}))["template"]
    assert "requests" not in template["spec"]["containers"][0]["resources"]
    assert "enableServiceLinks" not in template["spec"]


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({"name": "v"}, {"name": "v", "emptyDir": {}}),
        ({"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}, {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}),
        ({"name": "v", "hostPath": {"path": "/"}}, {"name": "v", "hostPath": {"path": "/", "type": ""}}),
        (
            {"name": "v", "secret": {"secretName": "s"}},
            {"name": "v", "secret": {"secretName": "s", "defaultMode": 420}},
        ),
        ({"name": "v", "configMap": {"defaultMode": 0}}, {"name": "v", "configMap": {"defaultMode": 0}}),
        (
            {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "name": "v",
                "projected": {
                    "defaultMode": 420,
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                },
            },
        ),
    ],
)
def test_volumes_get_their_defaults(volume: dict[str, Any], expected: dict[str, Any]) -> None:
    pod = defaulted(manifest("v1", "Pod", spec={**POD, "volumes": [volume]}))
    assert pod["spec"]["volumes"] == [expected]


def test_probes_env_and_lifecycle_hooks_get_defaults() -> None:
    container = {
        "name": "c",
        "env": [
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "C", "value": "1"},
        ],
        "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5},
        "livenessProbe": {"grpc": {"port": 1}, "timeoutSeconds": 0},
        "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
    }
    defaulted_container = defaulted(manifest("v1", "Pod", spec={"containers": [container]}))["spec"]["containers"][0]
    assert defaulted_container["env"][0]["valueFrom"] == {
        "fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}
    }
    assert defaulted_container["env"][1]["valueFrom"] == {
        "resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}
    }
    assert defaulted_container["env"][2] == {"name": "C", "value": "1"}
    assert defaulted_container["readinessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "periodSeconds": 5,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert defaulted_container["livenessProbe"]["grpc"] == {"port": 1, "service": ""}
    assert defaulted_container["livenessProbe"]["timeoutSeconds"] == 1
    assert defaulted_container["lifecycle"]["preStop"]["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}


def test_service_account_name_is_copied_to_service_account() -> None:
    pod = defaulted(manifest("v1", "Pod", spec={**POD, "serviceAccountName": "sa"}))
    assert pod["spec"]["serviceAccount"] == "sa"


def test_stateful_set_and_its_volume_claim_templates_get_defaults() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1024Mi"}}}}
    spec = {"selector": SELECTOR, "template": TEMPLATE, "volumeClaimTemplates": [claim]}
    defaulted_spec = defaulted(manifest("apps/v1", "StatefulSet", spec=spec))["spec"]
    assert defaulted_spec["volumeClaimTemplates"] == [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"creationTimestamp": None, "name": "data"},
            "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
            "status": {"phase": "Pending"},
        }
    ]
    assert defaulted_spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert defaulted_spec["podManagementPolicy"] == "OrderedReady"
    assert defaulted_spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert defaulted_spec["serviceName"] == ""


def test_job_gets_one_completion_and_the_labels_of_its_pod_template() -> None:
    job = defaulted(manifest("batch/v1", "Job", spec={"template": TEMPLATE}))
    assert job["metadata"]["labels"] == {"a": "b"}
    spec = {name: value for name, value in job["spec"].items() if name != "template"}
    assert spec == {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        "manualSelector": False,
    }
    assert (
        "completions"
        not in defaulted(manifest("batch/v1", "Job", spec={"parallelism": 2, "template": TEMPLATE}))["spec"]
    )


def test_namespace_gets_a_label_with_its_name() -> None:
    assert defaulted(manifest("v1", "Namespace"))["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}


def test_invalid_quantity_is_rejected() -> None:
    bad = {"containers": [{"name": "c", "resources": {"limits": {"cpu": "lots"}}}]}
    with pytest.raises(ManifestError, match="quantities must match"):
        defaulted(manifest("v1", "Pod", spec=bad))


def test_kind_without_defaults_is_returned_unchanged() -> None:
    config_map = manifest("v1", "ConfigMap", data={"a": "b"})
    assert defaults.apply_defaults(GroupKind("", "ConfigMap"), "v1", config_map) is config_map
