"""JSON bodies: Go's error messages for invalid JSON, duplicate keys, and the depth limit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import LimitError, ManifestError
from argosy.kube.objects import read_json
from support.examples import examples

BAD: list[tuple[bytes, str]] = [
    (b"", "unexpected end of JSON input"),
    (b"  ", "unexpected end of JSON input"),
    (b'{"a":', "unexpected end of JSON input"),
    (b'{"a', "unexpected end of JSON input"),
    (b"[1,", "unexpected end of JSON input"),
    (b"{bad", "invalid character 'b' looking for beginning of object key string"),
    (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
    (b"[1,]", "invalid character ']' looking for beginning of value"),
    (b'{"a" 1}', "invalid character '1' after object key"),
    (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
    (b"[1 2]", "invalid character '2' after array element"),
    (b"[01]", "invalid character '1' after array element"),
    (b"{} x", "invalid character 'x' after top-level value"),
    (b"'a'", "invalid character '\\'' looking for beginning of value"),
    (b"trux", "invalid character 'x' in literal true (expecting 'e')"),
    (b"nul", "unexpected end of JSON input"),
    (b'"a\nb"', "invalid character '\\n' in string literal"),
    (b'"\\x"', "invalid character 'x' in string escape code"),
    (b'"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
    (b"-x", "invalid character 'x' in numeric literal"),
    (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
    (b"1ex", "invalid character 'x' in exponent of numeric literal"),
    (b"1e+", "unexpected end of JSON input"),
    (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
    (b"\x00", "invalid character '\\x00' looking for beginning of value"),
    (b"[1e400]", "json: cannot unmarshal number 1e400 into Go value of type float64"),
    (b"NaN", "invalid character 'N' looking for beginning of value"),
]


@pytest.mark.parametrize(("data", "said"), BAD)
def test_invalid_json_gives_the_error_message_of_go(data: bytes, said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read_json(data)
    assert caught.value.message == said


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'"\\ud800x"', "\ufffdx"),
        (b'"\\\\ud800"', "\\ud800"),
        (b'["\\ud83d\\ude00\\ud800"]', ["😀\ufffd"]),
        (b'"\xff"', "\ufffd"),
    ],
)
def test_invalid_unicode_becomes_the_replacement_character_as_in_go(data: bytes, value: Any) -> None:
    assert read_json(data).value == value


def test_duplicate_keys_are_listed_by_path_and_the_last_value_wins() -> None:
    data = b'{"data":{"a":1,"a":2,"a":3},"spec":{"containers":[{"name":"x","name":"y"}]},"data":{"b":1}}'
    read = read_json(data, strict=True)
    assert read.value == {"data": {"b": 1}, "spec": {"containers": [{"name": "y"}]}}
    assert read.duplicates == ("data.a", "spec.containers[0].name", "data")
    assert read_json(data).duplicates == ()


@pytest.mark.parametrize("opener", [b"[", b'{"a":', b'[{"a":'])
def test_json_nested_deeper_than_the_limit_is_refused(opener: bytes) -> None:
    for data in (opener * 100_000, opener * 120 + b"1"):
        with pytest.raises((LimitError, ManifestError)):
            read_json(data)
    closed = b"[" * 101 + b"]" * 101
    with pytest.raises(LimitError, match="more than 100 levels"):
        read_json(closed)
    assert read_json(b"[" * 100 + b"]" * 100).duplicates == ()


def test_large_invalid_json_is_refused_without_a_detailed_message() -> None:
    with pytest.raises(ManifestError, match="correct the JSON"):
        read_json(b"[" + b'"a",' * 700_000)


value = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(st.characters(exclude_categories=("Cs",))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc"), inner, max_size=4),
)


@settings(max_examples=examples())
@given(value, st.booleans())
def test_valid_json_is_read_as_by_the_standard_library(original: Any, compact: bool) -> None:
    data = json.dumps(original, indent=None if compact else 2).encode()
    read = read_json(data, strict=True)
    assert read.value == original
    assert read.duplicates == ()


@settings(max_examples=examples())
@given(value, st.integers(0, 200), st.binary(max_size=2))
def test_damaged_json_is_read_or_is_a_manifest_error(original: Any, at: int, damage: bytes) -> None:
    data = json.dumps(original).encode()
    try:
        read_json(data[:at] + damage + data[at + 1 :], strict=True)
    except ManifestError as error:
        assert error.message
