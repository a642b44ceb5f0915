from __future__ import annotations

import copy
from typing import Any

import jsonpatch  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import PatchError
from argosy.kube.patch import json_patch
from argosy.kube.patch.json_pointer import format_tokens
from support.examples import examples

DOCUMENT: Any = {"a": {"b": [1, 2, 3], "n": None}, "t": "x", "~": {"/": 1}}


def op(kind: str, path: str, value: Any = None, **more: Any) -> dict[str, Any]:
    return {"op": kind, "path": path, "value": value, **more}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (op("add", "/a/c", 1), {"a": {"b": [1, 2, 3], "n": None, "c": 1}}),
        (op("add", "/a/b/1", 9), {"a": {"b": [1, 9, 2, 3], "n": None}}),
        (op("add", "/a/b/-", 9), {"a": {"b": [1, 2, 3, 9], "n": None}}),
        (op("add", "/a/b/3", 9), {"a": {"b": [1, 2, 3, 9], "n": None}}),
        (op("add", "/a/b/-1", 9), {"a": {"b": [1, 2, 3, 9], "n": None}}),
        (op("add", "/a/b/-4", 9), {"a": {"b": [9, 1, 2, 3], "n": None}}),
        (op("remove", "/a/b/0"), {"a": {"b": [2, 3], "n": None}}),
        (op("remove", "/a/b/-1"), {"a": {"b": [1, 2], "n": None}}),
        (op("replace", "/a/b/-2", 7), {"a": {"b": [1, 7, 3], "n": None}}),
        (op("replace", "/a/n", 7), {"a": {"b": [1, 2, 3], "n": 7}}),
        (op("move", "/a/m", **{"from": "/a/n"}), {"a": {"b": [1, 2, 3], "m": None}}),
        (op("copy", "/a/b/0", **{"from": "/a/b/2"}), {"a": {"b": [3, 1, 2, 3], "n": None}}),
        (op("copy", "/a/c", **{"from": "/a/missing"}), {"a": {"b": [1, 2, 3], "n": None, "c": None}}),
        (op("test", "/a/missing", None), {"a": {"b": [1, 2, 3], "n": None}}),
        (op("test", "/a/b", [1, 2, 3]), {"a": {"b": [1, 2, 3], "n": None}}),
        (op("test", "", {"a": {"b": [1, 2, 3], "n": None}}), {"a": {"b": [1, 2, 3], "n": None}}),
        (op("replace", "", {"z": 1}), {"z": 1}),
        (op("add", "ignored/a/c", 1), {"a": {"b": [1, 2, 3], "n": None, "c": 1}}),
    ],
)
def test_operation_gives_the_same_result_as_the_server(operation: dict[str, Any], expected: Any) -> None:
    document = {"a": {"b": [1, 2, 3], "n": None}}
    before = copy.deepcopy(document)
    assert json_patch.apply(document, [operation]) == expected
    assert document == before


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (op("add", "/x/y", 1), 'add operation does not apply: doc is missing path: "/x/y": missing value'),
        (op("add", "", 1), 'add operation does not apply: doc is missing path: "": missing value'),
        (
            op("add", "/a/b/5", 1),
            "error in add for path: '/a/b/5': Unable to access invalid index: 5: invalid index referenced",
        ),
        (
            op("add", "/a/b/x", 1),
            "error in add for path: '/a/b/x': value was not a proper array index: 'x': "
            'strconv.Atoi: parsing "x": invalid syntax',
        ),
        (op("remove", "/q"), "error in remove for path: '/q': Unable to remove nonexistent key: q: missing value"),
        (op("remove", "/t/x"), 'remove operation does not apply: doc is missing path: "/t/x": missing value'),
        (
            op("remove", "/a/b/-4"),
            "error in remove for path: '/a/b/-4': Unable to access invalid index: -4: invalid index referenced",
        ),
        (op("replace", "/q", 1), "replace operation does not apply: doc is missing key: /q: missing value"),
        (op("replace", "/a/b/3", 1), "replace operation does not apply: doc is missing key: /a/b/3: missing value"),
        (op("replace", "/q/r", 1), "replace operation does not apply: doc is missing path: /q/r: missing value"),
        (op("test", "/t", "y"), "testing value /t failed: test failed"),
        (op("test", "/a/b/0", True), "testing value /a/b/0 failed: test failed"),
        (op("test", "/q/r", 1), "test operation does not apply: is missing path: /q/r: missing value"),
        (
            op("move", "/z", **{"from": "/q"}),
            "error in move for path: 'q': Unable to remove nonexistent key: q: missing value",
        ),
        (
            op("move", "/a/b", **{"from": "/a"}),
            "move operation does not apply: doc is missing destination path: /a/b: missing value",
        ),
        (op("copy", "/z"), "copy operation failed to decode from: missing value"),
        ({"op": "remove"}, "remove operation failed to decode path: missing value"),
        ({"op": "frob", "path": "/a"}, "Unexpected kind: frob"),
        ({"path": "/a"}, "Unexpected kind: unknown"),
    ],
)
def test_invalid_operation_gives_the_error_message_of_the_server(operation: dict[str, Any], message: str) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch.apply(DOCUMENT, [operation])
    assert str(caught.value) == message


