"""Types of the built-in kinds, loaded from a compact table on first use.

In: group, version, kind. Out: a Type with the facts of the Go struct. Never: changes a Type after it was built.

The table maps an OpenAPI name to a text. `=T` is an alias of another type: `=string A B` (with enum values), `={}T`, or
`=([]T)` (a list that protobuf wraps in a message). Otherwise the first line is `atomic` or empty, and each other line
is a field: `name type number flags extra…`. The type is a scalar, `[]T`, `{}T` (a map from strings), `.Local` or a full
name; the number is protobuf's; the flags are p pointer, o omitempty, r required, i flattened into its owner, or `-`.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import orjson

ShapeKind = Literal["scalar", "struct", "map", "list", "untyped"]
ListType = Literal["atomic", "set", "map"]

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_PACKAGES = {
    "": "io.k8s.api.core",
    "meta.k8s.io": "io.k8s.apimachinery.pkg.apis.meta",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
# k8s: these belong to meta/v1 and are registered in every group and version.
EVERYWHERE = frozenset({"DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "Status", "WatchEvent"})
_SCALARS = frozenset({"string", "int32", "int64", "bool", "float64", "bytes"})
_UNTYPED = frozenset({"Raw", "SchemaOrBool", "SchemaOrArray", "SchemaOrStringArray"})
_GO_NAMES = {"bytes": "[]uint8"}


@cache
def table(name: str) -> Mapping[str, Any]:
    """Load one of the data files: `types`, `descriptions`."""
    packed = (Path(__file__).parent / f"data/{name}.json.gz").read_bytes()
    content: Mapping[str, Any] = orjson.loads(zlib.decompress(packed, wbits=31))  # 31: with gzip's header
    return content


@dataclass(frozen=True, slots=True)
class Field:
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
    def droppable(self) -> bool:
        """True if Go omits a zero value. k8s: `omitempty` never omits a struct."""
        return self.omitempty and (self.pointer or self.type.has_empty)


class Type:
    """A Go type: its kind, its fields, and how it merges. Implements `kube.patch.merge_schema.Shape`."""

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
        self.wrapped = False
        """True if protobuf wraps this list in a message of its own."""
        self.element: Type | None = None
        self.facts: Mapping[str, str] = {}
        """The field's x-kubernetes extensions under the table's short names: list, keys, map, key, patch."""

    def __repr__(self) -> str:
        return f"Type({self.go_name})"

    @property
    def has_empty(self) -> bool:
        """True if Go has an empty value of this type that `omitempty` omits."""
        return self.kind in ("list", "map") or self.scalar in _SCALARS

    @cached_property
    def declared(self) -> tuple[Field, ...]:
        """The fields of a struct as Go declares them; embedded structs are not flattened."""
        if self.kind != "struct":
            return ()
        package = self.name.rpartition(".")[0]
        return tuple(_field(line, package) for line in table("types")[self.name].split("\n")[1:])

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """The fields of a struct as in JSON, in Go's order; embedded structs are flattened."""
        found: dict[str, Field] = {}
        for each in self.declared:
            if each.inline:
                found.update(each.type.fields)
            else:
                found[each.name] = each
        return found

    @property
    def is_kind(self) -> bool:
        return "kind" in self.fields and "apiVersion" in self.fields

    def field(self, name: str) -> Type | None:
        if self.kind == "map":
            return self.element
        found = self.fields.get(name)
        return found.type if found else None

    def items(self) -> Type:
        if self.element is None:
            raise TypeError(f"{self.go_name} has no elements")
        return self.element

    def key_default(self, name: str) -> object:
        """Return the default of a key field; works on the list and on its element type."""
        found = (self.element or self).fields.get(name)
        if found is None:
            return None
        if found.default is not None or found.pointer or found.omitempty:
            return found.default
        return {"string": "", "int32": 0, "int64": 0, "bool": False}.get(found.type.scalar)


@cache
def named(name: str) -> Type:
    """Return the type of an OpenAPI name; raise KeyError if the table does not have it."""
    return _named(name)


def _named(name: str) -> Type:
    text: str = table("types")[name]
    package, _, local = name.rpartition(".")
    go_name = f"{package.rpartition('.')[2]}.{local}"
    if not text.startswith("="):
        made = Type("struct", go_name, name=name)
        made.atomic = text.startswith("atomic")
        return made
    written, *enum = text[1:].split(" ")
    if written in _UNTYPED:
        return Type("untyped", go_name, name=name, scalar=written)
    if written in ("Time", "MicroTime", "Quantity", "IntOrString", "Duration"):
        return Type("scalar", go_name, name=name, scalar=written)
    made = _fresh(written.strip("()"), package)
    made.go_name, made.name = go_name, name
    made.enum, made.wrapped = tuple(enum), written.startswith("(")
    return made


def _fresh(written: str, package: str) -> Type:
    """Build an unshared Type for one field, so that the field's extensions can be set on it."""
    if written in _SCALARS:
        return Type("scalar", _GO_NAMES.get(written, written), scalar=written)
    if written[:2] in ("[]", "{}"):
        element = _shared(written[2:], package)
        is_list = written[0] == "["
        made = Type("list" if is_list else "map", ("[]" if is_list else "map[string]") + element.go_name)
        made.element = element
        return made
    return _named(_full(written, package))


def _shared(written: str, package: str) -> Type:
    if written[0] in "[{" or written in _SCALARS:
        return _fresh(written, package)
    return named(_full(written, package))


def _full(written: str, package: str) -> str:
    return package + written if written[0] == "." else written


def _field(line: str, package: str) -> Field:
    name, written, number, flags, *extras = line.split(" ")
    default = None
    shared_facts = True
    if extras:
        facts = dict(extra.split("=", 1) for extra in extras)
        default = orjson.loads(facts.pop("default")) if "default" in facts else None
        shared_facts = not facts
    found = _shared(written, package) if shared_facts else _with_facts(_fresh(written, package), facts)
    return Field(name, found, int(number), "p" in flags, "o" in flags, "r" in flags, "i" in flags, default)


def _with_facts(made: Type, facts: Mapping[str, str]) -> Type:
    made.facts = facts
    match facts.get("list"):
        case "set":
            made.list_type = "set"
        case "map":
            made.list_type = "map"
    made.map_keys = tuple(facts["keys"].split(",")) if "keys" in facts else ()
    made.merge_key = facts.get("key", "")
    made.strategies = tuple(facts["patch"].split(",")) if "patch" in facts else ()
    if "map" in facts:
        made.atomic = facts["map"] == "atomic"
    return made


@cache
def type_of(group: str, version: str, kind: str) -> Type | None:
    """Return the type of a built-in kind, None if the table does not have it."""
    package = _PACKAGES.get(group)
    if package is None:
        head, _, tail = group.partition(".")
        if tail and not tail.endswith("k8s.io"):
            return None
        package = f"io.k8s.api.{head}"
    name = f"{META}.{kind}" if kind in EVERYWHERE else f"{package}.{version}.{kind}"
    text = table("types").get(name, "=")
    if text.startswith("="):
        return None
    found = named(name)
    return found if found.is_kind or kind == "WatchEvent" else None
