"""Arbitrary patches and configurations give a result or a PatchError and never change the live object."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import PatchError
from argosy.kube.patch import json_patch, merge_patch, strategic_merge, three_way
from argosy.kube.patch.managed_fields import record_update
from argosy.kube.patch.server_side_apply import FieldConflicts, apply
from support.examples import examples
from support.patch_shapes import POD

words = st.sampled_from(
    [
        *("apiVersion", "kind", "metadata", "spec", "name", "namespace", "containers", "image", "env", "ports"),
        *("finalizers", "labels", "volumes", "strategy", "type", "managedFields", "manager", "operation"),
        *("fieldsType", "fieldsV1", "f:a", "k:{", "$patch", "$retainKeys", "$setElementOrder/containers"),
        *("$setElementOrder/finalizers", "$deleteFromPrimitiveList/finalizers", "$setElementOrder"),
    ]
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats(allow_nan=False)
    | words
    | st.sampled_from(["v1", "Pod", "a", "delete", "replace", "merge", "Apply", "FieldsV1", "2026-01-01T00:00:00Z"])
)
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4), max_leaves=25
)
documents = st.dictionaries(words, anything, max_size=5)
LIVE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["a", "b"]},
    "spec": {
        "containers": [{"name": "a", "image": "i", "env": [{"name": "X"}]}, {"name": "b"}],
        "volumes": [{"name": "a", "emptyDir": {}}],
        "strategy": {"type": "a"},
    },
}
WRITE: dict[str, Any] = {"manager": "m", "api_version": "v1", "now": "", "shape": POD}
OWNED = record_update(None, LIVE, empty_object=None, subresource="", **WRITE)
BEFORE = copy.deepcopy(OWNED)


@settings(max_examples=examples())
@given(documents)
def test_any_strategic_patch_is_applied_or_refused(patch: dict[str, Any]) -> None:
    for document in (LIVE, patch):
        with contextlib.suppress(PatchError):
            strategic_merge.apply(document, patch, POD)
    assert merge_patch.apply(LIVE, patch) is not None
    assert BEFORE == OWNED


@settings(max_examples=examples())
@given(documents, documents)
def test_three_way_patch_of_any_documents_is_built_or_refused(one: dict[str, Any], other: dict[str, Any]) -> None:
    with contextlib.suppress(PatchError):
        three_way.build_three_way_strategic_patch(one, other, LIVE, POD, overwrite=False)
    with contextlib.suppress(PatchError):
        three_way.build_three_way_strategic_patch(LIVE, one, other, POD)
    assert isinstance(three_way.build_three_way_merge_patch(one, other, LIVE), dict)


@settings(max_examples=examples())
@given(documents)
def test_server_side_apply_of_any_configuration_is_applied_or_refused(config: dict[str, Any]) -> None:
    for live in (None, LIVE, OWNED):
        with contextlib.suppress(PatchError, FieldConflicts):
            apply(live, {"apiVersion": "v1", "kind": "Pod"} | config, force=False, **WRITE)
    assert BEFORE == OWNED


@settings(max_examples=examples())
@given(documents, st.lists(st.dictionaries(words, anything, max_size=4) | anything, max_size=3))
def test_any_managed_fields_are_read_or_ignored(spec: dict[str, Any], entries: list[Any]) -> None:
    for sent in (entries, entries[0] if entries else None):
        new = LIVE | {"spec": spec, "metadata": {"name": "p", "managedFields": sent}}
        assert record_update(OWNED, new, empty_object=None, subresource="", **WRITE)["spec"] == spec
        assert record_update(None, new, empty_object=None, subresource="", **WRITE)["spec"] == spec


operations = st.fixed_dictionaries(
    {},
    optional={
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"]) | leaves,
        "path": st.sampled_from(["", "/", "/spec", "/spec/containers/0", "/spec/containers/-", "spec", "/metadata/x"])
        | anything,
        "from": st.sampled_from(["", "/spec", "/spec/containers/1", "/metadata"]) | anything,
        "value": anything,
    },
)


@settings(max_examples=examples())
@given(st.lists(operations | anything, max_size=4))
def test_any_json_patch_is_applied_or_refused(patch: list[Any]) -> None:
    with contextlib.suppress(PatchError):
        json_patch.apply(OWNED, patch)
    assert BEFORE == OWNED
