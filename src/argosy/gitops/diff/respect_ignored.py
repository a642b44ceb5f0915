"""Keeps ignored fields at their live values, for the sync option RespectIgnoreDifferences.

In: a desired manifest, its live one, the diff options. Out: the manifest to apply. Never: takes over server-owned
fields.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.annotations import LAST_APPLIED
from argosy.gitops.diff.diff_options import DiffOptions
from argosy.gitops.diff.differences import element_identity, find_element_keys
from argosy.gitops.diff.field_projection import is_same_json
from argosy.gitops.diff.go_type_round_trip import FindShape, find_manifest_shape, find_no_shape
from argosy.gitops.diff.ignored_fields import NO_JQ_RESULTS, JqQuestion, JqResults, remove_field
from argosy.gitops.diff.normalization import find_normalizer
from argosy.gitops.diff.server_side_field_ownership_diff import remove_trusted_fields
from argosy.kube.objects import Manifest, key_of
from argosy.kube.patch.changed_field_path_trees import field_shape
from argosy.kube.patch.merge_schema_protocol import Shape

# Besides status: a resourceVersion would be a precondition, and only servers write the others.
_SERVER_OWNED_PATHS: Final = (
    ("status",),
    *(
        ("metadata", name)
        for name in ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")
    ),
    ("metadata", "annotations", LAST_APPLIED),
)


def keep_ignored_live_values(
    desired: Manifest,
    live: Manifest | None,
    options: DiffOptions,
    *,
    jq_results: JqResults = NO_JQ_RESULTS,
    find_shape: FindShape = find_no_shape,
) -> Manifest:
    """Return desired with the live values of ignored fields; ignored fields that live does not have are removed."""
    if live is None:
        return desired
    ignored, shape = find_normalizer(options).ignored_fields(key_of(desired)), find_manifest_shape(desired, find_shape)
    sides = remove_trusted_fields(desired, live, ignored.managers, shape)
    reduced_desired, reduced_live = (ignored.remove_from(side, jq_results) for side in sides)
    for tokens in _SERVER_OWNED_PATHS:
        live, reduced_live = remove_field(live, tokens), remove_field(reduced_live, tokens)
    manifest_to_apply: Manifest = (
        reduced_desired
        if is_same_json(reduced_live, live)
        else _restore_ignored(reduced_desired, reduced_live, live, shape)
    )
    return manifest_to_apply


def list_respect_jq_questions(
    desired: Manifest, live: Manifest | None, options: DiffOptions, *, find_shape: FindShape = find_no_shape
) -> list[JqQuestion]:
    """Return the inputs that the real jq must process before."""
    ignored = find_normalizer(options).ignored_fields(key_of(desired))
    if live is None or not ignored.needs_real_jq:
        return []
    sides = remove_trusted_fields(desired, live, ignored.managers, find_manifest_shape(desired, find_shape))
    return [question for side in sides if (question := ignored.build_question(side)) is not None]


def _restore_ignored(desired: Any, reduced_live: Any, live: Any, shape: Shape | None) -> Any:
    """Add to `desired` all that live has and `reduced_live`, live without the ignored fields, has not."""
    if isinstance(reduced_live, dict) and isinstance(live, dict):
        restored = dict(desired) if isinstance(desired, dict) else {}
        for name, value in live.items():
            if name not in reduced_live:
                restored[name] = value
            elif not is_same_json(reduced_live[name], value):
                restored[name] = _restore_ignored(
                    restored.get(name), reduced_live[name], value, field_shape(shape, name)
                )
        return restored
    if isinstance(reduced_live, list) and isinstance(live, list):
        return _restore_ignored_elements(desired if isinstance(desired, list) else [], reduced_live, live, shape)
    return live


def _restore_ignored_elements(
    desired: list[Any], reduced_live: list[Any], live: list[Any], shape: Shape | None
) -> list[Any]:
    """Match elements by key; without keys by index, or take live if elements were ignored."""
    items = shape.items() if shape is not None and shape.kind == "list" else None
    names = find_element_keys([*desired], live, shape) and find_element_keys(reduced_live, live, shape)
    if not names:
        if len(reduced_live) != len(live):
            return live
        paired = [
            _restore_ignored(desired_item, reduced_item, live_item, items)
            for desired_item, reduced_item, live_item in zip(desired, reduced_live, live)
        ]
        return [*paired, *desired[len(paired) :]]
    reduced_by_key = {element_identity(item, names, shape): item for item in reduced_live}
    live_by_key = {element_identity(item, names, shape): item for item in live}
    restored_by_key = {element_identity(item, names, shape): item for item in desired}
    for element_key, item in live_by_key.items():
        if element_key not in reduced_by_key:
            restored_by_key[element_key] = item
        elif element_key in restored_by_key:
            restored_by_key[element_key] = _restore_ignored(
                restored_by_key[element_key], reduced_by_key[element_key], item, items
            )
    return [*restored_by_key.values()]
