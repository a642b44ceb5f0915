"""Wildcards of kinds: what they match, that they match quickly, and which mean nothing."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.errors import UserError
from argosy.gitops.health.kind_patterns import matches_kind_pattern, parse_kind_pattern

ROWS = [
    ("*", "apps/Deployment", True),
    ("*/*", "apps/Deployment", True),
    ("*/*", "Pod", False),
    ("*.example.io/*", "a.b.example.io/Thing", True),
    ("*.example.io/*", "example.io/Thing", False),
    ("apps/?eployment", "apps/Deployment", True),
    ("apps/[A-D]eployment", "apps/Deployment", True),
    ("apps/[!A-D]eployment", "apps/Deployment", False),
    ("apps/[^A-D]eployment", "apps/Eeployment", True),
    ("apps/{Deployment,StatefulSet}", "apps/StatefulSet", True),
    ("{*.example.io,foo}/Bar", "a.example.io/Bar", True),
    ("{a,b}/{C,D}", "b/C", True),
    ("{a,b}/{C,D}", "b/E", False),
    (r"a\*b", "a*b", True),
    (r"a\*b", "axb", False),
    ("a.b/C", "aXb/C", False),
    ("", "", True),
    ("", "a", False),
]


@pytest.mark.parametrize(("pattern", "text", "expected"), ROWS)
def test_a_pattern_matches_what_it_means(pattern: str, text: str, expected: bool) -> None:
    assert matches_kind_pattern(pattern, text) is expected


@pytest.mark.parametrize("pattern", ["[z-a]*", "[!]", "[]", "{a", "a}", "{a,{b,c}}", "{a,b}" * 9])
def test_a_pattern_that_means_nothing_is_told(pattern: str) -> None:
    with pytest.raises(UserError, match="the pattern"):
        parse_kind_pattern(pattern)


@given(st.text("ab*?", max_size=12), st.text("ab", max_size=12))
def test_it_agrees_with_the_shell(pattern: str, text: str) -> None:
    assert matches_kind_pattern(pattern, text) is fnmatch.fnmatchcase(text, pattern)


def test_many_stars_take_no_longer_than_a_few() -> None:
    assert not matches_kind_pattern("*a" * 60 + "*b", "a" * 5000)  # with backtracking this would not end
