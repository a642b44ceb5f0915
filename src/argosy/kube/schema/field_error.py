"""Field errors, worded as in k8s.io/apimachinery's `field` package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """The `reason` of a cause in a Status."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    TYPE_INVALID = "FieldValueTypeInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    DUPLICATE = "FieldValueDuplicate"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    NOT_FOUND = "FieldValueNotFound"
    INTERNAL = "InternalError"


@dataclass(frozen=True, slots=True)
class Fault:
    """One error of one field. `message` excludes the field's name: `Invalid value: "x": must be …`."""

    field: str
    kind: FaultKind
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def required(field: str, detail: str = "") -> Fault:
    return Fault(field, FaultKind.REQUIRED, "Required value" + (f": {detail}" if detail else ""))


def invalid(field: str, shown: str, detail: str) -> Fault:
    """`value_text` is the value as Go's `%#v` or as a quoted string; see `format_go_value`."""
    return Fault(field, FaultKind.INVALID, f"Invalid value: {shown}: {detail}")


def not_supported(field: str, shown: str, supported: Sequence[str]) -> Fault:
    known = ", ".join(f'"{value}"' for value in sorted(supported))
    return Fault(field, FaultKind.NOT_SUPPORTED, f"Unsupported value: {shown}: supported values: {known}")


def unsupported(field: str, shown: str, supported: Sequence[str]) -> Fault:
    """Like `not_supported`, but keeps the order of `supported`: most rules of built-in kinds do not sort."""
    known = ", ".join(f'"{value}"' for value in supported)
    return Fault(field, FaultKind.NOT_SUPPORTED, f"Unsupported value: {shown}: supported values: {known}")


def not_found(field: str, shown: str) -> Fault:
    return Fault(field, FaultKind.NOT_FOUND, f"Not found: {shown}")


def forbidden(field: str, detail: str) -> Fault:
    return Fault(field, FaultKind.FORBIDDEN, f"Forbidden: {detail}")


def duplicate(field: str, shown: str) -> Fault:
    return Fault(field, FaultKind.DUPLICATE, f"Duplicate value: {shown}")


def too_long(field: str, limit: int) -> Fault:
    return Fault(field, FaultKind.TOO_LONG, f"Too long: may not be more than {limit} bytes")


_ESCAPES = {
    **{code: f"\\x{code:02x}" for code in (*range(32), 127)},
    **str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\a": "\\a", "\b": "\\b",
                     "\f": "\\f", "\v": "\\v"}),
}  # fmt: skip


def go_value(value: object) -> str:
    """Format a JSON scalar as Go's field errors do: strings quoted, numbers and booleans unquoted, null as `null`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + value.translate(_ESCAPES) + '"'
    return str(value)
