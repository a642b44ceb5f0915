"""Finding, replacing and splitting give the recorded results of Go, and take bounded time."""

from __future__ import annotations

import json

import pytest

from argosy.languages import go_regexp_replacement
from argosy.languages.go_regexp import InvalidGoRegexp, MatchTooExpensiveError
from support.paths import DATA

RECORD = json.loads((DATA / "go-regexp-replacements.json").read_text())


def spend_nothing(count: int) -> None:
    pass


def test_matches_replacements_and_parts_are_those_of_go() -> None:
    for pattern, template, answers in RECORD["rows"]:
        for text, (matches, replaced, literal, parts, two_parts) in zip(RECORD["texts"], answers, strict=True):
            case = (pattern, template, text)
            assert go_regexp_replacement.find_all(pattern, text) == (matches or []), case
            assert go_regexp_replacement.find_all(pattern, text, 1) == (matches or [])[:1], case
            assert go_regexp_replacement.replace_all(pattern, text, template, spend_nothing) == replaced, case
            assert go_regexp_replacement.replace_all_literal(pattern, text, template, spend_nothing) == literal, case
            assert go_regexp_replacement.split(pattern, text) == (parts or []), case
            assert go_regexp_replacement.split(pattern, text, 2) == (two_parts or []), case


def test_split_into_no_parts_is_empty() -> None:
    assert go_regexp_replacement.split("a", "bab", 0) == []


def test_quoted_text_is_escaped_as_in_go() -> None:
    assert [go_regexp_replacement.quote_meta(text) for text in RECORD["texts"]] == RECORD["quoted"]


@pytest.mark.parametrize("pattern", ["(?=a)", r"(a)\1", "("])
def test_pattern_invalid_in_go_is_rejected(pattern: str) -> None:
    with pytest.raises(InvalidGoRegexp):
        go_regexp_replacement.replace_all(pattern, "a", "$1", spend_nothing)


def test_pattern_that_reads_the_rest_of_the_text_for_each_match_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.languages.go_regexp.MAX_MATCHING_SECONDS", 0.05)
    with pytest.raises(MatchTooExpensiveError):
        go_regexp_replacement.find_all("(?:a.*b)|a", "a" * 90_000)


def test_replacement_characters_are_counted() -> None:
    spent: list[int] = []
    go_regexp_replacement.replace_all("a", "aa", "x${0}é", spent.append)
    assert spent == [4, 4]
