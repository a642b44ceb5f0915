"""Small manifests, and one-line comparisons of them."""

from __future__ import annotations

import json
from typing import Any

from argosy.gitops.application import IgnoreDifference
from argosy.gitops.application.step_results import AppComparison, Pair
from argosy.gitops.diff import DiffOptions, compare_manifests
from argosy.kube.objects import Manifest, key_of

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def manifest(kind: str, *, api: str = "v1", name: str = "it", meta: Any = None, **fields: Any) -> Manifest:
    metadata = {"name": name, "namespace": "default"} | (meta or {})
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def widget(spec: Any, **meta: Any) -> Manifest:
    return manifest("Widget", api="example.io/v1", meta=meta, spec=spec)


def deployment(container: dict[str, Any] | None = None, **spec: Any) -> Manifest:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web:1"} | (container or {})]},
    }
    return manifest(
        "Deployment", api="apps/v1", spec={"selector": {"matchLabels": {"app": "web"}}, "template": template} | spec
    )


def applied(live: Manifest, original: Manifest) -> Manifest:
    """The live manifest after an apply of the original."""
    annotations = {**(live["metadata"].get("annotations") or {}), LAST_APPLIED: json.dumps(original)}
    return live | {"metadata": live["metadata"] | {"annotations": annotations}}


def comparison(desired: Manifest, live: Manifest, rules: DiffOptions | None = None, **options: Any) -> AppComparison:
    return compare_manifests([desired], {key_of(desired): live}, rules or DiffOptions(), **options)


def pair(desired: Manifest, live: Manifest, rules: DiffOptions | None = None, **options: Any) -> Pair:
    compared = comparison(desired, live, rules, **options)
    assert not compared.faults
    return compared.pairs[0]


def differs(desired: Manifest, live: Manifest, *ignored: IgnoreDifference, **rules: Any) -> bool:
    return pair(desired, live, DiffOptions(ignore_rules=ignored, **rules)).differs


def managed(live: Manifest, manager: str, fields: dict[str, Any], time: str = "2026-01-01T00:00:00Z") -> Manifest:
    entry = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": live["apiVersion"],
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    managed_fields = live["metadata"].get("managedFields") or []
    return live | {"metadata": live["metadata"] | {"managedFields": [*managed_fields, entry]}}
