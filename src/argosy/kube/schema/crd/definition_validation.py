"""Defaults and validates CustomResourceDefinitions.

In: a CRD (apiextensions.k8s.io/v1), and the old one on an update. Out: a manifest, or errors.
Never: looks at other CRDs; the server detects name conflicts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.kube.schema.crd.compiled_schema import SchemaNode, compile_schema
from argosy.kube.schema.crd.schema_keyword_default_cel_check import check_defaults, check_rules_compile, check_schema
from argosy.kube.schema.crd.structural_schema_check import check_structural
from argosy.kube.schema.field_error import (
    FieldError,
    FieldErrorType,
    duplicate,
    forbidden,
    format_go_value,
    invalid,
    not_supported,
    required,
)
from argosy.kube.schema.jsonpath import compile_path
from argosy.languages.go_regexp import limit_matching_time

_LABEL_PATTERN = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN_PATTERN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("binary", "byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MAX_SELECTABLE_FIELDS = 8
_MAX_VALID_SCHEMA_DIGESTS = 200
_VALID_SCHEMA_DIGESTS: dict[bytes, None] = {}  # digests of valid schemas: every sync applies the same CRDs again
_MAX_SCHEMA_DEPTH = 100
_ROOT_SCHEMA_KEYWORDS = frozenset(
    (
        "description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
        "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items",
        "properties", "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
    )
)  # fmt: skip


def apply_definition_defaults(definition: Manifest) -> Manifest:
    """Fill in missing names, conversion and stored versions."""
    spec = definition.get("spec") or {}
    names = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    names["singular"] = names.get("singular") or kind.lower()
    names["listKind"] = names.get("listKind") or (f"{kind}List" if kind else "")
    status = dict(definition.get("status") or {})
    if not status.get("storedVersions"):
        stored = [str(version.get("name")) for version in spec.get("versions") or () if version.get("storage")][:1]
        status = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, **status, "storedVersions": stored}
    conversion = spec.get("conversion") or {"strategy": "None"}
    return {**definition, "spec": {**spec, "names": names, "conversion": conversion}, "status": status}


def check_definition(definition: Manifest, old: Manifest | None = None) -> list[FieldError]:
    """Return the errors of a defaulted CRD. Of its metadata only the name is checked."""
    spec = definition.get("spec") or {}
    errors = [] if old is not None else list(_check_metadata_name(definition, spec))
    errors += [*_check_group_and_scope(spec), *_check_versions(spec), *_check_names(spec.get("names") or {})]
    errors += _check_conversion(spec)
    if spec.get("preserveUnknownFields") is True:
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        errors.append(invalid("spec.preserveUnknownFields", "true", detail))
    if old is not None:
        errors += _check_update(definition, old)
    return errors


def _check_metadata_name(definition: Manifest, spec: Mapping[str, Any]) -> Iterable[FieldError]:
    name = (definition.get("metadata") or {}).get("name") or ""
    expected = f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}"
    if name != expected:
        yield invalid("metadata.name", format_go_value(name), 'must be spec.names.plural+"."+spec.group')


def _check_group_and_scope(spec: Mapping[str, Any]) -> Iterable[FieldError]:
    group = spec.get("group") or ""
    if not group:
        yield required("spec.group")
    elif not _SUBDOMAIN_PATTERN.fullmatch(group):
        yield invalid("spec.group", format_go_value(group), _SUBDOMAIN_RULE)
    elif "." not in group:
        yield invalid("spec.group", format_go_value(group), "should be a domain with at least one dot")
    scope = spec.get("scope") or ""
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", format_go_value(scope), ("Cluster", "Namespaced"))


def _check_versions(spec: Mapping[str, Any]) -> Iterable[FieldError]:
    versions = spec.get("versions") or []
    # k8s: a part that is equal in all versions is checked once, as if it were a field of spec.
    shared_parts = {
        name for name in ("schema", "subresources", "additionalPrinterColumns") if _all_versions_equal(versions, name)
    }
    for index, version in enumerate(versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")
    for index, version in enumerate(versions):
        name = version.get("name") or ""
        if not _LABEL_PATTERN.fullmatch(name) or len(name) > 63:
            yield invalid(f"spec.versions[{index}].name", format_go_value(name), _LABEL_RULE)
        for part in ("schema", "subresources", "additionalPrinterColumns", "selectableFields"):
            if part not in shared_parts:
                yield from _check_version_part(version, part, f"spec.versions[{index}].{part}")
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield invalid("spec.versions", _format_version_names(names), "must contain unique version names")
    if sum(version.get("storage") is True for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", _format_version_names(names), detail)
    if versions:
        for part in sorted(shared_parts, key=("schema", "subresources", "additionalPrinterColumns").index):
            yield from _check_version_part(versions[0], part, "spec.validation" if part == "schema" else f"spec.{part}")


def _all_versions_equal(versions: Sequence[Mapping[str, Any]], name: str) -> bool:
    return bool(versions) and all(version.get(name) and version[name] == versions[0].get(name) for version in versions)


def _format_version_names(names: Sequence[Any]) -> str:
    return f"[]string{{{', '.join(format_go_value(name) for name in names)}}}"


def _check_version_part(version: Mapping[str, Any], part: str, path: str) -> Iterable[FieldError]:
    match part:
        case "schema":
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if schema:
                has_status = (version.get("subresources") or {}).get("status") is not None
                yield from _check_root_schema(schema, f"{path}.openAPIV3Schema", has_status=has_status)
        case "subresources":
            yield from _check_scale_paths((version.get("subresources") or {}).get("scale"), f"{path}.scale")
        case "additionalPrinterColumns":
            for index, column in enumerate(version.get(part) or ()):
                yield from _check_printer_column(column, f"{path}[{index}]")
        case _:
            yield from _check_selectable_fields(version, path)


def _check_root_schema(schema: Mapping[str, Any], path: str, *, has_status: bool) -> Iterable[FieldError]:
    if has_status and (unsupported_keywords := [name for name in schema if name not in _ROOT_SCHEMA_KEYWORDS]):
        detail = "fields are allowed at the root of the schema if the status subresource is enabled"
        yield invalid(
            path, format_go_value(unsupported_keywords[0]), f"only {' '.join(sorted(_ROOT_SCHEMA_KEYWORDS))} {detail}"
        )
    if schema.get("nullable"):
        yield forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    if _schema_depth(schema) > _MAX_SCHEMA_DEPTH:
        yield forbidden(path, f"schemas nested deeper than {_MAX_SCHEMA_DEPTH} are not supported by the sandbox")
        return
    digest = _schema_digest(schema)
    if digest in _VALID_SCHEMA_DIGESTS:
        return
    errors = _check_schema_tree(schema, path)
    if digest and not errors:
        _VALID_SCHEMA_DIGESTS[digest] = None
        if len(_VALID_SCHEMA_DIGESTS) > _MAX_VALID_SCHEMA_DIGESTS:
            del _VALID_SCHEMA_DIGESTS[next(iter(_VALID_SCHEMA_DIGESTS))]
    yield from errors


def _check_schema_tree(schema: Mapping[str, Any], path: str) -> list[FieldError]:
    with limit_matching_time():
        structural_errors = check_structural(schema, path) or check_defaults(schema, path)
    errors = [*structural_errors, *check_schema(schema, path, is_root=True)]
    return errors or list(check_rules_compile(schema, path))


def _schema_digest(schema: Mapping[str, Any]) -> bytes:
    """Return a digest of the schema; empty if orjson cannot encode it (for example a number that is too large)."""
    try:
        return hashlib.blake2b(orjson.dumps(schema), digest_size=16).digest()
    except TypeError:
        return b""


def _schema_depth(schema: Any) -> int:
    """Return the nesting depth of a schema, without recursion, because the input is untrusted."""
    containers, depth = [schema], 0
    while containers and depth <= 4 * _MAX_SCHEMA_DEPTH:
        depth += 1
        children = [
            child
            for container in containers
            for child in (container.values() if isinstance(container, Mapping) else container)
        ]
        containers = [child for child in children if isinstance(child, Mapping | list)]
    # A schema below `properties` is two levels of data deeper.
    return depth // 2


def _check_scale_paths(scale: Mapping[str, Any] | None, path: str) -> Iterable[FieldError]:
    if scale is None:
        return
    for name, prefixes, detail in (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
    ):
        value = scale.get(name) or ""
        if not value:
            if name != "labelSelectorPath":
                yield required(f"{path}.{name}")
        elif not value.startswith("."):
            yield invalid(f"{path}.{name}", format_go_value(value), "must be a simple json path starting with .")
        elif not value.startswith(prefixes):
            yield invalid(f"{path}.{name}", format_go_value(value), detail)


def _check_printer_column(column: Mapping[str, Any], path: str) -> Iterable[FieldError]:
    if not column.get("name"):
        yield required(f"{path}.name")
    column_type = column.get("type") or ""
    if column_type not in _COLUMN_TYPES:
        detail = f"must be one of {','.join(_COLUMN_TYPES)}"
        yield (
            invalid(f"{path}.type", format_go_value(column_type), detail)
            if column_type
            else required(f"{path}.type", detail)
        )
    column_format = column.get("format")
    if column_format and column_format not in _COLUMN_FORMATS:
        yield invalid(f"{path}.format", format_go_value(column_format), f"must be one of {','.join(_COLUMN_FORMATS)}")
    text = column.get("jsonPath") or ""
    if not text:
        yield required(f"{path}.JSONPath")
    elif not text.startswith("."):
        yield invalid(f"{path}.JSONPath", format_go_value(text), "must be a simple json path starting with .")
    else:
        try:
            compile_path(text)
        except UserError as error:
            yield invalid(f"{path}.JSONPath", format_go_value(text), error.message)


def _check_selectable_fields(version: Mapping[str, Any], path: str) -> Iterable[FieldError]:
    fields = version.get("selectableFields") or ()
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    root = compile_schema(schema) if fields else None
    seen: set[str] = set()
    for index, selectable_field in enumerate(fields):
        text, field_path = selectable_field.get("jsonPath") or "", f"{path}[{index}].jsonPath"
        if not text:
            yield required(field_path)
            continue
        node, reason = _find_schema_node(text, root)
        if reason:
            yield invalid(field_path, format_go_value(text), f"is an invalid path: {reason}")
            continue
        if text.startswith(".metadata"):
            yield invalid(field_path, format_go_value(text), "must not point to fields in metadata")
        if node is None or node.type not in ("string", "boolean", "integer"):
            detail = "must point to a field of type string, boolean or integer. "
            yield invalid(
                field_path, format_go_value(text), detail + "Enum string fields and strings with formats are allowed."
            )
        if text in seen:
            yield duplicate(field_path, format_go_value(text))
        seen.add(text)
    if len(seen) > _MAX_SELECTABLE_FIELDS:
        detail = f"Too many: {len(seen)}: must have at most {_MAX_SELECTABLE_FIELDS} items"
        yield FieldError(path, FieldErrorType.TOO_MANY, detail)


def _find_schema_node(json_path: str, node: SchemaNode | None) -> tuple[SchemaNode | None, str]:
    if "[" in json_path:
        return None, "array notation is not allowed"
    if not json_path.startswith("."):
        return None, f"expected [ or . but got: {json_path.partition('.')[0]}"
    for name in json_path[1:].split("."):
        child = node.properties.get(name, node.additional_properties) if node else None
        if child is None:
            return None, "does not refer to a valid field"
        node = child
    return node, ""


def _check_names(names: Mapping[str, Any]) -> Iterable[FieldError]:
    for name in ("plural", "singular", "kind", "listKind"):
        if not names.get(name):
            yield required(f"spec.names.{name}")
    for name in ("plural", "singular"):
        if names.get(name) and not _is_dns_1035_label(names[name]):
            yield invalid(f"spec.names.{name}", format_go_value(names[name]), _LABEL_RULE)
    for name in ("kind", "listKind"):
        if names.get(name) and not _is_dns_1035_label(names[name].lower()):
            detail = f"may have mixed case, but should otherwise match: {_LABEL_RULE}"
            yield invalid(f"spec.names.{name}", format_go_value(names[name]), detail)
    for index, short_name in enumerate(names.get("shortNames") or ()):
        if not _is_dns_1035_label(short_name):
            yield invalid(f"spec.names.shortNames[{index}]", format_go_value(short_name), _LABEL_RULE)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid(
            "spec.names.listKind", format_go_value(names["listKind"]), "kind and listKind may not be the same"
        )
    for index, category in enumerate(names.get("categories") or ()):
        if not _is_dns_1035_label(category):
            yield invalid(f"spec.names.categories[{index}]", format_go_value(category), _LABEL_RULE)


def _is_dns_1035_label(text: str) -> bool:
    return len(text) <= 63 and _LABEL_PATTERN.fullmatch(text) is not None


def _check_conversion(spec: Mapping[str, Any]) -> Iterable[FieldError]:
    conversion = spec.get("conversion") or {}
    strategy = conversion.get("strategy") or ""
    if not strategy and conversion:
        yield required("spec.conversion.strategy")
    elif strategy == "Webhook":
        detail = "conversion by webhook is not supported by the sandbox; use strategy None, or serve one version only"
        yield invalid("spec.conversion.strategy", '"Webhook"', detail)
    elif strategy not in ("", "None"):
        yield not_supported("spec.conversion.strategy", format_go_value(strategy), ("None", "Webhook"))
    elif conversion.get("webhook"):
        detail = "should not be set when strategy is not set to Webhook"
        yield forbidden("spec.conversion.webhookClientConfig", detail)


def _check_update(definition: Manifest, old: Manifest) -> Iterable[FieldError]:
    new_spec, old_spec = definition.get("spec") or {}, old.get("spec") or {}
    new_names, old_names = new_spec.get("names") or {}, old_spec.get("names") or {}
    conditions = (old.get("status") or {}).get("conditions") or ()
    established = any(entry.get("type") == "Established" and entry.get("status") == "True" for entry in conditions)
    immutable_fields = [("spec.group", new_spec.get("group"), old_spec.get("group"))]
    immutable_fields.append(("spec.names.plural", new_names.get("plural"), old_names.get("plural")))
    if established:
        immutable_fields.insert(0, ("spec.scope", new_spec.get("scope"), old_spec.get("scope")))
        immutable_fields.insert(1, ("spec.names.kind", new_names.get("kind"), old_names.get("kind")))
    for field, new_value, old_value in immutable_fields:
        if new_value != old_value:
            yield invalid(field, format_go_value(new_value or ""), "field is immutable")
    names = [entry.get("name") for entry in new_spec.get("versions") or ()]
    for index, stored_version in enumerate((definition.get("status") or {}).get("storedVersions") or ()):
        if stored_version not in names:
            yield invalid(
                f"status.storedVersions[{index}]", format_go_value(stored_version), "must appear in spec.versions"
            )
