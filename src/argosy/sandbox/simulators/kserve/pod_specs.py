"""Builds a component's Pod template: the runtime's spec, overridden by the InferenceService.

In: an InferenceService, a runtime. Out: Pod spec, labels and annotations. Never: writes.
"""

from __future__ import annotations

import re
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.kserve.constants import APP, COMPONENT, CONTAINER, OF_SERVICE, part_name
from argosy.sandbox.simulators.kserve.storage import uri_of, with_model

OF_POD: Final = (
    "serviceAccountName", "nodeSelector", "tolerations", "affinity", "imagePullSecrets", "automountServiceAccountToken",
    "securityContext", "runtimeClassName", "priorityClassName", "schedulerName", "topologySpreadConstraints", "hostIPC",
    "terminationGracePeriodSeconds", "dnsPolicy", "hostNetwork", "initContainers",
)  # fmt: skip
OF_MODEL: Final = ("modelFormat", "runtime", "runtimeVersion", "protocolVersion", "storageUri", "storage")
KEPT_BACK: Final = ("kubectl.kubernetes.io/last-applied", "argocd.argoproj.io/", "argosy.dev/", "sandbox.argosy.dev/")
SOURCE: Final = "internal.serving.kserve.io/storage-initializer-sourceuri"
PORT: Final = 8080

Fields = dict[str, Any]


def template_of(service: Manifest, component: str, runtime: Manifest | None) -> Fields:
    part = service["spec"][component]
    base = (runtime or {}).get("spec") or {}
    pod = {field: base[field] for field in OF_POD if field in base}
    pod.update({field: part[field] for field in OF_POD if field in part})
    if volumes := _by_name(base.get("volumes") or [], part.get("volumes") or []):
        pod["volumes"] = volumes
    pod["containers"] = _containers(service, part, base)
    uri = uri_of(part)
    if uri:
        pod = with_model(pod, uri)
    annotations = {
        **(base.get("annotations") or {}),
        **_passed_on(service["metadata"].get("annotations") or {}),
        **(part.get("annotations") or {}),
        **({SOURCE: uri} if uri else {}),
    }
    metadata = {"labels": labels_of(service, component, runtime), "annotations": annotations}
    return {"metadata": metadata, "spec": pod}


def labels_of(service: Manifest, component: str, runtime: Manifest | None) -> dict[str, str]:
    return {
        **(((runtime or {}).get("spec") or {}).get("labels") or {}),
        **(service["metadata"].get("labels") or {}),
        **(service["spec"][component].get("labels") or {}),
        OF_SERVICE: service["metadata"]["name"],
        COMPONENT: component,
        APP: f"isvc.{part_name(service, component)}",
    }


def port_of(template: Fields) -> int:
    ports = template["spec"]["containers"][0].get("ports") or ()
    return int(ports[0]["containerPort"]) if ports else PORT


def _containers(service: Manifest, part: Fields, base: Fields) -> list[Fields]:
    offered = [dict(each) for each in base.get("containers") or ()]
    own = [dict(each) for each in part.get("containers") or ()]
    if not part.get("model"):
        return own or [{"name": CONTAINER, "image": "none"}]
    first = next((each for each in offered if each["name"] == CONTAINER), offered[0] if offered else {})
    said = {name: value for name, value in part["model"].items() if name not in OF_MODEL}
    served = _merged(first, {**said, "name": CONTAINER})
    if version := part["model"].get("runtimeVersion"):
        served["image"] = f"{str(served.get('image') or '').partition(':')[0]}:{version}"
    others = [each for each in offered if each is not first]
    return [_filled(service, served), *others, *own]


def _merged(base: Fields, over: Fields) -> Fields:
    whole = {**base, **{name: value for name, value in over.items() if value not in ({}, [], "")}}
    for field in ("env", "volumeMounts", "ports"):
        if base.get(field) and over.get(field):
            whole[field] = _by_name(base[field], over[field])
    if base.get("args") and over.get("args"):
        # kserve: the model's arguments come last and win
        whole["args"] = [*base["args"], *over["args"]]
    if base.get("resources") and over.get("resources"):
        whole["resources"] = {
            field: {**(base["resources"].get(field) or {}), **(over["resources"].get(field) or {})}
            for field in {*base["resources"], *over["resources"]}
        }
    return whole


def _by_name(base: list[Fields], over: list[Fields]) -> list[Fields]:
    named = {each.get("name"): each for each in over}
    kept = [named.pop(each.get("name"), each) for each in base]
    return [*kept, *named.values()]


def _filled(service: Manifest, value: Any) -> Any:
    """kserve: replace placeholders such as `{{.Name}}` in a runtime's container with values of the InferenceService."""
    if isinstance(value, dict):
        return {name: _filled(service, each) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(service, each) for each in value]
    if not isinstance(value, str) or "{{" not in value:
        return value
    metadata = service["metadata"]
    known = {"Name": metadata["name"], "Namespace": metadata["namespace"]}
    for field in ("Labels", "Annotations"):
        known.update({f"{field}.{name}": text for name, text in (metadata.get(field.lower()) or {}).items()})
    return re.sub(r"\{\{\s*\.([^\s}]+)\s*\}\}", lambda found: known.get(found[1], found[0]), value)


def _passed_on(annotations: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in annotations.items() if not name.startswith(KEPT_BACK)}
