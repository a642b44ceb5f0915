"""YAML values by dialect (Kubernetes, Kustomize), and the errors of invalid or oversized text."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import LimitError, ManifestError
from argosy.kube.objects import InputLimits, YamlDialect, kubernetes_yaml_parser, read_yaml, read_yaml_documents
from argosy.kube.objects.yaml_scalars import format_key, normalize_timestamp, refold_as_kustomize

KUBERNETES, KUSTOMIZE = YamlDialect.KUBERNETES, YamlDialect.KUSTOMIZE

PLAIN: list[tuple[str, Any, Any]] = [
    ("y", True, "y"),
    ("No", False, "No"),
    ("on", True, "on"),
    ("OFF", False, "OFF"),
    ("true", True, True),
    ("tRue", "tRue", "tRue"),
    ("~", None, None),
    ("Null", None, None),
    ("nUll", "nUll", "nUll"),
    ("12", 12, 12),
    ("0644", 420, 420),
    ("0o644", 420, 420),
    ("08", 8, 8),
    ("0x1F", 31, 31),
    ("-0x1f", -31, -31),
    ("0b11", 3, 3),
    ("0b+1_00", 4, 4),
    ("0b-11", -3, -3),
    ("0o+7", "0o+7", 7),
    ("1_000", 1000, 1000),
    ("_1", "_1", "_1"),
    ("._9", "._9", "._9"),
    (".9_9", 0.99, 0.99),
    ("+.5", 0.5, 0.5),
    ("1e3", 1000, 1000),
    ("1.0", 1, 1),
    ("1e21", 1e21, 1e21),
    ("1e400", "1e400", "1e400"),
    ("18446744073709551615", 2**64 - 1, 2**64 - 1),
    ("18446744073709551616", 2.0**64, 2.0**64),
    ("-9223372036854775808", -(2**63), -(2**63)),
    ("22:22", "22:22", "22:22"),
    ("2020-01-01", "2020-01-01", "2020-01-01T00:00:00Z"),
    ("2001-12-14 21:59:43.10", "2001-12-14 21:59:43.10", "2001-12-14T21:59:43.1Z"),
    ("2020-02-30", "2020-02-30", "2020-02-30"),
    ("=", "=", "="),
    ("１２", "１２", "１２"),
    ("!!str 12", "12", "12"),
    ('!!int "3"', 3, 3),
    ("!!float 3", 3, 3),
    ("!!binary aGVsbG8=", "hello", "hello"),
    ("!unknown 12", "12", "12"),
    ("! 12", "12", 12),
    ("'12'", "12", "12"),
    ("{a, b: }", {"a": None, "b": None}, {"a": "", "b": ""}),
    (">-\n  a\n    b\n  c", "a\n  b\nc", "a\n\n  b\nc"),
]


@pytest.mark.parametrize(("text", "kubernetes", "kustomize"), PLAIN)
def test_scalar_is_parsed_as_by_go_programs(text: str, kubernetes: Any, kustomize: Any) -> None:
    for profile, expected in ((KUBERNETES, kubernetes), (KUSTOMIZE, kustomize)):
        value = read_yaml(f"a: {text}\n", dialect=profile)["a"]
        assert value == expected
        assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("key", "expected"),
    [("1", "1"), ("true", "true"), ("1000000.0", "1e+06"), ("0.1", "0.1"), ("0x10", "16"), (".inf", ".inf")],
)
def test_typed_key_is_a_string_for_kubernetes_and_an_error_for_kustomize(key: str, expected: str) -> None:
    assert read_yaml(f"a: {{{key}: 2}}") == {"a": {expected: 2}}
    with pytest.raises(ManifestError, match="not a string: put it in quotes"):
        read_yaml(f"a: {{{key}: 2}}", dialect=KUSTOMIZE)


def test_key_y_is_true_for_kubernetes_and_y_for_kustomize() -> None:
    assert read_yaml("y: 2") == {"true": 2}
    assert read_yaml("y: 2", dialect=KUSTOMIZE) == {"y": 2}


def test_kustomize_keeps_top_level_keys_as_written() -> None:
    assert read_yaml("1: 2", dialect=KUSTOMIZE) == {"1": 2}


@pytest.mark.parametrize("key", [None, 2**64 - 1])
def test_null_or_unsigned_key_is_refused(key: Any) -> None:
    with pytest.raises(ValueError, match="unsupported map key"):
        format_key(key)


MERGES: list[tuple[str, Any, Any]] = [
    ("b: &b {x: 1, z: 2}\ns: {<<: *b, x: 3}", {"x": 3, "z": 2}, {"x": 3, "z": 2}),
    ("b: &b {x: 1, z: 2}\ns: {x: 3, <<: *b}", {"x": 1, "z": 2}, {"x": 3, "z": 2}),
    ("b: &b {x: 1}\nc: &c {x: 2, z: 1}\ns: {<<: [*b, *c]}", {"x": 1, "z": 1}, {"x": 1, "z": 1}),
    ("s: {<<: {a: 1}}", {"a": 1}, {"a": 1}),
]


@pytest.mark.parametrize(("text", "kubernetes", "kustomize"), MERGES)
def test_merge_keys_follow_the_order_of_each_tool(text: str, kubernetes: Any, kustomize: Any) -> None:
    assert read_yaml(text)["s"] == kubernetes
    assert read_yaml(text, dialect=KUSTOMIZE)["s"] == kustomize


def test_aliases_are_copied_and_not_shared() -> None:
    value = read_yaml("a: &a {b: [1]}\nc: *a\nd: *a\n")
    value["c"]["b"].append(2)
    assert value["a"] == value["d"] == {"b": [1]}


def test_anchor_is_unknown_in_the_next_document() -> None:
    with pytest.raises(ManifestError, match="unknown anchor 'a'"):
        read_yaml_documents("a: &a 1\n---\nb: *a\n")


def test_last_duplicate_key_wins_unless_strict_or_kustomize() -> None:
    assert read_yaml("a: 1\na: 2\n") == {"a": 2}
    with pytest.raises(ManifestError, match='line 2: key "a" already set in map'):
        read_yaml("a: 1\na: 2\n", strict=True)
    with pytest.raises(ManifestError, match='line 2: mapping key "a" already defined'):
        read_yaml("a: 1\na: 2\n", dialect=KUSTOMIZE)
    with pytest.raises(ManifestError, match="already set"):
        read_yaml('{"a": {"b": 1, "b": 2}}', strict=True)


BAD: list[tuple[str | bytes, str]] = [
    ("a: b: c", "web.yaml:1: mapping values are not allowed"),
    ("x: 1\na: [1", "while parsing a flow sequence from line 2 on: correct"),
    ("a: &a [*a]", "web.yaml:1: anchor 'a' value contains itself"),
    ("a: *b", "unknown anchor 'b'"),
    ("a: .nan", "cannot be written as JSON"),
    ("a: !!int abc", "cannot decode !!str `abc` as a !!int"),
    ("a: !!null x", "as a !!null"),
    ("a: !!timestamp x", "as a !!timestamp"),
    ("a: !!binary x!", "invalid base64"),
    ("a: !!binary aGVs!bG8=", "invalid base64"),
    ("? {a: b}\n: 1", "cannot be a key"),
    ("{~: 1}", "unsupported map key null"),
    ("a: {<<: 1}", "map merge requires map or sequence of maps"),
    ("b: &b [{a: 1}]\na: {<<: *b}", "map merge requires"),
    ("x: 1\na: \0", "web.yaml:2: control characters are not allowed"),
    ("a: \ud800", "not valid Unicode"),
    (b"a: \xff", "web.yaml:1: "),
    ("a: 1\n---\nb: 2\n", "web.yaml:3: a second document"),
    ("\ta: 1", "web.yaml:1: "),
]


@pytest.mark.parametrize(("text", "said"), BAD)
def test_invalid_text_is_an_error_with_file_and_cause(text: str | bytes, said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read_yaml(text, where="apps/web.yaml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("apps/web.yaml:")
    assert caught.value.line or "Unicode" in said


LIMITED: list[tuple[str, InputLimits, str]] = [
    ("a: 1234567", InputLimits(size=5), "10 bytes are more than the 5 allowed"),
    ("é" * 4, InputLimits(size=5), "8 bytes"),
    ("[[[1]]]", InputLimits(depth=2), "line 1: nested more than 2 levels"),
    ("a: &a [[1]]\nb: [*a]", InputLimits(depth=3), "line 2: nested more than 3"),
    ("- 1\n- 2\n- 3\n", InputLimits(nodes=2), "line 3: more than 2 values"),
    ("a: &a [1, 2]\nb: *a\n", InputLimits(expanded=2), "line 2: aliases expand to more than 2"),
    ("a: &a '" + "x" * 320 + "'\nb: *a\n", InputLimits(expanded=9), "aliases expand to more than 9"),
    ("a\n---\nb\n---\nc\n", InputLimits(documents=2), "line 5: more than 2 documents"),
    ('{"a": {"b": 1}}', InputLimits(depth=1), "nested more than 1"),
    ('{"a": [1, 2, 3]}', InputLimits(nodes=2), "more than 2 values"),
]


@pytest.mark.parametrize(("text", "limits", "said"), LIMITED)
def test_exceeded_limit_is_an_error_that_names_the_limit(text: str, limits: InputLimits, said: str) -> None:
    with pytest.raises(LimitError, match=said):
        read_yaml_documents(text, limits=limits)
    read_yaml_documents(text)


def test_documents_are_read_in_order_and_empty_ones_are_none() -> None:
    assert read_yaml_documents("a: 1\n---\n---\n# nothing\n---\nb\n") == [{"a": 1}, None, None, "b"]
    assert read_yaml_documents("") == []
    assert read_yaml("# only a comment\n") is None


def test_byte_order_mark_is_not_part_of_the_first_key() -> None:
    assert read_yaml("\ufeffa: 1") == {"a": 1}
    assert read_yaml("a: é".encode("utf-16")) == {"a": "é"}


def test_json_is_read_with_its_own_escapes() -> None:
    assert read_yaml('{"a":\t"\\ud83d\\ude00"}') == {"a": "😀"}
    assert read_yaml("{a: b}") == {"a": "b"}


@pytest.mark.parametrize("profile", YamlDialect)
def test_python_parser_gives_the_same_values_as_libyaml(profile: YamlDialect, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"a: {text}\nb: |\n  x\n" for text, _, _ in PLAIN]
    expected = [read_yaml(text, dialect=profile) for text in texts]
    monkeypatch.setattr(kubernetes_yaml_parser, "_create_parser", kubernetes_yaml_parser._build_python_parser)
    assert [read_yaml(text, dialect=profile) for text in texts] == expected
    for text, _ in BAD:
        with pytest.raises(ManifestError):
            read_yaml(text)
    with pytest.raises(LimitError):
        read_yaml("[" * 100_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2020-1-1", "2020-01-01T00:00:00Z"),
        ("2020-02-29", "2020-02-29T00:00:00Z"),
        ("2100-02-29", None),
        ("2020-01-01t1:2:3Z", "2020-01-01T01:02:03Z"),
        ("2020-01-01T10:00:00.120+02:00", "2020-01-01T10:00:00.12+02:00"),
        ("2020-01-01T10:00:00-00:00", "2020-01-01T10:00:00Z"),
        ("2020-01-01T24:00:00Z", None),
        ("2020-01-01T10:00:00", None),
        ("20-01-01", None),
    ],
)
def test_timestamp_is_parsed_as_by_go(text: str, expected: str | None) -> None:
    assert normalize_timestamp(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb", "a\nb"),
        ("a\n  b\n", "a\n\n  b\n"),
        ("a\n\n", "a\n\n\n"),
        ("  a\nb\nc", "  a\nb c"),
        ("a \n  b", "a \n  b"),
    ],
)
def test_refolding_changes_only_what_kustomize_changes(text: str, expected: str) -> None:
    assert refold_as_kustomize(text) == expected
