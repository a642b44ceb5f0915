"""Validates a CRD's schema except its structure: forbidden keywords, list keys, defaults, CEL rules.

In: an openAPIV3Schema. Out: errors worded as the server words them. Never: sees an object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.kube.schema import cel
from argosy.kube.schema.crd.compiled_schema import META_FIELDS, compile_schema, uses_old_self
from argosy.kube.schema.crd.object_validation import validate_value
from argosy.kube.schema.crd.pruning_and_defaults import prune
from argosy.kube.schema.field_error import (
    FieldError,
    FieldErrorType,
    forbidden,
    format_go_value,
    format_invalid_value,
    invalid,
    required,
)

Schema = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_RULE_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_FORBIDDEN_KEYWORDS = {
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


def _not_supported(path: str, value: str, supported: Iterable[str]) -> FieldError:
    """k8s: keeps the given order, unlike most errors of CRDs."""
    supported_text = ", ".join(format_go_value(item) for item in supported)
    return FieldError(
        path,
        FieldErrorType.NOT_SUPPORTED,
        f"Unsupported value: {format_go_value(value)}: supported values: {supported_text}",
    )


def check_schema(
    schema: Schema, path: str, *, is_root: bool = False, is_metadata: bool = False, default_refusal: str = ""
) -> list[FieldError]:
    """Check a schema and its subschemas; `default_refusal` says why no default is allowed here."""
    errors = [
        *_check_keywords(schema, path, is_metadata=is_metadata, default_refusal=default_refusal),
        *_check_map_type(schema, path),
        *_check_list_type(schema, path),
    ]
    errors += _check_rule_fields(schema, path)
    additional = schema.get("additionalProperties")
    if additional is not None and schema.get("properties") and additional is not True:
        keyword = "additionalProperties and properties are mutual exclusive"
        errors.append(forbidden(f"{path}.additionalProperties", keyword))
    if isinstance(additional, Mapping):
        child_refusal = "inside additionalProperties applying to object metadata" if is_metadata else default_refusal
        errors += check_schema(
            additional, f"{path}.additionalProperties", is_metadata=is_metadata, default_refusal=child_refusal
        )
    for name in sorted(schema.get("properties") or {}):
        is_child_metadata = is_metadata or (
            (is_root or bool(schema.get("x-kubernetes-embedded-resource"))) and name in META_FIELDS
        )
        child_refusal = f"in top-level {name}" if is_root and name in META_FIELDS else default_refusal
        errors += check_schema(
            schema["properties"][name],
            f"{path}.properties[{name}]",
            is_metadata=is_child_metadata,
            default_refusal=child_refusal,
        )
    if isinstance(schema.get("not"), Mapping):
        errors += check_schema(schema["not"], f"{path}.not", is_metadata=is_metadata, default_refusal=default_refusal)
    for keyword in ("allOf", "oneOf", "anyOf"):
        for index, subschema in enumerate(schema.get(keyword) or ()):
            errors += check_schema(
                subschema, f"{path}.{keyword}[{index}]", is_metadata=is_metadata, default_refusal=default_refusal
            )
    if isinstance(schema.get("items"), Mapping):
        errors += check_schema(
            schema["items"], f"{path}.items", is_metadata=is_metadata, default_refusal=default_refusal
        )
    return errors


def _check_keywords(schema: Schema, path: str, *, is_metadata: bool, default_refusal: str) -> Iterable[FieldError]:
    kind = schema.get("type")
    if kind and kind not in _TYPES:
        yield _not_supported(f"{path}.type", kind, _TYPES)
    if schema.get("default") is not None and default_refusal:
        yield forbidden(f"{path}.default", f"must not be set {default_refusal}")
    for name, detail in _FORBIDDEN_KEYWORDS.items():
        if schema.get(name):
            yield forbidden(f"{path}.{name}", detail)
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", detail)
    if is_metadata and schema.get("x-kubernetes-embedded-resource"):
        yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", "false", "must be true or undefined")


def _check_map_type(schema: Schema, path: str) -> Iterable[FieldError]:
    kind, map_type = schema.get("type") or "", schema.get(_MAP_TYPE)
    if map_type is None:
        return
    if kind != "object":
        detail = "must be object if x-kubernetes-map-type is specified"
        yield invalid(f"{path}.type", format_go_value(kind), detail) if kind else required(f"{path}.type", detail)
    if map_type not in ("atomic", "granular"):
        yield _not_supported(f"{path}.{_MAP_TYPE}", map_type, ("atomic", "granular"))


def _check_list_type(schema: Schema, path: str) -> Iterable[FieldError]:
    kind, list_type, keys = schema.get("type") or "", schema.get(_LIST_TYPE), schema.get(_LIST_KEYS) or []
    items = schema.get("items") if isinstance(schema.get("items"), Mapping) else None
    if list_type is not None and kind != "array":
        detail = "must be array if x-kubernetes-list-type is specified"
        yield invalid(f"{path}.type", format_go_value(kind), detail) if kind else required(f"{path}.type", detail)
    elif list_type == "set" and items:
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        if items.get("type") == "array" and items.get(_LIST_TYPE, "atomic") != "atomic":
            yield invalid(f"{path}.items.{_LIST_TYPE}", format_go_value(items[_LIST_TYPE]), detail)
        if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
            yield invalid(f"{path}.items.{_MAP_TYPE}", '"null"', detail)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield _not_supported(f"{path}.{_LIST_TYPE}", list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        field_path = f"{path}.{_LIST_TYPE}"
        yield (
            required(field_path, detail)
            if list_type is None
            else invalid(field_path, format_go_value(list_type), detail)
        )
    if list_type == "map":
        yield from _check_list_keys(items, keys, path)
    if list_type in ("set", "map") and items and items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")


def _check_list_keys(items: Schema | None, keys: list[str], path: str) -> Iterable[FieldError]:
    if not keys:
        yield required(f"{path}.{_LIST_KEYS}", "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", format_go_value(items.get("type") or ""), detail)
        return
    keys_text = f"[]string{{{', '.join(map(format_go_value, keys))}}}"
    for index, key in enumerate(keys):
        declared = (items.get("properties") or {}).get(key)
        field_path = f"{path}.items.properties[{key}]"
        if declared is None:
            yield invalid(f"{path}.{_LIST_KEYS}", keys_text, "entries must all be names of item properties")
        elif declared.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{field_path}.type", format_go_value("object"), detail)
        if key in keys[:index]:
            yield invalid(f"{path}.{_LIST_KEYS}", keys_text, "must not contain duplicate entries")
        if declared is None:
            continue
        detail_prefix = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in (items.get("required") or ()) and declared.get("default") is None:
            yield required(f"{field_path}.default", f"{detail_prefix} must have a default or be a required property")
        if declared.get("nullable"):
            yield forbidden(f"{field_path}.nullable", f"{detail_prefix} cannot be nullable")


def _check_rule_fields(schema: Schema, path: str) -> Iterable[FieldError]:
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        rule_path = f"{path}.x-kubernetes-validations[{index}]"
        text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
        if not text:
            yield required(f"{rule_path}.rule", "rule is not specified")
        elif message and not message.strip():
            yield invalid(f"{rule_path}.message", format_go_value(message), "message must be non-empty if specified")
        elif "\n" in message.strip():
            yield invalid(f"{rule_path}.message", format_go_value(message), "message must not contain line breaks")
        elif "\n" in text and not message.strip():
            yield required(f"{rule_path}.message", "message must be specified if rule contains line breaks")
        reason = rule.get("reason")
        if reason is not None and reason not in _RULE_REASONS:
            yield _not_supported(f"{rule_path}.reason", reason, _RULE_REASONS)
        if text and rule.get("optionalOldSelf") is not None and not uses_old_self(text):
            detail = "may not be set if oldSelf is not used in rule"
            yield invalid(f"{rule_path}.optionalOldSelf", format_invalid_value(rule["optionalOldSelf"]), detail)


def check_rules_compile(schema: Schema, path: str, uncorrelatable_path: str = "") -> list[FieldError]:
    """Report CEL rules that do not compile, or use oldSelf where old values cannot be correlated."""
    errors: list[FieldError] = []
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        rule_path = f"{path}.x-kubernetes-validations[{index}]"
        if reason := cel.find_compile_error(rule["rule"]):
            errors.append(invalid(f"{rule_path}.rule", _format_go_rule(rule), reason))
        elif uncorrelatable_path and uses_old_self(rule["rule"]):
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable_path}"
            errors.append(invalid(f"{rule_path}.rule", format_go_value(rule["rule"]), detail))
        if rule.get("messageExpression") and (
            reason := cel.find_compile_error(rule["messageExpression"], is_message_expression=True)
        ):
            errors.append(invalid(f"{rule_path}.messageExpression", _format_go_rule(rule), reason))
    properties_path = uncorrelatable_path or (path if schema.get(_MAP_TYPE) == "atomic" else "")
    for name in sorted(schema.get("properties") or {}):
        errors += check_rules_compile(schema["properties"][name], f"{path}.properties[{name}]", properties_path)
    if isinstance(schema.get("additionalProperties"), Mapping):
        errors += check_rules_compile(
            schema["additionalProperties"], f"{path}.additionalProperties", uncorrelatable_path
        )
    if isinstance(schema.get("items"), Mapping):
        items_path = uncorrelatable_path or ("" if schema.get(_LIST_TYPE) == "map" else path)
        errors += check_rules_compile(schema["items"], f"{path}.items", items_path)
    return errors


def _format_go_rule(rule: Mapping[str, Any]) -> str:
    """Format the rule as Go prints its struct."""
    reason, optional = rule.get("reason"), rule.get("optionalOldSelf")
    return (
        f"apiextensions.ValidationRule{{Rule:{format_go_value(rule.get('rule') or '')}, "
        f"Message:{format_go_value(rule.get('message') or '')}, "
        f"MessageExpression:{format_go_value(rule.get('messageExpression') or '')}, "
        f"Reason:{'(*apiextensions.FieldValueErrorReason)(nil)' if reason is None else reason}, "
        f"FieldPath:{format_go_value(rule.get('fieldPath') or '')}, "
        f"OptionalOldSelf:{'(*bool)(nil)' if optional is None else format_invalid_value(optional)}}}"
    )


def check_defaults(schema: Schema, path: str) -> list[FieldError]:
    """Report defaults that the schema itself would reject or prune."""
    errors: list[FieldError] = []
    default = schema.get("default")
    if default is not None:
        node, unknown_paths = compile_schema(schema), list[str]()
        if prune(default, node, "default", unknown_paths) is not default and unknown_paths:
            errors.append(invalid(f"{path}.default", format_invalid_value(default), "must not have unknown fields"))
        default_errors: list[FieldError] = []
        validate_value(default, node, "", default_errors)
        for error in default_errors:
            name = "" if error.field == "<nil>" else f".{error.field}"
            errors.append(FieldError(f"{path}.default{name}", error.kind, error.message))
    for name in sorted(schema.get("properties") or {}):
        errors += check_defaults(schema["properties"][name], f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), Mapping):
        errors += check_defaults(schema["items"], f"{path}.items")
    return errors
