"""Kind, name and title of a manifest that may be malformed. In: a manifest. Out: strings. Never: raises."""

from __future__ import annotations

from typing import Any

from argosy.kube.objects import Manifest


def kind_of(manifest: Manifest) -> tuple[str, str]:
    """Return group and kind. argo: both are empty if apiVersion has two slashes."""
    version = text(manifest.get("apiVersion"))
    if version.count("/") > 1:
        return "", ""
    group, _, _ = version.rpartition("/")
    return group, text(manifest.get("kind"))


def identity(manifest: Manifest) -> tuple[str, str, str, str]:
    """Return apiVersion, kind, namespace and name."""
    metadata = manifest.get("metadata")
    inner: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    own = text(manifest.get("apiVersion")), text(manifest.get("kind"))
    return *own, text(inner.get("namespace")), text(inner.get("name"))


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def title(manifest: Manifest) -> str:
    """Render `apps/v1 Deployment ml/server`."""
    version, kind, namespace, name = identity(manifest)
    return f"{version} {kind} {namespace}/{name}" if namespace else f"{version} {kind} {name}"
