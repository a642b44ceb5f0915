"""Server-side apply, strategic merge and field ownership with the schemas of built-in kinds."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.patch import strategic_merge, three_way
from argosy.kube.patch.managed_fields import record_update
from argosy.kube.patch.server_side_apply import FieldConflicts, apply
from argosy.kube.schema.builtin_go_struct_fields import Type, find_builtin_type

NOW = "2026-01-01T00:00:01Z"


def shape(group: str, kind: str) -> Type:
    builtin_type = find_builtin_type(group, "v1", kind)
    assert builtin_type is not None
    return builtin_type


def deployment(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


WEB = {
    "name": "web",
    "image": "nginx",
    "ports": [{"containerPort": 8080, "protocol": "TCP"}, {"containerPort": 443, "protocol": "TCP"}],
    "env": [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
    "resources": {},
}
TEMPLATE = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [WEB], "securityContext": {}}}
ZERO = {
    "metadata": {"creationTimestamp": None},
    "spec": {
        "selector": None,
        "template": {"metadata": {"creationTimestamp": None}, "spec": {"containers": None}},
        "strategy": {},
    },
    "status": {},
}


def test_managed_fields_of_a_created_deployment_match_a_real_server() -> None:
    selector = {"matchLabels": {"app": "d"}}
    new = deployment(replicas=1, selector=selector, strategy={"type": "Recreate"}, template=TEMPLATE)
    created = record_update(
        None,
        new,
        empty_object=ZERO,
        manager="m",
        api_version="apps/v1",
        subresource="",
        now=NOW,
        shape=shape("apps", "Deployment"),
    )
    assert created["metadata"]["managedFields"][0]["fieldsV1"] == {
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:strategy": {"f:type": {}},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"web"}': {
                            ".": {},
                            "f:env": {
                                ".": {},
                                'k:{"name":"A"}': {".": {}, "f:name": {}, "f:valueFrom": {".": {}, "f:fieldRef": {}}},
                            },
                            "f:image": {},
                            "f:name": {},
                            "f:ports": {
                                ".": {},
                                'k:{"containerPort":443,"protocol":"TCP"}': {
                                    ".": {},
                                    "f:containerPort": {},
                                    "f:protocol": {},
                                },
                                'k:{"containerPort":8080,"protocol":"TCP"}': {
                                    ".": {},
                                    "f:containerPort": {},
                                    "f:protocol": {},
                                },
                            },
                            "f:resources": {},
                        }
                    },
                    "f:securityContext": {},
                },
            },
        }
    }


def test_two_appliers_own_different_containers_of_a_deployment() -> None:
    first = apply(
        None,
        deployment(template=TEMPLATE),
        manager="one",
        force=False,
        api_version="apps/v1",
        now=NOW,
        shape=shape("apps", "Deployment"),
    )
    sidecar = deployment(template={"spec": {"containers": [{"name": "side", "image": "s"}]}})
    arguments: dict[str, Any] = {"api_version": "apps/v1", "now": NOW, "shape": shape("apps", "Deployment")}
    both = apply(first, sidecar, manager="two", force=False, **arguments)
    assert [container["name"] for container in both["spec"]["template"]["spec"]["containers"]] == ["web", "side"]
    taken = deployment(template={"spec": {"containers": [{"name": "web", "image": "other"}]}})
    with pytest.raises(FieldConflicts) as caught:
        apply(both, taken, manager="two", force=False, **arguments)
    assert [conflict.path for conflict in caught.value.conflicts] == [
        '.spec.template.spec.containers[name="web"].image'
    ]


def test_service_port_without_protocol_merges_with_the_tcp_port() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    arguments: dict[str, Any] = {"force": False, "api_version": "v1", "now": NOW, "shape": shape("", "Service")}
    live = apply(None, service | {"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}}, manager="a", **arguments)
    after = apply(live, service | {"spec": {"ports": [{"port": 80, "name": "web"}]}}, manager="b", **arguments)
    assert after["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "name": "web"}]


def test_kubectl_set_image_changes_one_container() -> None:
    live = deployment(template={"spec": {"containers": [WEB, {"name": "side", "image": "s"}]}})
    patch = {
        "spec": {
            "template": {
                "spec": {
                    "$setElementOrder/containers": [{"name": "web"}, {"name": "side"}],
                    "containers": [{"name": "side", "image": "s:2"}],
                }
            }
        }
    }
    patched = strategic_merge.apply(live, patch, shape("apps", "Deployment"))
    assert patched["spec"]["template"]["spec"]["containers"] == [WEB, {"name": "side", "image": "s:2"}]


def test_changed_volume_source_replaces_the_old_one() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    old = pod | {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    new = pod | {"spec": {"volumes": [{"name": "v", "configMap": {"name": "c"}}]}}
    live = pod | {"spec": {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]}}
    patch = three_way.build_three_way_strategic_patch(old, new, live, shape("", "Pod"))
    assert strategic_merge.apply(live, patch, shape("", "Pod"))["spec"] == new["spec"]
