"""The `scale` subresource: converts between objects with replicas and the Scale kind."""

from __future__ import annotations

from typing import Any

from argosy.kube.objects import Manifest
from argosy.kube.schema import field_error
from argosy.kube.schema.resources import Resource
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.served_kind import Custom, Served

SCALE = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
KIND = Resource("autoscaling", "v1", "Scale", "scales", "scale", True, ())
METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def read_scale(served: Served, manifest: Manifest) -> Manifest:
    metadata = {name: manifest["metadata"][name] for name in METADATA if name in manifest["metadata"]}
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    if isinstance(served, Custom):
        wanted_at, current_at, selector_at = served.kind.scale_paths or ("", "", "")
        wanted, current = _at(manifest, wanted_at), _at(manifest, current_at) or 0
        selector = _at(manifest, selector_at) if selector_at else None
    else:
        wanted, current = spec.get("replicas"), status.get("replicas") or 0
        selector = selector_text(spec.get("selector") or {})
    shown: dict[str, Any] = {"replicas": current}
    if selector:
        shown["selector"] = selector
    return {**SCALE, "metadata": metadata, "spec": {"replicas": wanted} if wanted else {}, "status": shown}


def applied_scale(served: Served, scale: Manifest, replicas: int) -> Manifest:
    """The apply configuration of the scaled object for an applied Scale."""
    kind = {"apiVersion": served.resource.api_version, "kind": served.resource.kind}
    return write_scale(served, {**kind, "metadata": scale.get("metadata") or {}}, replicas)


def write_scale(served: Served, manifest: Manifest, replicas: int) -> Manifest:
    if replicas < 0 and not isinstance(served, Custom):  # a custom kind has its own validation
        problem = field_error.invalid("spec.replicas", str(replicas), "must be greater than or equal to 0")
        raise status_errors.invalid(KIND, manifest["metadata"].get("name", ""), [problem])
    path = ".spec.replicas"
    if isinstance(served, Custom) and served.kind.scale_paths:
        path = served.kind.scale_paths[0]
    scaled: Manifest = _set(manifest, path.strip(".").split("."), replicas)
    return scaled


def selector_text(selector: Manifest) -> str:
    """A LabelSelector as a query string. ReplicationControllers have a plain map instead."""
    if not {"matchLabels", "matchExpressions"} & selector.keys():
        return ",".join(f"{name}={value}" for name, value in sorted(selector.items()))
    terms = [f"{name}={value}" for name, value in sorted((selector.get("matchLabels") or {}).items())]
    for each in selector.get("matchExpressions") or []:
        key, values = each["key"], ",".join(sorted(each.get("values") or []))
        forms = {"Exists": key, "DoesNotExist": f"!{key}", "In": f"{key} in ({values})"}
        terms.append(forms.get(each["operator"], f"{key} notin ({values})"))
    return ",".join(sorted(terms))


def _at(manifest: Any, path: str) -> Any:
    for name in path.strip(".").split("."):
        manifest = manifest.get(name) if isinstance(manifest, dict) else None
    return manifest


def _set(manifest: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    inner = manifest if isinstance(manifest, dict) else {}
    return {**inner, path[0]: _set(inner.get(path[0]), path[1:], value)}
