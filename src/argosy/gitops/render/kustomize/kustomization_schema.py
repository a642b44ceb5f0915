"""The schema of kustomization files. In: parsed YAML. Out: the same data with canonical field names.

Never: accepts a field that kustomize does not know.
"""

from __future__ import annotations

import re
from typing import Any, Final

from argosy.gitops.render.kustomize.error_lines import LocatedError

FieldSchema = Any
"""A type; a dict of fields; a list with one schema; a tuple with one schema for any map; None for anything."""

_PATH_STEP: Final = re.compile(r"\[\d+\]|[^.\[\]]+")
_TYPE_NAMES: Final = {str: "a string", bool: "true or false", int: "a whole number"}

GENERATOR_ARGUMENTS: Final[FieldSchema] = {
    "namespace": str,
    "name": str,
    "behavior": str,
    "literals": [str],
    "files": [str],
    "envs": [str],
    "env": str,
    "options": {"labels": (str,), "annotations": (str,), "disableNameSuffixHash": bool, "immutable": bool},
}
RESOURCE_IDENTITY: Final[FieldSchema] = {"group": str, "version": str, "kind": str, "name": str, "namespace": str}
SELECTOR: Final[FieldSchema] = {**RESOURCE_IDENTITY, "labelSelector": str, "annotationSelector": str}
FIELD_SPEC: Final[FieldSchema] = {"group": str, "version": str, "kind": str, "path": str, "create": bool}
FIELD_OPTIONS: Final[FieldSchema] = {"delimiter": str, "index": int, "encoding": str, "create": bool}
PATCH: Final[FieldSchema] = {"path": str, "patch": str, "target": SELECTOR, "options": (bool,)}
IMAGE: Final[FieldSchema] = {"name": str, "newName": str, "tagSuffix": str, "newTag": str, "digest": str}
LABEL: Final[FieldSchema] = {
    "pairs": (str,),
    "includeSelectors": bool,
    "includeTemplates": bool,
    "fields": [FIELD_SPEC],
}
REPLACEMENT: Final[FieldSchema] = {
    "path": str,
    "source": {**RESOURCE_IDENTITY, "apiVersion": str, "fieldPath": str, "options": FIELD_OPTIONS},
    "sourceValue": str,
    "targets": [{"select": SELECTOR, "reject": [SELECTOR], "fieldPaths": [str], "options": FIELD_OPTIONS}],
}  # fmt: skip
VAR: Final[FieldSchema] = {
    "name": str,
    "objref": {**RESOURCE_IDENTITY, "apiVersion": str, "fieldPath": str},
    "fieldref": {"fieldPath": str, "fieldpath": str},
}
CHART_GLOBALS: Final[FieldSchema] = {"chartHome": str, "configHome": str}
CHART: Final[FieldSchema] = {"name": str, "version": str, "repo": str, "releaseName": str, "namespace": str,
    "additionalValuesFiles": [str], "valuesFile": str, "valuesInline": None, "valuesMerge": str, "includeCRDs": bool,
    "skipHooks": bool, "apiVersions": [str], "kubeVersion": str, "nameTemplate": str, "skipTests": bool,
    "debug": bool, "devel": bool}  # fmt: skip
DEPRECATED_CHART: Final[FieldSchema] = {"chartName": str, "chartVersion": str, "chartRepoUrl": str, "chartHome": str,
    "chartRepoName": str, "helmBin": str, "helmHome": str, "values": str, "valuesLocal": None, "valuesMerge": str,
    "releaseName": str, "releaseNamespace": str, "extraArgs": [str]}  # fmt: skip
KUSTOMIZATION: Final[FieldSchema] = {
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
    "configMapGenerator": [GENERATOR_ARGUMENTS],
    "secretGenerator": [{**GENERATOR_ARGUMENTS, "type": str}],
    "helmGlobals": CHART_GLOBALS,
    "helmCharts": [CHART],
    "helmChartInflationGenerator": [DEPRECATED_CHART],
    "generatorOptions": GENERATOR_ARGUMENTS["options"],
    "configurations": [str],
    "generators": [str],
    "transformers": [str],
    "validators": [str],
    "buildMetadata": [str],
}


def validate_fields(value: Any, schema: FieldSchema, where: str, path: str = "") -> Any:
    """Return the value with canonical field names, without empty fields."""
    if schema is None or value is None:
        return value
    if isinstance(schema, dict):
        return _validate_mapping(value, schema, where, path)
    if isinstance(schema, list):
        if not isinstance(value, list):
            raise _build_error(f"{path or 'the file'} must be a list: put a dash before each entry", where, path)
        return [_validate_element(item, schema[0], where, f"{path}[{i}]") for i, item in enumerate(value)]
    if isinstance(schema, tuple):
        if not isinstance(value, dict):
            raise _build_error(f"{path} must be a mapping", where, path)
        return {name: _validate_element(item, schema[0], where, f"{path}.{name}") for name, item in value.items()}
    if type(value) is not schema:
        raise _build_error(f"{path} must be {_TYPE_NAMES[schema]}, not {value!r}: {_describe_fix(schema)}", where, path)
    return value


def drop_unknown_fields(value: Any, schema: FieldSchema) -> Any:
    """Return the value without unknown fields."""
    if isinstance(schema, dict) and isinstance(value, dict):
        names = {name: name if name in schema else _find_canonical_name(name, schema) for name in value}
        return {
            name: drop_unknown_fields(value[name], schema[canonical_name])
            for name, canonical_name in names.items()
            if canonical_name is not None
        }
    if isinstance(schema, list) and isinstance(value, list):
        return [drop_unknown_fields(item, schema[0]) for item in value]
    return value


def _validate_element(value: Any, schema: FieldSchema, where: str, path: str) -> Any:
    """k8s: Go reads a null in a list as the zero value of its type."""
    if value is not None or schema is None:
        return validate_fields(value, schema, where, path)
    return schema() if isinstance(schema, type) else type(schema)()


def _build_error(message: str, where: str, path: str, *more_steps: str) -> LocatedError:
    steps = [int(step[1:-1]) if step.startswith("[") else step for step in _PATH_STEP.findall(path)]
    return LocatedError(message, where=where, path=(*steps, *more_steps))


def _describe_fix(schema: FieldSchema) -> str:
    return "put it in quotes" if schema is str else "write it without quotes"


def _validate_mapping(value: Any, schema: dict[str, FieldSchema], where: str, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _build_error(f"{path or 'the file'} must be a mapping, not {str(value)[:40]!r}", where, path)
    fields: dict[str, Any] = {}
    for name, item in value.items():
        canonical_name = name if name in schema else _find_canonical_name(name, schema)
        if canonical_name is None:
            message = f"unknown field {path + '.' if path else ''}{name}: remove it or correct its spelling"
            raise _build_error(message, where, path, name)
        validated = validate_fields(
            item, schema[canonical_name], where, f"{path}.{canonical_name}" if path else canonical_name
        )
        if validated is not None:
            fields[canonical_name] = validated
    return fields


def _find_canonical_name(name: str, schema: dict[str, FieldSchema]) -> str | None:
    """k8s: Go's JSON decoder ignores the case of field names."""
    lower = name.lower()
    return next((field_name for field_name in schema if field_name.lower() == lower), None)
