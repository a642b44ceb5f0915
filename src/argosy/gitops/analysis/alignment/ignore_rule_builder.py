"""Builds the narrowest ignoreDifferences rules for fields that other writers set.

In: differing fields of objects. Out: rules. Never: a rule for a whole spec.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from argosy.gitops.analysis.alignment.field_writer_catalog import find_writer_reason, is_owned_by_operator
from argosy.gitops.analysis.object_versions_as_cause_evidence import ABSENT, ELEMENT_KEY_FIELDS, get_matching_value
from argosy.gitops.application import IgnoreDifference
from argosy.gitops.application.step_results import FieldDifference
from argosy.kube.patch.json_pointer import format_tokens, parse
from argosy.kube.resource_key import GroupKind, ResourceKey

MANAGER_RULE_MIN_FIELDS: Final = 5  # fields of one manager; from this number on, the rule names the manager instead
_USER_WRITTEN_GROUPS: Final = frozenset({"", "apps", "batch"})  # groups of kinds that people write
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class IgnoredField(NamedTuple):
    """A field in an ignore rule: a JSON pointer, or a jq expression if a list element is on the path."""

    pointer: str = ""
    jq: str = ""

    @property
    def text(self) -> str:
        return self.pointer or self.jq


class ForeignFields(NamedTuple):
    """One object and its fields that another writer sets."""

    key: ResourceKey
    live_manifest: Any  # the live manifest that the pointers refer to
    fields: tuple[FieldDifference, ...]
    managers: tuple[str, ...]  # one per field; empty if the writer is not a controller


def build_ignored_field(live_manifest: Any, field: FieldDifference) -> IgnoredField:
    """Address list elements by a unique key, because their index may change; by index if there is none."""
    tokens = parse(field.pointer)
    parts, value, has_name = [""], live_manifest, False
    for position, token in enumerate(tokens):
        if not isinstance(value, list):
            parts[-1] += _render_jq_step(token)
            value = value.get(token) if isinstance(value, dict) else None
            continue
        index = int(token) if token.isdecimal() else len(value)
        element = value[index] if index < len(value) else field.desired if position == len(tokens) - 1 else None
        if selector := _render_selector(value, element):
            parts[-1] = f"{parts[-1] or '.'}[]"
            parts += [selector, ""]
            has_name = True
        else:
            parts[-1] = f"{parts[-1] or '.'}[{token}]"
        value = element
    if not has_name:
        return IgnoredField(pointer=format_tokens(tokens))
    return IgnoredField(jq=" | ".join(part for part in parts if part))


def _render_jq_step(token: str) -> str:
    return f".{token}" if _PLAIN_NAME.fullmatch(token) else f".[{orjson.dumps(token).decode()}]"


def _render_selector(items: Sequence[Any], element: Any) -> str:
    """Return `select(.name == "web")`, with the first field that is unique to the element."""
    for name in ELEMENT_KEY_FIELDS:
        value = element.get(name) if isinstance(element, dict) else None
        if not isinstance(value, str | int) or isinstance(value, bool):
            continue
        matches = [item for item in items if isinstance(item, dict) and item.get(name) == value]
        if len(matches) <= 1:
            return f"select(.{name} == {orjson.dumps(value).decode()})"
    return ""


def build_ignore_rules(
    foreign_objects: Iterable[ForeignFields], desired: Mapping[ResourceKey, Mapping[str, Any]]
) -> list[IgnoreDifference]:
    """Build one rule per kind if all its objects agree, else one per object. `desired`: all manifests in Git."""
    by_kind: dict[GroupKind, list[tuple[ForeignFields, tuple[IgnoredField, ...]]]] = {}
    for foreign in foreign_objects:
        ignored_fields = tuple(
            dict.fromkeys(build_ignored_field(foreign.live_manifest, field) for field in foreign.fields)
        )
        if ignored_fields:
            by_kind.setdefault(foreign.key.group_kind, []).append((foreign, ignored_fields))
    rules: list[IgnoreDifference] = []
    for kind, objects in by_kind.items():
        own_keys = {foreign.key for foreign, _ in objects}
        others = [manifest for key, manifest in desired.items() if key.group_kind == kind and key not in own_keys]
        rules += _build_rules_for_kind(kind, objects, others)
    return rules


def _build_rules_for_kind(
    kind: GroupKind,
    objects: Sequence[tuple[ForeignFields, tuple[IgnoredField, ...]]],
    others: Sequence[Mapping[str, Any]],
) -> list[IgnoreDifference]:
    ignored_fields = dict.fromkeys(ignored_field for _, entry in objects for ignored_field in entry)
    # An operator treats all objects of its kind alike; a change of one Deployment concerns that one only.
    is_known = kind.group not in _USER_WRITTEN_GROUPS and all(
        find_writer_reason(*kind, ignored_field.pointer) for ignored_field in ignored_fields
    )
    # A host set in Git is intended: a rule for the kind would hide its changes and keep a sync from writing it.
    is_unset_in_git = is_owned_by_operator(*kind) or not any(
        _is_set(entry, ignored_field.pointer) for entry in others for ignored_field in ignored_fields
    )
    is_uniform = not others and len({frozenset(entry) for _, entry in objects}) == 1
    if (is_known and is_unset_in_git) or is_uniform:
        return [_build_rule(kind, "", tuple(ignored_fields), [entry for entry, _ in objects])]
    return [_build_rule(kind, entry.key.name, own_fields, [entry]) for entry, own_fields in objects]


def _is_set(manifest: Mapping[str, Any], pointer: str) -> bool:
    return bool(pointer) and get_matching_value(manifest, parse(pointer), manifest) not in (ABSENT, None, "")


def _build_rule(
    kind: GroupKind, name: str, ignored_fields: Sequence[IgnoredField], objects: Sequence[ForeignFields]
) -> IgnoreDifference:
    writers = {writer for entry in objects for writer in entry.managers}
    if len(ignored_fields) >= MANAGER_RULE_MIN_FIELDS and len(writers) == 1 and all(writers):
        return IgnoreDifference(kind.group, kind.kind, name, managers=tuple(writers))
    pointers = tuple(entry.pointer for entry in ignored_fields if entry.pointer)
    return IgnoreDifference(
        kind.group, kind.kind, name, "", pointers, tuple(entry.jq for entry in ignored_fields if entry.jq)
    )


def render_ignore_rule(rule: IgnoreDifference) -> str:
    """Render a rule: `Route: /spec/host, /spec/tls/insecureEdgeTerminationPolicy`."""
    object_text = f"{rule.kind}/{rule.name}" if rule.name else rule.kind
    writers = [f"all fields that {manager} writes" for manager in rule.managers]
    return f"{object_text}: {', '.join((*rule.pointers, *rule.jq_paths, *writers))}"
