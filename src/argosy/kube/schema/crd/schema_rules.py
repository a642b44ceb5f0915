"""Validates a CRD's schema except its structure: forbidden keywords, list keys, defaults, CEL rules.

In: an openAPIV3Schema. Out: errors worded as the server words them. Never: sees an object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.kube.schema import cel
from argosy.kube.schema.crd.compiled_schema import META_FIELDS, compile_node, uses_old_self
from argosy.kube.schema.crd.go_format import shown
from argosy.kube.schema.crd.pruning import prune
from argosy.kube.schema.crd.validation import check
from argosy.kube.schema.field_error import Fault, FaultKind, forbidden, go_value, invalid, required

Schema = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_FORBIDDEN = {
    "id": "id is not supported",
    "additionalItems": "additionalItems is not supported",
    "patternProperties": "patternProperties is not supported",
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "$ref": "$ref is not supported",
}
_LIST_TYPE = "x-kubernetes-list-type"
_LIST_KEYS = "x-kubernetes-list-map-keys"
_MAP_TYPE = "x-kubernetes-map-type"


def _not_supported(path: str, value: str, known: Iterable[str]) -> Fault:
    """k8s: keeps the given order, unlike most errors of CRDs."""
    words = ", ".join(go_value(each) for each in known)
    return Fault(path, FaultKind.NOT_SUPPORTED, f"Unsupported value: {go_value(value)}: supported values: {words}")


def schema_faults(
    schema: Schema, path: str, *, root: bool = False, meta: bool = False, no_default: str = ""
) -> list[Fault]:
    """Check a schema and its subschemas; `default_refusal` says why no default is allowed here."""
    found = [
        *_words(schema, path, meta=meta, no_default=no_default),
        *_map_type(schema, path),
        *_list_type(schema, path),
    ]
    found += _rule_words(schema, path)
    additional = schema.get("additionalProperties")
    if additional is not None and schema.get("properties") and additional is not True:
        words = "additionalProperties and properties are mutual exclusive"
        found.append(forbidden(f"{path}.additionalProperties", words))
    if isinstance(additional, Mapping):
        why = "inside additionalProperties applying to object metadata" if meta else no_default
        found += schema_faults(additional, f"{path}.additionalProperties", meta=meta, no_default=why)
    for name in sorted(schema.get("properties") or {}):
        inside = meta or ((root or bool(schema.get("x-kubernetes-embedded-resource"))) and name in META_FIELDS)
        why = f"in top-level {name}" if root and name in META_FIELDS else no_default
        found += schema_faults(schema["properties"][name], f"{path}.properties[{name}]", meta=inside, no_default=why)
    if isinstance(schema.get("not"), Mapping):
        found += schema_faults(schema["not"], f"{path}.not", meta=meta, no_default=no_default)
    for words in ("allOf", "oneOf", "anyOf"):
        for index, each in enumerate(schema.get(words) or ()):
            found += schema_faults(each, f"{path}.{words}[{index}]", meta=meta, no_default=no_default)
    if isinstance(schema.get("items"), Mapping):
        found += schema_faults(schema["items"], f"{path}.items", meta=meta, no_default=no_default)
    return found


def _words(schema: Schema, path: str, *, meta: bool, no_default: str) -> Iterable[Fault]:
    kind = schema.get("type")
    if kind and kind not in _TYPES:
        yield _not_supported(f"{path}.type", kind, _TYPES)
    if schema.get("default") is not None and no_default:
        yield forbidden(f"{path}.default", f"must not be set {no_default}")
    for name, words in _FORBIDDEN.items():
        if schema.get(name):
            yield forbidden(f"{path}.{name}", words)
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", words)
    if meta and schema.get("x-kubernetes-embedded-resource"):
        yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", "false", "must be true or undefined")


def _map_type(schema: Schema, path: str) -> Iterable[Fault]:
    kind, map_type = schema.get("type") or "", schema.get(_MAP_TYPE)
    if map_type is None:
        return
    if kind != "object":
        words = "must be object if x-kubernetes-map-type is specified"
        yield invalid(f"{path}.type", go_value(kind), words) if kind else required(f"{path}.type", words)
    if map_type not in ("atomic", "granular"):
        yield _not_supported(f"{path}.{_MAP_TYPE}", map_type, ("atomic", "granular"))


def _list_type(schema: Schema, path: str) -> Iterable[Fault]:
    kind, list_type, keys = schema.get("type") or "", schema.get(_LIST_TYPE), schema.get(_LIST_KEYS) or []
    items = schema.get("items") if isinstance(schema.get("items"), Mapping) else None
    if list_type is not None and kind != "array":
        words = "must be array if x-kubernetes-list-type is specified"
        yield invalid(f"{path}.type", go_value(kind), words) if kind else required(f"{path}.type", words)
    elif list_type == "set" and items:
        words = "must be atomic as item of a list with x-kubernetes-list-type=set"
        if items.get("type") == "array" and items.get(_LIST_TYPE, "atomic") != "atomic":
            yield invalid(f"{path}.items.{_LIST_TYPE}", go_value(items[_LIST_TYPE]), words)
        if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
            yield invalid(f"{path}.items.{_MAP_TYPE}", '"null"', words)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield _not_supported(f"{path}.{_LIST_TYPE}", list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        words = "must be map if x-kubernetes-list-map-keys is non-empty"
        where = f"{path}.{_LIST_TYPE}"
        yield required(where, words) if list_type is None else invalid(where, go_value(list_type), words)
    if list_type == "map":
        yield from _list_keys(items, keys, path)
    if list_type in ("set", "map") and items and items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")


def _list_keys(items: Schema | None, keys: list[str], path: str) -> Iterable[Fault]:
    if not keys:
        yield required(f"{path}.{_LIST_KEYS}", "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        words = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", go_value(items.get("type") or ""), words)
        return
    listed = f"[]string{{{', '.join(map(go_value, keys))}}}"
    for index, key in enumerate(keys):
        declared = (items.get("properties") or {}).get(key)
        where = f"{path}.items.properties[{key}]"
        if declared is None:
            yield invalid(f"{path}.{_LIST_KEYS}", listed, "entries must all be names of item properties")
        elif declared.get("type") in ("array", "object"):
            words = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{where}.type", go_value("object"), words)
        if key in keys[:index]:
            yield invalid(f"{path}.{_LIST_KEYS}", listed, "must not contain duplicate entries")
        if declared is None:
            continue
        because = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in (items.get("required") or ()) and declared.get("default") is None:
            yield required(f"{where}.default", f"{because} must have a default or be a required property")
        if declared.get("nullable"):
            yield forbidden(f"{where}.nullable", f"{because} cannot be nullable")


def _rule_words(schema: Schema, path: str) -> Iterable[Fault]:
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        where = f"{path}.x-kubernetes-validations[{index}]"
        text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
        if not text:
            yield required(f"{where}.rule", "rule is not specified")
        elif message and not message.strip():
            yield invalid(f"{where}.message", go_value(message), "message must be non-empty if specified")
        elif "\n" in message.strip():
            yield invalid(f"{where}.message", go_value(message), "message must not contain line breaks")
        elif "\n" in text and not message.strip():
            yield required(f"{where}.message", "message must be specified if rule contains line breaks")
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            yield _not_supported(f"{where}.reason", reason, _REASONS)
        if text and rule.get("optionalOldSelf") is not None and not uses_old_self(text):
            words = "may not be set if oldSelf is not used in rule"
            yield invalid(f"{where}.optionalOldSelf", shown(rule["optionalOldSelf"]), words)


def rule_faults(schema: Schema, path: str, uncorrelated: str = "") -> list[Fault]:
    """Report CEL rules that do not compile, or use oldSelf where old values cannot be correlated."""
    found: list[Fault] = []
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        where = f"{path}.x-kubernetes-validations[{index}]"
        if reason := cel.problem(rule["rule"]):
            found.append(invalid(f"{where}.rule", _shown_rule(rule), reason))
        elif uncorrelated and uses_old_self(rule["rule"]):
            words = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
            found.append(invalid(f"{where}.rule", go_value(rule["rule"]), words))
        if rule.get("messageExpression") and (reason := cel.problem(rule["messageExpression"], message=True)):
            found.append(invalid(f"{where}.messageExpression", _shown_rule(rule), reason))
    inside_map = uncorrelated or (path if schema.get(_MAP_TYPE) == "atomic" else "")
    for name in sorted(schema.get("properties") or {}):
        found += rule_faults(schema["properties"][name], f"{path}.properties[{name}]", inside_map)
    if isinstance(schema.get("additionalProperties"), Mapping):
        found += rule_faults(schema["additionalProperties"], f"{path}.additionalProperties", uncorrelated)
    if isinstance(schema.get("items"), Mapping):
        inside = uncorrelated or ("" if schema.get(_LIST_TYPE) == "map" else path)
        found += rule_faults(schema["items"], f"{path}.items", inside)
    return found


def _shown_rule(rule: Mapping[str, Any]) -> str:
    """Format the rule as Go prints its struct."""
    reason, optional = rule.get("reason"), rule.get("optionalOldSelf")
    return (
        f"apiextensions.ValidationRule{{Rule:{go_value(rule.get('rule') or '')}, "
        f"Message:{go_value(rule.get('message') or '')}, "
        f"MessageExpression:{go_value(rule.get('messageExpression') or '')}, "
        f"Reason:{'(*apiextensions.FieldValueErrorReason)(nil)' if reason is None else reason}, "
        f"FieldPath:{go_value(rule.get('fieldPath') or '')}, "
        f"OptionalOldSelf:{'(*bool)(nil)' if optional is None else shown(optional)}}}"
    )


def default_faults(schema: Schema, path: str) -> list[Fault]:
    """Report defaults that the schema itself would reject or prune."""
    found: list[Fault] = []
    default = schema.get("default")
    if default is not None:
        node, unknown = compile_node(schema), list[str]()
        if prune(default, node, "default", unknown) is not default and unknown:
            found.append(invalid(f"{path}.default", shown(default), "must not have unknown fields"))
        inner: list[Fault] = []
        check(default, node, "", inner)
        for fault in inner:
            name = "" if fault.field == "<nil>" else f".{fault.field}"
            found.append(Fault(f"{path}.default{name}", fault.kind, fault.message))
    for name in sorted(schema.get("properties") or {}):
        found += default_faults(schema["properties"][name], f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), Mapping):
        found += default_faults(schema["items"], f"{path}.items")
    return found
