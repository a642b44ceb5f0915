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
from argosy.kube.schema import name_syntax
from argosy.kube.schema.crd import cel_rules
from argosy.kube.schema.crd.compiled_schema import MISSING, Node, Rule, compile_node
from argosy.kube.schema.crd.extra_validation import embedded_faults, list_faults, scale_faults
from argosy.kube.schema.crd.go_format import number
from argosy.kube.schema.crd.patterns import limited_matching
from argosy.kube.schema.crd.printer_columns import Columns
from argosy.kube.schema.crd.pruning import fill, prune
from argosy.kube.schema.crd.validation import check
from argosy.kube.schema.crd.versions import deprecation
from argosy.kube.schema.field_error import Fault, FaultKind, invalid
from argosy.kube.schema.jsonpath import compiled
from argosy.kube.schema.resources import Resource, Subresource
from argosy.kube.schema.selectors import FieldLabels, custom_field_labels

_BLOCKING = frozenset(
    (
        FaultKind.NOT_SUPPORTED,
        FaultKind.REQUIRED,
        FaultKind.TOO_LONG,
        FaultKind.TOO_MANY,
        FaultKind.TYPE_INVALID,
    )
)
_NOT_CHECKED = invalid(
    "<nil>",
    '"null"',
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


_MOST_SHAPES = 200
_SHAPES: dict[bytes, Node] = {}


class CustomKind:
    """One version of one CustomResourceDefinition."""

    __slots__ = (
        "deprecation", "field_labels", "grammar", "has_defaults", "has_rules", "resource", "scale_paths",
        "selectable_fields", "served", "shape", "storage", "table",
    )  # fmt: skip

    def __init__(self, definition: Manifest, version: Mapping[str, Any]) -> None:
        annotations = (definition.get("metadata") or {}).get("annotations") or {}
        self.resource = _resource(definition["spec"], version, _actions(annotations.get(ACTIONS) or ""))
        # k8s: names of custom objects have no colon; objects of aggregated API servers may have one
        self.grammar = name_syntax.path_segment if annotations.get(NAMES) == "segments" else name_syntax.dns_subdomain
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {"x-kubernetes-preserve-unknown-fields": True}
        self.shape: Node = _shape_of(schema)
        self.has_defaults: bool = self.shape.has_defaults
        self.has_rules: bool = self.shape.has_rules
        self.served: bool = version.get("served") is True
        self.storage: bool = version.get("storage") is True
        self.deprecation: str = deprecation(definition["spec"], version)
        self.scale_paths: tuple[str, str, str] | None = _scale_paths(version)
        self.selectable_fields = tuple(str(each["jsonPath"]) for each in version.get("selectableFields") or ())
        self.field_labels: FieldLabels = custom_field_labels(
            {path.removeprefix("."): _reader(path) for path in self.selectable_fields},
            namespaced=self.resource.namespaced,
        )
        self.table = Columns(version.get("additionalPrinterColumns") or ())

    def decode(self, value: Manifest) -> tuple[Manifest, list[str]]:
        """Prune unknown fields; return the manifest and the sorted paths of these fields."""
        unknown: list[str] = []
        manifest = prune(value, self.shape, "", unknown)
        return manifest, sorted(unknown)

    def default(self, manifest: Manifest) -> Manifest:
        """Apply the schema's defaults; return the same object if nothing changes."""
        return fill(manifest, self.shape) if self.has_defaults else manifest

    def validate(self, manifest: Manifest, old: Manifest | None = None) -> list[Fault]:
        """Return the errors, without CEL rules. On an update, unchanged values are not validated again (ratcheting)."""
        faults: list[Fault] = []
        with limited_matching():
            check(manifest, self.shape, "", faults, MISSING if old is None else old)
        if self.shape.combined or len(faults) > 1:
            faults = list(dict.fromkeys(faults))
        if self.scale_paths:
            faults += scale_faults(manifest, self.scale_paths)
        if self.shape.has_embedded:
            embedded_faults(manifest, self.shape, "", faults)
        if self.shape.has_lists:
            faults += self._list_faults(manifest, old)
        if self.has_rules and any(fault.kind in _BLOCKING for fault in faults):
            faults.append(_NOT_CHECKED)
        return faults

    def _list_faults(self, manifest: Manifest, old: Manifest | None) -> list[Fault]:
        if old is not None:
            before: list[Fault] = []
            list_faults(old, self.shape, "", before)
            if before:
                return []
        found: list[Fault] = []
        list_faults(manifest, self.shape, "", found)
        return found

    @property
    def rules(self) -> list[tuple[str, Rule]]:
        """Every CEL rule, with the path of its schema."""
        found: list[tuple[str, Rule]] = []
        _collect(self.shape, "", found)
        return found

    def rule_calls(self, manifest: Manifest, old: Manifest | None = None) -> list[dict[str, Any]]:
        """Build the calls for `cel.evaluate`, to run if `validate` found no blocking error; may be empty."""
        return cel_rules.calls(manifest, old, self.shape) if self.has_rules else []

    @staticmethod
    def rule_faults(calls: list[dict[str, Any]], results: list[dict[str, Any]]) -> tuple[list[Fault], list[str]]:
        """Convert the results of `build_rule_calls` to errors and warnings."""
        return cel_rules.faults(calls, results)

    @property
    def column_definitions(self) -> list[dict[str, Any]]:
        return self.table.definitions

    def columns(self, manifest: Manifest, now: datetime) -> list[Any]:
        return self.table.cells(manifest, now)


def custom_kinds(definition: Manifest) -> list[CustomKind]:
    """Build a CustomKind for each version of a CRD. Conversion is None: versions differ only in apiVersion."""
    return [CustomKind(definition, version) for version in definition["spec"]["versions"]]


def _shape_of(schema: Mapping[str, Any]) -> Node:
    """Compile a schema, or return it from a cache: a CRD's status changes often, its schema hardly ever."""
    try:
        digest = hashlib.blake2b(orjson.dumps(schema), digest_size=16).digest()
    except TypeError:  # a number that is too large for orjson
        return compile_node(schema, resource=True)
    shape = _SHAPES.pop(digest, None) or compile_node(schema, resource=True)
    _SHAPES[digest] = shape  # most recently used
    if len(_SHAPES) > _MOST_SHAPES:
        del _SHAPES[next(iter(_SHAPES))]
    return shape


def converted(manifest: Manifest, api_version: str) -> Manifest:
    """Return the object in another version of its kind."""
    return manifest if manifest.get("apiVersion") == api_version else {**manifest, "apiVersion": api_version}


def _resource(spec: Mapping[str, Any], version: Mapping[str, Any], actions: tuple[Subresource, ...]) -> Resource:
    names = spec["names"]
    return Resource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=spec.get("scope") == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=(*_subresources(version), *actions),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        custom=True,
    )


