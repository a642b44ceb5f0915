"""How fast manifests are changed: JSON patch beside the jsonpatch library, and the costs of owning fields."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jsonpatch  # type: ignore[import-untyped]

from argosy.kube.patch import json_patch, merge_patch, strategic_merge
from argosy.kube.patch.managed_fields import record_update
from argosy.kube.patch.server_side_apply import apply
from argosy.kube.schema.builtin_go_struct_fields import find_builtin_type

NOW = "2026-01-01T00:00:00Z"


def microseconds(run: Callable[[], Any], rounds: int = 300) -> float:
    """CPU time of one call: the best of five tries."""
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for _ in range(rounds):
            run()
        best = min(best, (time.process_time() - start) / rounds)
    return best * 1e6


def deployment() -> dict[str, Any]:
    container = {
        "name": "web",
        "image": "nginx:1",
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"E{number}", "value": "x"} for number in range(5)],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    spec = {
        "containers": [container],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec},
        },
    }


def json_patches() -> None:
    document = deployment()
    few = [
        {"op": "replace", "path": "/spec/replicas", "value": 5},
        {"op": "add", "path": "/metadata/labels/x", "value": "y"},
        {"op": "remove", "path": "/spec/template/spec/containers/0/env/0"},
    ]
    many = [{"op": "add", "path": f"/metadata/labels/k{number}", "value": "v"} for number in range(1000)]
    for name, operations, rounds in (("3 operations", few, 300), ("1000 operations", many, 5)):
        ours = microseconds(partial(json_patch.apply, document, operations), rounds)
        reference = microseconds(partial(jsonpatch.apply_patch, document, operations), rounds)
        assert json_patch.apply(document, operations) == jsonpatch.apply_patch(document, operations)
        print(f"JSON patch, {name:16} {ours:9.1f} µs   jsonpatch {reference:9.1f} µs   ratio {ours / reference:.2f}")


def ownership() -> None:
    web, shape, small = (
        deployment(),
        find_builtin_type("apps", "v1", "Deployment"),
        find_builtin_type("", "v1", "ConfigMap"),
    )
    assert shape is not None and small is not None
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "d", "uid": "u", "creationTimestamp": NOW},
        "data": {"a": "1", "b": "2"},
    }
    common: dict[str, Any] = {"empty_object": None, "manager": "m", "subresource": "", "now": NOW}
    for_web = common | {"api_version": "apps/v1", "shape": shape}
    live = record_update(None, web, **for_web)
    same = copy.deepcopy(live)
    changed = live | {"spec": live["spec"] | {"replicas": 5}}
    by_apply: dict[str, Any] = {"manager": "a", "force": False, "api_version": "apps/v1", "now": NOW, "shape": shape}
    applied = apply(None, web, **by_apply)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}}
    for name, run in {
        "record create of a ConfigMap (at most 30)": lambda: record_update(
            None, config_map, **common, api_version="v1", shape=small
        ),
        "record create of a Deployment (at most 300)": lambda: record_update(None, web, **for_web),
        "record an update without change": lambda: record_update(live, same, **for_web),
        "record an update of one field": lambda: record_update(live, changed, **for_web),
        "apply, new": lambda: apply(None, web, **by_apply),
        "apply, without change": lambda: apply(applied, web, **by_apply),
        "strategic merge of an image": lambda: strategic_merge.apply(web, image, shape),
        "merge patch of one field": lambda: merge_patch.apply(web, {"spec": {"replicas": 5}}),
    }.items():
        print(f"{name:46} {microseconds(run):9.1f} µs")


if __name__ == "__main__":
    json_patches()
    ownership()
