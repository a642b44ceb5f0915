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
from argosy.kube.schema.crd.compiled_schema import Node, compile_node
from argosy.kube.schema.crd.patterns import limited_matching
from argosy.kube.schema.crd.schema_rules import default_faults, rule_faults, schema_faults
from argosy.kube.schema.crd.structural import structural_faults
from argosy.kube.schema.field_error import (
    Fault,
    FaultKind,
    duplicate,
    forbidden,
    go_value,
    invalid,
    not_supported,
    required,
)
from argosy.kube.schema.jsonpath import compiled

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
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
_MOST_SELECTABLE = 8
_MOST_SOUND = 200
_SOUND: dict[bytes, None] = {}  # digests of valid schemas: every sync applies the same CRDs again
_DEEPEST = 100
_ROOT_SCHEMA = frozenset(
    (
        "description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
        "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items",
        "properties", "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
    )
)  # fmt: skip


def with_definition_defaults(definition: Manifest) -> Manifest:
    """Fill in missing names, conversion and stored versions."""
    spec = definition.get("spec") or {}
    names = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    names["singular"] = names.get("singular") or kind.lower()
    names["listKind"] = names.get("listKind") or (f"{kind}List" if kind else "")
    status = dict(definition.get("status") or {})
    if not status.get("storedVersions"):
        stored = [str(each.get("name")) for each in spec.get("versions") or () if each.get("storage")][:1]
        status = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, **status, "storedVersions": stored}
    conversion = spec.get("conversion") or {"strategy": "None"}
    return {**definition, "spec": {**spec, "names": names, "conversion": conversion}, "status": status}


def check_definition(definition: Manifest, old: Manifest | None = None) -> list[Fault]:
    """Return the errors of a defaulted CRD. Of its metadata only the name is checked."""
    spec = definition.get("spec") or {}
    faults = [] if old is not None else list(_name_faults(definition, spec))
    faults += [*_spec_faults(spec), *_version_faults(spec), *_names_faults(spec.get("names") or {})]
    faults += _conversion_faults(spec)
    if spec.get("preserveUnknownFields") is True:
        words = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        faults.append(invalid("spec.preserveUnknownFields", "true", words))
    if old is not None:
        faults += _update_faults(definition, old)
    return faults


def _name_faults(definition: Manifest, spec: Mapping[str, Any]) -> Iterable[Fault]:
    name = (definition.get("metadata") or {}).get("name") or ""
    wanted = f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}"
    if name != wanted:
        yield invalid("metadata.name", go_value(name), 'must be spec.names.plural+"."+spec.group')


def _spec_faults(spec: Mapping[str, Any]) -> Iterable[Fault]:
    group = spec.get("group") or ""
    if not group:
        yield required("spec.group")
    elif not _SUBDOMAIN.fullmatch(group):
        yield invalid("spec.group", go_value(group), _SUBDOMAIN_RULE)
    elif "." not in group:
        yield invalid("spec.group", go_value(group), "should be a domain with at least one dot")
    scope = spec.get("scope") or ""
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", go_value(scope), ("Cluster", "Namespaced"))


