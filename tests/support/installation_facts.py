"""Builds a `LiveView` for the analysis rules. In: a few values. Out: a LiveView. Never: uses a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind
from argosy.gitops.analysis.live_view import DifferingField, LiveApplication, LiveResource, LiveView
from argosy.gitops.analysis.rules import CATALOGUE
from argosy.gitops.application import read_application
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import GroupKind, ResourceKey

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def ago(seconds: float) -> str:
    return format_timestamp(NOW - timedelta(seconds=seconds))


def app(
    name: str = "models",
    sync: str = "Synced",
    health: str = "Healthy",
    *,
    rows: Iterable[LiveResource] = (),
    conditions: Iterable[tuple[str, str]] = (),
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    is_removed: bool = False,
    **fields: Any,
) -> LiveApplication:
    """Build an Application. `is_removed`: the field `operation` of a running operation was removed."""
    source = {"repoURL": "https://git.example.com/ml.git", "path": "deploy", "targetRevision": "main"}
    manifest = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", **(metadata or {})},
        "spec": {
            "project": "default",
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
            **(spec or {}),
        },
        "status": {
            "sync": {"status": sync},
            "health": {"status": health, "lastTransitionTime": ago(5000)},
            "conditions": [{"type": kind, "message": message} for kind, message in conditions],
            **(status or {}),
        },
    }
    state = (status or {}).get("operationState") or {}
    if state.get("phase") == "Running" and not is_removed:
        manifest["operation"] = state["operation"]
    return LiveApplication(read_application(manifest), tuple(rows), **fields)


def row(kind: str, name: str = "one", group: str = "", **more: Any) -> LiveResource:
    return LiveResource(ResourceKey(group, kind, "ml", name), **more)


def differs(kind: str, pointer: str, cause: CauseKind, manager: str = "", group: str = "") -> DifferingField:
    return DifferingField(ResourceKey(group, kind, "ml", "one"), pointer, Cause(cause, "because", manager=manager))


def manifest(api_version: str, kind: str, name: str = "one", **fields: Any) -> Manifest:
    metadata = {"name": name, "namespace": "ml", **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def view(*apps: LiveApplication, live: Iterable[Manifest] = (), **more: Any) -> LiveView:
    objects: dict[GroupKind, list[Manifest]] = {}
    for manifest in live:
        objects.setdefault(key_of(manifest).group_kind, []).append(manifest)
    return LiveView(NOW, tuple(apps), objects, **more)


def list_messages(rule: str, live_view: LiveView) -> list[str]:
    return [finding.message for finding in CATALOGUE[rule].check_installation(live_view)]


def advised(rule: str, live_view: LiveView) -> str:
    (finding,) = CATALOGUE[rule].check_installation(live_view)
    return finding.fix
