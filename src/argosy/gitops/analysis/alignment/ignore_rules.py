"""Builds the narrowest ignoreDifferences rules for fields that other writers set.

In: differing fields of objects. Out: rules. Never: a rule for a whole spec.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from argosy.gitops.analysis.alignment.field_writers import is_operators, reason_for
from argosy.gitops.analysis.evidence import ABSENT, NAMES, value_at
from argosy.gitops.application import IgnoreDifference
from argosy.gitops.application.step_results import Difference
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.patch.json_pointer import format_tokens, parse

MANY: Final = 5  # fields of one manager; from this number on, the rule names the manager instead
_PEOPLES: Final = frozenset({"", "apps", "batch"})  # groups of kinds that people write
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Spot(NamedTuple):
    """A field in an ignore rule: a JSON pointer, or a jq expression if a list element is on the path."""

    pointer: str = ""
    jq: str = ""

    @property
    def text(self) -> str:
        return self.pointer or self.jq


class Foreign(NamedTuple):
    """One object and its fields that another writer sets."""

    key: ResourceKey
    form: Any  # the live manifest that the pointers refer to
    fields: tuple[Difference, ...]
    managers: tuple[str, ...]  # one per field; empty if the writer is not a controller


def spot_of(form: Any, field: Difference) -> Spot:
    """Address list elements by a unique key, because their index may change; by index if there is none."""
    tokens = parse(field.pointer)
    parts, here, has_name = [""], form, False
    for place, token in enumerate(tokens):
        if not isinstance(here, list):
            parts[-1] += _step(token)
            here = here.get(token) if isinstance(here, dict) else None
            continue
        at = int(token) if token.isdecimal() else len(here)
        element = here[at] if at < len(here) else field.desired if place == len(tokens) - 1 else None
        if chosen := _chosen(here, element):
            parts[-1] = f"{parts[-1] or '.'}[]"
            parts += [chosen, ""]
            has_name = True
        else:
            parts[-1] = f"{parts[-1] or '.'}[{token}]"
        here = element
    if not has_name:
        return Spot(pointer=format_tokens(tokens))
    return Spot(jq=" | ".join(part for part in parts if part))


def _step(token: str) -> str:
    return f".{token}" if _PLAIN.fullmatch(token) else f".[{orjson.dumps(token).decode()}]"


def _chosen(items: Sequence[Any], element: Any) -> str:
    """Return `select(.name == "web")`, with the first field that is unique to the element."""
    for name in NAMES:
        value = element.get(name) if isinstance(element, dict) else None
        if not isinstance(value, str | int) or isinstance(value, bool):
            continue
        same = [each for each in items if isinstance(each, dict) and each.get(name) == value]
        if len(same) <= 1:
            return f"select(.{name} == {orjson.dumps(value).decode()})"
    return ""


def rules_for(found: Iterable[Foreign], desired: Mapping[ResourceKey, Mapping[str, Any]]) -> list[IgnoreDifference]:
    """Build one rule per kind if all its objects agree, else one per object. `desired`: all manifests in Git."""
    by_kind: dict[GroupKind, list[tuple[Foreign, tuple[Spot, ...]]]] = {}
    for each in found:
        spots = tuple(dict.fromkeys(spot_of(each.form, field) for field in each.fields))
        if spots:
            by_kind.setdefault(each.key.group_kind, []).append((each, spots))
    rules: list[IgnoreDifference] = []
    for kind, objects in by_kind.items():
        mine = {each.key for each, _ in objects}
        others = [manifest for key, manifest in desired.items() if key.group_kind == kind and key not in mine]
        rules += _of_kind(kind, objects, others)
    return rules


def _of_kind(
    kind: GroupKind, objects: Sequence[tuple[Foreign, tuple[Spot, ...]]], others: Sequence[Mapping[str, Any]]
) -> list[IgnoreDifference]:
    spots = dict.fromkeys(spot for _, each in objects for spot in each)
    # An operator treats all objects of its kind alike; a change of one Deployment concerns that one only.
    is_known = kind.group not in _PEOPLES and all(reason_for(*kind, spot.pointer) for spot in spots)
    # A host set in Git is intended: a rule for the kind would hide its changes and keep a sync from writing it.
    is_free = is_operators(*kind) or not any(_is_given(each, spot.pointer) for each in others for spot in spots)
    has_agreed = not others and len({frozenset(each) for _, each in objects}) == 1
    if (is_known and is_free) or has_agreed:
        return [_rule(kind, "", tuple(spots), [each for each, _ in objects])]
    return [_rule(kind, each.key.name, mine, [each]) for each, mine in objects]


def _is_given(manifest: Mapping[str, Any], pointer: str) -> bool:
    return bool(pointer) and value_at(manifest, parse(pointer), manifest) not in (ABSENT, None, "")


def _rule(kind: GroupKind, name: str, spots: Sequence[Spot], objects: Sequence[Foreign]) -> IgnoreDifference:
    writers = {writer for each in objects for writer in each.managers}
    if len(spots) >= MANY and len(writers) == 1 and all(writers):
        return IgnoreDifference(kind.group, kind.kind, name, managers=tuple(writers))
    pointers = tuple(each.pointer for each in spots if each.pointer)
    return IgnoreDifference(kind.group, kind.kind, name, "", pointers, tuple(each.jq for each in spots if each.jq))


def told(rule: IgnoreDifference) -> str:
    """Render a rule: `Route: /spec/host, /spec/tls/insecureEdgeTerminationPolicy`."""
    named = f"{rule.kind}/{rule.name}" if rule.name else rule.kind
    writers = [f"all fields that {each} writes" for each in rule.managers]
    return f"{named}: {', '.join((*rule.pointers, *rule.jq_paths, *writers))}"
