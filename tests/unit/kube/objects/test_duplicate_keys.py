"""Duplicate keys in the mappings of a YAML text."""

from __future__ import annotations

from argosy.kube.objects.field_lines import find_duplicate_keys


def lines(text: str) -> list[tuple[str, int, int]]:
    return [(".".join(duplicate.path), duplicate.first_line, duplicate.line) for duplicate in find_duplicate_keys(text)]


def test_duplicate_key_is_found_with_both_lines() -> None:
    assert lines("a: 1\nb: 2\na: 3\n") == [("a", 1, 3)]


def test_every_repetition_of_a_key_is_found() -> None:
    assert lines("a: 1\na: 2\na: 3\n") == [("a", 1, 2), ("a", 1, 3)]


def test_nested_duplicate_key_has_its_full_path() -> None:
    assert lines("spec:\n  containers:\n    - name: a\n      image: x\n      name: b\n") == [
        ("spec.containers.name", 3, 5)
    ]


def test_same_key_in_two_items_or_documents_is_not_a_duplicate() -> None:
    assert lines("- {name: a}\n- {name: a}\n---\nname: a\n---\nname: a\n") == []


def test_quoted_key_is_the_same_key() -> None:
    assert lines("a: 1\n'a': 2\n") == [("a", 1, 2)]


def test_two_merge_keys_are_not_duplicates() -> None:
    assert lines("x: &x {a: 1}\ny: &y {b: 1}\nz:\n  <<: *x\n  <<: *y\n") == []


def test_duplicate_keys_are_found_in_json() -> None:
    assert lines('{"a": 1, "b": {"c": 1, "c": 2}}') == [("b.c", 1, 1)]


def test_complex_key_does_not_shift_keys_and_values() -> None:
    assert lines("? {a: 1}\n: a\n? [b]\n: b\nc: a\nc: b\n") == [("c", 5, 6)]


def test_invalid_yaml_has_no_duplicate_keys() -> None:
    assert lines("a: 1\na: [\n") == []
    assert lines("{{- if .Values.x }}\na: 1\n{{- end }}\na: 2\n") == []
