"""Compiles a custom kind's schema into a tree of nodes for pruning, defaulting, validation and patching.

In: an openAPIV3Schema as plain data. Out: a tree of SchemaNodes, each a `Shape` for patches. Never: sees a manifest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

META_FIELDS = frozenset(("apiVersion", "kind", "metadata"))
MISSING: Any = object()

ShapeKind = Literal["scalar", "struct", "map", "list", "untyped"]
ListType = Literal["atomic", "set", "map"]

# k8s: a field named like a reserved word of CEL is escaped as `__word__`.
_CEL_RESERVED_WORDS = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CelRule:
    """One entry of x-kubernetes-validations."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool = False
    is_transition: bool = False


class SchemaNode:
    """One compiled schema, with the facts that decoding, defaulting, validation and patching need."""

    __slots__ = (
        "additional_properties",
        "atomic",
        "cel_names",
        "children_with_nested_defaults",
        "children_with_own_default",
        "combinators",
        "default",
        "enum",
        "format",
        "has_defaults",
        "has_embedded",
        "has_lists",
        "has_rules",
        "is_cel_value_unchanged",
        "is_embedded_resource",
        "is_int_or_string",
        "item",
        "kind",
        "limits",
        "list_type",
        "map_keys",
        "merge_key",
        "nullable",
        "preserves_unknown_fields",
        "properties",
        "required",
        "rules",
        "strategies",
        "type",
        "types",
    )  # fmt: skip

    def __init__(self) -> None:
        self.type = ""
        self.types: tuple[str, ...] = ()
        self.format = ""
        self.properties: dict[str, SchemaNode] = {}
        self.additional_properties: SchemaNode | None = None
        self.item: SchemaNode | None = None
        self.default: Any = None
        self.nullable = False
        self.preserves_unknown_fields = False
        self.is_embedded_resource = False
        self.is_int_or_string = False
        self.required: tuple[str, ...] = ()
        self.enum: tuple[Any, ...] = ()
        self.limits: dict[str, Any] = {}
        self.combinators: dict[str, Any] = {}
        self.rules: tuple[CelRule, ...] = ()
        self.kind: ShapeKind = "untyped"
        self.atomic = False
        self.list_type: ListType = "atomic"
        self.map_keys: tuple[str, ...] = ()
        self.merge_key = ""
        self.strategies: tuple[str, ...] = ()
        self.has_defaults = self.has_lists = self.has_embedded = self.has_rules = False
        self.children_with_own_default: tuple[tuple[str, SchemaNode], ...] = ()
        self.children_with_nested_defaults: tuple[tuple[str, SchemaNode], ...] = ()
        self.cel_names: dict[str, str] = {}
        self.is_cel_value_unchanged = True

    def field(self, name: str) -> SchemaNode | None:
        child = self.properties.get(name)
        if child is not None:
            return child
        if self.additional_properties is not None:
            return self.additional_properties
        return UNTYPED_NODE if self.preserves_unknown_fields or self.kind == "untyped" else None

    def items(self) -> SchemaNode:
        return self.item or UNTYPED_NODE

    def key_default(self, name: str) -> object:
        child = self.item.properties.get(name) if self.item else None
        return child.default if child else None

    def children(self) -> list[SchemaNode]:
        return [
            *self.properties.values(),
            *(child for child in (self.additional_properties, self.item) if child is not None),
        ]


_LIMIT_KEYWORDS = (
    "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "maxLength", "minLength", "pattern",
    "maxItems", "minItems", "maxProperties", "minProperties",
)  # fmt: skip


def compile_schema(schema: Mapping[str, Any], *, is_root: bool = False) -> SchemaNode:
    """Compile a schema and its subschemas; the root of a kind (`is_root`) has implied metadata."""
    node = SchemaNode()
    node.type = schema.get("type") or ""
    node.is_int_or_string = schema.get("x-kubernetes-int-or-string") is True
    node.types = ("integer", "string") if node.is_int_or_string else ((node.type,) if node.type else ())
    node.format = schema.get("format") or ""
    node.nullable = schema.get("nullable") is True
    node.preserves_unknown_fields = schema.get("x-kubernetes-preserve-unknown-fields") is True
    node.is_embedded_resource = is_root or schema.get("x-kubernetes-embedded-resource") is True
    node.default = schema.get("default")
    node.required = tuple(schema.get("required") or ())
    node.enum = tuple(schema.get("enum") or ())
    node.limits = {name: schema[name] for name in _LIMIT_KEYWORDS if schema.get(name) is not None}
    node.rules = tuple(map(_read_rule, schema.get("x-kubernetes-validations") or ()))
    node.properties = {
        name: compile_schema(schema["properties"][name]) for name in sorted(schema.get("properties") or {})
    }
    if node.is_embedded_resource:
        node.properties.update(
            apiVersion=_STRING_NODE, kind=_STRING_NODE, metadata=_merge_metadata_node(node.properties.get("metadata"))
        )
    _compile_subschemas(node, schema)
    _set_merge_attributes(node, schema)
    _set_summary_flags(node)
    return node


def _compile_subschemas(node: SchemaNode, schema: Mapping[str, Any]) -> None:
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        node.additional_properties = compile_schema(additional)
    elif additional is True:
        # k8s: any value is allowed, but fields inside an object are pruned, because none is declared.
        node.additional_properties = compile_schema({"nullable": True})
    items = schema.get("items")
    if isinstance(items, Mapping):
        node.item = compile_schema(items)
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            node.combinators[name] = tuple(compile_schema(subschema) for subschema in schema[name])
    if isinstance(schema.get("not"), Mapping):
        node.combinators["not"] = compile_schema(schema["not"])


