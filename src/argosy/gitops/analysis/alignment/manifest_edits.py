"""Turns proposals into edits of an Application's manifest.

In: the manifest as written in a file, and proposals. Out: edits of that text. Never: an edit that is already done:
applying proposals twice changes nothing the second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from argosy.gitops.analysis.alignment.proposal import Proposal, rule_wire
from argosy.gitops.application import IgnoreDifference
from argosy.kube.objects.yaml_edits import REMOVED, Edit

Path = tuple[str | int, ...]
_RULES: Final[Path] = ("spec", "ignoreDifferences")
_OPTIONS: Final[Path] = ("spec", "syncPolicy", "syncOptions")
_LISTS: Final = (("jsonPointers", "pointers"), ("jqPathExpressions", "jq_paths"), ("managedFieldsManagers", "managers"))


def edits_of(manifest: Mapping[str, Any], proposals: Iterable[Proposal]) -> tuple[Edit, ...]:
    """Return the edits in order: removals come last, from the end of each list, so that every index stays valid."""
    chosen = [each for each in proposals if each.kind.changes and not each.file]
    sets = (edit for each in chosen for edit in each.sets if _at(manifest, edit.path) != edit.value)
    return (
        *sets,
        *_refs(manifest, chosen),
        *_rules(manifest, chosen),
        *_options(manifest, chosen),
        *_drops(manifest, chosen),
    )


def _refs(manifest: Mapping[str, Any], proposals: Sequence[Proposal]) -> Iterator[Edit]:
    spec = _mapping(manifest.get("spec"))
    path: Path = ("spec", "sources", 0) if "source" not in spec and spec.get("sources") else ("spec", "source")
    for each in proposals:
        if each.ref and _at(manifest, (*path, "targetRevision")) != each.ref:
            yield Edit((*path, "targetRevision"), each.ref)


def _rules(manifest: Mapping[str, Any], proposals: Sequence[Proposal]) -> Iterator[Edit]:
    there = [_mapping(each) for each in _list(_at(manifest, _RULES))]
    added: list[IgnoreDifference] = []
    for rule in (rule for each in proposals for rule in each.ignores):
        place = next((place for place, each in enumerate(there) if _is_same(each, rule)), None)
        if place is None:
            added = _joined(added, rule)
            continue
        for name, ours in _LISTS:
            known = _list(there[place].get(name))
            missing = [text for text in getattr(rule, ours) if text not in known]
            path = (*_RULES, place, name)
            if missing and not known:
                yield Edit(path, missing)
            else:
                yield from (Edit((*path, len(known) + at), text) for at, text in enumerate(missing))
    if added and not there:
        yield Edit(_RULES, [rule_wire(each) for each in added])
    else:
        yield from (Edit((*_RULES, len(there) + at), rule_wire(each)) for at, each in enumerate(added))


def _joined(rules: list[IgnoreDifference], rule: IgnoreDifference) -> list[IgnoreDifference]:
    for place, each in enumerate(rules):
        if each[:4] == rule[:4]:
            lists = (tuple(dict.fromkeys((*mine, *theirs))) for mine, theirs in zip(each[4:], rule[4:], strict=True))
            return [*rules[:place], IgnoreDifference(*rule[:4], *lists), *rules[place + 1 :]]
    return [*rules, rule]


def _options(manifest: Mapping[str, Any], proposals: Sequence[Proposal]) -> Iterator[Edit]:
    there = _list(_at(manifest, _OPTIONS))
    missing = [each for each in dict.fromkeys(o for p in proposals for o in p.options) if each not in there]
    if missing and not there:
        yield Edit(_OPTIONS, missing)
    else:
        yield from (Edit((*_OPTIONS, len(there) + at), each) for at, each in enumerate(missing))


def _drops(manifest: Mapping[str, Any], proposals: Sequence[Proposal]) -> Iterator[Edit]:
    """Remove pointers; remove a rule, and the list of rules, if nothing is left of it."""
    drops = [each for proposal in proposals for each in proposal.drops]
    added = {rule[:4] for proposal in proposals for rule in proposal.ignores}
    there = [_mapping(each) for each in _list(_at(manifest, _RULES))]
    if not drops:
        return
    gone = [_gone(each, [drop.pointer for drop in drops if _is_same(each, drop.rule)]) for each in there]
    whole = [_is_all(rule, names) and _name(rule) not in added for rule, names in zip(there, gone, strict=True)]
    if all(whole) and there and not any(proposal.ignores for proposal in proposals):
        yield Edit(_RULES, REMOVED)
        return
    for place in reversed(range(len(there))):
        if whole[place]:
            yield Edit((*_RULES, place), REMOVED)
            continue
        for name, indices in gone[place].items():
            path = (*_RULES, place, name)
            if len(indices) == len(_list(there[place].get(name))) and _name(there[place]) not in added:
                yield Edit(path, REMOVED)
            else:
                yield from (Edit((*path, index), REMOVED) for index in reversed(indices))


def _gone(rule: Mapping[str, Any], pointers: Sequence[str]) -> dict[str, list[int]]:
    found = {
        name: [place for place, text in enumerate(_list(rule.get(name))) if text in pointers] for name, _ in _LISTS
    }
    return {name: places for name, places in found.items() if places}


def _is_all(rule: Mapping[str, Any], gone: Mapping[str, list[int]]) -> bool:
    return bool(gone) and all(len(gone.get(name, ())) == len(_list(rule.get(name))) for name, _ in _LISTS)


def _name(rule: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(rule.get(name) or "") for name in ("group", "kind", "name", "namespace"))


def _is_same(written: Mapping[str, Any], rule: IgnoreDifference) -> bool:
    return _name(written) == rule[:4]


def altered(manifest: Mapping[str, Any], edits: Iterable[Edit]) -> dict[str, Any]:
    """Return the manifest after the edits."""
    made: Any = dict(manifest)
    for edit in edits:
        made = _put(made, edit.path, edit.value)
    return dict(made)


def _put(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    step, below = path[0], path[1:]
    if isinstance(step, int):
        items = list(value) if isinstance(value, list) else []
        if not below and new is REMOVED:
            return [*items[:step], *items[step + 1 :]]
        made = _put(items[step] if step < len(items) else None, below, new)
        return [*items[:step], made, *items[step + 1 :]]
    fields = dict(value) if isinstance(value, Mapping) else {}
    if not below and new is REMOVED:
        return {name: each for name, each in fields.items() if name != step}
    return {**fields, step: _put(fields.get(step), below, new)}


def _at(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
