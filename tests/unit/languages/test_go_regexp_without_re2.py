"""Regex patterns of CRDs: most are accepted without loading the slow RE2 engine, and none wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.kube.schema.bundled_crds import load_definitions
from argosy.languages import go_regexp
from support.examples import examples

SIGNS = [*'aZ09_-/.^$|()[]*+?{}\\,:@"', "(?:", "(?i)", "{2}", "{1,}", "{0,3}", "[a-z]", "[^./]", "[-a]", "\\.", "\\d"]


def patterns_in(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("pattern"), str):
            yield part["pattern"]
        for child in part.values():
            yield from patterns_in(child)
    elif isinstance(part, list):
        for item in part:
            yield from patterns_in(item)


def test_patterns_of_bundled_crds_are_accepted_without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = {pattern for definition in load_definitions() for pattern in patterns_in(definition)}
    assert len(patterns) > 5
    monkeypatch.setattr(go_regexp, "_compile", lambda _: pytest.fail("the engine was asked"))
    assert {pattern for pattern in patterns if go_regexp.find_pattern_error(pattern)} == set()


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.sampled_from(SIGNS), max_size=9).map("".join))
def test_accepted_patterns_compile_with_re2(pattern: str) -> None:
    if not go_regexp.find_pattern_error(pattern):
        go_regexp._compile(pattern)  # raises if the pattern is invalid


@settings(max_examples=examples(300), deadline=None)
@given(st.text("0159.+-KGmiueE\n x", max_size=9))
def test_quantity_pattern_matches_the_same_with_both_engines(text: str) -> None:
    assert go_regexp.matches(go_regexp._QUANTITY_PATTERN, text) == go_regexp._search(
        go_regexp._compile(go_regexp._QUANTITY_PATTERN), text
    )


@pytest.mark.parametrize(
    "text", ["1" * 4000 + "x", "1." * 2000, "1e" * 2000, "+" * 4000, "1" * 2000 + "." + "1" * 2000 + "e"]
)
def test_long_text_does_not_make_the_quantity_pattern_slow(text: str) -> None:
    assert go_regexp._compile_linear(go_regexp._QUANTITY_PATTERN) is not None
    assert not go_regexp.matches(go_regexp._QUANTITY_PATTERN, text)
