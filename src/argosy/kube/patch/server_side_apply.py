"""Server-side apply: merges a configuration into the live manifest and makes the applier own its fields.

In: live manifest, configuration, field manager. Out: the merged manifest with its managedFields, or FieldConflicts.
Never: mutates its input; reads the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from argosy.errors import Conflict, PatchError
from argosy.kube.objects import Manifest
from argosy.kube.objects.go_format import quote
from argosy.kube.patch.applied_configuration_shape_check import find_schema_errors, format_errors
from argosy.kube.patch.changed_field_path_trees import EMPTIED, add_declared_parents, build_owned_tree, compare
from argosy.kube.patch.field_sets import FieldSet, Tree, difference, format_path, intersection, remove_subtrees, union
from argosy.kube.patch.last_applied_annotation import find_allowed_conflicts, update_last_applied
from argosy.kube.patch.managed_fields import (
    UNOWNED_FIELDS,
    Manager,
    fit_managers_to_shape,
    read_managers,
    remove_owned_fields,
    take_over,
    with_managers,
    without_managed_fields,
)
from argosy.kube.patch.merge_schema_protocol import Shape
from argosy.kube.patch.typed_merge import drop_emptied, merge, remove
from argosy.kube.resource_key import split_api_version

BEFORE_FIRST_APPLY_MANAGER: Final = "before-first-apply"
KUBECTL_MANAGER: Final = "kubectl"


class FieldConflict(NamedTuple):
    manager: str
    operation: str
    api_version: str
    path: str
    subresource: str = ""

    @property
    def owner_description(self) -> str:
        """The owner as the server writes it in messages."""
        name = quote(self.manager)
        if self.subresource:
            name += f" with subresource {quote(self.subresource)}"
        return f"{name} using {self.api_version}" if self.operation == "Update" else name

    @property
    def cause(self) -> dict[str, str]:
        return {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {self.owner_description}",
            "field": self.path,
        }

    @property
    def owner_sort_key(self) -> str:
        """k8s: owners are sorted by the JSON text of their managedFields entry."""
        parts = [f'"manager":{quote(self.manager)}', f'"operation":"{self.operation}"']
        if self.operation == "Update":
            parts.append(f'"apiVersion":{quote(self.api_version)}')
        if self.subresource:
            parts.append(f'"subresource":{quote(self.subresource)}')
        return ",".join(parts)


class FieldConflicts(Conflict):
    """Other managers own fields that the configuration would change: HTTP 409; `force` overrides it."""

    def __init__(self, conflicts: Sequence[FieldConflict]) -> None:
        self.conflicts = list(conflicts)
        self.causes = [conflict.cause for conflict in conflicts]
        super().__init__(_format_conflicts(conflicts), reason="Conflict", details={"causes": self.causes})


def _format_conflicts(conflicts: Sequence[FieldConflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: conflict with {conflicts[0].owner_description}: {conflicts[0].path}"
    lines: list[str] = []
    by_owner: dict[str, list[FieldConflict]] = {}
    for conflict in conflicts:
        by_owner.setdefault(conflict.owner_sort_key, []).append(conflict)
    for sort_key in sorted(by_owner):
        lines.append(f"conflicts with {by_owner[sort_key][0].owner_description}:")
        lines += [f"- {conflict.path}" for conflict in by_owner[sort_key]]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def apply(
    live: Manifest | None,
    configuration: Manifest,
    *,
    manager: str,
    force: bool,
    api_version: str,
    now: str,
    shape: Shape,
    subresource: str = "",
    empty_object: Manifest | None = None,
    ignored_fields: FieldSet | None = None,
) -> Manifest:
    """Return the merged manifest. `empty_object` and `ignored_fields` are as in `record_update`.

    Raises PatchError if the configuration does not match its schema: `where` is the prefix of the server's message and
    `message` is the remainder.
    """
    _check_configuration(configuration, api_version, shape)
    content = without_managed_fields(live) if live is not None else {}
    managers = fit_managers_to_shape(read_managers(live), shape) if live is not None else []
    if live is not None and not managers:
        first_manager = Manager(BEFORE_FIRST_APPLY_MANAGER, "Update", api_version, now, FieldSet(), subresource)
        managers = take_over(empty_object or {}, content, [], first_manager, shape, ignored_fields)
    applier = Manager(manager, "Apply", api_version, "", FieldSet(), subresource)
    try:
        merged, owners = _merge_and_own(content, configuration, managers, applier, now, shape, force, ignored_fields)
    except FieldConflicts as conflicts:
        if manager != KUBECTL_MANAGER or not _can_take_over_client_side_fields(conflicts, content, api_version, shape):
            raise
        merged, owners = _merge_and_own(content, configuration, managers, applier, now, shape, True, ignored_fields)
    if manager == KUBECTL_MANAGER:
        merged = update_last_applied(merged, configuration)
    return with_managers(merged, owners)


def _can_take_over_client_side_fields(
    conflicts: FieldConflicts, live: Manifest, api_version: str, shape: Shape
) -> bool:
    """k8s: `kubectl apply --server-side` may take over fields that `kubectl apply` wrote. Raises other conflicts."""
    allowed = find_allowed_conflicts(live, api_version, shape)
    if allowed is None:
        return False
    allowed_paths = {format_path(path) for path in allowed.paths()}
    refused = [conflict for conflict in conflicts.conflicts if conflict.path not in allowed_paths]
    if refused:
        raise FieldConflicts(refused) from conflicts
    return True


def _check_configuration(configuration: Manifest, api_version: str, shape: Shape) -> None:
    metadata = configuration.get("metadata") or {}
    if configuration.get("apiVersion") != api_version:
        raise PatchError(
            "Incorrect version specified in apply patch. "
            f"Specified patch version: {configuration.get('apiVersion') or ''}, expected: {api_version}"
        )
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise PatchError("metadata.managedFields must be nil")
    if errors := find_schema_errors(configuration, shape):
        group, version = split_api_version(api_version)
        object_metadata = metadata if isinstance(metadata, dict) else {}
        object_name = f"{object_metadata.get('namespace') or ''}/{object_metadata.get('name') or ''}"
        raise PatchError(
            format_errors(errors),
            where=f"failed to create typed patch object ({object_name}; {group}/{version}, "
            f"Kind={configuration.get('kind') or ''})",
        )


def _merge_and_own(
    live: Manifest,
    configuration: Manifest,
    managers: Sequence[Manager],
    applier: Manager,
    now: str,
    shape: Shape,
    force: bool,
    ignored_fields: FieldSet | None,
) -> tuple[Manifest, list[Manager]]:
    applied_fields = build_owned_tree(configuration, shape)
    if ignored_fields is not None:
        applied_fields = remove_subtrees(applied_fields, ignored_fields.tree)
    previous = next((other for other in managers if other.identity == applier.identity), None)
    others = [other for other in managers if other is not previous]
    merged: Manifest = merge(live, configuration, shape)
    if previous is not None and difference(previous.fields.tree, applied_fields):
        all_owned_trees = [applied_fields, *(other.fields.tree for other in others)]
        merged = _prune_unclaimed(merged, previous.fields.tree, all_owned_trees, shape)
    changes_something = merged != live
    owners = (
        _take_fields_from_others(others, live, merged, shape, force, ignored_fields) if changes_something else others
    )
    own_fields = FieldSet(difference(applied_fields, UNOWNED_FIELDS.tree))
    if own_fields:
        # k8s: the time is that of the manager's last apply that changed the object, empty if none did.
        time = now if changes_something else previous.time if previous is not None else ""
        owners.append(applier._replace(fields=own_fields, time=time))
    return merged if previous is None else drop_emptied(merged), owners


def _take_fields_from_others(
    others: list[Manager], live: Manifest, merged: Manifest, shape: Shape, force: bool, ignored_fields: FieldSet | None
) -> list[Manager]:
    """Return the other managers after the change, or raise FieldConflicts."""
    if not others:
        return []
    changed, removed = compare(live, merged, shape)
    if ignored_fields is not None:
        changed, removed = remove_subtrees(changed, ignored_fields.tree), remove_subtrees(removed, ignored_fields.tree)
    if not force:
        _raise_on_conflicts(others, changed)
    return remove_owned_fields(others, FieldSet(union(changed, removed)))


def _raise_on_conflicts(others: Sequence[Manager], changed: Tree) -> None:
    conflicts = [
        FieldConflict(other.name, other.operation, other.api_version, format_path(path), other.subresource)
        for other in others
        for path in FieldSet(intersection(other.fields.tree, changed)).paths()
    ]
    if conflicts:
        raise FieldConflicts(conflicts)


def _prune_unclaimed(merged: Manifest, previous_tree: Tree, owned_trees: Sequence[Tree], shape: Shape) -> Manifest:
    """Remove fields that the applier set last time and that no manager sets now."""
    claimed: Tree = {}
    for tree in owned_trees:
        claimed = union(claimed, tree)
    claimed = add_declared_parents(claimed, shape)
    all_fields = add_declared_parents(build_owned_tree(merged, shape), shape)
    previous_with_parents = add_declared_parents(previous_tree, shape)
    pruned = _remove_fields(merged, previous_with_parents, shape)
    kept = union(add_declared_parents(build_owned_tree(pruned, shape), shape), claimed)
    pruned = _remove_fields(merged, difference(all_fields, kept), shape)
    remaining_fields = add_declared_parents(build_owned_tree(pruned, shape), shape)
    # k8s: fields that no manager ever set stay.
    return _remove_fields(merged, intersection(difference(all_fields, remaining_fields), previous_with_parents), shape)


def _remove_fields(manifest: Manifest, tree: Tree, shape: Shape) -> Manifest:
    remaining: Any = remove(manifest, tree, shape)
    return {} if remaining is EMPTIED else remaining
