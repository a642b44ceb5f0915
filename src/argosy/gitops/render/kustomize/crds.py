"""Reads the files of `crds` and `openapi`. In: OpenAPI documents. Out: field specs and schemas. Never: validates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from argosy.errors import ManifestError, RenderError
from argosy.gitops.render.kustomize.error_lines import Fault
from argosy.gitops.render.kustomize.field_spec_config import Config
from argosy.gitops.render.kustomize.field_specs import FieldSpec
from argosy.gitops.render.kustomize.gvk import Gvk, gvk_of
from argosy.gitops.render.kustomize.merge_keys import Definitions
from argosy.kube.objects import Profile, load

_MARKS: Final = {
    "x-kubernetes-annotation": "commonAnnotations",
    "x-kubernetes-label-selector": "commonLabels",
    "x-kubernetes-identity": "namePrefix",
}
_PARTS: Final = {"Schema": dict, "Dependencies": list}


def read_openapi(text: bytes, file: str) -> Definitions:
    return Definitions(_document(text, file))


def _document(text: bytes, file: str) -> dict[str, Any]:
    try:
        value = load(text, profile=Profile.KUSTOMIZE, where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=error.where, line=error.line) from error
    if not isinstance(value, dict):
        raise RenderError("is not an OpenAPI document: expected a mapping with definitions", where=file)
    return value


def crd_config(text: bytes, file: str) -> Config:
    """Find the fields of custom resources that refer to other objects, by the extensions in their schemas."""
    definitions = _document(text, file)
    specs: dict[str, list[FieldSpec]] = {}
    references: list[tuple[Gvk, tuple[FieldSpec, ...]]] = []
    for name, wrapped in definitions.items():
        _check_definition(name, wrapped, file)
        schema = _schema(wrapped)
        if not (schema.get("properties") or {}).keys() >= {"kind", "apiVersion", "metadata"}:
            continue
        gvk = Gvk("", "", name.rpartition(".")[2])
        for path, field in _walk(definitions, schema, (), 0):
            for mark, transformer in _MARKS.items():
                if mark in field:
                    specs.setdefault(transformer, []).append(FieldSpec("/".join(path), gvk))
            if "x-kubernetes-object-ref-kind" in field:
                references.append(_reference(path, field, gvk))
    return Config({name: tuple(each) for name, each in specs.items()}, tuple(references))


def _check_definition(name: str, wrapped: Any, file: str) -> None:
    parts = wrapped if isinstance(wrapped, dict) else {"Schema": wrapped}
    if any(not isinstance(parts.get(part), form | None) for part, form in _PARTS.items()):
        message = f"{name} is not a definition with a Schema: correct it; list CustomResourceDefinitions in resources"
        raise Fault(message, where=file, inside=(name,), number=0)


def _reference(path: tuple[str, ...], field: dict[str, Any], gvk: Gvk) -> tuple[Gvk, tuple[FieldSpec, ...]]:
    version = str(field.get("x-kubernetes-object-ref-api-version") or "")
    target = gvk_of(version, str(field["x-kubernetes-object-ref-kind"]))
    key = str(field.get("x-kubernetes-object-ref-name-key") or "name")
    is_map = "$ref" in field or "properties" in field or field.get("type") == "object"
    return target, (FieldSpec("/".join((*path, key) if is_map else path), gvk),)


def _schema(wrapped: Any) -> dict[str, Any]:
    inner = wrapped.get("Schema") if isinstance(wrapped, dict) and "Schema" in wrapped else wrapped
    return inner if isinstance(inner, dict) else {}


def _walk(
    definitions: dict[str, Any], schema: dict[str, Any], path: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    if depth > 15:
        return
    for name, field in (schema.get("properties") or {}).items():
        if not isinstance(field, dict):
            continue
        here = (*path, name)
        yield here, field
        below = field.get("items") if field.get("type") == "array" else field
        reference = below.get("$ref") if isinstance(below, dict) else None
        if isinstance(reference, str):
            below = _schema(definitions.get(reference) or definitions.get(reference.rpartition("/")[2]))
        if isinstance(below, dict):
            yield from _walk(definitions, below, here, depth + 1)
