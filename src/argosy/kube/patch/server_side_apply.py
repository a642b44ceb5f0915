"""Server-side apply: merges a configuration into the live manifest and makes the applier own its fields.

In: live manifest, configuration, field manager. Out: the merged manifest with its managedFields, or FieldConflicts.
Never: mutates its input; reads the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from argosy.errors import Conflict, PatchError
from argosy.kube.names import split_api_version
from argosy.kube.objects import Manifest
from argosy.kube.patch.field_comparison import EMPTIED, compare, owned, with_named_parents
from argosy.kube.patch.field_sets import FieldSet, Tree, difference, intersection, path_text, union, without
from argosy.kube.patch.go_format import quote
from argosy.kube.patch.last_applied import allowed_conflicts, refreshed
from argosy.kube.patch.managed_fields import (
    UNOWNED,
    Manager,
    bare,
    fit_shape,
    lose,
    managers_of,
    take_over,
    with_managers,
)
from argosy.kube.patch.merge_schema import Shape
from argosy.kube.patch.typed_merge import merge, remove, swept
from argosy.kube.patch.typed_validation import faults, summary

BEFORE_FIRST_APPLY: Final = "before-first-apply"
KUBECTL: Final = "kubectl"


class FieldConflict(NamedTuple):
    manager: str
    operation: str
    api_version: str
    path: str
    subresource: str = ""

    @property
    def owner(self) -> str:
        """The owner as the server writes it in messages."""
        name = quote(self.manager)
        if self.subresource:
            name += f" with subresource {quote(self.subresource)}"
        return f"{name} using {self.api_version}" if self.operation == "Update" else name

    @property
    def cause(self) -> dict[str, str]:
        return {"reason": "FieldManagerConflict", "message": f"conflict with {self.owner}", "field": self.path}

    @property
    def place(self) -> str:
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
        self.causes = [each.cause for each in conflicts]
        super().__init__(_sentence(conflicts), reason="Conflict", details={"causes": self.causes})


def _sentence(conflicts: Sequence[FieldConflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: conflict with {conflicts[0].owner}: {conflicts[0].path}"
    lines: list[str] = []
    by_owner: dict[str, list[FieldConflict]] = {}
    for each in conflicts:
        by_owner.setdefault(each.place, []).append(each)
    for place in sorted(by_owner):
        lines.append(f"conflicts with {by_owner[place][0].owner}:")
        lines += [f"- {each.path}" for each in by_owner[place]]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def apply(
    live: Manifest | None,
    config: Manifest,
    *,
    manager: str,
    force: bool,
    api_version: str,
    now: str,
    shape: Shape,
    subresource: str = "",
    zero: Manifest | None = None,
    ignored: FieldSet | None = None,
) -> Manifest:
    """Return the merged manifest. `empty_object` and `ignored_fields` are as in `record_update`.

    Raises PatchError if the configuration does not match its schema: `where` is the prefix of the server's message and
    `message` is the remainder.
    """
    _check(config, api_version, shape)
    content = bare(live) if live is not None else {}
    managers = fit_shape(managers_of(live), shape) if live is not None else []
    if live is not None and not managers:
        first = Manager(BEFORE_FIRST_APPLY, "Update", api_version, now, FieldSet(), subresource)
        managers = take_over(zero or {}, content, [], first, shape, ignored)
    applier = Manager(manager, "Apply", api_version, "", FieldSet(), subresource)
    try:
        merged, owners = _applied(content, config, managers, applier, now, shape, force, ignored)
    except FieldConflicts as found:
        if manager != KUBECTL or not _is_upgrade(found, content, api_version, shape):
            raise
        merged, owners = _applied(content, config, managers, applier, now, shape, True, ignored)
    if manager == KUBECTL:
        merged = refreshed(merged, config)
    return with_managers(merged, owners)


def _is_upgrade(found: FieldConflicts, live: Manifest, api_version: str, shape: Shape) -> bool:
    """k8s: `kubectl apply --server-side` may take over fields that `kubectl apply` wrote. Raises other conflicts."""
    allowed = allowed_conflicts(live, api_version, shape)
    if allowed is None:
        return False
    readable = {path_text(path) for path in allowed.paths()}
    rest = [each for each in found.conflicts if each.path not in readable]
    if rest:
        raise FieldConflicts(rest) from found
    return True


def _check(config: Manifest, api_version: str, shape: Shape) -> None:
    metadata = config.get("metadata") or {}
    if config.get("apiVersion") != api_version:
        raise PatchError(
            "Incorrect version specified in apply patch. "
            f"Specified patch version: {config.get('apiVersion') or ''}, expected: {api_version}"
        )
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise PatchError("metadata.managedFields must be nil")
    if found := faults(config, shape):
        group, version = split_api_version(api_version)
        named = metadata if isinstance(metadata, dict) else {}
        which = f"{named.get('namespace') or ''}/{named.get('name') or ''}"
        raise PatchError(
            summary(found),
            where=f"failed to create typed patch object ({which}; {group}/{version}, Kind={config.get('kind') or ''})",
        )


def _applied(
    live: Manifest,
    config: Manifest,
    managers: Sequence[Manager],
    applier: Manager,
    now: str,
    shape: Shape,
    force: bool,
    ignored: FieldSet | None,
) -> tuple[Manifest, list[Manager]]:
    named = owned(config, shape)
    if ignored is not None:
        named = without(named, ignored.tree)
    last = next((each for each in managers if each.identity == applier.identity), None)
    others = [each for each in managers if each is not last]
    merged: Manifest = merge(live, config, shape)
    if last is not None and difference(last.fields.tree, named):
        everybody = [named, *(each.fields.tree for each in others)]
        merged = _pruned(merged, last.fields.tree, everybody, shape)
    changes_something = merged != live
    owners = _yielding(others, live, merged, shape, force, ignored) if changes_something else others
    mine = FieldSet(difference(named, UNOWNED.tree))
    if mine:
        # k8s: the time is that of the manager's last apply that changed the object, empty if none did.
        time = now if changes_something else last.time if last is not None else ""
        owners.append(replace(applier, fields=mine, time=time))
    return merged if last is None else swept(merged), owners


def _yielding(
    others: list[Manager], live: Manifest, merged: Manifest, shape: Shape, force: bool, ignored: FieldSet | None
) -> list[Manager]:
    """Return the other managers after the change, or raise FieldConflicts."""
    if not others:
        return []
    changed, removed = compare(live, merged, shape)
    if ignored is not None:
        changed, removed = without(changed, ignored.tree), without(removed, ignored.tree)
    if not force:
        _refuse_conflicts(others, changed)
    return lose(others, FieldSet(union(changed, removed)))


def _refuse_conflicts(others: Sequence[Manager], changed: Tree) -> None:
    conflicts = [
        FieldConflict(each.name, each.operation, each.api_version, path_text(path), each.subresource)
        for each in others
        for path in FieldSet(intersection(each.fields.tree, changed)).paths()
    ]
    if conflicts:
        raise FieldConflicts(conflicts)


def _pruned(merged: Manifest, last: Tree, everybody: Sequence[Tree], shape: Shape) -> Manifest:
    """Remove fields that the applier set last time and that no manager sets now."""
    claimed: Tree = {}
    for tree in everybody:
        claimed = union(claimed, tree)
    claimed = with_named_parents(claimed, shape)
    before = with_named_parents(owned(merged, shape), shape)
    mine = with_named_parents(last, shape)
    pruned = _removed(merged, mine, shape)
    kept = union(with_named_parents(owned(pruned, shape), shape), claimed)
    pruned = _removed(merged, difference(before, kept), shape)
    after = with_named_parents(owned(pruned, shape), shape)
    # k8s: fields that no manager ever set stay.
    return _removed(merged, intersection(difference(before, after), mine), shape)


def _removed(manifest: Manifest, tree: Tree, shape: Shape) -> Manifest:
    rest: Any = remove(manifest, tree, shape)
    return {} if rest is EMPTIED else rest
