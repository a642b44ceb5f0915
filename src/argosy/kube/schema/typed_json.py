"""Decodes JSON into a built-in type and encodes it again, as Go's typed decoder and encoder do.

In: a JSON value and its Type. Out: the manifest that Go would write, and the paths of unknown fields.
Never: applies defaults or validates; mutates its input. Unchanged values are returned as the same object.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from argosy.errors import ManifestError
from argosy.kube.objects import Manifest
from argosy.kube.schema import go_scalars
from argosy.kube.schema.builtin_types import Field, Type, named
from argosy.kube.schema.go_scalars import Mismatch, mismatch

# Location of a value: (location of its parent, its key or index, name of the struct that declares the key, or "").
Place = tuple[Any, Any, str] | None
Decoder = Callable[[Any, Place, list[str]], Any]
"""(non-null value, its location, list that collects unknown fields) -> the value as Go writes it."""

_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_ZEROS = {"string": "", "int32": 0, "int64": 0, "float64": 0, "bool": False, "Quantity": "0", "IntOrString": 0}
_FAST = {"string": str, "bool": bool}
_MAX_UNKNOWN = 100


class _Left:
    """Marks a field that is omitted."""


_LEFT = _Left()


class Decoded(NamedTuple):
    manifest: Manifest
    unknown: tuple[str, ...]


def decode(type_: Type, value: Any, *, kind: str, api_version: str) -> Decoded:
    """Return `value` as Go would write it after decoding it. Unknown fields are removed and reported."""
    unknown: list[str] = []
    try:
        manifest = _decoder(type_)(value, None, unknown)
    except Mismatch as error:
        raise ManifestError(_go_message(error)) from None
    except RecursionError:
        raise ManifestError("exceeded max depth") from None
    if manifest.get("kind") != kind or manifest.get("apiVersion") != api_version:
        manifest = {"kind": kind, "apiVersion": api_version} | manifest
        manifest["kind"], manifest["apiVersion"] = kind, api_version
    return Decoded(manifest, tuple(dict.fromkeys(unknown))[:_MAX_UNKNOWN])


def decode_part(type_: Type, value: Any) -> tuple[Any, tuple[str, ...]]:
    """Decode a nested value of any type; return it as Go writes it, and the paths of unknown fields."""
    unknown: list[str] = []
    try:
        made = _decoder(type_)(value, None, unknown)
    except Mismatch as error:
        raise ManifestError(_go_message(error)) from None
    except RecursionError:
        raise ManifestError("exceeded max depth") from None
    return made, tuple(dict.fromkeys(unknown))[:_MAX_UNKNOWN]


def zero(type_: Type) -> Manifest:
    """Build the empty object of a kind as Go writes it, without kind and apiVersion."""
    manifest: Manifest = copy.deepcopy(_zero(type_))
    return manifest


@cache
def always(type_: Type) -> tuple[tuple[str, Any], ...]:
    """List the struct fields that Go writes even without a value (no omitempty), with the value that it writes."""
    return tuple((name, _blank(field)) for name, field in type_.fields.items() if not field.droppable)


@cache
def _zero(type_: Type) -> Any:
    return dict(always(type_)) if type_.kind == "struct" else _ZEROS.get(type_.scalar)


def _blank(field: Field) -> Any:
    """Return the value that Go writes for a missing field."""
    if field.droppable:
        return _LEFT
    return None if field.pointer else _zero(field.type)


@cache
def _decoder(type_: Type) -> Decoder:
    match type_.kind:
        case "struct":
            return _struct(type_)  # resolves its fields on first use, because JSON schemas are recursive
        case "list":
            return _list(type_)
        case "map":
            return _map(type_)
        case "untyped":
            return _untyped(type_)
    return _scalar(type_)


def _scalar(type_: Type) -> Decoder:
    readers: dict[str, Callable[[], go_scalars.Reader]] = {
        "string": lambda: go_scalars.exactly(str, type_.go_name),
        "bool": lambda: go_scalars.exactly(bool, type_.go_name),
        "int32": lambda: go_scalars.integer("int32", type_.go_name),
        "int64": lambda: go_scalars.integer("int64", type_.go_name),
        "float64": lambda: go_scalars.number,
        "bytes": lambda: go_scalars.base64(type_.go_name),
        "Time": lambda: go_scalars.time,
        "MicroTime": lambda: go_scalars.micro_time,
        "Quantity": lambda: go_scalars.quantity,
        "IntOrString": lambda: go_scalars.int_or_string,
        "Duration": lambda: go_scalars.exactly(str, "string"),
    }
    read = readers[type_.scalar]()

    def decode_scalar(value: Any, place: Place, unknown: list[str]) -> Any:
        try:
            return read(value)
        except Mismatch as error:
            raise _placed(error, place) from None

    return decode_scalar


class _Known(NamedTuple):
    """Decoder of one field. Values of `pass_through_type` need no change, unless they are empty and `omit_if_empty`."""

    fast: type | None
    drops: bool
    decoder: Decoder
    blank: Any


def _know(type_: Type) -> dict[str, _Known]:
    known = {}
    for name, field in type_.fields.items():
        drops = field.droppable and not field.pointer
        known[name] = _Known(_FAST.get(field.type.scalar), drops, _decoder(field.type), _blank(field))
    return known


def _struct(type_: Type) -> Decoder:
    known: dict[str, _Known] = {}
    needed: tuple[tuple[str, Any], ...] = ()
    struct = type_.go_name.rpartition(".")[2]

    def decode_struct(value: Any, place: Place, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise _placed(mismatch(value, type_.go_name), place)
        nonlocal known, needed
        if not known:
            known, needed = _know(type_), always(type_)
        changes: dict[str, Any] = {}
        for key, item in value.items():
            entry = known.get(key)
            if entry is None:
                unknown.append(_path((place, key, "")))
                changes[key] = _LEFT
                continue
            fast, drops, decoder, blank = entry
            if type(item) is fast:
                if drops and not item:
                    changes[key] = blank
            elif item is None:
                if blank is not None:
                    changes[key] = blank
            else:
                new = decoder(item, (place, key, struct), unknown)
                if drops and not new:
                    changes[key] = blank
                elif new is not item:
                    changes[key] = new
        for key, blank in needed:
            if key not in value:
                changes.setdefault(key, blank)
        return _changed(value, changes) if changes else value

    return decode_struct


def _changed(value: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    made = value | changes
    for key, item in changes.items():
        if item is _LEFT:
            del made[key]
    return made


def _list(type_: Type) -> Decoder:
    element = type_.items()
    decoder = _decoder(element)
    fast = _FAST.get(element.scalar)

    def decode_list(value: Any, place: Place, unknown: list[str]) -> Any:
        if type(value) is not list:
            raise _placed(mismatch(value, type_.go_name), place)
        made = value
        for index, item in enumerate(value):
            if type(item) is fast:
                continue
            new = _zero(element) if item is None else decoder(item, (place, index, ""), unknown)
            if new is not item:
                made = list(value) if made is value else made
                made[index] = new
        return made

    return decode_list


def _map(type_: Type) -> Decoder:
    element = type_.items()
    decoder = _decoder(element)
    fast = _FAST.get(element.scalar)

    def decode_map(value: Any, place: Place, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise _placed(mismatch(value, type_.go_name), place)
        changes: dict[str, Any] = {}
        for key, item in value.items():
            if type(item) is fast:
                continue
            new = _zero(element) if item is None else decoder(item, (place, key, ""), unknown)
            if new is not item:
                changes[key] = new
        return value | changes if changes else value

    return decode_map


def _untyped(type_: Type) -> Decoder:
    def raw(value: Any, place: Place, unknown: list[str]) -> Any:
        return value

    def schema_or(value: Any, place: Place, unknown: list[str]) -> Any:
        # k8s: these types have their own UnmarshalJSON, so Go reports no unknown fields and no paths inside them.
        try:
            return _read_schema_or(type_.scalar, value)
        except Mismatch as error:
            raise _placed(error, place) from None

    return raw if type_.scalar == "Raw" else schema_or


def _read_schema_or(what: str, value: Any) -> Any:
    schema = _decoder(named(_SCHEMA))
    if type(value) is dict:
        return schema(value, None, [])
    if what == "SchemaOrBool":
        if type(value) is bool:
            return value
        raise ManifestError("boolean or JSON schema expected")
    if type(value) is not list or not value:
        return None
    if what == "SchemaOrStringArray":
        read = go_scalars.exactly(str, "string")
        return ["" if item is None else read(item) for item in value]
    return [_zero(named(_SCHEMA)) if item is None else schema(item, None, []) for item in value]


def _placed(error: Mismatch, place: Place) -> Mismatch:
    """Set the error's field as Go does: innermost struct, then the path from the top without indexes and map keys."""
    names: list[str] = []
    struct = ""
    while place is not None:
        place, key, owner = place
        if owner:
            names.append(key)
            struct = struct or owner
    error.field = f"{struct}.{'.'.join(reversed(names))}" if names else ""
    return error


def _go_message(error: Mismatch) -> str:
    target = f"Go struct field {error.field}" if error.field else "Go value"
    return f"json: cannot unmarshal {error.value} into {target} of type {error.go_type}"


def _path(place: Place) -> str:
    """Format a location as `spec.template.spec.containers[0].imag`."""
    parts: list[str] = []
    while place is not None:
        place, key, _ = place
        parts.append(f"[{key}]" if type(key) is int else f".{key}")
    return "".join(reversed(parts)).removeprefix(".")
