"""The `scale` subresource: converts between objects with replicas and the Scale kind."""

from __future__ import annotations

from typing import Any

from argosy.kube.objects import Manifest
from argosy.kube.schema import field_error
from argosy.kube.schema.api_resource import ApiResource
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind, CustomApiKind

SCALE_TYPE_META = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
SCALE_RESOURCE = ApiResource("autoscaling", "v1", "Scale", "scales", "scale", True, ())
SCALE_METADATA_FIELDS = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def build_scale(served: ApiKind, manifest: Manifest) -> Manifest:
    metadata = {name: manifest["metadata"][name] for name in SCALE_METADATA_FIELDS if name in manifest["metadata"]}
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    if isinstance(served, CustomApiKind):
        wanted_path, current_path, selector_path = served.kind.scale_paths or ("", "", "")
        wanted_replicas, current_replicas = _get_path(manifest, wanted_path), _get_path(manifest, current_path) or 0
        selector = _get_path(manifest, selector_path) if selector_path else None
    else:
        wanted_replicas, current_replicas = spec.get("replicas"), status.get("replicas") or 0
        selector = format_selector(spec.get("selector") or {})
    scale_status: dict[str, Any] = {"replicas": current_replicas}
    if selector:
        scale_status["selector"] = selector
    return {
        **SCALE_TYPE_META,
        "metadata": metadata,
        "spec": {"replicas": wanted_replicas} if wanted_replicas else {},
        "status": scale_status,
    }


def build_apply_configuration(served: ApiKind, scale: Manifest, replicas: int) -> Manifest:
    """The apply configuration of the scaled object for an applied Scale."""
    type_meta = {"apiVersion": served.resource.api_version, "kind": served.resource.kind}
    return set_replicas(served, {**type_meta, "metadata": scale.get("metadata") or {}}, replicas)


def set_replicas(served: ApiKind, manifest: Manifest, replicas: int) -> Manifest:
    if replicas < 0 and not isinstance(served, CustomApiKind):  # a custom kind has its own validation
        invalid_field = field_error.invalid("spec.replicas", str(replicas), "must be greater than or equal to 0")
        raise status_errors.invalid(SCALE_RESOURCE, manifest["metadata"].get("name", ""), [invalid_field])
    path = ".spec.replicas"
    if isinstance(served, CustomApiKind) and served.kind.scale_paths:
        path = served.kind.scale_paths[0]
    scaled: Manifest = _set_path(manifest, path.strip(".").split("."), replicas)
    return scaled


def format_selector(selector: Manifest) -> str:
    """A LabelSelector as a query string. ReplicationControllers have a plain map instead."""
    if not {"matchLabels", "matchExpressions"} & selector.keys():
        return ",".join(f"{name}={value}" for name, value in sorted(selector.items()))
    terms = [f"{name}={value}" for name, value in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or []:
        key, values = expression["key"], ",".join(sorted(expression.get("values") or []))
        forms = {"Exists": key, "DoesNotExist": f"!{key}", "In": f"{key} in ({values})"}
        terms.append(forms.get(expression["operator"], f"{key} notin ({values})"))
    return ",".join(sorted(terms))


def _get_path(manifest: Any, path: str) -> Any:
    for name in path.strip(".").split("."):
        manifest = manifest.get(name) if isinstance(manifest, dict) else None
    return manifest


def _set_path(manifest: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    inner = manifest if isinstance(manifest, dict) else {}
    return {**inner, path[0]: _set_path(inner.get(path[0]), path[1:], value)}
