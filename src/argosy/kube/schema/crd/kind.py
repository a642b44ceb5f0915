"""CustomKind: a custom kind in one version, with what a server needs to serve it.

In: a CustomResourceDefinition that passed `check_definition`. Out: one CustomKind for each version.
Never: accesses a store; evaluates CEL (see `build_rule_calls`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import orjson

from argosy.annotations import ACTIONS, NAMES
from argosy.kube.objects import Manifest
from argosy.kube.objects.go_format import format_value
from argosy.kube.schema import name_label_address_syntax
from argosy.kube.schema.api_resource import ApiResource, Subresource
from argosy.kube.schema.crd import cel_rule_selection_and_errors
from argosy.kube.schema.crd.compiled_schema import MISSING, CelRule, SchemaNode, compile_schema
from argosy.kube.schema.crd.custom_object_extra_validation import (
    check_duplicate_list_items,
    check_embedded_objects,
    check_replicas_and_selector,
)
from argosy.kube.schema.crd.object_validation import validate_value
from argosy.kube.schema.crd.printer_columns import PrinterColumns
from argosy.kube.schema.crd.pruning_and_defaults import apply_defaults, prune
from argosy.kube.schema.crd.version_priority import format_deprecation_warning
from argosy.kube.schema.field_error import FieldError, FieldErrorType, invalid
from argosy.kube.schema.jsonpath import compile_path
from argosy.kube.schema.selectors import FieldLabels, build_custom_field_labels
from argosy.languages.go_regexp import limit_matching_time

_BLOCKING_ERROR_TYPES = frozenset(
    (
        FieldErrorType.NOT_SUPPORTED,
        FieldErrorType.REQUIRED,
        FieldErrorType.TOO_LONG,
        FieldErrorType.TOO_MANY,
        FieldErrorType.TYPE_INVALID,
    )
)
_RULES_NOT_CHECKED_ERROR = invalid(
    "<nil>",
    '"null"',
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


_MAX_CACHED_SHAPES = 200
_SHAPE_CACHE: dict[bytes, SchemaNode] = {}


class CustomKind:
    """One version of one CustomResourceDefinition."""

    __slots__ = (
        "deprecation_warning",
        "field_labels",
        "has_defaults",
        "has_rules",
        "is_served",
        "is_storage_version",
        "name_check",
        "printer_columns",
        "resource",
        "scale_paths",
        "selectable_fields",
        "shape",
    )  # fmt: skip

    def __init__(self, definition: Manifest, version: Mapping[str, Any]) -> None:
        annotations = (definition.get("metadata") or {}).get("annotations") or {}
        self.resource = _build_resource(
            definition["spec"], version, _parse_action_subresources(annotations.get(ACTIONS) or "")
        )
        # k8s: names of custom objects have no colon; objects of aggregated API servers may have one
        self.name_check = (
            name_label_address_syntax.check_path_segment
            if annotations.get(NAMES) == "segments"
            else name_label_address_syntax.check_dns_subdomain
        )
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {"x-kubernetes-preserve-unknown-fields": True}
        self.shape: SchemaNode = _compile_cached_shape(schema)
        self.has_defaults: bool = self.shape.has_defaults
        self.has_rules: bool = self.shape.has_rules
        self.is_served: bool = version.get("served") is True
        self.is_storage_version: bool = version.get("storage") is True
        self.deprecation_warning: str = format_deprecation_warning(definition["spec"], version)
        self.scale_paths: tuple[str, str, str] | None = _read_scale_paths(version)
        self.selectable_fields = tuple(str(field["jsonPath"]) for field in version.get("selectableFields") or ())
        self.field_labels: FieldLabels = build_custom_field_labels(
            {path.removeprefix("."): _build_field_reader(path) for path in self.selectable_fields},
            namespaced=self.resource.namespaced,
        )
        self.printer_columns = PrinterColumns(version.get("additionalPrinterColumns") or ())

    def decode(self, value: Manifest) -> tuple[Manifest, list[str]]:
        """Prune unknown fields; return the manifest and the sorted paths of these fields."""
        unknown: list[str] = []
        manifest = prune(value, self.shape, "", unknown)
        return manifest, sorted(unknown)

    def apply_defaults(self, manifest: Manifest) -> Manifest:
        """Apply the schema's defaults; return the same object if nothing changes."""
        return apply_defaults(manifest, self.shape) if self.has_defaults else manifest

    def validate(self, manifest: Manifest, old: Manifest | None = None) -> list[FieldError]:
        """Return the errors, without CEL rules. On an update, unchanged values are not validated again (ratcheting)."""
        errors: list[FieldError] = []
        with limit_matching_time():
            validate_value(manifest, self.shape, "", errors, MISSING if old is None else old)
        if self.shape.combinators or len(errors) > 1:
            errors = list(dict.fromkeys(errors))
        if self.scale_paths:
            errors += check_replicas_and_selector(manifest, self.scale_paths)
        if self.shape.has_embedded:
            check_embedded_objects(manifest, self.shape, "", errors)
        if self.shape.has_lists:
            errors += self._check_duplicate_list_items(manifest, old)
        if self.has_rules and any(error.kind in _BLOCKING_ERROR_TYPES for error in errors):
            errors.append(_RULES_NOT_CHECKED_ERROR)
        return errors

    def _check_duplicate_list_items(self, manifest: Manifest, old: Manifest | None) -> list[FieldError]:
        if old is not None:
            old_errors: list[FieldError] = []
            check_duplicate_list_items(old, self.shape, "", old_errors)
            if old_errors:
                return []
        errors: list[FieldError] = []
        check_duplicate_list_items(manifest, self.shape, "", errors)
        return errors

    @property
    def rules(self) -> list[tuple[str, CelRule]]:
        """Every CEL rule, with the path of its schema."""
        rules: list[tuple[str, CelRule]] = []
        _collect_rules(self.shape, "", rules)
        return rules

    def build_rule_calls(self, manifest: Manifest, old: Manifest | None = None) -> list[dict[str, Any]]:
        """Build the calls for `cel.evaluate`, to run if `validate` found no blocking error; may be empty."""
        return cel_rule_selection_and_errors.build_rule_calls(manifest, old, self.shape) if self.has_rules else []

    @staticmethod
    def read_rule_results(
        calls: list[dict[str, Any]], results: list[dict[str, Any]]
    ) -> tuple[list[FieldError], list[str]]:
        """Convert the results of `build_rule_calls` to errors and warnings."""
        return cel_rule_selection_and_errors.read_rule_results(calls, results)

    @property
    def column_definitions(self) -> list[dict[str, Any]]:
        return self.printer_columns.definitions

    def build_cells(self, manifest: Manifest, now: datetime) -> list[Any]:
        return self.printer_columns.build_cells(manifest, now)


