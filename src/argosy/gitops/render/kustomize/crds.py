"""Reads the files of `crds` and `openapi`. In: OpenAPI documents. Out: field specs and schemas. Never: validates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from argosy.errors import ManifestError, RenderError
from argosy.gitops.render.kustomize.error_lines import LocatedError
from argosy.gitops.render.kustomize.field_spec_traversal import FieldSpec
from argosy.gitops.render.kustomize.gvk import Gvk, parse_gvk
from argosy.gitops.render.kustomize.merge_keys import OpenApiSchemas
from argosy.gitops.render.kustomize.transformer_config import TransformerConfig
from argosy.kube.objects import YamlDialect, read_yaml

_TRANSFORMER_BY_EXTENSION: Final = {
    "x-kubernetes-annotation": "commonAnnotations",
    "x-kubernetes-label-selector": "commonLabels",
    "x-kubernetes-identity": "namePrefix",
}
_DEFINITION_PART_TYPES: Final = {"Schema": dict, "Dependencies": list}


def read_openapi(text: bytes, file: str) -> OpenApiSchemas:
    return OpenApiSchemas(_read_document(text, file))


def _read_document(text: bytes, file: str) -> dict[str, Any]:
    try:
        value = read_yaml(text, dialect=YamlDialect.KUSTOMIZE, where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=error.where, line=error.line) from error
    if not isinstance(value, dict):
        raise RenderError("is not an OpenAPI document: expected a mapping with definitions", where=file)
    return value


def read_crd_config(text: bytes, file: str) -> TransformerConfig:
    """Find the fields of custom resources that refer to other objects, by the extensions in their schemas."""
    definitions = _read_document(text, file)
    specs: dict[str, list[FieldSpec]] = {}
    references: list[tuple[Gvk, tuple[FieldSpec, ...]]] = []
    for name, wrapped in definitions.items():
        _check_definition(name, wrapped, file)
        schema = _unwrap_schema(wrapped)
        if not (schema.get("properties") or {}).keys() >= {"kind", "apiVersion", "metadata"}:
            continue
        gvk = Gvk("", "", name.rpartition(".")[2])
        for path, field in _walk_fields(definitions, schema, (), 0):
            for extension, transformer in _TRANSFORMER_BY_EXTENSION.items():
                if extension in field:
                    specs.setdefault(transformer, []).append(FieldSpec("/".join(path), gvk))
            if "x-kubernetes-object-ref-kind" in field:
                references.append(_build_reference(path, field, gvk))
    return TransformerConfig({name: tuple(field_specs) for name, field_specs in specs.items()}, tuple(references))


def _check_definition(name: str, wrapped: Any, file: str) -> None:
    parts = wrapped if isinstance(wrapped, dict) else {"Schema": wrapped}
    if any(
        not isinstance(parts.get(part), expected_type | None) for part, expected_type in _DEFINITION_PART_TYPES.items()
    ):
        message = f"{name} is not a definition with a Schema: correct it; list CustomResourceDefinitions in resources"
        raise LocatedError(message, where=file, path=(name,), document_index=0)


def _build_reference(path: tuple[str, ...], field: dict[str, Any], gvk: Gvk) -> tuple[Gvk, tuple[FieldSpec, ...]]:
    version = str(field.get("x-kubernetes-object-ref-api-version") or "")
    target = parse_gvk(version, str(field["x-kubernetes-object-ref-kind"]))
    key = str(field.get("x-kubernetes-object-ref-name-key") or "name")
    is_map = "$ref" in field or "properties" in field or field.get("type") == "object"
    return target, (FieldSpec("/".join((*path, key) if is_map else path), gvk),)


def _unwrap_schema(wrapped: Any) -> dict[str, Any]:
    inner = wrapped.get("Schema") if isinstance(wrapped, dict) and "Schema" in wrapped else wrapped
    return inner if isinstance(inner, dict) else {}


def _walk_fields(
    definitions: dict[str, Any], schema: dict[str, Any], path: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    if depth > 15:
        return
    for name, field in (schema.get("properties") or {}).items():
        if not isinstance(field, dict):
            continue
        field_path = (*path, name)
        yield field_path, field
        child = field.get("items") if field.get("type") == "array" else field
        reference = child.get("$ref") if isinstance(child, dict) else None
        if isinstance(reference, str):
            child = _unwrap_schema(definitions.get(reference) or definitions.get(reference.rpartition("/")[2]))
        if isinstance(child, dict):
            yield from _walk_fields(definitions, child, field_path, depth + 1)
