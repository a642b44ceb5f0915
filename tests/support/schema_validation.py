"""Defaults and validates manifests like the API server, for tests of validation."""

from __future__ import annotations

import copy
from typing import Any

from argosy.kube.resource_key import split_api_version
from argosy.kube.schema import defaults, validation
from argosy.kube.schema.api_resource import ApiResource

CLUSTER_WIDE = {
    "Namespace", "Node", "PersistentVolume", "StorageClass", "PriorityClass", "ClusterRole", "ClusterRoleBinding",
    "ValidatingWebhookConfiguration",
}  # fmt: skip
Manifest = dict[str, Any]


def resource_of(manifest: Manifest) -> ApiResource:
    group, version = split_api_version(manifest["apiVersion"])
    kind = manifest["kind"]
    return ApiResource(group, version, kind, kind.lower() + "s", kind.lower(), kind not in CLUSTER_WIDE)


def build_manifest(api_version: str, kind: str, metadata: Manifest | None = None, **fields: Any) -> Manifest:
    about = {"name": "x", "uid": "u", **({} if kind in CLUSTER_WIDE else {"namespace": "p1"}), **(metadata or {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": about, **fields}


def ready(manifest: Manifest) -> Manifest:
    resource = resource_of(manifest)
    return validation.prepare_create(resource, defaults.apply_defaults(resource.group_kind, resource.version, manifest))


def created(manifest: Manifest) -> list[str]:
    original = copy.deepcopy(manifest)
    faults = validation.validate_create(resource_of(manifest), ready(manifest))
    assert manifest == original, "the input was changed"
    return [str(fault) for fault in faults]
