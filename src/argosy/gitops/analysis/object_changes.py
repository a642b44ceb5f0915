"""Compares an Application's objects between two states.

In: manifests before and after, with file locations. Out: one change per object that differs. Never: I/O; a value of a
Secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

from argosy.gitops.analysis.repository import Fault, Item
from argosy.gitops.analysis.violation import Place
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import Difference, Pair
from argosy.gitops.diff import differences, masked_pair
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, dump
from argosy.kube.schema.builtin_kinds import BUILT_IN

HASH: Final = re.compile(r"(?<=.)-[bcdfghkmt24-9]{10}$")  # argo: suffix that Kustomize appends to generated names
_CLUSTER_WIDE: Final = frozenset(each.group_kind for each in BUILT_IN if not each.namespaced)


class Becomes(StrEnum):
    NEW = "+"
    OTHER = "~"
    GONE = "-"


@dataclass(frozen=True)
class Change:
    """One object that changed; `before` or `after` is None if it does not exist on that side."""

    key: ResourceKey
    before: Item | None
    after: Item | None
    fields: tuple[Difference, ...] = ()  # masked; `live` is before, `desired` after
    written: Mapping[str, Place] = field(default_factory=dict)  # by pointer, as far as looked up

    @property
    def name(self) -> str:
        return f"{self.key.kind}/{self.key.name}"

    @property
    def becomes(self) -> Becomes:
        if self.before is None:
            return Becomes.NEW
        return Becomes.GONE if self.after is None else Becomes.OTHER

    @cached_property
    def texts(self) -> tuple[str, str]:
        """Both sides as YAML, Secrets masked; empty if the side is missing."""
        shown = masked_pair(_pair(self.key, self.before, self.after))
        return _text(shown.live), _text(shown.desired)

    def place(self, pointer: str = "") -> Place:
        """Return where a field is written now, or where the object was."""
        if pointer in self.written:
            return self.written[pointer]
        item = self.after or self.before
        return item.locate(pointer) if item is not None else Place("")

    def located(self) -> Change:
        """Return a copy with all locations looked up, while the file trees are open."""
        pointers = ["", *(each.pointer for each in self.fields if each.has_desired)]
        return replace(self, written={pointer: self.place(pointer) for pointer in pointers})


@dataclass(frozen=True)
class Touched:
    """An Application, or a folder that no Application uses, with all its changed objects."""

    name: str
    before: Application | None
    after: Application | None
    changes: tuple[Change, ...] = ()
    kept: tuple[Item, ...] = ()  # objects that do not change
    fault: Fault | None = None  # why it cannot be rendered after the change
    fault_before: Fault | None = None
    environment: str = ""
    is_folder: bool = False  # no Application uses it
    file: str = ""  # the file that declares the Application
    notes: tuple[str, ...] = field(default=())

    @property
    def app(self) -> Application | None:
        return self.after or self.before

    def counts(self) -> Mapping[Becomes, int]:
        return {which: sum(each.becomes is which for each in self.changes) for which in Becomes}

    @property
    def is_quiet(self) -> bool:
        return not (self.changes or self.fault or self.fault_before)


def settled(item: Item, namespace: str) -> ResourceKey:
    """Return the key in the destination; an object with generateName gets its prefix and `*` as name."""
    key = item.key
    name = key.name or f"{item.text('metadata', 'generateName')}*"
    is_wide = GroupKind(key.group, key.kind) in _CLUSTER_WIDE
    return key._replace(name=name, namespace="" if is_wide else key.namespace or namespace)


def changes(
    before: Iterable[Item], after: Iterable[Item], namespaces: tuple[str, str] = ("", "")
) -> tuple[list[Change], list[Item]]:
    """Return the objects that differ, by kind and name, and those that do not. `namespaces`: default namespace of each
    side.
    """
    old = {settled(item, namespaces[0]): item for item in before}
    new = {settled(item, namespaces[1]): item for item in after}
    found, kept = [], []
    for gone, come in _renewed(old, new).items():
        was, now = old.pop(gone), new.pop(come)
        found.append(Change(come, was, now, tuple(field_changes(come, was.manifest, now.manifest))))
    for key in sorted(old.keys() | new.keys(), key=lambda one: (one.kind, one.namespace, one.name, one.group)):
        one, other = old.get(key), new.get(key)
        if one is not None and other is not None:
            fields = field_changes(key, one.manifest, other.manifest)
            if not fields:
                kept.append(other)
                continue
            found.append(Change(key, one, other, tuple(fields)))
        else:
            found.append(Change(key, one, other))
    return sorted(found, key=lambda each: (each.key.kind, each.key.namespace, each.key.name)), kept


def _renewed(old: Mapping[ResourceKey, Item], new: Mapping[ResourceKey, Item]) -> dict[ResourceKey, ResourceKey]:
    """Match ConfigMaps and Secrets whose names differ only in the content hash."""
    gone, come = old.keys() - new.keys(), new.keys() - old.keys()
    stems: dict[ResourceKey, list[ResourceKey]] = {}
    for key in come:
        if stem := _stem(key):
            stems.setdefault(stem, []).append(key)
    pairs = {key: stems[stem] for key in gone if (stem := _stem(key)) and stem in stems}
    taken = [found[0] for found in pairs.values() if len(found) == 1]
    return {key: found[0] for key, found in pairs.items() if len(found) == 1 and taken.count(found[0]) == 1}


def _stem(key: ResourceKey) -> ResourceKey | None:
    stem = HASH.sub("", key.name)
    return key._replace(name=stem) if key.kind in ("ConfigMap", "Secret") and stem != key.name else None


def field_changes(key: ResourceKey, before: Manifest, after: Manifest) -> Sequence[Difference]:
    return () if before == after else differences(_both(key, before, after))


def _both(key: ResourceKey, before: Manifest | None, after: Manifest | None) -> Pair:
    return Pair(key, after, before, True, after, before)


def _pair(key: ResourceKey, before: Item | None, after: Item | None) -> Pair:
    return _both(key, before.manifest if before else None, after.manifest if after else None)


def _text(manifest: Manifest | None) -> str:
    if manifest is None:
        return ""
    metadata = manifest.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        manifest = {**manifest, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}
    return dump(manifest)
