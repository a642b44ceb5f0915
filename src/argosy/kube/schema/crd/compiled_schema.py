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
_CEL_WORDS = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of x-kubernetes-validations."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool = False
    transition: bool = False


class Node:
    """One compiled schema, with the facts that decoding, defaulting, validation and patching need."""

    __slots__ = (
        "additional", "atomic", "cel_names", "cel_plain", "combined", "deep", "default", "defaulted", "embedded",
        "enum", "format", "has_defaults", "has_embedded", "has_lists", "has_rules", "int_or_string", "item", "kind",
        "limits", "list_type", "map_keys", "merge_key", "nullable", "preserve", "properties", "required", "rules",
        "strategies", "type", "types",
    )  # fmt: skip

    def __init__(self) -> None:
        self.type = ""
        self.types: tuple[str, ...] = ()
        self.format = ""
        self.properties: dict[str, Node] = {}
        self.additional: Node | None = None
        self.item: Node | None = None
        self.default: Any = None
        self.nullable = False
        self.preserve = False
        self.embedded = False
        self.int_or_string = False
        self.required: tuple[str, ...] = ()
        self.enum: tuple[Any, ...] = ()
        self.limits: dict[str, Any] = {}
        self.combined: dict[str, Any] = {}
        self.rules: tuple[Rule, ...] = ()
        self.kind: ShapeKind = "untyped"
        self.atomic = False
        self.list_type: ListType = "atomic"
        self.map_keys: tuple[str, ...] = ()
        self.merge_key = ""
        self.strategies: tuple[str, ...] = ()
        self.has_defaults = self.has_lists = self.has_embedded = self.has_rules = False
        self.defaulted: tuple[tuple[str, Node], ...] = ()
        self.deep: tuple[tuple[str, Node], ...] = ()
        self.cel_names: dict[str, str] = {}
        self.cel_plain = True

    def field(self, name: str) -> Node | None:
        child = self.properties.get(name)
        if child is not None:
            return child
        if self.additional is not None:
            return self.additional
        return UNTYPED if self.preserve or self.kind == "untyped" else None

    def items(self) -> Node:
        return self.item or UNTYPED

    def key_default(self, name: str) -> object:
        child = self.item.properties.get(name) if self.item else None
        return child.default if child else None

    def children(self) -> list[Node]:
        return [*self.properties.values(), *(each for each in (self.additional, self.item) if each is not None)]


_LIMITS = (
    "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "maxLength", "minLength", "pattern",
    "maxItems", "minItems", "maxProperties", "minProperties",
)  # fmt: skip


def compile_node(schema: Mapping[str, Any], *, resource: bool = False) -> Node:
    """Compile a schema and its subschemas; the root of a kind (`is_root`) has implied metadata."""
    node = Node()
    node.type = schema.get("type") or ""
    node.int_or_string = schema.get("x-kubernetes-int-or-string") is True
    node.types = ("integer", "string") if node.int_or_string else ((node.type,) if node.type else ())
    node.format = schema.get("format") or ""
    node.nullable = schema.get("nullable") is True
    node.preserve = schema.get("x-kubernetes-preserve-unknown-fields") is True
    node.embedded = resource or schema.get("x-kubernetes-embedded-resource") is True
    node.default = schema.get("default")
    node.required = tuple(schema.get("required") or ())
    node.enum = tuple(schema.get("enum") or ())
    node.limits = {name: schema[name] for name in _LIMITS if schema.get(name) is not None}
    node.rules = tuple(map(_rule, schema.get("x-kubernetes-validations") or ()))
    node.properties = {
        name: compile_node(schema["properties"][name]) for name in sorted(schema.get("properties") or {})
    }
    if node.embedded:
        node.properties.update(apiVersion=_TEXT, kind=_TEXT, metadata=_metadata_for(node.properties.get("metadata")))
    _compile_inner(node, schema)
    _shape(node, schema)
    _summarise(node)
    return node


def _compile_inner(node: Node, schema: Mapping[str, Any]) -> None:
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        node.additional = compile_node(additional)
    elif additional is True:
        # k8s: any value is allowed, but fields inside an object are pruned, because none is declared.
        node.additional = compile_node({"nullable": True})
    items = schema.get("items")
    if isinstance(items, Mapping):
        node.item = compile_node(items)
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            node.combined[name] = tuple(compile_node(each) for each in schema[name])
    if isinstance(schema.get("not"), Mapping):
        node.combined["not"] = compile_node(schema["not"])


