"""Keys that a mapping of a YAML text has twice."""

from __future__ import annotations

from argosy.kube.objects.field_lines import find_duplicate_keys


def lines(text: str) -> list[tuple[str, int, int]]:
    return [(".".join(duplicate.path), duplicate.first_line, duplicate.line) for duplicate in find_duplicate_keys(text)]


def test_a_key_that_is_written_twice_is_found_at_both_lines() -> None:
    assert lines("a: 1\nb: 2\na: 3\n") == [("a", 1, 3)]


def test_each_repetition_is_found() -> None:
    assert lines("a: 1\na: 2\na: 3\n") == [("a", 1, 2), ("a", 1, 3)]


def test_a_key_deep_in_lists_is_found_with_the_keys_above_it() -> None:
    assert lines("spec:\n  containers:\n    - name: a\n      image: x\n      name: b\n") == [
        ("spec.containers.name", 3, 5)
    ]


def test_the_same_key_in_two_elements_or_two_documents_is_no_duplicate() -> None:
    assert lines("- {name: a}\n- {name: a}\n---\nname: a\n---\nname: a\n") == []


def test_a_key_in_quotes_is_the_same_key() -> None:
    assert lines("a: 1\n'a': 2\n") == [("a", 1, 2)]


def test_two_merges_are_no_duplicate() -> None:
    assert lines("x: &x {a: 1}\ny: &y {b: 1}\nz:\n  <<: *x\n  <<: *y\n") == []


def test_json_on_one_line_is_read_too() -> None:
    assert lines('{"a": 1, "b": {"c": 1, "c": 2}}') == [("b.c", 1, 1)]


def test_a_key_that_is_a_mapping_does_not_shift_keys_and_values() -> None:
    assert lines("? {a: 1}\n: a\n? [b]\n: b\nc: a\nc: b\n") == [("c", 5, 6)]


def test_a_text_that_is_no_yaml_has_none() -> None:
    assert lines("a: 1\na: [\n") == []
    assert lines("{{- if .Values.x }}\na: 1\n{{- end }}\na: 2\n") == []
