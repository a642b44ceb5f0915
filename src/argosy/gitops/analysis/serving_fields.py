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
from argosy.gitops.analysis.repository import Step
from argosy.kube.objects import Manifest
from argosy.kube.schema import quantity
from argosy.kube.schema.builtin_types import type_of

_COMPONENTS: Final = ("predictor", "transformer", "explainer")
_SCALED: Final = frozenset({
    "minReplicas", "maxReplicas", "scaleTarget", "scaleMetric", "scaleMetricType", "autoScaling", "labels", "logger",
    "containerConcurrency", "timeout", "canaryTrafficPercent", "batcher", "annotations", "deploymentStrategy",
    "workerSpec", "model", "sklearn", "xgboost", "lightgbm", "pytorch", "tensorflow", "onnx", "triton", "huggingface",
    "pmml", "paddle", "art",
})  # fmt: skip
_SERVED: Final = frozenset({
    "modelFormat", "runtime", "runtimeVersion", "protocolVersion", "storageUri", "storageUris", "storage",
})  # fmt: skip
_RUNTIME: Final = frozenset({
    "supportedModelFormats", "disabled", "multiModel", "protocolVersions", "replicas", "annotations", "labels",
    "grpcEndpoint", "grpcDataEndpoint", "httpDataEndpoint", "builtInAdapter", "storageHelper", "workerSpec",
})  # fmt: skip
_ALMOST: Final = 0.85


class Odd(NamedTuple):
    path: tuple[Step, ...]
    meant: str  # empty: a negative amount


def odd_fields(manifest: Manifest) -> Iterator[Odd]:
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return
    if manifest.get("kind") == "InferenceService":
        yield from _misspelt(spec, ("spec",), frozenset(_COMPONENTS))
        for name in _COMPONENTS:
            yield from _component(spec.get(name), ("spec", name), _SCALED)
    else:
        yield from _component(spec, ("spec",), _RUNTIME)


def _component(given: Any, path: tuple[Step, ...], own: frozenset[str]) -> Iterator[Odd]:
    if not isinstance(given, dict):
        return
    pod, container = _known()
    yield from _misspelt(given, path, own | pod)
    for name in ("containers", "initContainers"):
        held = given.get(name)
        for number, each in enumerate(held if isinstance(held, list) else ()):
            yield from _container(each, (*path, name, number), container)
    if own is _SCALED:
        yield from _container(given.get("model"), (*path, "model"), container | _SERVED)


def _container(given: Any, path: tuple[Step, ...], known: frozenset[str]) -> Iterator[Odd]:
    if not isinstance(given, dict):
        return
    yield from _misspelt(given, path, known)
    resources: Any = given.get("resources")
    for name in ("limits", "requests") if isinstance(resources, dict) else ():
        amounts: Any = resources.get(name)
        for kind, amount in amounts.items() if isinstance(amounts, dict) else ():
            if _is_negative(amount):
                yield Odd((*path, "resources", name, kind), "")


def _misspelt(given: dict[str, Any], path: tuple[Step, ...], known: frozenset[str]) -> Iterator[Odd]:
    free = {each.lower(): each for each in known - given.keys()}
    for name in sorted(given.keys() - known):
        near = [free[each] for each in difflib.get_close_matches(name.lower(), free, n=1, cutoff=_ALMOST)]
        if near and name != f"{near[0]}s":  # a newer version may have a plural form
            yield Odd((*path, name), near[0])


def _is_negative(amount: Any) -> bool:
    try:
        return quantity.parse(amount) < 0
    except (ArgosyError, TypeError, ValueError, AttributeError):
        return False


@cache
def _known() -> tuple[frozenset[str], frozenset[str]]:
    """Return the field names of a Pod spec and of a container."""
    kind = type_of("", "v1", "Pod")
    assert kind is not None
    spec = kind.fields["spec"].type
    element = spec.fields["containers"].type.element
    assert element is not None
    return frozenset(spec.fields), frozenset(element.fields)
