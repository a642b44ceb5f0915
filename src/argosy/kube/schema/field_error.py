"""Field errors, worded as in k8s.io/apimachinery's `field` package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from argosy.kube.objects.go_format import format_go_syntax


class FieldErrorType(StrEnum):
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
class FieldError:
    """One error of one field. `message` excludes the field's name: `Invalid value: "x": must be …`."""

    field: str
    kind: FieldErrorType
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(field, FieldErrorType.REQUIRED, "Required value" + (f": {detail}" if detail else ""))


def invalid(field: str, value_text: str, detail: str) -> FieldError:
    """`value_text` is the value as Go's `%#v` or as a quoted string; see `format_go_value`."""
    return FieldError(field, FieldErrorType.INVALID, f"Invalid value: {value_text}: {detail}")


def not_supported(field: str, value_text: str, supported: Sequence[str]) -> FieldError:
    supported_text = ", ".join(f'"{value}"' for value in sorted(supported))
    return FieldError(
        field, FieldErrorType.NOT_SUPPORTED, f"Unsupported value: {value_text}: supported values: {supported_text}"
    )


def not_supported_unsorted(field: str, value_text: str, supported: Sequence[str]) -> FieldError:
    """Like `not_supported`, but keeps the order of `supported`: most rules of built-in kinds do not sort."""
    supported_text = ", ".join(f'"{value}"' for value in supported)
    return FieldError(
        field, FieldErrorType.NOT_SUPPORTED, f"Unsupported value: {value_text}: supported values: {supported_text}"
    )


def not_found(field: str, value_text: str) -> FieldError:
    return FieldError(field, FieldErrorType.NOT_FOUND, f"Not found: {value_text}")


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(field, FieldErrorType.FORBIDDEN, f"Forbidden: {detail}")


def duplicate(field: str, value_text: str) -> FieldError:
    return FieldError(field, FieldErrorType.DUPLICATE, f"Duplicate value: {value_text}")


def too_long(field: str, limit: int) -> FieldError:
    return FieldError(field, FieldErrorType.TOO_LONG, f"Too long: may not be more than {limit} bytes")


def format_go_value(value: object) -> str:
    """Format a JSON value as Go's field errors do: strings quoted, numbers and booleans unquoted, null as `null`."""
    return "null" if value is None else format_go_syntax(value)


def format_invalid_value(value: object) -> str:
    """Format an invalid value of a custom kind: like `format_go_value`, but null is quoted."""
    return '"null"' if value is None else format_go_syntax(value)
