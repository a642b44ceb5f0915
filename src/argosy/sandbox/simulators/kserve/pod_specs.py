"""Builds a component's Pod template: the runtime's spec, overridden by the InferenceService.

In: an InferenceService, a runtime. Out: Pod spec, labels and annotations. Never: writes.
"""

from __future__ import annotations

import re
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.kserve.kinds_and_labels import (
    APP_LABEL,
    COMPONENT_LABEL,
    INFERENCE_SERVICE_LABEL,
    KSERVE_CONTAINER,
    build_component_name,
)
from argosy.sandbox.simulators.kserve.storage_uri_and_volumes import add_model_storage, read_storage_uri

POD_FIELDS: Final = (
    "serviceAccountName", "nodeSelector", "tolerations", "affinity", "imagePullSecrets", "automountServiceAccountToken",
    "securityContext", "runtimeClassName", "priorityClassName", "schedulerName", "topologySpreadConstraints", "hostIPC",
    "terminationGracePeriodSeconds", "dnsPolicy", "hostNetwork", "initContainers",
)  # fmt: skip
MODEL_FIELDS: Final = ("modelFormat", "runtime", "runtimeVersion", "protocolVersion", "storageUri", "storage")
NOT_PROPAGATED_PREFIXES: Final = (
    "kubectl.kubernetes.io/last-applied",
    "argocd.argoproj.io/",
    "argosy.dev/",
    "sandbox.argosy.dev/",
)
SOURCE_URI_ANNOTATION: Final = "internal.serving.kserve.io/storage-initializer-sourceuri"
DEFAULT_CONTAINER_PORT: Final = 8080

PodFields = dict[str, Any]


def build_pod_template(service: Manifest, component: str, runtime: Manifest | None) -> PodFields:
    component_spec = service["spec"][component]
    runtime_spec = (runtime or {}).get("spec") or {}
    pod_spec = {field: runtime_spec[field] for field in POD_FIELDS if field in runtime_spec}
    pod_spec.update({field: component_spec[field] for field in POD_FIELDS if field in component_spec})
    if volumes := _merge_by_name(runtime_spec.get("volumes") or [], component_spec.get("volumes") or []):
        pod_spec["volumes"] = volumes
    pod_spec["containers"] = _build_containers(service, component_spec, runtime_spec)
    uri = read_storage_uri(component_spec)
    if uri:
        pod_spec = add_model_storage(pod_spec, uri)
    annotations = {
        **(runtime_spec.get("annotations") or {}),
        **_select_propagated_annotations(service["metadata"].get("annotations") or {}),
        **(component_spec.get("annotations") or {}),
        **({SOURCE_URI_ANNOTATION: uri} if uri else {}),
    }
    metadata = {"labels": build_pod_labels(service, component, runtime), "annotations": annotations}
    return {"metadata": metadata, "spec": pod_spec}


def build_pod_labels(service: Manifest, component: str, runtime: Manifest | None) -> dict[str, str]:
    return {
        **(((runtime or {}).get("spec") or {}).get("labels") or {}),
        **(service["metadata"].get("labels") or {}),
        **(service["spec"][component].get("labels") or {}),
        INFERENCE_SERVICE_LABEL: service["metadata"]["name"],
        COMPONENT_LABEL: component,
        APP_LABEL: f"isvc.{build_component_name(service, component)}",
    }


def read_container_port(template: PodFields) -> int:
    ports = template["spec"]["containers"][0].get("ports") or ()
    return int(ports[0]["containerPort"]) if ports else DEFAULT_CONTAINER_PORT


def _build_containers(service: Manifest, component_spec: PodFields, runtime_spec: PodFields) -> list[PodFields]:
    runtime_containers = [dict(container) for container in runtime_spec.get("containers") or ()]
    custom_containers = [dict(container) for container in component_spec.get("containers") or ()]
    if not component_spec.get("model"):
        return custom_containers or [{"name": KSERVE_CONTAINER, "image": "none"}]
    main_container = next(
        (container for container in runtime_containers if container["name"] == KSERVE_CONTAINER),
        runtime_containers[0] if runtime_containers else {},
    )
    model_fields = {name: value for name, value in component_spec["model"].items() if name not in MODEL_FIELDS}
    model_container = _merge_container(main_container, {**model_fields, "name": KSERVE_CONTAINER})
    if version := component_spec["model"].get("runtimeVersion"):
        model_container["image"] = f"{str(model_container.get('image') or '').partition(':')[0]}:{version}"
    sidecars = [container for container in runtime_containers if container is not main_container]
    return [_fill_placeholders(service, model_container), *sidecars, *custom_containers]


def _merge_container(base: PodFields, overrides: PodFields) -> PodFields:
    merged = {**base, **{name: value for name, value in overrides.items() if value not in ({}, [], "")}}
    for field in ("env", "volumeMounts", "ports"):
        if base.get(field) and overrides.get(field):
            merged[field] = _merge_by_name(base[field], overrides[field])
    if base.get("args") and overrides.get("args"):
        # kserve: the model's arguments come last and win
        merged["args"] = [*base["args"], *overrides["args"]]
    if base.get("resources") and overrides.get("resources"):
        merged["resources"] = {
            field: {**(base["resources"].get(field) or {}), **(overrides["resources"].get(field) or {})}
            for field in {*base["resources"], *overrides["resources"]}
        }
    return merged


def _merge_by_name(base: list[PodFields], overrides: list[PodFields]) -> list[PodFields]:
    overrides_by_name = {item.get("name"): item for item in overrides}
    kept = [overrides_by_name.pop(item.get("name"), item) for item in base]
    return [*kept, *overrides_by_name.values()]


def _fill_placeholders(service: Manifest, value: Any) -> Any:
    """kserve: replace placeholders such as `{{.Name}}` in a runtime's container with values of the InferenceService."""
    if isinstance(value, dict):
        return {name: _fill_placeholders(service, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_fill_placeholders(service, item) for item in value]
    if not isinstance(value, str) or "{{" not in value:
        return value
    metadata = service["metadata"]
    placeholders = {"Name": metadata["name"], "Namespace": metadata["namespace"]}
    for field in ("Labels", "Annotations"):
        placeholders.update({f"{field}.{name}": text for name, text in (metadata.get(field.lower()) or {}).items()})
    return re.sub(r"\{\{\s*\.([^\s}]+)\s*\}\}", lambda match: placeholders.get(match[1], match[0]), value)


def _select_propagated_annotations(annotations: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in annotations.items() if not name.startswith(NOT_PROPAGATED_PREFIXES)}