def _subresources(version: Mapping[str, Any]) -> tuple[Subresource, ...]:
    declared = version.get("subresources") or {}
    verbs = ("get", "patch", "update")
    found = [Subresource("status", verbs)] if declared.get("status") is not None else []
    if declared.get("scale") is not None:
        found.append(Subresource("scale", verbs, "autoscaling", "v1", "Scale"))
    return tuple(found)


def _actions(text: str) -> tuple[Subresource, ...]:
    """k8s: a CRD can only declare status and scale; aggregated API servers have other subresources."""
    pairs = (each.strip().partition("=") for each in text.split(","))
    return tuple(Subresource(name, ("create",), kind=sent) for name, _, sent in pairs if name and sent)


def _scale_paths(version: Mapping[str, Any]) -> tuple[str, str, str] | None:
    scale = (version.get("subresources") or {}).get("scale")
    if not scale:
        return None
    return scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or ""


def _reader(path: str) -> Callable[[Manifest], str]:
    compiled_path = compiled(path)

    def read(manifest: Manifest) -> str:
        value = compiled_path.first(manifest)
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        return number(value) if isinstance(value, int | float) else str(value)

    return read


def _collect(node: Node, path: str, found: list[tuple[str, Rule]]) -> None:
    found.extend((path or "<nil>", rule) for rule in node.rules)
    for name, child in node.properties.items():
        if child.has_rules:
            _collect(child, f"{path}.{name}" if path else name, found)
    for suffix, inner in (("[*]", node.item), ("[*]", node.additional)):
        if inner is not None and inner.has_rules:
            _collect(inner, path + suffix, found)
