"""JSONPath: the results of each syntax form, and that no data makes it raise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import UserError
from argosy.kube.schema.jsonpath import compile_path
from support.examples import examples

POD: dict[str, Any] = {
    "metadata": {"name": "p", "labels": {"a.b/c": "x"}},
    "spec": {"containers": [{"name": "one", "ports": [{"p": 1}, {"p": 2}]}, {"name": "two"}]},
    "status": {
        "conditions": [{"type": "Ready", "status": "True", "n": 3}, {"type": "Other", "status": "False", "n": 1}]
    },
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".metadata.name", ["p"]),
        ("{.metadata.name}", ["p"]),
        ("$.metadata.name", ["p"]),
        ("metadata.name", ["p"]),
        (".metadata.labels['a.b/c']", ["x"]),
        (".metadata.labels.a\\.b/c", ["x"]),
        ('.metadata.labels["a.b/c"]', ["x"]),
        (".spec.containers[0].name", ["one"]),
        (".spec.containers[-1].name", ["two"]),
        (".spec.containers[7].name", []),
        (".spec.containers[*].name", ["one", "two"]),
        (".spec.containers[0:1].name", ["one"]),
        (".spec.containers[0,1].name", ["one", "two"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.status.conditions[?(@.type!="Ready")].status', ["False"]),
        (".status.conditions[?(@.n>2)].type", ["Ready"]),
        (".status.conditions[?(@.n <= 3)].type", ["Ready", "Other"]),
        (".status.conditions[?(@.missing==1)].type", []),
        (".spec.containers[?(@.ports)].name", ["one"]),
        ("..p", [1, 2]),
        (".missing.deep", []),
        (".metadata.name.deeper", []),
        (".", [POD]),
    ],
)
def test_path_finds_the_expected_values(path: str, expected: list[Any]) -> None:
    assert compile_path(path).find_all(POD) == expected


def test_find_first_returns_none_without_a_match() -> None:
    assert compile_path(".a.b").find_first({}) is None
    assert compile_path(".a").find_first({"a": 1}) == 1


@pytest.mark.parametrize(
    "path",
    [
        ".a[?(@" * 600 + "x" + ")]" * 600,
        ".a[?(" + " " * 4000 + "=)]",
        ".a[",
        ".a[b]",
        ".a[?(x)]",
        ".a[?(@.b==c)]",
        ".a[::0]",
        ".a[]",
        ".(",
        "x" * 5000,
    ],
)
def test_invalid_path_raises_user_error(path: str) -> None:
    with pytest.raises(UserError):
        compile_path(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples())
@given(JSON, st.sampled_from([".a.b", ".a[0]", "..a", ".a[*].b", ".a[?(@.b==1)].c", ".a[?(@.b<'x')]", ".a[0:2].b"]))
def test_find_all_does_not_raise_on_any_data(value: Any, path: str) -> None:
    assert isinstance(compile_path(path).find_all(value), list)


@settings(max_examples=examples())
@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4), JSON)
def test_dotted_and_bracketed_paths_find_the_same_values(names: list[str], value: Any) -> None:
    dotted = "".join(f".{name}" for name in names)
    bracketed = "".join(f"['{name}']" for name in names)
    assert compile_path(dotted).find_all(value) == compile_path(bracketed).find_all(value)
