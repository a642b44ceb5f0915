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

from argosy.gitops.analysis.repository_view import ManifestWithLocations, RenderFailure
from argosy.gitops.analysis.rule_violation import FileLocation
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import FieldDifference, Pair
from argosy.gitops.diff import list_differences, mask_pair
from argosy.kube.objects import Manifest, dump_yaml
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES

KUSTOMIZE_HASH_SUFFIX: Final = re.compile(
    r"(?<=.)-[bcdfghkmt24-9]{10}$"
)  # argo: suffix that Kustomize appends to generated names
_CLUSTER_SCOPED_KINDS: Final = frozenset(
    resource.group_kind for resource in BUILTIN_RESOURCES if not resource.namespaced
)


class ChangeType(StrEnum):
    ADDED = "+"
    MODIFIED = "~"
    REMOVED = "-"


@dataclass(frozen=True)
class ObjectChange:
    """One object that changed; `before` or `after` is None if it does not exist on that side."""

    key: ResourceKey
    before: ManifestWithLocations | None
    after: ManifestWithLocations | None
    fields: tuple[FieldDifference, ...] = ()  # masked; `live` is before, `desired` after
    locations: Mapping[str, FileLocation] = field(default_factory=dict)  # by pointer, as far as looked up

    @property
    def name(self) -> str:
        return f"{self.key.kind}/{self.key.name}"

    @property
    def change_type(self) -> ChangeType:
        if self.before is None:
            return ChangeType.ADDED
        return ChangeType.REMOVED if self.after is None else ChangeType.MODIFIED

    @cached_property
    def yaml_texts(self) -> tuple[str, str]:
        """Both sides as YAML, Secrets masked; empty if the side is missing."""
        masked = mask_pair(_build_item_pair(self.key, self.before, self.after))
        return _dump_manifest(masked.live), _dump_manifest(masked.desired)

    def find_location(self, pointer: str = "") -> FileLocation:
        """Return where a field is written now, or where the object was."""
        if pointer in self.locations:
            return self.locations[pointer]
        item = self.after or self.before
        return item.locate(pointer) if item is not None else FileLocation("")

    def with_locations(self) -> ObjectChange:
        """Return a copy with all locations looked up, while the file trees are open."""
        pointers = ["", *(field.pointer for field in self.fields if field.has_desired)]
        return replace(self, locations={pointer: self.find_location(pointer) for pointer in pointers})


@dataclass(frozen=True)
class ApplicationChange:
    """An Application, or a folder that no Application uses, with all its changed objects."""

    name: str
    before: Application | None
    after: Application | None
    changes: tuple[ObjectChange, ...] = ()
    unchanged: tuple[ManifestWithLocations, ...] = ()  # objects that do not change
    render_failure: RenderFailure | None = None  # why it cannot be rendered after the change
    render_failure_before: RenderFailure | None = None
    environment: str = ""
    is_folder: bool = False  # no Application uses it
    file: str = ""  # the file that declares the Application
    notes: tuple[str, ...] = field(default=())

    @property
    def app(self) -> Application | None:
        return self.after or self.before

    def count_by_type(self) -> Mapping[ChangeType, int]:
        return {
            change_type: sum(change.change_type is change_type for change in self.changes) for change_type in ChangeType
        }

    @property
    def is_unchanged(self) -> bool:
        return not (self.changes or self.render_failure or self.render_failure_before)


def build_effective_key(item: ManifestWithLocations, namespace: str) -> ResourceKey:
    """Return the key in the destination; an object with generateName gets its prefix and `*` as name."""
    key = item.key
    name = key.name or f"{item.get_string('metadata', 'generateName')}*"
    is_cluster_scoped = GroupKind(key.group, key.kind) in _CLUSTER_SCOPED_KINDS
    return key._replace(name=name, namespace="" if is_cluster_scoped else key.namespace or namespace)


def compare_objects(
    before: Iterable[ManifestWithLocations],
    after: Iterable[ManifestWithLocations],
    namespaces: tuple[str, str] = ("", ""),
) -> tuple[list[ObjectChange], list[ManifestWithLocations]]:
    """Return the objects that differ, by kind and name, and those that do not. `namespaces`: default namespace of each
    side.
    """
    old = {build_effective_key(item, namespaces[0]): item for item in before}
    new = {build_effective_key(item, namespaces[1]): item for item in after}
    object_changes, unchanged = [], []
    for old_key, new_key in _match_hashed_names(old, new).items():
        old_item, new_item = old.pop(old_key), new.pop(new_key)
        object_changes.append(
            ObjectChange(new_key, old_item, new_item, tuple(diff_fields(new_key, old_item.manifest, new_item.manifest)))
        )
    for key in sorted(
        old.keys() | new.keys(),
        key=lambda before_item: (before_item.kind, before_item.namespace, before_item.name, before_item.group),
    ):
        before_item, after_item = old.get(key), new.get(key)
        if before_item is not None and after_item is not None:
            fields = diff_fields(key, before_item.manifest, after_item.manifest)
            if not fields:
                unchanged.append(after_item)
                continue
            object_changes.append(ObjectChange(key, before_item, after_item, tuple(fields)))
        else:
            object_changes.append(ObjectChange(key, before_item, after_item))
    return sorted(
        object_changes,
        key=lambda object_change: (object_change.key.kind, object_change.key.namespace, object_change.key.name),
    ), unchanged


def _match_hashed_names(
    old: Mapping[ResourceKey, ManifestWithLocations], new: Mapping[ResourceKey, ManifestWithLocations]
) -> dict[ResourceKey, ResourceKey]:
    """Match ConfigMaps and Secrets whose names differ only in the content hash."""
    removed_keys, added_keys = old.keys() - new.keys(), new.keys() - old.keys()
    keys_by_stem: dict[ResourceKey, list[ResourceKey]] = {}
    for key in added_keys:
        if stem := _strip_hash(key):
            keys_by_stem.setdefault(stem, []).append(key)
    candidates = {
        key: keys_by_stem[stem] for key in removed_keys if (stem := _strip_hash(key)) and stem in keys_by_stem
    }
    unique_matches = [matches[0] for matches in candidates.values() if len(matches) == 1]
    return {
        key: matches[0]
        for key, matches in candidates.items()
        if len(matches) == 1 and unique_matches.count(matches[0]) == 1
    }


def _strip_hash(key: ResourceKey) -> ResourceKey | None:
    stem = KUSTOMIZE_HASH_SUFFIX.sub("", key.name)
    return key._replace(name=stem) if key.kind in ("ConfigMap", "Secret") and stem != key.name else None


def diff_fields(key: ResourceKey, before: Manifest, after: Manifest) -> Sequence[FieldDifference]:
    return () if before == after else list_differences(_build_pair(key, before, after))


def _build_pair(key: ResourceKey, before: Manifest | None, after: Manifest | None) -> Pair:
    return Pair(key, after, before, True, after, before)


def _build_item_pair(
    key: ResourceKey, before: ManifestWithLocations | None, after: ManifestWithLocations | None
) -> Pair:
    return _build_pair(key, before.manifest if before else None, after.manifest if after else None)


def _dump_manifest(manifest: Manifest | None) -> str:
    if manifest is None:
        return ""
    metadata = manifest.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        manifest = {**manifest, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}
    return dump_yaml(manifest)
