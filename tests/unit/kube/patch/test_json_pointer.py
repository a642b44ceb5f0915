from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import PatchError
from argosy.kube.patch import json_pointer
from support.examples import examples

DOCUMENT = {"a": {"b": [1, {"c": 2}]}, "": 3, "x/y": {"m~n": 4}}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("/", [""]),
        ("/a/b/0", ["a", "b", "0"]),
        ("/x~1y/m~0n", ["x/y", "m~n"]),
        ("/~01", ["~1"]),
        ("/a//b", ["a", "", "b"]),
    ],
)
def test_pointer_round_trips_between_text_and_tokens(text: str, tokens: list[str]) -> None:
    assert json_pointer.parse(text) == tokens
    assert json_pointer.format_tokens(tokens) == text


@settings(max_examples=examples())
@given(st.lists(st.text(max_size=5), max_size=5))
def test_any_tokens_round_trip_through_a_pointer(tokens: list[str]) -> None:
    assert json_pointer.parse(json_pointer.format_tokens(tokens)) == tokens


def test_pointer_without_leading_slash_is_rejected() -> None:
    with pytest.raises(PatchError, match='must start with "/"'):
        json_pointer.parse("a/b")


@pytest.mark.parametrize(
    ("text", "value"), [("", DOCUMENT), ("/a/b/1/c", 2), ("/a/b/0", 1), ("/", 3), ("/x~1y/m~0n", 4)]
)
def test_get_returns_the_value_at_the_pointer(text: str, value: object) -> None:
    assert json_pointer.get(DOCUMENT, text) == value


@pytest.mark.parametrize("text", ["/nope", "/a/b/2", "/a/b/-", "/a/b/01", "/a/b/-1", "/a/b/0/x"])
def test_get_raises_for_a_missing_value(text: str) -> None:
    with pytest.raises(PatchError, match="no value at"):
        json_pointer.get(DOCUMENT, text)


def test_put_copies_changed_path_and_shares_the_rest() -> None:
    changed = json_pointer.put(DOCUMENT, "/a/b/1/c", 9)
    assert json_pointer.get(changed, "/a/b/1/c") == 9
    assert json_pointer.get(DOCUMENT, "/a/b/1/c") == 2
    assert changed["x/y"] is DOCUMENT["x/y"]


def test_put_appends_to_lists_and_adds_keys() -> None:
    assert json_pointer.put([1], "/-", 2) == [1, 2]
    assert json_pointer.put([1], "/1", 2) == [1, 2]
    assert json_pointer.put({}, "/new", 2) == {"new": 2}
    with pytest.raises(PatchError):
        json_pointer.put({}, "/a/b", 2)
