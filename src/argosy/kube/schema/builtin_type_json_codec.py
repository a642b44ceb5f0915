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
from argosy.kube.schema.builtin_go_struct_fields import StructField, Type, get_named_type
from argosy.kube.schema.go_scalars import JsonTypeMismatch, build_type_mismatch

# Location of a value: (location of its parent, its key or index, name of the struct that declares the key, or "").
ValueLocation = tuple[Any, Any, str] | None
Decoder = Callable[[Any, ValueLocation, list[str]], Any]
"""(non-null value, its location, list that collects unknown fields) -> the value as Go writes it."""

_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_ZERO_VALUES = {"string": "", "int32": 0, "int64": 0, "float64": 0, "bool": False, "Quantity": "0", "IntOrString": 0}
_PASS_THROUGH_TYPES = {"string": str, "bool": bool}
_MAX_UNKNOWN_FIELDS = 100


class _Omitted:
    """Marks a field that is omitted."""


_OMITTED = _Omitted()


class DecodedManifest(NamedTuple):
    manifest: Manifest
    unknown_fields: tuple[str, ...]


def decode(type_: Type, value: Any, *, kind: str, api_version: str) -> DecodedManifest:
    """Return `value` as Go would write it after decoding it. Unknown fields are removed and reported."""
    unknown_fields: list[str] = []
    try:
        manifest = _build_decoder(type_)(value, None, unknown_fields)
    except JsonTypeMismatch as error:
        raise ManifestError(_format_go_error(error)) from None
    except RecursionError:
        raise ManifestError("exceeded max depth") from None
    if manifest.get("kind") != kind or manifest.get("apiVersion") != api_version:
        manifest = {"kind": kind, "apiVersion": api_version} | manifest
        manifest["kind"], manifest["apiVersion"] = kind, api_version
    return DecodedManifest(manifest, tuple(dict.fromkeys(unknown_fields))[:_MAX_UNKNOWN_FIELDS])


def decode_value(type_: Type, value: Any) -> tuple[Any, tuple[str, ...]]:
    """Decode a nested value of any type; return it as Go writes it, and the paths of unknown fields."""
    unknown_fields: list[str] = []
    try:
        decoded = _build_decoder(type_)(value, None, unknown_fields)
    except JsonTypeMismatch as error:
        raise ManifestError(_format_go_error(error)) from None
    except RecursionError:
        raise ManifestError("exceeded max depth") from None
    return decoded, tuple(dict.fromkeys(unknown_fields))[:_MAX_UNKNOWN_FIELDS]


def build_empty_object(type_: Type) -> Manifest:
    """Build the empty object of a kind as Go writes it, without kind and apiVersion."""
    manifest: Manifest = copy.deepcopy(_zero_value(type_))
    return manifest


@cache
def list_always_written_fields(type_: Type) -> tuple[tuple[str, Any], ...]:
    """List the struct fields that Go writes even without a value (no omitempty), with the value that it writes."""
    return tuple(
        (name, _value_if_missing(field)) for name, field in type_.fields.items() if not field.is_omitted_if_empty
    )


@cache
def _zero_value(type_: Type) -> Any:
    return dict(list_always_written_fields(type_)) if type_.kind == "struct" else _ZERO_VALUES.get(type_.scalar)


def _value_if_missing(field: StructField) -> Any:
    """Return the value that Go writes for a missing field."""
    if field.is_omitted_if_empty:
        return _OMITTED
    return None if field.pointer else _zero_value(field.type)


@cache
def _build_decoder(type_: Type) -> Decoder:
    match type_.kind:
        case "struct":
            return _build_struct_decoder(type_)  # resolves its fields on first use, because JSON schemas are recursive
        case "list":
            return _build_list_decoder(type_)
        case "map":
            return _build_map_decoder(type_)
        case "untyped":
            return _build_untyped_decoder(type_)
    return _build_scalar_decoder(type_)


def _build_scalar_decoder(type_: Type) -> Decoder:
    readers: dict[str, Callable[[], go_scalars.ScalarReader]] = {
        "string": lambda: go_scalars.build_exact_type_reader(str, type_.go_name),
        "bool": lambda: go_scalars.build_exact_type_reader(bool, type_.go_name),
        "int32": lambda: go_scalars.build_integer_reader("int32", type_.go_name),
        "int64": lambda: go_scalars.build_integer_reader("int64", type_.go_name),
        "float64": lambda: go_scalars.read_number,
        "bytes": lambda: go_scalars.build_base64_reader(type_.go_name),
        "Time": lambda: go_scalars.read_time,
        "MicroTime": lambda: go_scalars.read_micro_time,
        "Quantity": lambda: go_scalars.read_quantity,
        "IntOrString": lambda: go_scalars.read_int_or_string,
        "Duration": lambda: go_scalars.build_exact_type_reader(str, "string"),
    }
    read = readers[type_.scalar]()

    def decode_scalar(value: Any, place: ValueLocation, unknown: list[str]) -> Any:
        try:
            return read(value)
        except JsonTypeMismatch as error:
            raise _set_error_field(error, place) from None

    return decode_scalar


class _FieldDecoder(NamedTuple):
    """Decoder of one field. Values of `pass_through_type` need no change, unless they are empty and `omit_if_empty`."""

    pass_through_type: type | None
    omit_if_empty: bool
    decoder: Decoder
    value_if_missing: Any


