"""Turns proposals into edits of an Application's manifest.

In: the manifest as written in a file, and proposals. Out: edits of that text. Never: an edit that is already done:
applying proposals twice changes nothing the second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from argosy.gitops.analysis.alignment.git_change_proposal_types import Proposal, ignore_rule_to_wire
from argosy.gitops.application import IgnoreDifference
from argosy.kube.objects.yaml_edits import REMOVED, YamlEdit

Path = tuple[str | int, ...]
_IGNORE_RULES_PATH: Final[Path] = ("spec", "ignoreDifferences")
_SYNC_OPTIONS_PATH: Final[Path] = ("spec", "syncPolicy", "syncOptions")
_RULE_LIST_FIELDS: Final = (
    ("jsonPointers", "pointers"),
    ("jqPathExpressions", "jq_paths"),
    ("managedFieldsManagers", "managers"),
)


def build_edits(manifest: Mapping[str, Any], proposals: Iterable[Proposal]) -> tuple[YamlEdit, ...]:
    """Return the edits in order: removals come last, from the end of each list, so that every index stays valid."""
    application_proposals = [proposal for proposal in proposals if proposal.kind.changes_git and not proposal.file]
    field_edits = (
        edit
        for proposal in application_proposals
        for edit in proposal.sets
        if _get_value(manifest, edit.path) != edit.value
    )
    return (
        *field_edits,
        *_edit_refs(manifest, application_proposals),
        *_edit_rules(manifest, application_proposals),
        *_edit_options(manifest, application_proposals),
        *_edit_drops(manifest, application_proposals),
    )


def _edit_refs(manifest: Mapping[str, Any], proposals: Sequence[Proposal]) -> Iterator[YamlEdit]:
    spec = _as_map(manifest.get("spec"))
    path: Path = ("spec", "sources", 0) if "source" not in spec and spec.get("sources") else ("spec", "source")
    for proposal in proposals:
        if proposal.ref and _get_value(manifest, (*path, "targetRevision")) != proposal.ref:
            yield YamlEdit((*path, "targetRevision"), proposal.ref)


def _edit_rules(manifest: Mapping[str, Any], proposals: Sequence[Proposal]) -> Iterator[YamlEdit]:
    existing_rules = [_as_map(entry) for entry in _as_list(_get_value(manifest, _IGNORE_RULES_PATH))]
    added: list[IgnoreDifference] = []
    for rule in (rule for entry in proposals for rule in entry.ignores):
        index = next((index for index, entry in enumerate(existing_rules) if _has_rule_key(entry, rule)), None)
        if index is None:
            added = _merge_rule(added, rule)
            continue
        for name, attribute in _RULE_LIST_FIELDS:
            existing_values = _as_list(existing_rules[index].get(name))
            missing = [text for text in getattr(rule, attribute) if text not in existing_values]
            path = (*_IGNORE_RULES_PATH, index, name)
            if missing and not existing_values:
                yield YamlEdit(path, missing)
            else:
                yield from (
                    YamlEdit((*path, len(existing_values) + offset), text) for offset, text in enumerate(missing)
                )
    if added and not existing_rules:
        yield YamlEdit(_IGNORE_RULES_PATH, [ignore_rule_to_wire(entry) for entry in added])
    else:
        yield from (
            YamlEdit((*_IGNORE_RULES_PATH, len(existing_rules) + offset), ignore_rule_to_wire(entry))
            for offset, entry in enumerate(added)
        )


def _merge_rule(rules: list[IgnoreDifference], rule: IgnoreDifference) -> list[IgnoreDifference]:
    for index, existing in enumerate(rules):
        if existing[:4] == rule[:4]:
            lists = (
                tuple(dict.fromkeys((*existing_values, *new_values)))
                for existing_values, new_values in zip(existing[4:], rule[4:], strict=True)
            )
            return [*rules[:index], IgnoreDifference(*rule[:4], *lists), *rules[index + 1 :]]
    return [*rules, rule]


def _edit_options(manifest: Mapping[str, Any], proposals: Sequence[Proposal]) -> Iterator[YamlEdit]:
    existing_options = _as_list(_get_value(manifest, _SYNC_OPTIONS_PATH))
    missing = [
        option
        for option in dict.fromkeys(new_option for proposal in proposals for new_option in proposal.options)
        if option not in existing_options
    ]
    if missing and not existing_options:
        yield YamlEdit(_SYNC_OPTIONS_PATH, missing)
    else:
        yield from (
            YamlEdit((*_SYNC_OPTIONS_PATH, len(existing_options) + offset), option)
            for offset, option in enumerate(missing)
        )


def _edit_drops(manifest: Mapping[str, Any], proposals: Sequence[Proposal]) -> Iterator[YamlEdit]:
    """Remove pointers; remove a rule, and the list of rules, if nothing is left of it."""
    drops = [entry for proposal in proposals for entry in proposal.drops]
    added = {rule[:4] for proposal in proposals for rule in proposal.ignores}
    existing_rules = [_as_map(entry) for entry in _as_list(_get_value(manifest, _IGNORE_RULES_PATH))]
    if not drops:
        return
    dropped_indices = [
        _find_dropped_indices(entry, [drop.pointer for drop in drops if _has_rule_key(entry, drop.rule)])
        for entry in existing_rules
    ]
    is_dropped = [
        _drops_everything(rule, names) and _get_rule_key(rule) not in added
        for rule, names in zip(existing_rules, dropped_indices, strict=True)
    ]
    if all(is_dropped) and existing_rules and not any(proposal.ignores for proposal in proposals):
        yield YamlEdit(_IGNORE_RULES_PATH, REMOVED)
        return
    for rule_index in reversed(range(len(existing_rules))):
        if is_dropped[rule_index]:
            yield YamlEdit((*_IGNORE_RULES_PATH, rule_index), REMOVED)
            continue
        for name, indices in dropped_indices[rule_index].items():
            path = (*_IGNORE_RULES_PATH, rule_index, name)
            if (
                len(indices) == len(_as_list(existing_rules[rule_index].get(name)))
                and _get_rule_key(existing_rules[rule_index]) not in added
            ):
                yield YamlEdit(path, REMOVED)
            else:
                yield from (YamlEdit((*path, index), REMOVED) for index in reversed(indices))


def _find_dropped_indices(rule: Mapping[str, Any], pointers: Sequence[str]) -> dict[str, list[int]]:
    indices_by_list = {
        name: [index for index, text in enumerate(_as_list(rule.get(name))) if text in pointers]
        for name, _ in _RULE_LIST_FIELDS
    }
    return {name: indices for name, indices in indices_by_list.items() if indices}


def _drops_everything(rule: Mapping[str, Any], dropped_indices: Mapping[str, list[int]]) -> bool:
    return bool(dropped_indices) and all(
        len(dropped_indices.get(name, ())) == len(_as_list(rule.get(name))) for name, _ in _RULE_LIST_FIELDS
    )


def _get_rule_key(rule: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(rule.get(name) or "") for name in ("group", "kind", "name", "namespace"))


def _has_rule_key(manifest_rule: Mapping[str, Any], rule: IgnoreDifference) -> bool:
    return _get_rule_key(manifest_rule) == rule[:4]


def apply_edits(manifest: Mapping[str, Any], edits: Iterable[YamlEdit]) -> dict[str, Any]:
    """Return the manifest after the edits."""
    edited: Any = dict(manifest)
    for edit in edits:
        edited = _set_value(edited, edit.path, edit.value)
    return dict(edited)


def _set_value(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    step, rest_path = path[0], path[1:]
    if isinstance(step, int):
        items = list(value) if isinstance(value, list) else []
        if not rest_path and new is REMOVED:
            return [*items[:step], *items[step + 1 :]]
        element = _set_value(items[step] if step < len(items) else None, rest_path, new)
        return [*items[:step], element, *items[step + 1 :]]
    fields = dict(value) if isinstance(value, Mapping) else {}
    if not rest_path and new is REMOVED:
        return {name: field_value for name, field_value in fields.items() if name != step}
    return {**fields, step: _set_value(fields.get(step), rest_path, new)}


def _get_value(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _as_map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