def _version_faults(spec: Mapping[str, Any]) -> Iterable[Fault]:
    versions = spec.get("versions") or []
    # k8s: a part that is equal in all versions is checked once, as if it were a field of spec.
    shared = {name for name in ("schema", "subresources", "additionalPrinterColumns") if _all_alike(versions, name)}
    for index, version in enumerate(versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")
    for index, version in enumerate(versions):
        name = version.get("name") or ""
        if not _LABEL.fullmatch(name) or len(name) > 63:
            yield invalid(f"spec.versions[{index}].name", go_value(name), _LABEL_RULE)
        for part in ("schema", "subresources", "additionalPrinterColumns", "selectableFields"):
            if part not in shared:
                yield from _part_faults(version, part, f"spec.versions[{index}].{part}")
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield invalid("spec.versions", _shown_versions(names), "must contain unique version names")
    if sum(version.get("storage") is True for version in versions) != 1:
        words = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", _shown_versions(names), words)
    if versions:
        for part in sorted(shared, key=("schema", "subresources", "additionalPrinterColumns").index):
            yield from _part_faults(versions[0], part, "spec.validation" if part == "schema" else f"spec.{part}")


def _all_alike(versions: Sequence[Mapping[str, Any]], name: str) -> bool:
    return bool(versions) and all(each.get(name) and each[name] == versions[0].get(name) for each in versions)


def _shown_versions(names: Sequence[Any]) -> str:
    return f"[]string{{{', '.join(go_value(name) for name in names)}}}"


def _part_faults(version: Mapping[str, Any], part: str, path: str) -> Iterable[Fault]:
    match part:
        case "schema":
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if schema:
                status = (version.get("subresources") or {}).get("status") is not None
                yield from _schema_faults(schema, f"{path}.openAPIV3Schema", status=status)
        case "subresources":
            yield from _scale_faults((version.get("subresources") or {}).get("scale"), f"{path}.scale")
        case "additionalPrinterColumns":
            for index, column in enumerate(version.get(part) or ()):
                yield from _column_faults(column, f"{path}[{index}]")
        case _:
            yield from _selectable_faults(version, path)


def _schema_faults(schema: Mapping[str, Any], path: str, *, status: bool) -> Iterable[Fault]:
    if status and (unwanted := [name for name in schema if name not in _ROOT_SCHEMA]):
        words = "fields are allowed at the root of the schema if the status subresource is enabled"
        yield invalid(path, go_value(unwanted[0]), f"only {' '.join(sorted(_ROOT_SCHEMA))} {words}")
    if schema.get("nullable"):
        yield forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    if _depth(schema) > _DEEPEST:
        yield forbidden(path, f"schemas nested deeper than {_DEEPEST} are not supported by the sandbox")
        return
    digest = _digest(schema)
    if digest in _SOUND:
        return
    found = _deep_faults(schema, path)
    if digest and not found:
        _SOUND[digest] = None
        if len(_SOUND) > _MOST_SOUND:
            del _SOUND[next(iter(_SOUND))]
    yield from found


def _deep_faults(schema: Mapping[str, Any], path: str) -> list[Fault]:
    with limited_matching():
        outer = structural_faults(schema, path) or default_faults(schema, path)
    found = [*outer, *schema_faults(schema, path, root=True)]
    return found or list(rule_faults(schema, path))


def _digest(schema: Mapping[str, Any]) -> bytes:
    """Return a digest of the schema; empty if orjson cannot encode it (for example a number that is too large)."""
    try:
        return hashlib.blake2b(orjson.dumps(schema), digest_size=16).digest()
    except TypeError:
        return b""


def _depth(schema: Any) -> int:
    """Return the nesting depth of a schema, without recursion, because the input is untrusted."""
    level, depth = [schema], 0
    while level and depth <= 4 * _DEEPEST:
        depth += 1
        inner = [each for one in level for each in (one.values() if isinstance(one, Mapping) else one)]
        level = [each for each in inner if isinstance(each, Mapping | list)]
    # A schema below `properties` is two levels of data deeper.
    return depth // 2


def _scale_faults(scale: Mapping[str, Any] | None, path: str) -> Iterable[Fault]:
    if scale is None:
        return
    for name, roots, words in (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
    ):
        value = scale.get(name) or ""
        if not value:
            if name != "labelSelectorPath":
                yield required(f"{path}.{name}")
        elif not value.startswith("."):
            yield invalid(f"{path}.{name}", go_value(value), "must be a simple json path starting with .")
        elif not value.startswith(roots):
            yield invalid(f"{path}.{name}", go_value(value), words)


def _column_faults(column: Mapping[str, Any], path: str) -> Iterable[Fault]:
    if not column.get("name"):
        yield required(f"{path}.name")
    kind = column.get("type") or ""
    if kind not in _COLUMN_TYPES:
        words = f"must be one of {','.join(_COLUMN_TYPES)}"
        yield invalid(f"{path}.type", go_value(kind), words) if kind else required(f"{path}.type", words)
    form = column.get("format")
    if form and form not in _COLUMN_FORMATS:
        yield invalid(f"{path}.format", go_value(form), f"must be one of {','.join(_COLUMN_FORMATS)}")
    text = column.get("jsonPath") or ""
    if not text:
        yield required(f"{path}.JSONPath")
    elif not text.startswith("."):
        yield invalid(f"{path}.JSONPath", go_value(text), "must be a simple json path starting with .")
    else:
        try:
            compiled(text)
        except UserError as error:
            yield invalid(f"{path}.JSONPath", go_value(text), error.message)


def _selectable_faults(version: Mapping[str, Any], path: str) -> Iterable[Fault]:
    fields = version.get("selectableFields") or ()
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    root = compile_node(schema) if fields else None
    seen: set[str] = set()
    for index, each in enumerate(fields):
        text, where = each.get("jsonPath") or "", f"{path}[{index}].jsonPath"
        if not text:
            yield required(where)
            continue
        node, reason = _follow(text, root)
        if reason:
            yield invalid(where, go_value(text), f"is an invalid path: {reason}")
            continue
        if text.startswith(".metadata"):
            yield invalid(where, go_value(text), "must not point to fields in metadata")
        if node is None or node.type not in ("string", "boolean", "integer"):
            words = "must point to a field of type string, boolean or integer. "
            yield invalid(where, go_value(text), words + "Enum string fields and strings with formats are allowed.")
        if text in seen:
            yield duplicate(where, go_value(text))
        seen.add(text)
    if len(seen) > _MOST_SELECTABLE:
        words = f"Too many: {len(seen)}: must have at most {_MOST_SELECTABLE} items"
        yield Fault(path, FaultKind.TOO_MANY, words)


def _follow(text: str, node: Node | None) -> tuple[Node | None, str]:
    if "[" in text:
        return None, "array notation is not allowed"
    if not text.startswith("."):
        return None, f"expected [ or . but got: {text.partition('.')[0]}"
    for name in text[1:].split("."):
        child = node.properties.get(name, node.additional) if node else None
        if child is None:
            return None, "does not refer to a valid field"
        node = child
    return node, ""


def _names_faults(names: Mapping[str, Any]) -> Iterable[Fault]:
    for name in ("plural", "singular", "kind", "listKind"):
        if not names.get(name):
            yield required(f"spec.names.{name}")
    for name in ("plural", "singular"):
        if names.get(name) and not _is_label(names[name]):
            yield invalid(f"spec.names.{name}", go_value(names[name]), _LABEL_RULE)
    for name in ("kind", "listKind"):
        if names.get(name) and not _is_label(names[name].lower()):
            words = f"may have mixed case, but should otherwise match: {_LABEL_RULE}"
            yield invalid(f"spec.names.{name}", go_value(names[name]), words)
    for index, short in enumerate(names.get("shortNames") or ()):
        if not _is_label(short):
            yield invalid(f"spec.names.shortNames[{index}]", go_value(short), _LABEL_RULE)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid("spec.names.listKind", go_value(names["listKind"]), "kind and listKind may not be the same")
    for index, category in enumerate(names.get("categories") or ()):
        if not _is_label(category):
            yield invalid(f"spec.names.categories[{index}]", go_value(category), _LABEL_RULE)


def _is_label(text: str) -> bool:
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None


def _conversion_faults(spec: Mapping[str, Any]) -> Iterable[Fault]:
    conversion = spec.get("conversion") or {}
    strategy = conversion.get("strategy") or ""
    if not strategy and conversion:
        yield required("spec.conversion.strategy")
    elif strategy == "Webhook":
        words = "conversion by webhook is not supported by the sandbox; use strategy None, or serve one version only"
        yield invalid("spec.conversion.strategy", '"Webhook"', words)
    elif strategy not in ("", "None"):
        yield not_supported("spec.conversion.strategy", go_value(strategy), ("None", "Webhook"))
    elif conversion.get("webhook"):
        words = "should not be set when strategy is not set to Webhook"
        yield forbidden("spec.conversion.webhookClientConfig", words)


def _update_faults(definition: Manifest, old: Manifest) -> Iterable[Fault]:
    new_spec, old_spec = definition.get("spec") or {}, old.get("spec") or {}
    new_names, old_names = new_spec.get("names") or {}, old_spec.get("names") or {}
    conditions = (old.get("status") or {}).get("conditions") or ()
    established = any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)
    fixed = [("spec.group", new_spec.get("group"), old_spec.get("group"))]
    fixed.append(("spec.names.plural", new_names.get("plural"), old_names.get("plural")))
    if established:
        fixed.insert(0, ("spec.scope", new_spec.get("scope"), old_spec.get("scope")))
        fixed.insert(1, ("spec.names.kind", new_names.get("kind"), old_names.get("kind")))
    for field, now, before in fixed:
        if now != before:
            yield invalid(field, go_value(now or ""), "field is immutable")
    names = [each.get("name") for each in new_spec.get("versions") or ()]
    for index, stored in enumerate((definition.get("status") or {}).get("storedVersions") or ()):
        if stored not in names:
            yield invalid(f"status.storedVersions[{index}]", go_value(stored), "must appear in spec.versions")
