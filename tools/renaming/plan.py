"""Decide which renames are possible together.

In: the index and the entries of all tables. Out: a new name for each group of definitions, and a report of entries that
were refused (unknown, foreign, contradictory or colliding) and of uses whose owner is unknown. Never: edits files.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from renaming.index import COMMON_ATTRIBUTES, Index, Unknown
from renaming.scopes import Place, Scope, SourceFile
from renaming.tables import Entry
from renaming.types import Definition

OWN = "argosy"


@dataclass
class Plan:
    index: Index
    names: dict[Definition, str] = field(default_factory=dict)  # by root of the group
    entries: dict[Definition, list[Entry]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    assumed: list[tuple[Unknown, str]] = field(default_factory=list)

    def new_name(self, definition: Definition) -> str:
        return self.names.get(self.index.find(definition), definition[-1])

    def refuse(self, root: Definition, reason: str) -> None:
        del self.names[root]
        self.refused += [f"{entry}: {reason}" for entry in self.entries[root]]


def make_plan(index: Index, entries: Iterable[Entry]) -> Plan:
    plan = Plan(index)
    # The innermost function decides, so that a line for a nested function wins over one for the function around it.
    for entry in sorted(entries, key=lambda entry: -len(entry.path)):
        _take_entry(plan, entry)
    foreign = {index.find(definition): owner for definition, owner in index.types.foreign.items()}
    for root in [root for root in plan.names if root in foreign]:
        plan.refuse(root, f"is defined by {foreign[root]} too")
    while _refuse_collisions(plan):
        pass
    _settle_unknown(plan)
    return plan


def _take_entry(plan: Plan, entry: Entry) -> None:
    found = plan.index.find_meant(entry)
    if not found:
        plan.refused.append(f"{entry}: not found")
        return
    for root in dict.fromkeys(map(plan.index.find, found)):
        known = plan.names.setdefault(root, entry.new)
        if known == entry.new:
            plan.entries.setdefault(root, []).append(entry)
        elif len(plan.entries[root][0].path) == len(entry.path):
            plan.notes.append(f"{entry}: becomes {known}, as by {plan.entries[root][0]}")


def _refuse_collisions(plan: Plan) -> bool:
    """Refuse the renames that collide now; True if there were any."""
    collisions: list[tuple[Definition, Definition, str]] = []
    new_names = frozenset(plan.names.values())
    for file in plan.index.files.values():
        collisions += _collide_in_file(plan, file, new_names)
    collisions += _collide_in_classes(plan)
    refused = False
    for one, other, where in collisions:
        roots = [plan.index.find(one), plan.index.find(other)]
        renamed = [root for root in roots if root in plan.names]
        if any(root in plan.entries and root not in plan.names for root in roots) or not renamed:
            continue  # one of them was refused in this round
        chosen = min(renamed, key=lambda root: (root[0] != "local", root[0] != "attribute"))
        rest = one if plan.index.find(one) != chosen else other
        plan.refuse(chosen, f"{plan.names[chosen]} collides with {'.'.join(rest[1:])} ({where})")
        refused = True
    return refused


def _collide_in_file(
    plan: Plan, file: SourceFile, new_names: frozenset[str]
) -> Iterator[tuple[Definition, Definition, str]]:
    bound: dict[Scope, dict[str, Definition]] = {}
    for scope in file.root.walk():
        bound[scope] = {}
        for name in sorted(scope.bindings):
            if name in scope.nonlocal_names or name in scope.global_names:
                continue
            definition = plan.index.define(file, scope, name)
            new = plan.new_name(definition)
            other = bound[scope].setdefault(new, definition)
            if plan.index.find(other) != plan.index.find(definition):
                yield definition, other, f"{file.path}:{scope.line}"
    for occurrence in file.names:
        scope, name = occurrence.scope, occurrence.name
        owner = scope.find_binding(name, occurrence.place)
        definition = ("builtin", name) if owner is None else plan.index.define(file, owner, name)
        new = name if owner is None else plan.new_name(definition)
        if new == name and name not in new_names:
            continue
        where = f"{file.path}:{occurrence.place[0]}"
        walked: Scope | None = scope
        while walked is not None and walked is not owner:
            if walked is scope or walked.kind != "class":
                other = bound[walked].get(new)
                if other is not None and other != definition:
                    yield definition, other, where
            walked = walked.parent


def _collide_in_classes(plan: Plan) -> Iterator[tuple[Definition, Definition, str]]:
    changed = {root for root in plan.names if root[0] != "local"}
    new_names = {plan.names[root] for root in changed}
    for info in plan.index.types.infos.values():
        bound: dict[str, Definition] = {}
        for base in info.mro:
            is_own = base.fullname in plan.index.types.infos
            for name in base.names:
                if is_own:
                    definition: Definition = plan.index.find(("attribute", base.fullname, name))
                    new = plan.names.get(definition, name)
                else:
                    definition, new = ("foreign", base.fullname, name), name
                if new not in new_names:
                    continue
                other = bound.setdefault(new, definition)
                if other != definition and (other in changed or definition in changed):
                    yield other, definition, info.fullname


def _settle_unknown(plan: Plan) -> None:
    """Uses of unknown owners follow if all that they can mean has the same new name."""
    attributes: dict[str, set[Definition]] = defaultdict(set)
    keywords: dict[str, set[Definition]] = defaultdict(set)
    for info in plan.index.types.infos.values():
        for name in info.names:
            root = plan.index.find(("attribute", info.fullname, name))
            attributes[name].add(root)
            if info.fullname.startswith(f"{OWN}."):
                keywords[name].add(root)
    for file in plan.index.files.values():
        if file.module.startswith(OWN):
            for scope in file.root.walk():
                for name in scope.parameters if scope.kind == "function" else ():
                    keywords[name].add(plan.index.find(plan.index.define(file, scope, name)))
    left: dict[str, list[str]] = defaultdict(list)
    for unknown in plan.index.unknown:
        is_keyword = unknown.what.startswith("keyword")
        meant = (keywords if is_keyword else attributes)[unknown.name]
        new = {plan.names.get(root) for root in meant}
        if not any(new) or (unknown.name in COMMON_ATTRIBUTES and not is_keyword):
            continue
        is_likely = is_keyword or not unknown.path.startswith("src")  # src is typed: its unknown objects are foreign
        if len(new) == 1 and is_likely and not unknown.what.startswith("not"):
            plan.assumed.append((unknown, new.pop() or ""))
        else:
            names = ", ".join(sorted(name or "(stays)" for name in new))
            left[f"{unknown.name}: {unknown.what}; could be {names}"].append(f"{unknown.path}:{unknown.place[0]}")
    plan.notes += plan.index.computed
    renamed = {name for name, roots in attributes.items() if all(root in plan.names for root in roots)}
    for file in plan.index.files.values():
        plan.notes += _list_texts(file, renamed, plan.index.places[str(file.path)])
    plan.notes += [f"{what}: {' '.join(places)}" for what, places in sorted(left.items())]


def _list_texts(file: SourceFile, renamed: set[str], places: Mapping[Place, Definition]) -> Iterator[str]:
    """Strings that are no longer the name of any attribute, in a file that may use them as such."""
    if "getattr(" not in file.text and "**" not in file.text:
        return
    for node in ast.walk(file.tree):
        name = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if name in renamed and (node.lineno, node.col_offset + 1) not in places:
            yield f"{file.path}:{node.lineno}: text {name!r} was the name of an attribute"
