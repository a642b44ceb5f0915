"""Globs of include, exclude, manifest-generate-paths, names and repository URLs."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.languages.globs import compile_glob, compile_name_glob, matches_glob


@pytest.mark.parametrize(
    ("glob", "text", "matches"),
    [
        ("*.yaml", "a.yaml", True),
        ("*.yaml", "deep/down/a.yaml", True),  # no character is a separator
        ("*", "a/b/c", True),
        ("**", "a/b", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", True),
        ("a?c", "ac", False),
        ("{a,b}.yaml", "b.yaml", True),
        ("{a,b}.yaml", "c.yaml", False),
        ("{config,env-{usw2,eu}/*}.yaml", "env-eu/x.yaml", True),
        ("{config,env-{usw2,eu}/*}.yaml", "env-ap/x.yaml", False),
        ("{,x}a", "a", True),
        ("[a-c]1", "b1", True),
        ("[!a-c]1", "b1", False),
        ("[!a-c]1", "d1", True),
        ("[abc-]1", "-1", True),
        ("[.]yaml", "xyaml", False),
        (r"\*.yaml", "*.yaml", True),
        (r"\*.yaml", "a.yaml", False),
        (r"\{a,b\}", "{a,b}", True),
        ("a,b", "a,b", True),
        ("a}b", "a}b", True),
        ("a*b*c", "aXbXbXc", True),
        ("a*b*c", "aXbXb", False),
        ("*ab*ab", "ab", False),
        ("*ab*ab", "abab", True),
        ("a.yaml", "aXyaml", False),
        ("", "", True),
        ("*", "line\nbreak", True),
    ],
)
def test_glob_matches_whole_paths(glob: str, text: str, matches: bool) -> None:
    assert bool(compile_glob(glob, "").fullmatch(text)) is matches


@pytest.mark.parametrize(
    ("glob", "text", "matches"),
    [("*.yaml", "a.yaml", True), ("{a}", "{a}", True), ("a{2}", "aa", False), ("[^a]", "b", True), ("[!]", "!", True)],
)
def test_name_glob_has_no_braces_and_negates_with_a_caret(glob: str, text: str, matches: bool) -> None:
    assert bool(compile_name_glob(glob).fullmatch(text)) is matches


@pytest.mark.parametrize("glob", ["{a", "[a", "a\\", "[", "[!", "[z-a]", "x" * 2000, "{a,b}" * 10])
def test_invalid_glob_is_reported_with_its_field(glob: str) -> None:
    with pytest.raises(UserError, match=r"directory\.include: invalid glob"):
        compile_glob(glob, "directory.include")
    if "{" not in glob:
        assert not compile_name_glob(glob).fullmatch(glob)


def test_glob_with_many_stars_does_not_backtrack() -> None:
    assert not compile_glob("*a" * 300 + "b", "").fullmatch("a" * 5000)


@pytest.mark.parametrize(
    ("glob", "text", "expected"),
    [
        ("https://git.example/team/*", "https://git.example/team/models", True),
        ("https://git.example/*", "https://git.example/team/models", False),
        ("https://git.example/**", "https://git.example/team/models", True),
        ("https://*/team/*", "https://git.example/team/models", True),
        ("https://git.example/{a,b}/*", "https://git.example/b/models", True),
        ("*", "a/b", False),
        ("**", "a/b", True),
        ("[", "[", True),
        ("[", "x", False),
    ],
)
def test_single_star_does_not_cross_a_slash_by_segment(glob: str, text: str, expected: bool) -> None:
    assert matches_glob(glob, text, by_segment=True) is expected


def test_single_star_crosses_a_slash_by_default() -> None:
    assert matches_glob("team-*", "team-a/b") and not matches_glob("team-*", "team")
