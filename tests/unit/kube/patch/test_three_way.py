from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.kube.patch import merge_patch, strategic_merge, three_way
from support.examples import examples
from support.patch_shapes import POD


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(containers), **spec}}


A, B, C = {"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c", "image": "3"}


def test_list_diff_orders_changes_and_puts_deletions_last() -> None:
    patch = three_way.build_strategic_patch(pod(A, B), pod(C, {"name": "b", "image": "9"}), POD)
    assert patch == {
        "spec": {
            "containers": [C, {"name": "b", "image": "9"}, {"name": "a", "$patch": "delete"}],
            "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}],
        }
    }


def test_reordered_list_gives_only_set_element_order() -> None:
    assert three_way.build_strategic_patch(pod(A, B), pod(B, A), POD) == {
        "spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}
    }


def test_diff_from_empty_list_contains_the_new_list() -> None:
    assert three_way.build_strategic_patch(pod(), pod(A), POD) == {"spec": {"containers": [A]}}


def test_diff_of_scalar_merge_list_adds_and_deletes_items() -> None:
    patch = three_way.build_strategic_patch(
        {"metadata": {"finalizers": ["a", "b"]}}, {"metadata": {"finalizers": ["c", "b"]}}, POD
    )
    assert patch == {
        "metadata": {
            "finalizers": ["c"],
            "$deleteFromPrimitiveList/finalizers": ["a"],
            "$setElementOrder/finalizers": ["c", "b"],
        }
    }


def test_diff_of_retain_keys_field_lists_retained_keys() -> None:
    patch = three_way.build_strategic_patch(
        {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}},
        {"spec": {"strategy": {"type": "Recreate"}}},
        POD,
    )
    assert patch == {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None, "$retainKeys": ["type"]}}}


def test_three_way_patch_deletes_only_what_the_user_dropped() -> None:
    original, modified = pod(A, B, nodeName="n"), pod(A)
    current = pod(A, B, {"name": "injected"}, nodeName="n", extra="server's")
    patch = three_way.build_three_way_strategic_patch(original, modified, current, POD)
    assert strategic_merge.apply(current, patch, POD) == pod(A, {"name": "injected"}, extra="server's")


def test_three_way_patch_reverts_a_live_change() -> None:
    patch = three_way.build_three_way_strategic_patch(pod(A), pod(A), pod({"name": "a", "image": "hacked"}), POD)
    assert patch == {
        "spec": {"containers": [{"name": "a", "image": "1"}], "$setElementOrder/containers": [{"name": "a"}]}
    }


def test_live_change_is_a_conflict_without_overwrite() -> None:
    original, modified = {"spec": {"nodeName": "x"}}, {"spec": {"nodeName": "y"}}
    with pytest.raises(three_way.ConflictingChanges, match="conflicts with changes made from original to current"):
        three_way.build_three_way_strategic_patch(original, modified, {"spec": {"nodeName": "z"}}, POD, overwrite=False)
    fine = three_way.build_three_way_strategic_patch(
        original, modified, {"spec": {"nodeName": "x", "k": 1}}, POD, overwrite=False
    )
    assert fine == {"spec": {"nodeName": "y"}}


def test_list_element_field_changed_on_both_sides_is_a_conflict() -> None:
    original = pod({"name": "a", "image": "1", "command": ["x"]})
    modified = pod({"name": "a", "image": "2", "command": ["x"]})
    current = pod({"name": "a", "image": "3", "command": ["x"]})
    with pytest.raises(three_way.ConflictingChanges):
        three_way.build_three_way_strategic_patch(original, modified, current, POD, overwrite=False)
    current = pod({"name": "a", "image": "1", "command": ["y"]})
    assert (
        three_way.build_three_way_strategic_patch(original, modified, current, POD)["spec"]["containers"][0]["image"]
        == "2"
    )


def test_nothing_is_deleted_without_last_applied_configuration() -> None:
    assert three_way.build_three_way_strategic_patch(None, pod(A), pod(A, nodeName="n"), POD) == {}
    assert three_way.build_three_way_merge_patch(None, {"a": 1}, {"a": 1, "b": 2}) == {}


@pytest.mark.parametrize(
    ("original", "modified", "current", "patch"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 2, "c": 3}, {"b": None}),
        ({"a": 1}, {"a": 2}, {"a": 1}, {"a": 2}),
        ({"a": {"x": 1, "y": 1}}, {"a": {"x": 2}}, {"a": {"x": 1, "y": 1, "z": 1}}, {"a": {"x": 2, "y": None}}),
        ({"l": [1]}, {"l": [1, 2]}, {"l": [1, 3]}, {"l": [1, 2]}),
        ({}, {"m": {}}, {}, {"m": {}}),
        ({"a": {"x": 1}}, {"a": {}}, {"a": {"x": 1}}, {"a": {"x": None}}),
    ],
)
def test_three_way_merge_patch_gives_expected_patch(original: Any, modified: Any, current: Any, patch: Any) -> None:
    assert three_way.build_three_way_merge_patch(original, modified, current) == patch


texts = st.text("xyz", min_size=1, max_size=2)
elements = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abcde")},
        optional={
            "image": texts,
            "command": st.lists(texts, max_size=2),
            "env": st.lists(
                st.fixed_dictionaries({"name": st.sampled_from("XYZ")}, optional={"value": texts}),
                unique_by=lambda container: container["name"],
                max_size=3,
            ),
        },
    ),
    unique_by=lambda variable: variable["name"],
    max_size=4,
)
pods = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {"containers": elements},
            optional={
                "nodeName": texts,
                "strategy": st.fixed_dictionaries(
                    {}, optional={"type": texts, "rollingUpdate": st.just({"maxSurge": 1})}
                ),
            },
        )
    },
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": st.dictionaries(texts, texts, max_size=3),
                "finalizers": st.lists(st.sampled_from("abcd"), unique=True, max_size=4),
            },
        )
    },
)


def settled(document: Any) -> Any:
    """Drop empty lists: a patch that deletes element by element cannot tell them from absent lists."""
    if isinstance(document, dict):
        return {key: settled(value) for key, value in document.items() if value != []}
    return [settled(value) for value in document] if isinstance(document, list) else document


@settings(max_examples=examples(300))
@given(pods, pods)
def test_applying_strategic_diff_gives_the_new_document(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = copy.deepcopy((old, new))
    patch = three_way.build_strategic_patch(old, new, POD)
    assert settled(strategic_merge.apply(old, patch, POD)) == settled(new)
    assert (old, new) == before


@settings(max_examples=examples())
@given(pods, pods)
def test_identical_documents_give_an_empty_patch(original: dict[str, Any], live: dict[str, Any]) -> None:
    assert three_way.build_three_way_strategic_patch(live, live, live, POD) == {}
    assert three_way.build_three_way_strategic_patch(None, live, live, POD) == {}
    assert three_way.build_three_way_merge_patch(live, live, live) == {}


@settings(max_examples=examples(300))
@given(pods, pods, pods)
def test_second_three_way_patch_changes_nothing(original: Any, modified: Any, current: Any) -> None:
    patched = strategic_merge.apply(
        current, three_way.build_three_way_strategic_patch(original, modified, current, POD), POD
    )
    assert (
        strategic_merge.apply(patched, three_way.build_three_way_strategic_patch(modified, modified, patched, POD), POD)
        == patched
    )
    merged = merge_patch.apply(current, three_way.build_three_way_merge_patch(original, modified, current))
    assert three_way.build_three_way_merge_patch(modified, modified, merged) == {}
