"""CEL rules of a custom kind: selects the rules that apply to a write, and converts their results to field errors.

In: a manifest, the old manifest, the compiled schema. Out: calls for `cel.evaluate` and, from its results, errors.
Never: evaluates a rule itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.kube.schema.crd.compiled_schema import MISSING, CelRule, SchemaNode
from argosy.kube.schema.crd.object_validation import find_old_item
from argosy.kube.schema.field_error import (
    FieldError,
    FieldErrorType,
    duplicate,
    forbidden,
    format_go_value,
    invalid,
    required,
)


def build_rule_calls(
    manifest: Mapping[str, Any], old: Mapping[str, Any] | None, node: SchemaNode
) -> list[dict[str, Any]]:
    """Build one call for each rule that applies, as plain JSON."""
    old_value = MISSING if old is None else dict(old)
    return list(_iterate_rule_calls(dict(manifest), old_value, node, "", is_root=True))


def _iterate_rule_calls(
    value: Any, old: Any, node: SchemaNode, path: str, *, is_root: bool = False
) -> Iterator[dict[str, Any]]:
    if value is None or not node.has_rules:
        return
    if node.rules:
        unchanged = old is not MISSING and old == value
        cel_value = _to_cel_value(_reduce_metadata_to_names(value) if is_root else value, node)
        old_cel_value = (
            MISSING if old is MISSING else _to_cel_value(_reduce_metadata_to_names(old) if is_root else old, node)
        )
        for rule in node.rules:
            if rule.is_transition and old is MISSING and not rule.optional_old_self:
                continue
            if unchanged and not rule.is_transition:
                # k8s: ratcheting, as in schema validation.
                continue
            yield _build_rule_call(rule, cel_value, old_cel_value, node, path)
    yield from _iterate_child_rule_calls(value, old, node, path)


def _build_rule_call(rule: CelRule, value: Any, old: Any, node: SchemaNode, path: str) -> dict[str, Any]:
    call: dict[str, Any] = {
        "rule": rule.rule,
        "self": value,
        "path": (path + rule.field_path).removeprefix(".") if rule.field_path else path,
        "type": node.type,
        "message": rule.message.strip() or f"failed rule: {rule.rule.strip()}",
    }
    if rule.message_expression:
        call["messageExpression"] = rule.message_expression
    if rule.reason:
        call["reason"] = rule.reason
    if rule.is_transition:
        call["optionalOldSelf"] = rule.optional_old_self
        if old is not MISSING:
            call["oldSelf"] = old
    return call


def _iterate_child_rule_calls(value: Any, old: Any, node: SchemaNode, path: str) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        old_values = old if isinstance(old, dict) and not node.atomic else {}
        for name, child in node.properties.items():
            if child.has_rules and name in value:
                child_path = f"{path}.{name}" if path else name
                yield from _iterate_rule_calls(value[name], old_values.get(name, MISSING), child, child_path)
        additional = node.additional_properties
        if additional is not None and additional.has_rules:
            for name in sorted(value.keys() - node.properties.keys()):
                yield from _iterate_rule_calls(
                    value[name], old_values.get(name, MISSING), additional, f"{path}[{name}]"
                )
    elif isinstance(value, list) and node.item is not None and node.item.has_rules:
        for index, item in enumerate(value):
            yield from _iterate_rule_calls(item, find_old_item(old, node, item), node.item, f"{path}[{index}]")


def _reduce_metadata_to_names(value: dict[str, Any]) -> dict[str, Any]:
    """k8s: rules at the root see only name and generateName of the metadata."""
    metadata = value.get("metadata") or {}
    return {**value, "metadata": {name: metadata[name] for name in ("name", "generateName") if name in metadata}}


def _to_cel_value(value: Any, node: SchemaNode) -> Any:
    """Convert a value to what rules see: escaped names, and integers as doubles where the schema type is number."""
    if node.is_cel_value_unchanged:
        return value
    if isinstance(value, dict):
        return {
            node.cel_names.get(name, name): _to_cel_value(item, child) if (child := node.field(name)) else item
            for name, item in value.items()
        }
    if isinstance(value, list) and node.item is not None:
        return [_to_cel_value(item, node.item) for item in value]
    if node.type == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def read_rule_results(
    calls: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]
) -> tuple[list[FieldError], list[str]]:
    """Convert the results of calls to errors, and to warnings for rules that could not be evaluated."""
    errors: list[FieldError] = []
    warnings: list[str] = []
    for call, result in zip(calls, results, strict=True):
        field = call["path"] or "<nil>"
        match result["outcome"]:
            case "failed":
                errors.append(_build_rule_error(field, call, str(result["message"])))
            case "error":
                detail = f"{result['message']} evaluating rule: {call['message'].removeprefix('failed rule: ')}"
                errors.append(invalid(field, format_go_value(call["type"]), detail))
            case "skipped":
                warnings.append(f"{field}: rule not checked: {result['message']}: {call['rule']}")
    return errors, warnings


def _build_rule_error(field: str, call: Mapping[str, Any], message: str) -> FieldError:
    type_text = format_go_value(call["type"])
    match call.get("reason"):
        case FieldErrorType.FORBIDDEN:
            return forbidden(field, message)
        case FieldErrorType.REQUIRED:
            return required(field, message)
        case FieldErrorType.DUPLICATE:
            # k8s: the message is dropped.
            return duplicate(field, type_text)
    return invalid(field, type_text, message)