def test_lenient_replace_adds_a_missing_key_but_not_a_missing_parent() -> None:
    assert json_patch.apply({}, [op("replace", "/a", 1)], lenient_replace=True) == {"a": 1}
    with pytest.raises(PatchError):
        json_patch.apply({}, [op("replace", "/a/b", 1)], lenient_replace=True)


def test_patch_is_applied_only_if_all_operations_succeed() -> None:
    document = {"a": [1]}
    with pytest.raises(PatchError):
        json_patch.apply(document, [op("add", "/a/-", 2), op("test", "/a", [1])])
    assert document == {"a": [1]}


def test_copied_map_is_independent_of_its_source() -> None:
    changed = json_patch.apply(
        {"a": {"x": {"y": 1}}},
        [op("add", "/a/x/z", 0), op("copy", "/b", **{"from": "/a"}), op("add", "/b/x/y", 2), op("remove", "/a/x/z")],
    )
    assert changed == {"a": {"x": {"y": 1}}, "b": {"x": {"y": 2, "z": 0}}}


def test_patch_value_is_not_changed_by_later_operations() -> None:
    value: dict[str, Any] = {}
    assert json_patch.apply({}, [op("add", "/a", value), op("add", "/a/b", 1)]) == {"a": {"b": 1}}
    assert value == {}


def test_patch_with_more_than_ten_thousand_operations_is_refused() -> None:
    operations = [op("test", "/t", "x")] * 10_001
    with pytest.raises(json_patch.PatchTooLarge, match="maximum operations in a JSON patch is 10000, got 10001"):
        json_patch.apply(DOCUMENT, operations)
    assert json_patch.apply(DOCUMENT, operations[:-1]) == DOCUMENT


def test_copy_operations_are_limited_to_three_mebibytes() -> None:
    doubling = [op("copy", "/a/-", **{"from": "/a"})] * 40
    with pytest.raises(PatchError, match="exceeding the limit 3145728"):
        json_patch.apply({"a": ["x" * 1000]}, doubling)


scalars = st.none() | st.booleans() | st.integers(2, 99) | st.text("ab~/", max_size=3)
documents = st.dictionaries(
    st.text("ab~/", min_size=1, max_size=2),
    st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", min_size=1, max_size=2), inner, max_size=3)
        ),
        max_leaves=12,
    ),
    max_size=4,
)


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    paths = [path] if path else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        paths += places(child, (*path, str(key)))
    return paths


@st.composite
def patches(draw: st.DrawFn) -> tuple[Any, list[dict[str, Any]]]:
    """Draw a document and operations on its paths, or on paths close to them."""
    document = draw(documents)
    paths = places(document) or [("a",)]
    path_strategy = st.sampled_from(paths).flatmap(
        lambda path: st.sampled_from([path, (*path, "a"), (*path[:-1], "0"), (*path[:-1], "-")])
    )
    operations = draw(
        st.lists(
            st.builds(
                lambda kind, path, source, value: {
                    "op": kind,
                    "path": format_tokens(path),
                    "from": format_tokens(source),
                    "value": value,
                },
                st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
                path_strategy,
                st.sampled_from(paths),
                scalars | documents,
            ),
            max_size=6,
        )
    )
    return document, operations


@settings(max_examples=examples(150))
@given(patches())
def test_result_equals_that_of_the_jsonpatch_library(case: tuple[Any, list[dict[str, Any]]]) -> None:
    document, operations = case
    before = copy.deepcopy(document)
    try:
        expected = jsonpatch.apply_patch(copy.deepcopy(document), operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError):
        return  # the refused operations differ by design: see the table above
    try:
        assert json_patch.apply(document, operations) == expected
    except PatchError as refusal:
        # Moving a value into itself is the only operation that the library accepts and we refuse.
        assert any(o["op"] == "move" and o["path"].startswith(o["from"]) for o in operations), refusal
    assert document == before
