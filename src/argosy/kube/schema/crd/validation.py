"""Validates custom objects against their schema.

In: a value, its node, and the old value on an update. Out: errors with the server's messages, in field order.
Never: changes a value; runs CEL rules.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.schema.crd import formats, patterns
from argosy.kube.schema.crd.compiled_schema import MISSING, Node
from argosy.kube.schema.crd.go_format import number, shown
from argosy.kube.schema.field_error import Fault, FaultKind, go_value, invalid, required, too_long

_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
_GO_FORMATS = {int: "int64", float: "float64"}


def check(value: Any, node: Node, path: str, out: list[Fault], old: Any = MISSING) -> None:
    """Append the errors of a value to `errors`. On an update, unchanged values are not validated again."""
    if old is not MISSING and old == value and type(old) is type(value):
        # k8s: ratcheting. A stored value may stay invalid until it is changed.
        return
    if value is None:
        if node.types and not node.nullable:
            out.append(_type_fault(path, ",".join(node.types), "null"))
        if node.enum:
            out.append(_enum_fault(path, value, node))
        return
    kind = value.__class__
    if node.types and _TYPES[kind] not in node.types:
        _check_type(value, node, path, out)
    if node.combined:
        _check_combined(value, node, path, out)
    if kind is str:
        if node.limits or node.format:
            _check_text(value, node, path, out)
    elif kind is list:
        _check_list(value, node, path, out, old)
    elif kind is not dict and kind is not bool and node.limits:
        _check_number(value, node, path, out)
    if node.enum and not _listed(value, node.enum):
        out.append(_enum_fault(path, value, node))
    if kind is dict:
        _check_map(value, node, path, out, old)


def _type_fault(path: str, wanted: str, found: str) -> Fault:
    detail = f"{path} in body must be of type {wanted}: {go_value(found)}"
    return Fault(field_of(path), FaultKind.TYPE_INVALID, f"Invalid value: {go_value(found)}: {detail}")


def field_of(path: str) -> str:
    """Return the field of an error; the root has no path, which Go prints as <nil>."""
    return path.removeprefix(".") or "<nil>"


def _check_type(value: Any, node: Node, path: str, out: list[Fault]) -> None:
    kind = value.__class__
    if kind is int and "number" in node.types:
        return
    if kind is float and "integer" in node.types and value.is_integer():
        return
    known = node.format and formats.check_of(node.format)
    if known and kind is list and not {"number", "integer"} & set(node.types):
        # k8s: a list passes where the schema has a format.
        return
    if known and kind is not str:
        out.append(_type_fault(path, node.format, _GO_FORMATS.get(kind, "")))
        return
    out.append(_type_fault(path, ",".join(node.types), _TYPES[kind]))


def _listed(value: Any, allowed: tuple[Any, ...]) -> bool:
    return any(each == value and isinstance(each, bool) == isinstance(value, bool) for each in allowed)


def _enum_fault(path: str, value: Any, node: Node) -> Fault:
    known = ", ".join(go_value(each if isinstance(each, str) else _json(each)) for each in node.enum)
    message = f"Unsupported value: {shown(value)}: supported values: {known}"
    return Fault(field_of(path), FaultKind.NOT_SUPPORTED, message)


def _json(value: Any) -> str:
    import json

    return json.dumps(value, separators=(",", ":"))


def _check_text(value: str, node: Node, path: str, out: list[Fault]) -> None:
    limits = node.limits
    if (most := limits.get("maxLength")) is not None and len(value) > most:
        out.append(too_long(field_of(path), most))
    if (least := limits.get("minLength")) is not None and len(value) < least:
        out.append(_wrong(path, value, f"should be at least {least} chars long"))
    if pattern := limits.get("pattern"):
        _check_pattern(value, pattern, path, out)
    if node.format and (fits := formats.check_of(node.format)) is not None and not fits(value):
        detail = f"{path} in body must be of type {node.format}: {go_value(value)}"
        out.append(Fault(field_of(path), FaultKind.TYPE_INVALID, f"Invalid value: {go_value(value)}: {detail}"))


def _check_pattern(value: str, pattern: str, path: str, out: list[Fault]) -> None:
    try:
        fits = patterns.matches(pattern, value)
    except patterns.MatchTooExpensiveError:
        words = f"takes too much time to match '{pattern}'; shorten the value or simplify the pattern"
        out.append(_wrong(path, value, words))
        return
    if not fits:
        out.append(_wrong(path, value, f"should match '{pattern}'"))


def _wrong(path: str, value: Any, what: str) -> Fault:
    return invalid(field_of(path), shown(value), f"{path} in body {what}")


def _check_number(value: int | float, node: Node, path: str, out: list[Fault]) -> None:
    # k8s: an integer is compared with the integer part of the bound.
    as_bound = int if isinstance(value, int) else float
    limits = node.limits
    if (factor := limits.get("multipleOf")) is not None and not _is_multiple(value, as_bound(factor)):
        out.append(_wrong(path, value, f"should be a multiple of {number(as_bound(factor))}"))
    if (bound := limits.get("minimum")) is not None:
        least, strict = as_bound(bound), limits.get("exclusiveMinimum") is True
        if value < least or (strict and value == least):
            words = "greater than" if strict else "greater than or equal to"
            out.append(_wrong(path, value, f"should be {words} {number(least)}"))
    if (bound := limits.get("maximum")) is not None:
        most, strict = as_bound(bound), limits.get("exclusiveMaximum") is True
        if value > most or (strict and value == most):
            words = "less than" if strict else "less than or equal to"
            out.append(_wrong(path, value, f"should be {words} {number(most)}"))


def _is_multiple(value: int | float, factor: int | float) -> bool:
    if factor <= 0:
        return False
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    quotient = value / factor if factor >= 1 else 1 / factor * value
    return abs(quotient - round(quotient)) < 1e-9 * max(1.0, abs(quotient))


def _check_list(value: list[Any], node: Node, path: str, out: list[Fault], old: Any) -> None:
    if (item := node.item) is not None:
        before = _old_items(old, node)
        for index, each in enumerate(value):
            earlier = MISSING if before is None else before.get(_key(each, node), MISSING)
            check(each, item, f"{path}[{index}]", out, earlier)
    limits = node.limits
    if (least := limits.get("minItems")) is not None and len(value) < least:
        out.append(invalid(field_of(path), str(len(value)), f"{path} in body should have at least {least} items"))
    if (most := limits.get("maxItems")) is not None and len(value) > most:
        out.append(_too_many(path, len(value), most))


def _too_many(path: str, count: int, most: int) -> Fault:
    return Fault(field_of(path), FaultKind.TOO_MANY, f"Too many: {count}: must have at most {most} items")


def _key(value: Any, node: Node) -> Any:
    if not isinstance(value, dict):
        return None
    return tuple(repr(value.get(name)) for name in node.map_keys)


def _old_items(old: Any, node: Node) -> dict[Any, Any] | None:
    """Index the old items by key; None unless it is a `map` list, because other items cannot be correlated."""
    if node.list_type != "map" or not isinstance(old, list):
        return None
    return {_key(each, node): each for each in old}


def old_item(old: Any, node: Node, value: Any) -> Any:
    """Return the old item with the same key as a new one, MISSING if there is none."""
    before = _old_items(old, node)
    return MISSING if before is None else before.get(_key(value, node), MISSING)


def _check_map(value: dict[str, Any], node: Node, path: str, out: list[Fault], old: Any) -> None:
    limits = node.limits
    if (least := limits.get("minProperties")) is not None and len(value) < least:
        out.append(invalid(field_of(path), str(len(value)), f"{path} in body should have at least {least} properties"))
    if (most := limits.get("maxProperties")) is not None and len(value) > most:
        out.append(_too_many(path, len(value), most))
    before = old if isinstance(old, dict) and not node.atomic else None
    if node.additional is not None:
        for name in sorted(value.keys() - node.properties.keys()):
            earlier = MISSING if before is None else before.get(name, MISSING)
            check(value[name], node.additional, f"{path}.{name}", out, earlier)
    for name, child in node.properties.items():
        if name in value:
            earlier = MISSING if before is None else before.get(name, MISSING)
            check(value[name], child, f"{path}.{name}" if path else name, out, earlier)
    out.extend(required(f"{path}.{name}" if path else name) for name in node.required if name not in value)


def _check_combined(value: Any, node: Node, path: str, out: list[Fault]) -> None:
    for words, alternatives in node.combined.items():
        match words:
            case "not":
                if not _faults(value, alternatives, path):
                    out.append(_composite(path, "must not validate the schema (not)"))
            case "allOf":
                each = [_faults(value, one, path) for one in alternatives]
                out.extend(fault for found in each for fault in found)
                if failed := sum(map(bool, each)):
                    suffix = ". None validated" if failed == len(each) else ""
                    out.append(_composite(path, f"must validate all the schemas (allOf){suffix}"))
            case _:
                _check_alternatives(value, words, alternatives, path, out)


def _check_alternatives(value: Any, words: str, alternatives: tuple[Node, ...], path: str, out: list[Fault]) -> None:
    each: list[list[Fault]] = [_faults(value, one, path) for one in alternatives]
    valid = sum(not found for found in each)
    if words == "anyOf" and not valid:
        out.append(_composite(path, "must validate at least one schema (anyOf)"))
    elif words == "oneOf" and valid != 1:
        how = f"Found {valid} valid alternatives" if valid else "Found none valid"
        out.append(_composite(path, f"must validate one and only one schema (oneOf). {how}"))
    if not valid:
        out.extend(sorted(each, key=len)[0])


def _faults(value: Any, node: Node, path: str) -> list[Fault]:
    found: list[Fault] = []
    check(value, node, path, found)
    return found


def _composite(path: str, what: str) -> Fault:
    # k8s: these errors have no field; only the message names it.
    return invalid("<nil>", '""', f"{go_value(path)} {what}")
