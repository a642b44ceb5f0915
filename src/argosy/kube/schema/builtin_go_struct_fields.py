"""Types of the built-in kinds, loaded from a compact table on first use.

In: group, version, kind. Out: a Type with the facts of the Go struct. Never: changes a Type after it was built.

The table maps an OpenAPI name to a text. `=T` is an alias of another type: `=string A B` (with enum values), `={}T`, or
`=([]T)` (a list that protobuf wraps in a message). Otherwise the first line is `atomic` or empty, and each other line
is a field: `name type number flags extra…`. The type is a scalar, `[]T`, `{}T` (a map from strings), `.Local` or a full
name; the number is protobuf's; the flags are p pointer, o omitempty, r required, i flattened into its owner, or `-`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import orjson

ShapeKind = Literal["scalar", "struct", "map", "list", "untyped"]
ListType = Literal["atomic", "set", "map"]

META_PACKAGE = "io.k8s.apimachinery.pkg.apis.meta.v1"
_PACKAGES_BY_GROUP = {
    "": "io.k8s.api.core",
    "meta.k8s.io": "io.k8s.apimachinery.pkg.apis.meta",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
# k8s: these belong to meta/v1 and are registered in every group and version.
META_KINDS = frozenset({"DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "Status", "WatchEvent"})
_SCALARS = frozenset({"string", "int32", "int64", "bool", "float64", "bytes"})
_UNTYPED = frozenset({"Raw", "SchemaOrBool", "SchemaOrArray", "SchemaOrStringArray"})
_GO_NAMES = {"bytes": "[]uint8"}


@cache
def load_table(name: str) -> Mapping[str, Any]:
    """Load one of the data files: `types`, `descriptions`."""
    compressed = (Path(__file__).parent / f"data/{name}.json.gz").read_bytes()
    content: Mapping[str, Any] = orjson.loads(zlib.decompress(compressed, wbits=31))  # 31: with gzip's header
    return content


@dataclass(frozen=True, slots=True)
class StructField:
    """One field of a struct. `number` is protobuf's, 0 if it has none; `inline` fields are flattened in JSON."""

    name: str
    type: Type
    number: int
    pointer: bool
    omitempty: bool
    required: bool
    inline: bool
    default: Any

    @property
    def is_omitted_if_empty(self) -> bool:
        """True if Go omits a zero value. k8s: `omitempty` never omits a struct."""
        return self.omitempty and (self.pointer or self.type.has_empty_value)


class TypeTable:
    """Types by name, from a table of texts. Names that it lacks are looked up in `fallback`."""

    def __init__(self, load_texts: Callable[[], Mapping[str, str]], fallback: TypeTable | None = None) -> None:
        """`load_texts` is called for each lookup that is not cached, so it must be cheap after the first call."""
        self._load_texts, self._fallback = load_texts, fallback
        self._types: dict[str, Type] = {}

    def get_type(self, name: str) -> Type:
        """Return the type of a name; raise KeyError if no table has it."""
        type_ = self._types.get(name)
        if type_ is None:
            type_ = self._types[name] = self._build_type(name)
        return type_

    def _build_type(self, name: str) -> Type:
        if self._fallback is not None and name not in self._load_texts():
            return self._fallback.get_type(name)
        return _build_named_type(self, name)

    def build_unshared(self, name: str) -> Type:
        if self._fallback is not None and name not in self._load_texts():
            return self._fallback.build_unshared(name)
        return _build_named_type(self, name)

    def read_text(self, name: str) -> str:
        return self._load_texts()[name]


class Type:
    """A Go type: its kind, its fields, and how it merges. Implements `kube.patch.merge_schema_protocol.Shape`."""

    def __init__(self, kind: ShapeKind, go_name: str, *, name: str = "", scalar: str = "") -> None:
        self.kind: ShapeKind = kind
        self.go_name = go_name
        self.name = name
        """The OpenAPI name of a named type: `io.k8s.api.core.v1.Pod`; empty for a list or map."""
        self.scalar = scalar
        """Only for scalar and untyped values: string, int32, int64, bool, float64, bytes, Time, Quantity, Raw, …"""
        self.atomic = False
        self.list_type: ListType = "atomic"
        self.map_keys: Sequence[str] = ()
        self.merge_key = ""
        self.strategies: Sequence[str] = ()
        self.enum: Sequence[str] = ()
        self.is_wrapped = False
        """True if protobuf wraps this list in a message of its own."""
        self.element: Type | None = None
        self.table: TypeTable | None = None
        """The table of a struct, in which the types of its fields are looked up."""
        self.extensions: Mapping[str, str] = {}
        """The field's x-kubernetes extensions under the table's short names: list, keys, map, key, patch."""

    def __repr__(self) -> str:
        return f"Type({self.go_name})"

    @property
    def has_empty_value(self) -> bool:
        """True if Go has an empty value of this type that `omitempty` omits."""
        return self.kind in ("list", "map") or self.scalar in _SCALARS

    @cached_property
    def declared_fields(self) -> tuple[StructField, ...]:
        """The fields of a struct as Go declares them; embedded structs are not flattened."""
        if self.kind != "struct" or self.table is None:
            return ()
        package = self.name.rpartition(".")[0]
        return tuple(_read_field(self.table, line, package) for line in self.table.read_text(self.name).split("\n")[1:])

    @cached_property
    def fields(self) -> Mapping[str, StructField]:
        """The fields of a struct as in JSON, in Go's order; embedded structs are flattened."""
        fields: dict[str, StructField] = {}
        for field in self.declared_fields:
            if field.inline and field.pointer:  # Go omits the fields of a nil pointer
                for name, inner in field.type.fields.items():
                    fields[name] = replace(inner, pointer=True, omitempty=True)
            elif field.inline:
                fields.update(field.type.fields)
            else:
                fields[field.name] = field
        return fields

    @property
    def is_kind(self) -> bool:
        return "kind" in self.fields and "apiVersion" in self.fields

    def field(self, name: str) -> Type | None:
        if self.kind == "map":
            return self.element
        field = self.fields.get(name)
        return field.type if field else None

    def items(self) -> Type:
        if self.element is None:
            raise TypeError(f"{self.go_name} has no elements")
        return self.element

    def key_default(self, name: str) -> object:
        """Return the default of a key field; works on the list and on its element type."""
        field = (self.element or self).fields.get(name)
        if field is None:
            return None
        if field.default is not None or field.pointer or field.omitempty:
            return field.default
        return {"string": "", "int32": 0, "int64": 0, "bool": False}.get(field.type.scalar)


