from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.kube.patch import merge_patch
from support.examples import examples


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({"a": 1}, {"c": None}, {"a": 1}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": None, "z": 3}}, {"a": {"y": 2, "z": 3}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": [1, 2]}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}),
        ({"a": "text"}, {"a": {"b": {"c": None, "d": 1}}}, {"a": {"b": {"d": 1}}}),
        ({}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
        ({}, {"a": [{"b": None, "c": 1}]}, {"a": [{"c": 1}]}),
        ([1, 2], {"a": 1, "b": None}, {"a": 1}),
        ({"a": 1}, [1], [1]),
        ({"a": 1}, "text", "text"),
    ],
)
def test_merge_patch_merges_maps_and_replaces_other_values(document: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy(document)
    assert merge_patch.apply(document, patch) == expected
    assert document == before


def test_unpatched_values_are_shared_with_the_original() -> None:
    document = {"a": {"x": 1}, "b": {"y": 1}}
    assert merge_patch.apply(document, {"a": {"x": 2}})["b"] is document["b"]


values = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=4),
    max_leaves=15,
)
maps = st.dictionaries(st.text("abc", max_size=2), values, max_size=4)


@settings(max_examples=examples())
@given(maps, maps)
def test_applying_a_diff_gives_the_new_document(old: dict[str, Any], new: dict[str, Any]) -> None:
    result = merge_patch.apply(old, merge_patch.diff(old, new))
    assert result == new


@settings(max_examples=examples())
@given(maps)
def test_equal_documents_have_an_empty_diff(document: dict[str, Any]) -> None:
    assert merge_patch.diff(document, copy.deepcopy(document)) == {}


@settings(max_examples=examples())
@given(maps, maps)
def test_applying_a_patch_twice_equals_applying_it_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch.apply(document, patch)
    assert merge_patch.apply(once, patch) == once


def test_diff_distinguishes_one_from_true() -> None:
    assert merge_patch.diff({"a": 1}, {"a": True}) == {"a": True}
