from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import PatchError
from argosy.kube.patch.field_sets import FieldSet, format_path
from support.examples import examples

elements = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"n":"x"}', 'k:{"n":10}', 'k:{"n":9}', 'v:"z"', "v:2", "i:0"])
paths = st.lists(elements, min_size=1, max_size=4).map(tuple)
path_sets = st.frozensets(paths, max_size=8)


def build_field_set(members: frozenset[tuple[str, ...]]) -> FieldSet:
    return FieldSet.from_paths(*members)


def members(fields: FieldSet) -> frozenset[tuple[str, ...]]:
    return frozenset(fields.paths())


@settings(max_examples=examples())
@given(path_sets)
def test_field_set_contains_exactly_its_paths(chosen: frozenset[tuple[str, ...]]) -> None:
    fields = build_field_set(chosen)
    assert members(fields) == chosen
    assert len(fields) == len(chosen)
    assert bool(fields) is bool(chosen)
    assert all(path in fields for path in chosen)
    assert () not in fields


@settings(max_examples=examples())
@given(path_sets, path_sets)
def test_field_set_operations_equal_set_operations_on_paths(left: frozenset[Any], right: frozenset[Any]) -> None:
    assert members(build_field_set(left) | build_field_set(right)) == left | right
    assert members(build_field_set(left) & build_field_set(right)) == left & right
    assert members(build_field_set(left) - build_field_set(right)) == left - right


@settings(max_examples=examples())
@given(path_sets, path_sets)
def test_without_subtrees_removes_children_too(left: frozenset[Any], right: frozenset[Any]) -> None:
    expected = {path for path in left if not any(path[: n + 1] in right for n in range(len(path)))}
    assert members(build_field_set(left).without_subtrees(build_field_set(right))) == expected


@settings(max_examples=examples())
@given(path_sets, path_sets)
def test_field_sets_are_equal_if_their_paths_are_equal(left: frozenset[Any], right: frozenset[Any]) -> None:
    assert (build_field_set(left) == build_field_set(right)) is (left == right)
    assert build_field_set(left) == build_field_set(frozenset(left)) and hash(build_field_set(left)) == hash(
        build_field_set(frozenset(left))
    )


@settings(max_examples=examples())
@given(path_sets)
def test_fieldsv1_survives_a_round_trip(chosen: frozenset[Any]) -> None:
    text = json.dumps(build_field_set(chosen).to_wire())
    again = FieldSet.parse(json.loads(text))
    assert members(again) == chosen
    assert json.dumps(FieldSet(again.tree).to_wire()) == text


@settings(max_examples=examples())
@given(path_sets, path_sets)
def test_field_set_operations_do_not_change_operands(left: frozenset[Any], right: frozenset[Any]) -> None:
    one, two = build_field_set(left), build_field_set(right)
    before = json.dumps([one.to_wire(), two.to_wire()])
    _ = (one | two, one & two, one - two, one.without_subtrees(two))
    assert json.dumps([one.to_wire(), two.to_wire()]) == before


def test_fieldsv1_is_sorted_as_by_the_server() -> None:
    raw = {
        "f:b": {"v:10": {}, "v:9": {}, 'v:"a"': {}, ".": {}},
        "f:a": {'k:{"port":443}': {}, 'k:{"port":80}': {"f:z": {}, "f:port": {}, ".": {}}},
    }
    fields = FieldSet.parse(raw) | FieldSet.from_paths(["f:a", 'k:{"port":100}'])
    assert json.dumps(fields.to_wire()) == json.dumps(
        {
            "f:a": {'k:{"port":80}': {".": {}, "f:port": {}, "f:z": {}}, 'k:{"port":100}': {}, 'k:{"port":443}': {}},
            "f:b": {".": {}, "v:9": {}, "v:10": {}, 'v:"a"': {}},
        }
    )


def test_list_item_keys_are_made_canonical() -> None:
    fields = FieldSet.parse({'k:{ "protocol": "TCP", "port": 80 }': {".": {}}})
    assert fields.tree == {'k:{"port":80,"protocol":"TCP"}': {}}


def test_unread_field_set_is_written_unchanged() -> None:
    raw = {"f:b": {}, "f:a": {".": {}}}
    assert FieldSet.parse(raw).to_wire() is raw


def test_unknown_path_elements_are_ignored() -> None:
    assert FieldSet.parse({"f:a": {}, "q:new": {"f:b": {}}}) == FieldSet.from_paths(["f:a"])


@pytest.mark.parametrize("raw", [{"f": {}}, {"name": {}}, {"k:{": {}}, {"k:[]": {}}, {"i:x": {}}, {"f:a": 1}, []])
def test_malformed_fieldsv1_is_refused(raw: Any) -> None:
    with pytest.raises(PatchError):
        _ = FieldSet.parse(raw).tree


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (["f:data", "f:a"], ".data.a"),
        (["f:spec", "f:containers", 'k:{"name":"c"}', "f:image"], '.spec.containers[name="c"].image'),
        (["f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}'], '.spec.ports[port=80,protocol="TCP"]'),
        (["f:metadata", "f:finalizers", 'v:"a/b"'], '.metadata.finalizers[="a/b"]'),
        (["f:args", "i:3"], ".args[3]"),
        (["f:flags", "v:true"], ".flags[=true]"),
    ],
)
def test_path_is_formatted_as_by_the_server(path: list[str], text: str) -> None:
    assert format_path(path) == text


def test_leaf_paths_come_before_nested_paths() -> None:
    fields = FieldSet.from_paths(["f:a", "f:z"], ["f:b"], ["f:c"])
    assert [format_path(path) for path in fields.paths()] == [".b", ".c", ".a.z"]
