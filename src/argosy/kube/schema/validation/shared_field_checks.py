"""Basic checks that the validation of all kinds uses. Each appends its errors to the list passed in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.errors import ManifestError
from argosy.kube.schema import name_label_address_syntax, quantity
from argosy.kube.schema.field_error import (
    FieldError,
    forbidden,
    format_go_value,
    invalid,
    not_supported_unsorted,
    required,
    too_long,
)
from argosy.kube.schema.selectors import LabelSelector, label_selector_from_wire
from argosy.kube.schema.validation import go_struct_format

ManifestPart = dict[str, Any]
FieldErrors = list[FieldError]

IMMUTABLE_ERROR = "field is immutable"
NEGATIVE_ERROR = "must be greater than or equal to 0"


def iterate_items(parent: ManifestPart, name: str, path: str) -> Iterator[tuple[str, ManifestPart]]:
    """Yield each struct of a list with its path."""
    for index, item in enumerate(parent.get(name) or ()):
        yield f"{path}.{name}[{index}]", item or {}


def check_syntax(
    errors: FieldErrors, field: str, value: str, syntax_check: name_label_address_syntax.SyntaxCheck
) -> None:
    messages = syntax_check(value)
    if messages:
        errors.extend(invalid(field, format_go_value(value), message) for message in messages)


def check_required_name(
    errors: FieldErrors, field: str, value: object, syntax_check: name_label_address_syntax.SyntaxCheck
) -> None:
    """Check that the value is set and has the given syntax."""
    if not value:
        errors.append(required(field))
    else:
        check_syntax(errors, field, str(value), syntax_check)


def check_required_choice(errors: FieldErrors, field: str, value: object, supported: Sequence[str]) -> None:
    if not value:
        errors.append(required(field))
    elif value not in supported:
        errors.append(not_supported_unsorted(field, format_go_value(value), supported))


def check_non_negative(errors: FieldErrors, path: str, parent: ManifestPart, *names: str) -> None:
    for name in names:
        value = parent.get(name)
        if isinstance(value, int) and value < 0:
            errors.append(invalid(f"{path}.{name}", str(value), NEGATIVE_ERROR))


def check_immutable(errors: FieldErrors, field: str, new: object, old: object, value_text: str = "") -> None:
    if new != old and (new or old or type(new) is not type(old)):
        errors.append(
            invalid(field, value_text or ('"null"' if new is None else format_go_value(new)), IMMUTABLE_ERROR)
        )


def check_port(errors: FieldErrors, field: str, value: object) -> None:
    """Check a port given as number or name."""
    if isinstance(value, str):
        check_syntax(errors, field, value, name_label_address_syntax.check_port_name)
    else:
        number = value if isinstance(value, int) else 0
        errors.extend(
            invalid(field, str(number), message) for message in name_label_address_syntax.check_port_number(number)
        )


def check_port_number(errors: FieldErrors, field: str, value: object) -> None:
    number = value if isinstance(value, int) else 0
    errors.extend(
        invalid(field, str(number), message) for message in name_label_address_syntax.check_port_number(number)
    )


def check_quantity(errors: FieldErrors, field: str, value: object, *, must_be_integer: bool = False) -> None:
    """Check that the value is a resource quantity and not negative."""
    try:
        number = quantity.parse(str(value))
    except ManifestError as error:
        errors.append(invalid(field, format_go_value(value), error.message))
        return
    if number < 0:
        errors.append(invalid(field, format_go_value(quantity.canonicalize(str(value))), NEGATIVE_ERROR))
    if must_be_integer and number != number.to_integral_value():
        errors.append(invalid(field, go_struct_format.format_quantity(str(value)), "must be an integer"))


def check_labels(errors: FieldErrors, field: str, values: Mapping[str, Any] | None) -> None:
    for key, value in (values or {}).items():
        check_syntax(errors, field, key, name_label_address_syntax.check_qualified_name)
        check_syntax(errors, field, str(value or ""), name_label_address_syntax.check_label_value)


def check_annotations(errors: FieldErrors, field: str, annotations: Mapping[str, Any] | None) -> None:
    total = 0
    for key, value in (annotations or {}).items():
        messages = name_label_address_syntax.check_qualified_name(key.lower())
        errors.extend(invalid(field, format_go_value(key), message) for message in messages)
        total += len(key.encode()) + len(str(value or "").encode(errors="surrogatepass"))
    if total > 256 * 1024:
        errors.append(too_long(field, 256 * 1024))


def check_label_selector(errors: FieldErrors, field: str, selector: ManifestPart | None) -> None:
    if not selector:
        return
    check_labels(errors, f"{field}.matchLabels", selector.get("matchLabels"))
    for path, term in iterate_items(selector, "matchExpressions", field):
        operator, values = term.get("operator") or "", term.get("values") or ()
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                errors.append(required(f"{path}.values", detail))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden(f"{path}.values", detail))
        else:
            errors.append(invalid(f"{path}.operator", format_go_value(operator), "not a valid selector operator"))
        check_syntax(errors, f"{path}.key", str(term.get("key") or ""), name_label_address_syntax.check_qualified_name)
        for index, value in enumerate(values):
            check_syntax(errors, f"{path}.values[{index}]", str(value), name_label_address_syntax.check_label_value)


def read_label_selector(selector: ManifestPart | None) -> LabelSelector | None:
    """Return the selector, None if it is invalid (`check_label_selector` reports that)."""
    try:
        return label_selector_from_wire(selector)
    except ManifestError:
        return None


def check_one_volume_type(errors: FieldErrors, path: str, kinds: Sequence[str]) -> None:
    """Check that a volume has exactly one type."""
    errors.extend(forbidden(f"{path}.{name}", "may not specify more than 1 volume type") for name in kinds[1:])
    if not kinds:
        errors.append(required(path, "must specify a volume type"))
