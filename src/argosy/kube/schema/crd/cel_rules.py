"""CEL rules of a custom kind: selects the rules that apply to a write, and converts their results to field errors.

In: a manifest, the old manifest, the compiled schema. Out: calls for `cel.evaluate` and, from its results, errors.
Never: evaluates a rule itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.kube.schema.crd.compiled_schema import MISSING, Node, Rule
from argosy.kube.schema.crd.validation import old_item
from argosy.kube.schema.field_error import Fault, FaultKind, duplicate, forbidden, go_value, invalid, required


def calls(manifest: Mapping[str, Any], old: Mapping[str, Any] | None, node: Node) -> list[dict[str, Any]]:
    """Build one call for each rule that applies, as plain JSON."""
    before = MISSING if old is None else dict(old)
    return list(_calls(dict(manifest), before, node, "", root=True))


def _calls(value: Any, old: Any, node: Node, path: str, *, root: bool = False) -> Iterator[dict[str, Any]]:
    if value is None or not node.has_rules:
        return
    if node.rules:
        unchanged = old is not MISSING and old == value
        shown = _for_cel(_named_only(value) if root else value, node)
        before = MISSING if old is MISSING else _for_cel(_named_only(old) if root else old, node)
        for rule in node.rules:
            if rule.transition and old is MISSING and not rule.optional_old_self:
                continue
            if unchanged and not rule.transition:
                # k8s: ratcheting, as in schema validation.
                continue
            yield _call(rule, shown, before, node, path)
    yield from _inner_calls(value, old, node, path)


def _call(rule: Rule, value: Any, old: Any, node: Node, path: str) -> dict[str, Any]:
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
    if rule.transition:
        call["optionalOldSelf"] = rule.optional_old_self
        if old is not MISSING:
            call["oldSelf"] = old
    return call


def _inner_calls(value: Any, old: Any, node: Node, path: str) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        before = old if isinstance(old, dict) and not node.atomic else {}
        for name, child in node.properties.items():
            if child.has_rules and name in value:
                inner = f"{path}.{name}" if path else name
                yield from _calls(value[name], before.get(name, MISSING), child, inner)
        additional = node.additional
        if additional is not None and additional.has_rules:
            for name in sorted(value.keys() - node.properties.keys()):
                yield from _calls(value[name], before.get(name, MISSING), additional, f"{path}[{name}]")
    elif isinstance(value, list) and node.item is not None and node.item.has_rules:
        for index, each in enumerate(value):
            yield from _calls(each, old_item(old, node, each), node.item, f"{path}[{index}]")


def _named_only(value: dict[str, Any]) -> dict[str, Any]:
    """k8s: rules at the root see only name and generateName of the metadata."""
    metadata = value.get("metadata") or {}
    return {**value, "metadata": {name: metadata[name] for name in ("name", "generateName") if name in metadata}}


def _for_cel(value: Any, node: Node) -> Any:
    """Convert a value to what rules see: escaped names, and integers as doubles where the schema type is number."""
    if node.cel_plain:
        return value
    if isinstance(value, dict):
        return {
            node.cel_names.get(name, name): _for_cel(each, child) if (child := node.field(name)) else each
            for name, each in value.items()
        }
    if isinstance(value, list) and node.item is not None:
        return [_for_cel(each, node.item) for each in value]
    if node.type == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def faults(made: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]) -> tuple[list[Fault], list[str]]:
    """Convert the results of calls to errors, and to warnings for rules that could not be evaluated."""
    found: list[Fault] = []
    warnings: list[str] = []
    for call, result in zip(made, results, strict=True):
        field = call["path"] or "<nil>"
        match result["outcome"]:
            case "failed":
                found.append(_fault(field, call, str(result["message"])))
            case "error":
                detail = f"{result['message']} evaluating rule: {call['message'].removeprefix('failed rule: ')}"
                found.append(invalid(field, go_value(call["type"]), detail))
            case "skipped":
                warnings.append(f"{field}: rule not checked: {result['message']}: {call['rule']}")
    return found, warnings


def _fault(field: str, call: Mapping[str, Any], message: str) -> Fault:
    shown = go_value(call["type"])
    match call.get("reason"):
        case FaultKind.FORBIDDEN:
            return forbidden(field, message)
        case FaultKind.REQUIRED:
            return required(field, message)
        case FaultKind.DUPLICATE:
            # k8s: the message is dropped.
            return duplicate(field, shown)
    return invalid(field, shown, message)