def build_custom_kinds(definition: Manifest) -> list[CustomKind]:
    """Build a CustomKind for each version of a CRD. Conversion is None: versions differ only in apiVersion."""
    return [CustomKind(definition, version) for version in definition["spec"]["versions"]]


def _compile_cached_shape(schema: Mapping[str, Any]) -> SchemaNode:
    """Compile a schema, or return it from a cache: a CRD's status changes often, its schema hardly ever."""
    try:
        digest = hashlib.blake2b(orjson.dumps(schema), digest_size=16).digest()
    except TypeError:  # a number that is too large for orjson
        return compile_schema(schema, is_root=True)
    shape = _SHAPE_CACHE.pop(digest, None) or compile_schema(schema, is_root=True)
    _SHAPE_CACHE[digest] = shape  # most recently used
    if len(_SHAPE_CACHE) > _MAX_CACHED_SHAPES:
        del _SHAPE_CACHE[next(iter(_SHAPE_CACHE))]
    return shape


def convert_version(manifest: Manifest, api_version: str) -> Manifest:
    """Return the object in another version of its kind."""
    return manifest if manifest.get("apiVersion") == api_version else {**manifest, "apiVersion": api_version}


def _build_resource(
    spec: Mapping[str, Any], version: Mapping[str, Any], actions: tuple[Subresource, ...]
) -> ApiResource:
    names = spec["names"]
    return ApiResource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=spec.get("scope") == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=(*_read_subresources(version), *actions),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        custom=True,
    )


def _read_subresources(version: Mapping[str, Any]) -> tuple[Subresource, ...]:
    declared = version.get("subresources") or {}
    verbs = ("get", "patch", "update")
    subresources = [Subresource("status", verbs)] if declared.get("status") is not None else []
    if declared.get("scale") is not None:
        subresources.append(Subresource("scale", verbs, "autoscaling", "v1", "Scale"))
    return tuple(subresources)


def _parse_action_subresources(text: str) -> tuple[Subresource, ...]:
    """k8s: a CRD can only declare status and scale; aggregated API servers have other subresources."""
    pairs = (pair.strip().partition("=") for pair in text.split(","))
    return tuple(
        Subresource(name, ("create",), kind=request_kind) for name, _, request_kind in pairs if name and request_kind
    )


def _read_scale_paths(version: Mapping[str, Any]) -> tuple[str, str, str] | None:
    scale = (version.get("subresources") or {}).get("scale")
    if not scale:
        return None
    return scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or ""


def _build_field_reader(path: str) -> Callable[[Manifest], str]:
    compiled_path = compile_path(path)

    def read(manifest: Manifest) -> str:
        value = compiled_path.find_first(manifest)
        return "" if value is None else format_value(value)

    return read


def _collect_rules(node: SchemaNode, path: str, rules: list[tuple[str, CelRule]]) -> None:
    rules.extend((path or "<nil>", rule) for rule in node.rules)
    for name, child in node.properties.items():
        if child.has_rules:
            _collect_rules(child, f"{path}.{name}" if path else name, rules)
    for suffix, subschema in (("[*]", node.item), ("[*]", node.additional_properties)):
        if subschema is not None and subschema.has_rules:
            _collect_rules(subschema, path + suffix, rules)
