"""Tests wildcard patterns for kinds: what they match, which are invalid, and that matching is fast."""

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
def test_pattern_matches_as_expected(pattern: str, text: str, expected: bool) -> None:
    assert matches_kind_pattern(pattern, text) is expected


@pytest.mark.parametrize("pattern", ["[z-a]*", "[!]", "[]", "{a", "a}", "{a,{b,c}}", "{a,b}" * 9])
def test_invalid_pattern_is_rejected(pattern: str) -> None:
    with pytest.raises(UserError, match="the pattern"):
        parse_kind_pattern(pattern)


@given(st.text("ab*?", max_size=12), st.text("ab", max_size=12))
def test_pattern_matches_like_a_shell_glob(pattern: str, text: str) -> None:
    assert matches_kind_pattern(pattern, text) is fnmatch.fnmatchcase(text, pattern)


def test_pattern_with_many_stars_does_not_backtrack() -> None:
    assert not matches_kind_pattern("*a" * 60 + "*b", "a" * 5000)  # would not end with backtracking
