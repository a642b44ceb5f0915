"""Finds misspelt fields of KServe's kinds, and negative resource amounts.

In: a manifest of a kind whose bundled CRD allows unknown fields. Out: paths with the suggested name. Never: a name
that is not close to a known one: a newer KServe may have it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from argosy.errors import ArgosyError
from argosy.gitops.analysis.repository_view import PathStep
from argosy.kube.objects import Manifest
from argosy.kube.schema import quantity
from argosy.kube.schema.builtin_go_struct_fields import find_builtin_type

_COMPONENT_FIELDS: Final = ("predictor", "transformer", "explainer")
_COMPONENT_SPEC_FIELDS: Final = frozenset({
    "minReplicas", "maxReplicas", "scaleTarget", "scaleMetric", "scaleMetricType", "autoScaling", "labels", "logger",
    "containerConcurrency", "timeout", "canaryTrafficPercent", "batcher", "annotations", "deploymentStrategy",
    "workerSpec", "model", "sklearn", "xgboost", "lightgbm", "pytorch", "tensorflow", "onnx", "triton", "huggingface",
    "pmml", "paddle", "art",
})  # fmt: skip
_MODEL_FIELDS: Final = frozenset({
    "modelFormat", "runtime", "runtimeVersion", "protocolVersion", "storageUri", "storageUris", "storage",
})  # fmt: skip
_RUNTIME_FIELDS: Final = frozenset({
    "supportedModelFormats", "disabled", "multiModel", "protocolVersions", "replicas", "annotations", "labels",
    "grpcEndpoint", "grpcDataEndpoint", "httpDataEndpoint", "builtInAdapter", "storageHelper", "workerSpec",
})  # fmt: skip
_MIN_SIMILARITY: Final = 0.85


class SuspiciousField(NamedTuple):
    path: tuple[PathStep, ...]
    suggestion: str  # empty: a negative amount


def find_suspicious_fields(manifest: Manifest) -> Iterator[SuspiciousField]:
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return
    if manifest.get("kind") == "InferenceService":
        yield from _find_misspelt(spec, ("spec",), frozenset(_COMPONENT_FIELDS))
        for name in _COMPONENT_FIELDS:
            yield from _check_component(spec.get(name), ("spec", name), _COMPONENT_SPEC_FIELDS)
    else:
        yield from _check_component(spec, ("spec",), _RUNTIME_FIELDS)


def _check_component(
    component: Any, path: tuple[PathStep, ...], own_fields: frozenset[str]
) -> Iterator[SuspiciousField]:
    if not isinstance(component, dict):
        return
    pod, container = _load_pod_fields()
    yield from _find_misspelt(component, path, own_fields | pod)
    for name in ("containers", "initContainers"):
        entries = component.get(name)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            yield from _check_container(entry, (*path, name, index), container)
    if own_fields is _COMPONENT_SPEC_FIELDS:
        yield from _check_container(component.get("model"), (*path, "model"), container | _MODEL_FIELDS)


def _check_container(spec: Any, path: tuple[PathStep, ...], known_fields: frozenset[str]) -> Iterator[SuspiciousField]:
    if not isinstance(spec, dict):
        return
    yield from _find_misspelt(spec, path, known_fields)
    resources: Any = spec.get("resources")
    for name in ("limits", "requests") if isinstance(resources, dict) else ():
        amounts: Any = resources.get(name)
        for kind, amount in amounts.items() if isinstance(amounts, dict) else ():
            if _is_negative(amount):
                yield SuspiciousField((*path, "resources", name, kind), "")


def _find_misspelt(
    fields: dict[str, Any], path: tuple[PathStep, ...], known_fields: frozenset[str]
) -> Iterator[SuspiciousField]:
    unused = {candidate.lower(): candidate for candidate in known_fields - fields.keys()}
    for name in sorted(fields.keys() - known_fields):
        matches = [
            unused[candidate]
            for candidate in difflib.get_close_matches(name.lower(), unused, n=1, cutoff=_MIN_SIMILARITY)
        ]
        if matches and name != f"{matches[0]}s":  # a newer version may have a plural form
            yield SuspiciousField((*path, name), matches[0])


def _is_negative(amount: Any) -> bool:
    try:
        return quantity.parse(amount) < 0
    except (ArgosyError, TypeError, ValueError, AttributeError):
        return False


@cache
def _load_pod_fields() -> tuple[frozenset[str], frozenset[str]]:
    """Return the field names of a Pod spec and of a container."""
    kind = find_builtin_type("", "v1", "Pod")
    assert kind is not None
    spec = kind.fields["spec"].type
    element = spec.fields["containers"].type.element
    assert element is not None
    return frozenset(spec.fields), frozenset(element.fields)
