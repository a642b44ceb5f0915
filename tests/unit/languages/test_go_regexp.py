"""Go regular expressions: same results as Python's where both agree, and bounded work."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.languages.go_regexp import InvalidGoRegexp, MatchTooExpensiveError, compile_go_regexp
from support.counted_calls import calls_of
from support.examples import examples
from support.paths import DATA

PIECES = st.sampled_from([
    "a", "b", "/", ".", "[ab]", "[^a]", r"\w", r"\d", r"\s", r"\b", "^", r"\B", "(a|b)", "(?:a|ab)", "(?i:A)",
    "(|a)", "[a-c-]", "(a*)", "(ab?)", "x",
])  # fmt: skip
ENDS = st.sampled_from(["", "*", "+", "?", "{2}", "{1,3}", "{0,}", "*?", "+?"])
PATTERNS = st.lists(st.tuples(PIECES, ENDS).map("".join), max_size=6).map("".join)
TEXTS = st.text("abAcx/ \n1-", min_size=1, max_size=12)


def readable(pattern: str) -> bool:
    try:
        re.compile(pattern, re.ASCII)
        compile_go_regexp(pattern)
    except (re.error, InvalidGoRegexp):
        return False
    return True


@given(PATTERNS.filter(readable), TEXTS)
@settings(max_examples=examples(500), deadline=None)
def test_regexp_matches_like_python_re(pattern: str, text: str) -> None:
    expected = re.search(pattern, text, re.ASCII) is not None
    assert compile_go_regexp(pattern)(text) is expected


SLOW = ["^team/(a+)+$", "(a*)*b", "(a|a)*!", "(a|aa)+$x", "^(a?){40}a{40}!", "(.*)(.*)(.*)(.*)(.*)x!", "(x+x+)+y"]
SLOW += ["a?" * 60 + "a" * 60]
FOREIGN = ["(?=a)", "(?!a)", "(?<=a)b", r"(a)\1", "a++", "(?>a)", "(?P<n>a)(?P=n)", "(", "a{1001}", "(a{100}){100}"]


@pytest.mark.parametrize("pattern", SLOW)
def test_hostile_pattern_matches_with_bounded_work(pattern: str) -> None:
    fits = compile_go_regexp(pattern)
    assert calls_of(fits, "team/" + "a" * 495 + "!" + "x" * 499) < 500_000


@pytest.mark.parametrize("pattern", FOREIGN)
def test_pattern_invalid_in_go_is_rejected(pattern: str) -> None:
    with pytest.raises(InvalidGoRegexp):
        compile_go_regexp(pattern)


def test_anchors_and_flags_work_as_in_go() -> None:
    assert not compile_go_regexp("^a$")("a\n")
    assert compile_go_regexp("(?m)^a$")("b\na\nb")
    assert compile_go_regexp("(?s)^a.b$")("a\nb")
    assert not compile_go_regexp("^a.b$")("a\nb")
    assert compile_go_regexp("(?i)^TEAM-[x-z]$")("team-Y")


def test_compiled_pattern_gives_the_recorded_answers_of_go() -> None:
    """A pattern that Go rejects is never compiled. Two that Go accepts are too large for a policy."""
    record = json.loads((DATA / "go-patterns.json").read_text())
    too_large = set()
    for pattern, verdict in record["patterns"]:
        try:
            matches = compile_go_regexp(pattern)
        except InvalidGoRegexp as error:
            if not isinstance(verdict, str):
                too_large.add(pattern)
            else:
                assert str(error) == verdict
            continue
        assert [text for text in record["texts"] if matches(text)] == verdict, pattern
    assert too_large == {r"\pL{100}"}


@pytest.mark.parametrize("pattern", [r"a\Z", "(?x) a b", "(?a)a", "(?u)a", r"(?(1)a|b)", r"\N{BULLET}"])
def test_pattern_valid_only_in_python_is_rejected(pattern: str) -> None:
    with pytest.raises(InvalidGoRegexp):
        compile_go_regexp(pattern)


@pytest.mark.parametrize("pattern", [".{999}" * 99, "(a|b{99}){10}" * 20, "a" * 5000, r"\pL{100}"])
def test_too_large_pattern_is_rejected_before_it_meets_a_text(pattern: str) -> None:
    """A matcher that answers False for it would turn a deny rule into none."""
    with pytest.raises(InvalidGoRegexp):
        compile_go_regexp(pattern)


def test_too_long_text_is_an_error_and_not_a_mismatch() -> None:
    matches = compile_go_regexp("(a|b)*c{1000}")
    with pytest.raises(MatchTooExpensiveError):
        matches("a" * 100_000)
