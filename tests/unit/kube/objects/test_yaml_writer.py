"""YAML output: the same text as kubectl prints, and read back equal."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import ManifestError
from argosy.kube.objects import dump_yaml, dump_yaml_documents, read_yaml, read_yaml_documents
from support.examples import examples

WORDS = "word " * 16

WRITTEN: list[tuple[Any, str]] = [
    ({}, "{}\n"),
    ([], "[]\n"),
    (None, "null\n"),
    ("a", "a\n"),
    ("", '""\n'),
    ({"b": 1, "a": [1, {"c": None, "d": []}], "e": {}}, "a:\n- 1\n- c: null\n  d: []\nb: 1\ne: {}\n"),
    ([["a", ["b"]], [{}]], "- - a\n  - - b\n- - {}\n"),
    ({"a10": 1, "a2": 2, "ab": 3, "a-b": 4}, "a-b: 4\na2: 2\na10: 1\nab: 3\n"),
    (["y", "12", "1e3", "0o14", "22:22", "2020-01-01", "null", "~", "<<", "="],
     '- "y"\n- "12"\n- "1e3"\n- "0o14"\n- "22:22"\n- "2020-01-01"\n- "null"\n- "~"\n- <<\n- =\n'),
    (["a: b", "a #b", "# a", "-", "- a", "-a", "a:b", "*a", " a", "a ", "it's", "'q'", "---x", "a,b", "?a", "? a"],
     "- 'a: b'\n- 'a #b'\n- '# a'\n- '-'\n- '- a'\n- -a\n- a:b\n- '*a'\n- ' a'\n- 'a '\n- it's\n- '''q'''\n"
     "- '---x'\n- a,b\n- ?a\n- '? a'\n"),
    (["\ta", "a\r", "é", "😀", "\x00\x1b\x7f", "\u2028", "\ufeff", 'a\t"\\'],
     '- "\\ta"\n- "a\\r"\n- é\n- "\\U0001F600"\n- "\\0\\e\\x7F"\n- "\\L"\n- "\\uFEFF"\n- "a\\t\\"\\\\"\n'),
    ({"a": "x\ny\n", "b": "x\ny", "c": "x\n\n", "d": "\n x", "e": "x \ny", "f": "\n"},
     'a: |\n  x\n  y\nb: |-\n  x\n  y\nc: |+\n  x\n\nd: |2-\n\n   x\ne: "x \\ny"\nf: |2+\n\n'),
    ([1.0, 1.5, 1e20, 1e19, 1234567.5, -0.0, 2**64 - 1, 2**64, True],
     "- 1\n- 1.5\n- 1e+20\n- 10000000000000000000\n- 1.2345675e+06\n- 0\n- 18446744073709551615\n"
     "- 1.8446744073709552e+19\n- true\n"),
    ({"a": WORDS + "end"}, f"a: {WORDS[:-1]}\n  end\n"),
    ({"k" * 129: [1], "a\nb": {"c": 1}}, f"? |-\n  a\n  b\n: c: 1\n? {'k' * 129}\n: - 1\n"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), WRITTEN)
def test_value_is_written_as_kubectl_prints_it(value: Any, text: str) -> None:
    assert dump_yaml(value) == text
    assert read_yaml(text) == value


def test_merge_sign_as_a_key_is_quoted() -> None:
    assert dump_yaml({"<<": 1}) == '"<<": 1\n'


def test_documents_are_separated_by_dashes() -> None:
    assert dump_yaml_documents([{"a": 1}, [2]]) == "a: 1\n---\n- 2\n"


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", 10**400])
def test_value_that_json_cannot_represent_is_refused(value: Any) -> None:
    with pytest.raises(ManifestError):
        dump_yaml([value])


@pytest.mark.parametrize("value", [b"a", {1: 2}, {True: 2}, object()])
def test_value_of_a_non_json_type_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError):
        dump_yaml({"a": value})


text = st.text(st.characters(exclude_categories=("Cs",))) | st.text(" ab:#-\n'\"y1.\t")
scalar = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | text
number = st.floats(allow_nan=False, allow_infinity=False)
value = st.recursive(
    scalar, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=20
)


@settings(max_examples=examples())
@given(value)
def test_written_value_is_read_back_equal(original: Any) -> None:
    assert read_yaml(dump_yaml(original)) == original
    assert read_yaml_documents(dump_yaml_documents([original, original])) == [original, original]


@settings(max_examples=examples())
@given(st.lists(st.sampled_from(["word", "it's", "a: b", "#", "", "é", "😀", "x" * 50]), min_size=10, max_size=60))
def test_folded_lines_are_read_back_equal(words: list[str]) -> None:
    original = {"key": " ".join(words), "list": [" ".join(reversed(words))], "long" * 40: {"a": " ".join(words)}}
    assert read_yaml(dump_yaml(original)) == original


@given(number)
def test_float_is_read_back_equal(original: float) -> None:
    assert float(read_yaml(dump_yaml([original]))[0]) == original
