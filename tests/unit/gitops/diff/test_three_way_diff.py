"""Tests the default three-way comparison: which manifests are equivalent and which differ."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.objects import Manifest
from support.comparisons import applied, deployment, differs, manifest, widget

RBAC = "rbac.authorization.k8s.io/v1"
DEFAULTED = {
    "imagePullPolicy": "IfNotPresent",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}


def limits(**amounts: str) -> dict[str, Any]:
    return {"resources": {"limits": amounts}}


def service(**spec: Any) -> Manifest:
    return manifest("Service", spec={"ports": [{"port": 80}]} | spec)


def claims(**spec: Any) -> Manifest:
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]} | spec}
    return manifest(
        "StatefulSet",
        api="apps/v1",
        spec={
            "serviceName": "db",
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            "volumeClaimTemplates": [template],
        },
    )


def role(rules: Any) -> Manifest:
    return manifest("Role", api=RBAC, rules=rules)


def endpoints(*subsets: dict[str, Any]) -> Manifest:
    return manifest("Endpoints", subsets=list(subsets))


def with_status(base: Manifest, **status: Any) -> Manifest:
    return base | {"status": status}


SAME = {
    "milli and whole": (deployment(limits(cpu="1500m")), deployment(limits(cpu="1.5"))),
    "a thousandth more zeros": (deployment(limits(cpu="2000m")), deployment(limits(cpu="2"))),
    "binary amounts": (deployment(limits(memory="1024Mi")), deployment(limits(memory="1Gi"))),
    "a number as an amount": (deployment({"resources": {"limits": {"cpu": 1}}}), deployment(limits(cpu="1"))),
    "defaults of a container": (deployment(), deployment(DEFAULTED)),
    "defaults of a Deployment": (deployment(), deployment(replicas=1, revisionHistoryLimit=10)),
    "defaults of a Service": (service(), service(type="ClusterIP", sessionAffinity="None", clusterIP="10.0.0.1")),
    "a default of a list element": (service(), service(ports=[{"port": 80, "protocol": "TCP", "targetPort": 80}])),
    "zero values": (deployment({"args": [], "stdin": False, "workingDir": ""}), deployment()),
    "an empty map": (manifest("ConfigMap", data={}), manifest("ConfigMap")),
    "stringData": (manifest("Secret", stringData={"a": "b"}), manifest("Secret", data={"a": "Yg=="})),
    "stringData over data": (
        manifest("Secret", data={"a": "eA=="}, stringData={"a": "b"}),
        manifest("Secret", data={"a": "Yg=="}),
    ),
    "a null in a Secret": (manifest("Secret", data={"a": None}), manifest("Secret", data={"a": ""})),
    "no rules": (role([]), role(None)),
    "the order of endpoints": (
        endpoints({"addresses": [{"ip": "10.0.0.2"}, {"ip": "10.0.0.1"}], "ports": [{"port": 80}]}),
        endpoints({"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "ports": [{"port": 80, "protocol": "TCP"}]}),
    ),
    "endpoints in several subsets": (
        endpoints(
            {"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]},
            {"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 81}]},
        ),
        endpoints({"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}, {"port": 81}]}),
    ),
    "creationTimestamp": (
        manifest("ConfigMap", meta={"creationTimestamp": None}),
        manifest("ConfigMap", meta={"creationTimestamp": "2026-01-01T00:00:00Z"}),
    ),
    "what a server fills into a claim": (claims(), claims(volumeMode="Filesystem")),
    "status": (with_status(deployment(), replicas=1), with_status(deployment(), replicas=2)),
    "a field that only live has": (widget({"a": 1}), widget({"a": 1, "b": 2})),
    "a map that only live has": (widget({"a": {}}), widget({"a": {"b": 2}, "c": {"d": 1}})),
    "a field in a list that only live has": (widget({"a": [{"b": 1}]}), widget({"a": [{"b": 1, "c": 2}]})),
    "a label that only live has": (manifest("ConfigMap"), manifest("ConfigMap", meta={"labels": {"a": "b"}})),
    "a container that only live has": (
        deployment(),
        manifest(
            "Deployment",
            api="apps/v1",
            spec=deployment()["spec"]
            | {
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "web:1"}, {"name": "sidecar", "image": "s"}]},
                }
            },
        ),
    ),
    "no namespace": (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", "namespace": "other"}},
    ),
    "empty annotations": (manifest("ConfigMap", meta={"annotations": {}}), manifest("ConfigMap")),
    "what nobody removed": (widget({"a": 1}), applied(widget({"a": 1, "b": 2}), widget({"a": 1}))),
    "annotations that cannot be read": (
        widget({"a": 1}),
        widget({"a": 1, "b": 2}, annotations={"kubectl.kubernetes.io/last-applied-configuration": "{"}),
    ),
    "a whole number and a float": (widget({"a": 1.0}), widget({"a": 1})),
    "preserveUnknownFields": (
        manifest("CustomResourceDefinition", api="apiextensions.k8s.io/v1", spec={"preserveUnknownFields": True}),
        manifest("CustomResourceDefinition", api="apiextensions.k8s.io/v1", spec={"preserveUnknownFields": False}),
    ),
}
DIFFERENT = {
    "an amount": (deployment(limits(cpu="1500m")), deployment(limits(cpu="1.6"))),
    "a field that the kind does not have": (deployment(surprise=1), deployment()),
    "a nested field that the kind does not have": (deployment({"imag": "web:1"}), deployment()),
    "an image": (deployment({"image": "web:2"}), deployment()),
    "replicas": (deployment(replicas=2), deployment(replicas=3)),
    "replicas that are not the default": (deployment(replicas=2), deployment()),
    "a value of a Secret": (manifest("Secret", stringData={"a": "b"}), manifest("Secret", data={"a": "eA=="})),
    "rules": (role([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]), role(None)),
    "an address": (
        endpoints({"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}),
        endpoints({"addresses": [{"ip": "10.0.0.2"}], "ports": [{"port": 80}]}),
    ),
    "what was removed since the last apply": (
        widget({"a": 1}),
        applied(widget({"a": 1, "b": 2}), widget({"a": 1, "b": 2})),
    ),
    "a label that was removed": (
        manifest("ConfigMap"),
        applied(
            manifest("ConfigMap", meta={"labels": {"a": "b"}}),
            manifest("ConfigMap", meta={"labels": {"a": "b"}}),
        ),
    ),
    "a container that was removed": (
        deployment(),
        applied(
            deployment() | {"spec": deployment()["spec"] | {"template": {"spec": {"containers": [{"name": "old"}]}}}},
            deployment() | {"spec": deployment()["spec"] | {"template": {"spec": {"containers": [{"name": "old"}]}}}},
        ),
    ),
    "one element more": (widget({"a": [1]}), widget({"a": [1, 2]})),
    "the order of a list": (widget({"a": [1, 2]}), widget({"a": [2, 1]})),
    "a claim": (claims(storageClassName="fast"), claims(storageClassName="slow")),
    "a field of a definition": (
        manifest("CustomResourceDefinition", api="apiextensions.k8s.io/v1", spec={"group": "a.io"}),
        manifest("CustomResourceDefinition", api="apiextensions.k8s.io/v1", spec={"group": "b.io"}),
    ),
}


@pytest.mark.parametrize(("desired", "live"), SAME.values(), ids=SAME.keys())
def test_equivalent_manifests_do_not_differ(desired: Manifest, live: Manifest) -> None:
    assert not differs(desired, live)


@pytest.mark.parametrize(("desired", "live"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_different_manifests_differ(desired: Manifest, live: Manifest) -> None:
    assert differs(desired, live)


def test_status_differs_unless_it_is_ignored() -> None:
    desired, live = widget({}) | {"status": {"a": 1}}, widget({}) | {"status": {"a": 2}}
    assert not differs(desired, live, ignore_status="all")
    assert differs(desired, live, ignore_status="crd")
    assert differs(desired, live, ignore_status="none")


def test_crd_setting_ignores_only_the_status_of_crds() -> None:
    definition = manifest("CustomResourceDefinition", api="apiextensions.k8s.io/v1", spec={})
    desired, live = (
        definition | {"status": {"storedVersions": ["v1"]}},
        definition | {"status": {"storedVersions": ["v2"]}},
    )
    assert not differs(desired, live, ignore_status="crd")
    assert differs(desired, live, ignore_status="none")


@pytest.mark.parametrize(("ignores", "is_drift"), [(True, False), (False, True)])
def test_rules_of_aggregated_cluster_roles_are_ignored_if_configured(ignores: bool, is_drift: bool) -> None:
    def cluster_role(rules: Any) -> Manifest:
        selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
        return manifest("ClusterRole", api=RBAC, aggregationRule=selector, rules=rules)

    aggregated_rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
    assert differs(cluster_role([]), cluster_role(aggregated_rules), ignore_aggregated_roles=ignores) is is_drift
