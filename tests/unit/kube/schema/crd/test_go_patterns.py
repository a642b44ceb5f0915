"""Patterns of custom kinds give the results of Go's regexp, recorded by tools/record_go_patterns.py."""

from __future__ import annotations

import json

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import Invalid
from argosy.kube.objects import Manifest
from argosy.kube.schema.crd.kind import CustomKind, build_custom_kinds
from argosy.languages import go_regexp
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.definitions import thing_definition
from support.examples import examples
from support.paths import DATA

RECORD = json.loads((DATA / "go-patterns.json").read_text())
TEXTS: list[str] = RECORD["texts"]
REFUSED = {pattern: verdict for pattern, verdict in RECORD["patterns"] if isinstance(verdict, str)}
TAKEN = {pattern: verdict for pattern, verdict in RECORD["patterns"] if not isinstance(verdict, str)}


def test_pattern_is_accepted_or_rejected_with_the_error_of_go() -> None:
    assert len(REFUSED) > 400
    assert len(TAKEN) > 350
    assert {pattern: go_regexp.find_pattern_error(pattern) for pattern in REFUSED} == REFUSED
    assert {pattern: why for pattern in TAKEN if (why := go_regexp.find_pattern_error(pattern))} == {}


def test_pattern_matches_the_same_texts_as_in_go() -> None:
    matching_texts = {pattern: [text for text in TEXTS if go_regexp.matches(pattern, text)] for pattern in TAKEN}
    assert matching_texts == TAKEN


@settings(max_examples=examples(300), deadline=None)
@given(st.text("ab(|)*+?[]^$.{}12,\\dwQE", max_size=12), st.text("ab1 \n", max_size=6))
def test_choice_of_engine_does_not_change_the_result(pattern: str, text: str) -> None:
    if not go_regexp.find_pattern_error(pattern):
        assert go_regexp.matches(pattern, text) == (re2.search(pattern, text) is not None)


HOSTILE = ["(a+)+$", "^(a|a)*b$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$", "(a?){500}a{500}$"]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_hostile_pattern_does_not_backtrack_on_a_long_text(pattern: str) -> None:
    """A backtracking engine would need longer than the age of the universe for one of these patterns."""
    assert not go_regexp.find_pattern_error(pattern)
    assert not go_regexp.matches(pattern, "a" * 30_000 + "!")


def test_value_too_long_for_a_large_pattern_is_rejected() -> None:
    pattern = "(a|b)*a" + "[ab]{900}" * 20 + "c$"
    assert not go_regexp.find_pattern_error(pattern)
    with pytest.raises(go_regexp.MatchTooExpensiveError):
        go_regexp.matches(pattern, "ab" * 500_000)


def test_values_of_one_object_share_one_matching_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(go_regexp, "MAX_MATCHING_SECONDS", 0.001)  # the first match always runs to its end
    kind = custom_kind("[ab]*a[ab]{900}x")
    faults = kind.validate({"spec": {"items": ["ab" * 1500 + str(number) for number in range(100)]}})
    assert len(faults) == 100
    assert any("should match" in fault.message for fault in faults)
    assert "takes too much time to match '[ab]*a[ab]{900}x'; shorten the value" in faults[-1].message
    (fault,) = kind.validate({"spec": {"items": ["b"]}})
    assert "should match" in fault.message, "the next object has its own limit"


def test_repeated_large_character_class_is_accepted_as_in_go() -> None:
    """Its program exceeds the memory limit of most patterns, and is compiled once for all values."""
    assert not go_regexp.find_pattern_error(r"^\pL{100}$")
    assert go_regexp.matches(r"^\pL{100}$", "é" * 100)
    assert not go_regexp.matches(r"^\pL{100}$", "é" * 99)


def definition_of(pattern: str) -> Manifest:
    return thing_definition(items={"type": "array", "items": {"type": "string", "pattern": pattern}})


def custom_kind(pattern: str) -> CustomKind:
    (kind,) = build_custom_kinds(definition_of(pattern))
    return kind


async def test_server_rejects_crd_with_pattern_invalid_in_go() -> None:
    async with EmbeddedCluster.open() as cluster:
        with pytest.raises(Invalid) as refused:
            await cluster.create(definition_of(r"^(?!kube-).*$"))
        assert "isn't: error parsing regexp: invalid or unsupported Perl syntax: `(?!`" in str(refused.value)