BUILTIN_TYPES = TypeTable(lambda: load_table("types"))


def get_named_type(name: str) -> Type:
    """Return the type of an OpenAPI name; raise KeyError if the table does not have it."""
    return BUILTIN_TYPES.get_type(name)


def _build_named_type(table: TypeTable, name: str) -> Type:
    text = table.read_text(name)
    package, _, local = name.rpartition(".")
    go_name = f"{package.rpartition('.')[2]}.{local}"
    if not text.startswith("="):
        type_ = Type("struct", go_name, name=name)
        type_.table = table
        type_.atomic = text.startswith("atomic")
        return type_
    type_text, *enum = text[1:].split(" ")
    if type_text in _UNTYPED:
        return Type("untyped", go_name, name=name, scalar=type_text)
    if type_text in ("Time", "MicroTime", "Quantity", "IntOrString", "Duration"):
        return Type("scalar", go_name, name=name, scalar=type_text)
    type_ = _build_unshared_type(table, type_text.strip("()"), package)
    type_.go_name, type_.name = go_name, name
    type_.enum, type_.is_wrapped = tuple(enum), type_text.startswith("(")
    return type_


def _build_unshared_type(table: TypeTable, type_text: str, package: str) -> Type:
    """Build an unshared Type for one field, so that the field's extensions can be set on it."""
    if type_text in _SCALARS:
        return Type("scalar", _GO_NAMES.get(type_text, type_text), scalar=type_text)
    if type_text[:2] in ("[]", "{}"):
        element = _get_shared_type(table, type_text[2:], package)
        is_list = type_text[0] == "["
        type_ = Type("list" if is_list else "map", ("[]" if is_list else "map[string]") + element.go_name)
        type_.element = element
        return type_
    return table.build_unshared(_full_type_name(type_text, package))


def _get_shared_type(table: TypeTable, type_text: str, package: str) -> Type:
    if type_text[0] in "[{" or type_text in _SCALARS:
        return _build_unshared_type(table, type_text, package)
    return table.get_type(_full_type_name(type_text, package))


def _full_type_name(type_text: str, package: str) -> str:
    return package + type_text if type_text[0] == "." else type_text


def _read_field(table: TypeTable, line: str, package: str) -> StructField:
    name, type_text, number, flags, *extras = line.split(" ")
    default = None
    can_share_type = True
    if extras:
        extensions = dict(extra.split("=", 1) for extra in extras)
        default = orjson.loads(extensions.pop("default")) if "default" in extensions else None
        can_share_type = not extensions
    type_ = (
        _get_shared_type(table, type_text, package)
        if can_share_type
        else _set_extensions(_build_unshared_type(table, type_text, package), extensions)
    )
    return StructField(name, type_, int(number), "p" in flags, "o" in flags, "r" in flags, "i" in flags, default)


def _set_extensions(type_: Type, extensions: Mapping[str, str]) -> Type:
    type_.extensions = extensions
    match extensions.get("list"):
        case "set":
            type_.list_type = "set"
        case "map":
            type_.list_type = "map"
    type_.map_keys = tuple(extensions["keys"].split(",")) if "keys" in extensions else ()
    type_.merge_key = extensions.get("key", "")
    type_.strategies = tuple(extensions["patch"].split(",")) if "patch" in extensions else ()
    if "map" in extensions:
        type_.atomic = extensions["map"] == "atomic"
    return type_


@cache
def find_builtin_type(group: str, version: str, kind: str) -> Type | None:
    """Return the type of a built-in kind, None if the table does not have it."""
    package = _PACKAGES_BY_GROUP.get(group)
    if package is None:
        head, _, tail = group.partition(".")
        if tail and not tail.endswith("k8s.io"):
            return None
        package = f"io.k8s.api.{head}"
    name = f"{META_PACKAGE}.{kind}" if kind in META_KINDS else f"{package}.{version}.{kind}"
    text = load_table("types").get(name, "=")
    if text.startswith("="):
        return None
    type_ = get_named_type(name)
    return type_ if type_.is_kind or kind == "WatchEvent" else None
