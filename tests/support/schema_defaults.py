"""Manifests with and without default values, for tests of defaulting."""

from __future__ import annotations

import copy
from typing import Any

from argosy.kube.resource_key import GroupKind, split_api_version
from argosy.kube.schema import defaults


def manifest(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


def defaulted(input_manifest: dict[str, Any]) -> dict[str, Any]:
    group, version = split_api_version(input_manifest["apiVersion"])
    original = copy.deepcopy(input_manifest)
    result = defaults.apply_defaults(GroupKind(group, input_manifest["kind"]), version, input_manifest)
    assert input_manifest == original, "the input was changed"
    assert defaults.apply_defaults(GroupKind(group, input_manifest["kind"]), version, result) == result, (
        "a second pass changed something"
    )
    return result


POD = {"containers": [{"name": "c", "image": "nginx"}]}
POD_DEFAULTED = {
    "containers": [
        {
            "name": "c",
            "image": "nginx",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always",
        }
    ],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
SELECTOR = {"matchLabels": {"a": "b"}}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
TEMPLATE_DEFAULTED = {"metadata": {"creationTimestamp": None, "labels": {"a": "b"}}, "spec": POD_DEFAULTED}