def _rule(entry: Mapping[str, Any]) -> Rule:
    text = str(entry.get("rule") or "")
    return Rule(
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
    spoken = ""
    quote = ""
    for index, character in enumerate(rule):
        if quote:
            if character == quote and rule[index - 1] != "\\":
                quote = ""
        elif character in "'\"":
            quote = character
        else:
            spoken += character
    words = "".join(each if each.isalnum() or each == "_" else " " for each in spoken)
    return "oldSelf" in words.split()


def _shape(node: Node, schema: Mapping[str, Any]) -> None:
    node.atomic = schema.get("x-kubernetes-map-type") == "atomic"
    if node.type == "array":
        node.kind = "list"
        node.list_type = schema.get("x-kubernetes-list-type") or "atomic"
        node.map_keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    elif node.type == "object":
        if node.properties:
            node.kind = "struct"
        elif node.additional is not None:
            node.kind = "map"
        else:
            node.kind = "untyped" if node.preserve else "struct"
    elif node.types:
        node.kind = "scalar"


def _summarise(node: Node) -> None:
    """Set the flags that let passes over a manifest skip subtrees."""
    below = node.children()
    node.has_rules = bool(node.rules) or any(each.has_rules for each in below)
    node.has_lists = node.list_type != "atomic" or any(each.has_lists for each in below)
    node.has_embedded = any(each.embedded or each.has_embedded for each in below)
    node.defaulted = tuple((name, each) for name, each in node.properties.items() if each.default is not None)
    node.deep = tuple((name, each) for name, each in node.properties.items() if each.has_defaults)
    inner = (node.additional, node.item)
    node.has_defaults = bool(node.defaulted or node.deep) or any(
        each is not None and (each.has_defaults or each.default is not None) for each in inner
    )
    node.cel_names = {name: escaped for name in node.properties if (escaped := cel_name(name)) != name}
    node.cel_plain = not node.cel_names and node.type != "number" and all(each.cel_plain for each in below)


def cel_name(name: str) -> str:
    """Return a property's name as CEL rules write it."""
    if name in _CEL_WORDS:
        return f"__{name}__"
    escaped = name.replace("__", "__underscores__").replace(".", "__dot__").replace("-", "__dash__")
    return escaped.replace("/", "__slash__")


def _untyped() -> Node:
    node = Node()
    node.preserve = True
    return node


def _leaf(kind: str) -> Node:
    node = Node()
    node.type, node.types, node.kind, node.nullable = kind, (kind,), "scalar", True
    return node


UNTYPED = _untyped()
_TEXT = _leaf("string")


def _struct(**properties: Node) -> Node:
    node = Node()
    node.kind, node.type, node.properties, node.nullable = "struct", "object", dict(properties), True
    return node


def _list(item: Node, list_type: ListType = "atomic", map_keys: Sequence[str] = ()) -> Node:
    node = Node()
    node.kind, node.type, node.item, node.nullable = "list", "array", item, True
    node.list_type, node.map_keys = list_type, tuple(map_keys)
    return node


def _map_of_text() -> Node:
    node = Node()
    node.kind, node.type, node.additional, node.nullable = "map", "object", _TEXT, True
    return node


def _metadata() -> Node:
    """Build the node of ObjectMeta."""
    truth, number = _leaf("boolean"), _leaf("integer")
    owner = _struct(apiVersion=_TEXT, kind=_TEXT, name=_TEXT, uid=_TEXT, controller=truth, blockOwnerDeletion=truth)
    owner.atomic = True
    texts = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "creationTimestamp")
    return _struct(
        **dict.fromkeys((*texts, "deletionTimestamp"), _TEXT),
        generation=number,
        deletionGracePeriodSeconds=number,
        labels=_map_of_text(),
        annotations=_map_of_text(),
        finalizers=_list(_TEXT, "set"),
        ownerReferences=_list(owner, "map", ("uid",)),
        managedFields=_list(UNTYPED),
    )


METADATA = _metadata()


def _metadata_for(declared: Node | None) -> Node:
    """Return ObjectMeta with the restrictions that a schema declares for metadata."""
    if declared is None or not declared.properties:
        return METADATA
    node = _struct(**{**METADATA.properties, **declared.properties})
    node.required = declared.required
    return node
