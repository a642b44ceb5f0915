"""Validates custom objects against their schema.

In: a value, its node, and the old value on an update. Out: errors with the server's messages, in field order.
Never: changes a value; runs CEL rules.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.objects.go_format import format_value
from argosy.kube.schema.crd import formats
from argosy.kube.schema.crd.compiled_schema import MISSING, SchemaNode
from argosy.kube.schema.field_error import (
    FieldError,
    FieldErrorType,
    format_go_value,
    format_invalid_value,
    invalid,
    required,
    too_long,
)
from argosy.languages import go_regexp

_JSON_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
_GO_FORMATS = {int: "int64", float: "float64"}


def validate_value(value: Any, node: SchemaNode, path: str, errors: list[FieldError], old: Any = MISSING) -> None:
    """Append the errors of a value to `errors`. On an update, unchanged values are not validated again."""
    if old is not MISSING and old == value and type(old) is type(value):
        # k8s: ratcheting. A stored value may stay invalid until it is changed.
        return
    if value is None:
        if node.types and not node.nullable:
            errors.append(_build_type_error(path, ",".join(node.types), "null"))
        if node.enum:
            errors.append(_build_enum_error(path, value, node))
        return
    kind = value.__class__
    if node.types and _JSON_TYPES[kind] not in node.types:
        _check_type(value, node, path, errors)
    if node.combinators:
        _check_combinators(value, node, path, errors)
    if kind is str:
        if node.limits or node.format:
            _check_text(value, node, path, errors)
    elif kind is list:
        _check_list(value, node, path, errors, old)
    elif kind is not dict and kind is not bool and node.limits:
        _check_number(value, node, path, errors)
    if node.enum and not _is_allowed(value, node.enum):
        errors.append(_build_enum_error(path, value, node))
    if kind is dict:
        _check_map(value, node, path, errors, old)


def _build_type_error(path: str, expected_type: str, actual_type: str) -> FieldError:
    detail = f"{path} in body must be of type {expected_type}: {format_go_value(actual_type)}"
    return FieldError(
        format_error_field(path),
        FieldErrorType.TYPE_INVALID,
        f"Invalid value: {format_go_value(actual_type)}: {detail}",
    )


def format_error_field(path: str) -> str:
    """Return the field of an error; the root has no path, which Go prints as <nil>."""
    return path.removeprefix(".") or "<nil>"


def _check_type(value: Any, node: SchemaNode, path: str, errors: list[FieldError]) -> None:
    kind = value.__class__
    if kind is int and "number" in node.types:
        return
    if kind is float and "integer" in node.types and value.is_integer():
        return
    format_check = node.format and formats.find_format_check(node.format)
    if format_check and kind is list and not {"number", "integer"} & set(node.types):
        # k8s: a list passes where the schema has a format.
        return
    if format_check and kind is not str:
        errors.append(_build_type_error(path, node.format, _GO_FORMATS.get(kind, "")))
        return
    errors.append(_build_type_error(path, ",".join(node.types), _JSON_TYPES[kind]))


def _is_allowed(value: Any, allowed: tuple[Any, ...]) -> bool:
    return any(
        allowed_value == value and isinstance(allowed_value, bool) == isinstance(value, bool)
        for allowed_value in allowed
    )


def _build_enum_error(path: str, value: Any, node: SchemaNode) -> FieldError:
    supported_text = ", ".join(
        format_go_value(allowed_value if isinstance(allowed_value, str) else _compact_json(allowed_value))
        for allowed_value in node.enum
    )
    message = f"Unsupported value: {format_invalid_value(value)}: supported values: {supported_text}"
    return FieldError(format_error_field(path), FieldErrorType.NOT_SUPPORTED, message)


def _compact_json(value: Any) -> str:
    import json

    return json.dumps(value, separators=(",", ":"))


def _check_text(value: str, node: SchemaNode, path: str, errors: list[FieldError]) -> None:
    limits = node.limits
    if (maximum := limits.get("maxLength")) is not None and len(value) > maximum:
        errors.append(too_long(format_error_field(path), maximum))
    if (minimum := limits.get("minLength")) is not None and len(value) < minimum:
        errors.append(_build_invalid_error(path, value, f"should be at least {minimum} chars long"))
    if pattern := limits.get("pattern"):
        _check_pattern(value, pattern, path, errors)
    if (
        node.format
        and (matches_format := formats.find_format_check(node.format)) is not None
        and not matches_format(value)
    ):
        detail = f"{path} in body must be of type {node.format}: {format_go_value(value)}"
        errors.append(
            FieldError(
                format_error_field(path),
                FieldErrorType.TYPE_INVALID,
                f"Invalid value: {format_go_value(value)}: {detail}",
            )
        )


def _check_pattern(value: str, pattern: str, path: str, errors: list[FieldError]) -> None:
    try:
        is_match = go_regexp.matches(pattern, value)
    except go_regexp.MatchTooExpensiveError:
        detail = f"takes too much time to match '{pattern}'; shorten the value or simplify the pattern"
        errors.append(_build_invalid_error(path, value, detail))
        return
    if not is_match:
        errors.append(_build_invalid_error(path, value, f"should match '{pattern}'"))


def _build_invalid_error(path: str, value: Any, detail: str) -> FieldError:
    return invalid(format_error_field(path), format_invalid_value(value), f"{path} in body {detail}")


def _check_number(value: int | float, node: SchemaNode, path: str, errors: list[FieldError]) -> None:
    # k8s: an integer is compared with the integer part of the bound.
    as_bound = int if isinstance(value, int) else float
    limits = node.limits
    if (factor := limits.get("multipleOf")) is not None and not _is_multiple(value, as_bound(factor)):
        errors.append(_build_invalid_error(path, value, f"should be a multiple of {format_value(as_bound(factor))}"))
    if (bound := limits.get("minimum")) is not None:
        minimum, strict = as_bound(bound), limits.get("exclusiveMinimum") is True
        if value < minimum or (strict and value == minimum):
            comparison = "greater than" if strict else "greater than or equal to"
            errors.append(_build_invalid_error(path, value, f"should be {comparison} {format_value(minimum)}"))
    if (bound := limits.get("maximum")) is not None:
        maximum, strict = as_bound(bound), limits.get("exclusiveMaximum") is True
        if value > maximum or (strict and value == maximum):
            comparison = "less than" if strict else "less than or equal to"
            errors.append(_build_invalid_error(path, value, f"should be {comparison} {format_value(maximum)}"))


def _is_multiple(value: int | float, factor: int | float) -> bool:
    if factor <= 0:
        return False
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    quotient = value / factor if factor >= 1 else 1 / factor * value
    return abs(quotient - round(quotient)) < 1e-9 * max(1.0, abs(quotient))


def _check_list(value: list[Any], node: SchemaNode, path: str, errors: list[FieldError], old: Any) -> None:
    if (item := node.item) is not None:
        old_items = _index_old_items(old, node)
        for index, element in enumerate(value):
            old_value = MISSING if old_items is None else old_items.get(_list_item_key(element, node), MISSING)
            validate_value(element, item, f"{path}[{index}]", errors, old_value)
    limits = node.limits
    if (minimum := limits.get("minItems")) is not None and len(value) < minimum:
        errors.append(
            invalid(format_error_field(path), str(len(value)), f"{path} in body should have at least {minimum} items")
        )
    if (maximum := limits.get("maxItems")) is not None and len(value) > maximum:
        errors.append(_build_too_many_error(path, len(value), maximum))


def _build_too_many_error(path: str, count: int, maximum: int) -> FieldError:
    return FieldError(
        format_error_field(path), FieldErrorType.TOO_MANY, f"Too many: {count}: must have at most {maximum} items"
    )


def _list_item_key(value: Any, node: SchemaNode) -> Any:
    if not isinstance(value, dict):
        return None
    return tuple(repr(value.get(name)) for name in node.map_keys)


def _index_old_items(old: Any, node: SchemaNode) -> dict[Any, Any] | None:
    """Index the old items by key; None unless it is a `map` list, because other items cannot be correlated."""
    if node.list_type != "map" or not isinstance(old, list):
        return None
    return {_list_item_key(item, node): item for item in old}


def find_old_item(old: Any, node: SchemaNode, value: Any) -> Any:
    """Return the old item with the same key as a new one, MISSING if there is none."""
    old_items = _index_old_items(old, node)
    return MISSING if old_items is None else old_items.get(_list_item_key(value, node), MISSING)


def _check_map(value: dict[str, Any], node: SchemaNode, path: str, errors: list[FieldError], old: Any) -> None:
    limits = node.limits
    if (minimum := limits.get("minProperties")) is not None and len(value) < minimum:
        errors.append(
            invalid(
                format_error_field(path), str(len(value)), f"{path} in body should have at least {minimum} properties"
            )
        )
    if (maximum := limits.get("maxProperties")) is not None and len(value) > maximum:
        errors.append(_build_too_many_error(path, len(value), maximum))
    old_values = old if isinstance(old, dict) and not node.atomic else None
    if node.additional_properties is not None:
        for name in sorted(value.keys() - node.properties.keys()):
            old_value = MISSING if old_values is None else old_values.get(name, MISSING)
            validate_value(value[name], node.additional_properties, f"{path}.{name}", errors, old_value)
    for name, child in node.properties.items():
        if name in value:
            old_value = MISSING if old_values is None else old_values.get(name, MISSING)
            validate_value(value[name], child, f"{path}.{name}" if path else name, errors, old_value)
    errors.extend(required(f"{path}.{name}" if path else name) for name in node.required if name not in value)


def _check_combinators(value: Any, node: SchemaNode, path: str, errors: list[FieldError]) -> None:
    for keyword, alternatives in node.combinators.items():
        match keyword:
            case "not":
                if not _list_errors(value, alternatives, path):
                    errors.append(_build_combinator_error(path, "must not validate the schema (not)"))
            case "allOf":
                error_lists = [_list_errors(value, alternative, path) for alternative in alternatives]
                errors.extend(error for alternative_errors in error_lists for error in alternative_errors)
                if failed := sum(map(bool, error_lists)):
                    suffix = ". None validated" if failed == len(error_lists) else ""
                    errors.append(_build_combinator_error(path, f"must validate all the schemas (allOf){suffix}"))
            case _:
                _check_alternatives(value, keyword, alternatives, path, errors)


def _check_alternatives(
    value: Any, keyword: str, alternatives: tuple[SchemaNode, ...], path: str, errors: list[FieldError]
) -> None:
    error_lists: list[list[FieldError]] = [_list_errors(value, alternative, path) for alternative in alternatives]
    valid_count = sum(not alternative_errors for alternative_errors in error_lists)
    if keyword == "anyOf" and not valid_count:
        errors.append(_build_combinator_error(path, "must validate at least one schema (anyOf)"))
    elif keyword == "oneOf" and valid_count != 1:
        summary = f"Found {valid_count} valid alternatives" if valid_count else "Found none valid"
        errors.append(_build_combinator_error(path, f"must validate one and only one schema (oneOf). {summary}"))
    if not valid_count:
        errors.extend(sorted(error_lists, key=len)[0])


def _list_errors(value: Any, node: SchemaNode, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    validate_value(value, node, path, errors)
    return errors


def _build_combinator_error(path: str, detail: str) -> FieldError:
    # k8s: these errors have no field; only the message names it.
    return invalid("<nil>", '""', f"{format_go_value(path)} {detail}")
