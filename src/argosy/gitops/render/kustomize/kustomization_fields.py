"""The schema of kustomization files. In: parsed YAML. Out: the same data with canonical field names.

Never: accepts a field that kustomize does not know.
"""

from __future__ import annotations

import re
from typing import Any, Final

from argosy.gitops.render.kustomize.error_lines import Fault

Shape = Any
"""A type; a dict of fields; a list with one schema; a tuple with one schema for any map; None for anything."""

_STEP: Final = re.compile(r"\[\d+\]|[^.\[\]]+")
_NAMES: Final = {str: "a string", bool: "true or false", int: "a whole number"}

ARGS: Final[Shape] = {"namespace": str, "name": str, "behavior": str, "literals": [str], "files": [str], "envs": [str],
    "env": str, "options": {"labels": (str,), "annotations": (str,), "disableNameSuffixHash": bool,
    "immutable": bool}}  # fmt: skip
IDENTITY: Final[Shape] = {"group": str, "version": str, "kind": str, "name": str, "namespace": str}
SELECTOR: Final[Shape] = {**IDENTITY, "labelSelector": str, "annotationSelector": str}
FIELD_SPEC: Final[Shape] = {"group": str, "version": str, "kind": str, "path": str, "create": bool}
FIELD_OPTIONS: Final[Shape] = {"delimiter": str, "index": int, "encoding": str, "create": bool}
PATCH: Final[Shape] = {"path": str, "patch": str, "target": SELECTOR, "options": (bool,)}
IMAGE: Final[Shape] = {"name": str, "newName": str, "tagSuffix": str, "newTag": str, "digest": str}
LABEL: Final[Shape] = {"pairs": (str,), "includeSelectors": bool, "includeTemplates": bool, "fields": [FIELD_SPEC]}
REPLACEMENT: Final[Shape] = {
    "path": str,
    "source": {**IDENTITY, "apiVersion": str, "fieldPath": str, "options": FIELD_OPTIONS},
    "sourceValue": str,
    "targets": [{"select": SELECTOR, "reject": [SELECTOR], "fieldPaths": [str], "options": FIELD_OPTIONS}],
}  # fmt: skip
VAR: Final[Shape] = {
    "name": str,
    "objref": {**IDENTITY, "apiVersion": str, "fieldPath": str},
    "fieldref": {"fieldPath": str, "fieldpath": str},
}
CHART_GLOBALS: Final[Shape] = {"chartHome": str, "configHome": str}
CHART: Final[Shape] = {"name": str, "version": str, "repo": str, "releaseName": str, "namespace": str,
    "additionalValuesFiles": [str], "valuesFile": str, "valuesInline": None, "valuesMerge": str, "includeCRDs": bool,
    "skipHooks": bool, "apiVersions": [str], "kubeVersion": str, "nameTemplate": str, "skipTests": bool,
    "debug": bool, "devel": bool}  # fmt: skip
OLD_CHART: Final[Shape] = {"chartName": str, "chartVersion": str, "chartRepoUrl": str, "chartHome": str,
    "chartRepoName": str, "helmBin": str, "helmHome": str, "values": str, "valuesLocal": None, "valuesMerge": str,
    "releaseName": str, "releaseNamespace": str, "extraArgs": [str]}  # fmt: skip
KUSTOMIZATION: Final[Shape] = {
    "apiVersion": str,
    "kind": str,
    "metadata": None,
    "openapi": (str,),
    "namePrefix": str,
    "nameSuffix": str,
    "namespace": str,
    "commonLabels": (str,),
    "labels": [LABEL],
    "commonAnnotations": (str,),
    "patchesStrategicMerge": [str],
    "patchesJson6902": [PATCH],
    "patches": [PATCH],
    "images": [IMAGE],
    "imageTags": [IMAGE],
    "replacements": [REPLACEMENT],
    "replicas": [{"name": str, "count": int}],
    "vars": [VAR],
    "sortOptions": {"order": str, "legacySortOptions": {"orderFirst": [str], "orderLast": [str]}},
    "resources": [str],
    "components": [str],
    "crds": [str],
    "bases": [str],
    "configMapGenerator": [ARGS],
    "secretGenerator": [{**ARGS, "type": str}],
    "helmGlobals": CHART_GLOBALS,
    "helmCharts": [CHART],
    "helmChartInflationGenerator": [OLD_CHART],
    "generatorOptions": ARGS["options"],
    "configurations": [str],
    "generators": [str],
    "transformers": [str],
    "validators": [str],
    "buildMetadata": [str],
}


def shaped(value: Any, shape: Shape, where: str, at: str = "") -> Any:
    """Return the value with canonical field names, without empty fields."""
    if shape is None or value is None:
        return value
    if isinstance(shape, dict):
        return _fields(value, shape, where, at)
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise _fault(f"{at or 'the file'} must be a list: put a dash before each entry", where, at)
        return [_element(each, shape[0], where, f"{at}[{place}]") for place, each in enumerate(value)]
    if isinstance(shape, tuple):
        if not isinstance(value, dict):
            raise _fault(f"{at} must be a mapping", where, at)
        return {name: _element(each, shape[0], where, f"{at}.{name}") for name, each in value.items()}
    if type(value) is not shape:
        raise _fault(f"{at} must be {_NAMES[shape]}, not {value!r}: {_advice(shape)}", where, at)
    return value


def known_only(value: Any, shape: Shape) -> Any:
    """Return the value without unknown fields."""
    if isinstance(shape, dict) and isinstance(value, dict):
        names = {name: name if name in shape else _spelled(name, shape) for name in value}
        return {name: known_only(value[name], shape[known]) for name, known in names.items() if known is not None}
    if isinstance(shape, list) and isinstance(value, list):
        return [known_only(each, shape[0]) for each in value]
    return value


def _element(value: Any, shape: Shape, where: str, at: str) -> Any:
    """k8s: Go reads a null in a list as the zero value of its type."""
    if value is not None or shape is None:
        return shaped(value, shape, where, at)
    return shape() if isinstance(shape, type) else type(shape)()


def _fault(message: str, where: str, at: str, *more: str) -> Fault:
    steps = [int(each[1:-1]) if each.startswith("[") else each for each in _STEP.findall(at)]
    return Fault(message, where=where, inside=(*steps, *more))


def _advice(shape: Shape) -> str:
    return "put it in quotes" if shape is str else "write it without quotes"


def _fields(value: Any, shape: dict[str, Shape], where: str, at: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _fault(f"{at or 'the file'} must be a mapping, not {str(value)[:40]!r}", where, at)
    found: dict[str, Any] = {}
    for name, each in value.items():
        known = name if name in shape else _spelled(name, shape)
        if known is None:
            message = f"unknown field {at + '.' if at else ''}{name}: remove it or correct its spelling"
            raise _fault(message, where, at, name)
        read = shaped(each, shape[known], where, f"{at}.{known}" if at else known)
        if read is not None:
            found[known] = read
    return found


def _spelled(name: str, shape: dict[str, Shape]) -> str | None:
    """k8s: Go's JSON decoder ignores the case of field names."""
    lower = name.lower()
    return next((known for known in shape if known.lower() == lower), None)