def _build_field_decoders(type_: Type) -> dict[str, _FieldDecoder]:
    field_decoders = {}
    for name, field in type_.fields.items():
        omit_if_empty = field.is_omitted_if_empty and not field.pointer
        field_decoders[name] = _FieldDecoder(
            _PASS_THROUGH_TYPES.get(field.type.scalar),
            omit_if_empty,
            _build_decoder(field.type),
            _value_if_missing(field),
        )
    return field_decoders


def _build_struct_decoder(type_: Type) -> Decoder:
    field_decoders: dict[str, _FieldDecoder] = {}
    always_written: tuple[tuple[str, Any], ...] = ()
    struct_name = type_.go_name.rpartition(".")[2]

    def decode_struct(value: Any, place: ValueLocation, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise _set_error_field(build_type_mismatch(value, type_.go_name), place)
        nonlocal field_decoders, always_written
        if not field_decoders:
            field_decoders, always_written = _build_field_decoders(type_), list_always_written_fields(type_)
        changes: dict[str, Any] = {}
        for key, item in value.items():
            entry = field_decoders.get(key)
            if entry is None:
                unknown.append(_format_location((place, key, "")))
                changes[key] = _OMITTED
                continue
            fast, drops, decoder, blank = entry
            if type(item) is fast:
                if drops and not item:
                    changes[key] = blank
            elif item is None:
                if blank is not None:
                    changes[key] = blank
            else:
                new = decoder(item, (place, key, struct_name), unknown)
                if drops and not new:
                    changes[key] = blank
                elif new is not item:
                    changes[key] = new
        for key, blank in always_written:
            if key not in value:
                changes.setdefault(key, blank)
        return _apply_changes(value, changes) if changes else value

    return decode_struct


def _apply_changes(value: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    result = value | changes
    for key, item in changes.items():
        if item is _OMITTED:
            del result[key]
    return result


def _build_list_decoder(type_: Type) -> Decoder:
    element = type_.items()
    decoder = _build_decoder(element)
    pass_through_type = _PASS_THROUGH_TYPES.get(element.scalar)

    def decode_list(value: Any, place: ValueLocation, unknown: list[str]) -> Any:
        if type(value) is not list:
            raise _set_error_field(build_type_mismatch(value, type_.go_name), place)
        decoded = value
        for index, item in enumerate(value):
            if type(item) is pass_through_type:
                continue
            new = _zero_value(element) if item is None else decoder(item, (place, index, ""), unknown)
            if new is not item:
                decoded = list(value) if decoded is value else decoded
                decoded[index] = new
        return decoded

    return decode_list


def _build_map_decoder(type_: Type) -> Decoder:
    element = type_.items()
    decoder = _build_decoder(element)
    pass_through_type = _PASS_THROUGH_TYPES.get(element.scalar)

    def decode_map(value: Any, place: ValueLocation, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise _set_error_field(build_type_mismatch(value, type_.go_name), place)
        changes: dict[str, Any] = {}
        for key, item in value.items():
            if type(item) is pass_through_type:
                continue
            new = _zero_value(element) if item is None else decoder(item, (place, key, ""), unknown)
            if new is not item:
                changes[key] = new
        return value | changes if changes else value

    return decode_map


def _build_untyped_decoder(type_: Type) -> Decoder:
    def keep_raw_value(value: Any, place: ValueLocation, unknown: list[str]) -> Any:
        return value

    def decode_schema_or_value(value: Any, place: ValueLocation, unknown: list[str]) -> Any:
        # k8s: these types have their own UnmarshalJSON, so Go reports no unknown fields and no paths inside them.
        try:
            return _decode_json_schema_or_value(type_.scalar, value)
        except JsonTypeMismatch as error:
            raise _set_error_field(error, place) from None

    return keep_raw_value if type_.scalar == "Raw" else decode_schema_or_value


def _decode_json_schema_or_value(scalar: str, value: Any) -> Any:
    schema = _build_decoder(get_named_type(_SCHEMA))
    if type(value) is dict:
        return schema(value, None, [])
    if scalar == "SchemaOrBool":
        if type(value) is bool:
            return value
        raise ManifestError("boolean or JSON schema expected")
    if type(value) is not list or not value:
        return None
    if scalar == "SchemaOrStringArray":
        read = go_scalars.build_exact_type_reader(str, "string")
        return ["" if item is None else read(item) for item in value]
    return [_zero_value(get_named_type(_SCHEMA)) if item is None else schema(item, None, []) for item in value]


def _set_error_field(error: JsonTypeMismatch, location: ValueLocation) -> JsonTypeMismatch:
    """Set the error's field as Go does: innermost struct, then the path from the top without indexes and map keys."""
    names: list[str] = []
    struct = ""
    while location is not None:
        location, key, struct_name = location
        if struct_name:
            names.append(key)
            struct = struct or struct_name
    error.field = f"{struct}.{'.'.join(reversed(names))}" if names else ""
    return error


def _format_go_error(error: JsonTypeMismatch) -> str:
    target = f"Go struct field {error.field}" if error.field else "Go value"
    return f"json: cannot unmarshal {error.value} into {target} of type {error.go_type}"


def _format_location(location: ValueLocation) -> str:
    """Format a location as `spec.template.spec.containers[0].imag`."""
    parts: list[str] = []
    while location is not None:
        location, key, _ = location
        parts.append(f"[{key}]" if type(key) is int else f".{key}")
    return "".join(reversed(parts)).removeprefix(".")