def _read_rule(entry: Mapping[str, Any]) -> CelRule:
    text = str(entry.get("rule") or "")
    return CelRule(
        text,
        str(entry.get("message") or ""),
        str(entry.get("messageExpression") or ""),
        str(entry.get("reason") or ""),
        str(entry.get("fieldPath") or ""),
        entry.get("optionalOldSelf") is True,
        uses_old_self(text),
    )


def uses_old_self(rule: str) -> bool:
    """True if a rule uses `oldSelf` outside of string literals."""
    code = ""
    quote = ""
    for index, character in enumerate(rule):
        if quote:
            if character == quote and rule[index - 1] != "\\":
                quote = ""
        elif character in "'\"":
            quote = character
        else:
            code += character
    identifiers = "".join(char if char.isalnum() or char == "_" else " " for char in code)
    return "oldSelf" in identifiers.split()


def _set_merge_attributes(node: SchemaNode, schema: Mapping[str, Any]) -> None:
    node.atomic = schema.get("x-kubernetes-map-type") == "atomic"
    if node.type == "array":
        node.kind = "list"
        node.list_type = schema.get("x-kubernetes-list-type") or "atomic"
        node.map_keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    elif node.type == "object":
        if node.properties:
            node.kind = "struct"
        elif node.additional_properties is not None:
            node.kind = "map"
        else:
            node.kind = "untyped" if node.preserves_unknown_fields else "struct"
    elif node.types:
        node.kind = "scalar"


def _set_summary_flags(node: SchemaNode) -> None:
    """Set the flags that let passes over a manifest skip subtrees."""
    children = node.children()
    node.has_rules = bool(node.rules) or any(child.has_rules for child in children)
    node.has_lists = node.list_type != "atomic" or any(child.has_lists for child in children)
    node.has_embedded = any(child.is_embedded_resource or child.has_embedded for child in children)
    node.children_with_own_default = tuple(
        (name, child) for name, child in node.properties.items() if child.default is not None
    )
    node.children_with_nested_defaults = tuple(
        (name, child) for name, child in node.properties.items() if child.has_defaults
    )
    value_nodes = (node.additional_properties, node.item)
    node.has_defaults = bool(node.children_with_own_default or node.children_with_nested_defaults) or any(
        child is not None and (child.has_defaults or child.default is not None) for child in value_nodes
    )
    node.cel_names = {name: escaped for name in node.properties if (escaped := escape_cel_name(name)) != name}
    node.is_cel_value_unchanged = (
        not node.cel_names and node.type != "number" and all(child.is_cel_value_unchanged for child in children)
    )


def escape_cel_name(name: str) -> str:
    """Return a property's name as CEL rules write it."""
    if name in _CEL_RESERVED_WORDS:
        return f"__{name}__"
    escaped = name.replace("__", "__underscores__").replace(".", "__dot__").replace("-", "__dash__")
    return escaped.replace("/", "__slash__")


def _build_untyped_node() -> SchemaNode:
    node = SchemaNode()
    node.preserves_unknown_fields = True
    return node


def _build_scalar_node(type_name: str) -> SchemaNode:
    node = SchemaNode()
    node.type, node.types, node.kind, node.nullable = type_name, (type_name,), "scalar", True
    return node


UNTYPED_NODE = _build_untyped_node()
_STRING_NODE = _build_scalar_node("string")


def _build_struct_node(**properties: SchemaNode) -> SchemaNode:
    node = SchemaNode()
    node.kind, node.type, node.properties, node.nullable = "struct", "object", dict(properties), True
    return node


def _build_list_node(item: SchemaNode, list_type: ListType = "atomic", map_keys: Sequence[str] = ()) -> SchemaNode:
    node = SchemaNode()
    node.kind, node.type, node.item, node.nullable = "list", "array", item, True
    node.list_type, node.map_keys = list_type, tuple(map_keys)
    return node


def _build_string_map_node() -> SchemaNode:
    node = SchemaNode()
    node.kind, node.type, node.additional_properties, node.nullable = "map", "object", _STRING_NODE, True
    return node


def _build_metadata_node() -> SchemaNode:
    """Build the node of ObjectMeta."""
    boolean_node, integer_node = _build_scalar_node("boolean"), _build_scalar_node("integer")
    owner_reference_node = _build_struct_node(
        apiVersion=_STRING_NODE,
        kind=_STRING_NODE,
        name=_STRING_NODE,
        uid=_STRING_NODE,
        controller=boolean_node,
        blockOwnerDeletion=boolean_node,
    )
    owner_reference_node.atomic = True
    string_fields = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "creationTimestamp")
    return _build_struct_node(
        **dict.fromkeys((*string_fields, "deletionTimestamp"), _STRING_NODE),
        generation=integer_node,
        deletionGracePeriodSeconds=integer_node,
        labels=_build_string_map_node(),
        annotations=_build_string_map_node(),
        finalizers=_build_list_node(_STRING_NODE, "set"),
        ownerReferences=_build_list_node(owner_reference_node, "map", ("uid",)),
        managedFields=_build_list_node(UNTYPED_NODE),
    )


METADATA_NODE = _build_metadata_node()


def _merge_metadata_node(declared: SchemaNode | None) -> SchemaNode:
    """Return ObjectMeta with the restrictions that a schema declares for metadata."""
    if declared is None or not declared.properties:
        return METADATA_NODE
    node = _build_struct_node(**{**METADATA_NODE.properties, **declared.properties})
    node.required = declared.required
    return node
