"""Keeps ignored fields at their live values, for the sync option RespectIgnoreDifferences.

In: a desired manifest, its live one, the diff options. Out: the manifest to apply. Never: takes over server-owned
fields.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.annotations import LAST_APPLIED
from argosy.gitops.diff.diff_options import CompareRules
from argosy.gitops.diff.differences import identity, keys_of
from argosy.gitops.diff.field_subset import same
from argosy.gitops.diff.ignored_fields import NOTHING_REMOVED, Question, Removed, without
from argosy.gitops.diff.normalization import normalizer_for
from argosy.gitops.diff.structured_merge_diff import without_trusted
from argosy.gitops.diff.typed_manifests import ShapeOf, no_shape, shape_for
from argosy.kube.objects import Manifest, key_of
from argosy.kube.patch.field_comparison import field_shape
from argosy.kube.patch.merge_schema import Shape

# Besides status: a resourceVersion would be a precondition, and only servers write the others.
_SERVERS: Final = (
    ("status",),
    *(
        ("metadata", name)
        for name in ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")
    ),
    ("metadata", "annotations", LAST_APPLIED),
)


def respecting(
    desired: Manifest,
    live: Manifest | None,
    rules: CompareRules,
    *,
    removed: Removed = NOTHING_REMOVED,
    shape_of: ShapeOf = no_shape,
) -> Manifest:
    """Return desired with the live values of ignored fields; ignored fields that live does not have are removed."""
    if live is None:
        return desired
    ignored, shape = normalizer_for(rules).ignored(key_of(desired)), shape_for(desired, shape_of)
    sides = without_trusted(desired, live, ignored.managers, shape)
    wanted, bare = (ignored.without(side, removed) for side in sides)
    for tokens in _SERVERS:
        live, bare = without(live, tokens), without(bare, tokens)
    made: Manifest = wanted if same(bare, live) else _restored(wanted, bare, live, shape)
    return made


def respect_questions(
    desired: Manifest, live: Manifest | None, rules: CompareRules, *, shape_of: ShapeOf = no_shape
) -> list[Question]:
    """Return the inputs that the real jq must process before."""
    ignored = normalizer_for(rules).ignored(key_of(desired))
    if live is None or not ignored.needs_confined:
        return []
    sides = without_trusted(desired, live, ignored.managers, shape_for(desired, shape_of))
    return [asked for side in sides if (asked := ignored.question(side)) is not None]


def _restored(wanted: Any, bare: Any, live: Any, shape: Shape | None) -> Any:
    """Add to `desired` all that live has and `reduced_live`, live without the ignored fields, has not."""
    if isinstance(bare, dict) and isinstance(live, dict):
        made = dict(wanted) if isinstance(wanted, dict) else {}
        for name, value in live.items():
            if name not in bare:
                made[name] = value
            elif not same(bare[name], value):
                made[name] = _restored(made.get(name), bare[name], value, field_shape(shape, name))
        return made
    if isinstance(bare, list) and isinstance(live, list):
        return _restored_list(wanted if isinstance(wanted, list) else [], bare, live, shape)
    return live


def _restored_list(wanted: list[Any], bare: list[Any], live: list[Any], shape: Shape | None) -> list[Any]:
    """Match elements by key; without keys by index, or take live if elements were ignored."""
    items = shape.items() if shape is not None and shape.kind == "list" else None
    names = keys_of([*wanted], live, shape) and keys_of(bare, live, shape)
    if not names:
        if len(bare) != len(live):
            return live
        paired = [_restored(mine, left, lived, items) for mine, left, lived in zip(wanted, bare, live)]
        return [*paired, *wanted[len(paired) :]]
    kept = {identity(item, names, shape): item for item in bare}
    known = {identity(item, names, shape): item for item in live}
    made = {identity(item, names, shape): item for item in wanted}
    for mark, item in known.items():
        if mark not in kept:
            made[mark] = item
        elif mark in made:
            made[mark] = _restored(made[mark], kept[mark], item, items)
    return [*made.values()]
