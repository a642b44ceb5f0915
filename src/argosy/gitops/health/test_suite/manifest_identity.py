"""Kind, name and title of a manifest that may be malformed. In: a manifest. Out: strings. Never: raises."""

from __future__ import annotations

from typing import Any

from argosy.kube.objects import Manifest


def read_group_kind(manifest: Manifest) -> tuple[str, str]:
    """Return group and kind. argo: both are empty if apiVersion has two slashes."""
    version = as_text(manifest.get("apiVersion"))
    if version.count("/") > 1:
        return "", ""
    group, _, _ = version.rpartition("/")
    return group, as_text(manifest.get("kind"))


def read_identity(manifest: Manifest) -> tuple[str, str, str, str]:
    """Return apiVersion, kind, namespace and name."""
    metadata = manifest.get("metadata")
    fields: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    type_meta = as_text(manifest.get("apiVersion")), as_text(manifest.get("kind"))
    return *type_meta, as_text(fields.get("namespace")), as_text(fields.get("name"))


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def render_title(manifest: Manifest) -> str:
    """Render `apps/v1 Deployment ml/server`."""
    version, kind, namespace, name = read_identity(manifest)
    return f"{version} {kind} {namespace}/{name}" if namespace else f"{version} {kind} {name}"
