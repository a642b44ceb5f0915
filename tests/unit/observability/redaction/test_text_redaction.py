"""Redaction hides secrets and leaves other text unchanged."""

from __future__ import annotations

import json

import pytest

from argosy.observability.redaction.text_redaction import ValueRedactor, list_json_forms, list_lines, redact

HIDDEN = [
    ("cloning https://me:s3cret@example.org/a.git", "cloning https://example.org/a.git"),
    ("papermill --password hunter22 in.ipynb", "papermill --password [REDACTED] in.ipynb"),
    ("curl --token=abc", "curl --token=[REDACTED]"),
    ("mysql -p hunter22", "mysql -p [REDACTED]"),
    ("AWS_SECRET_ACCESS_KEY=abc/def", "AWS_SECRET_ACCESS_KEY=[REDACTED]"),
    ("db_password: hunter22", "db_password: [REDACTED]"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\nok", "[REDACTED-SSH-KEY]\nok"),
    ("-----BEGIN RSA PRIVATE KEY-----\ncut off", "[REDACTED-SSH-KEY]"),
    ("got " + "Ab1" * 20, "got [REDACTED-BASE64]"),
]


@pytest.mark.parametrize(("text", "shown"), HIDDEN, ids=[redacted for _, redacted in HIDDEN])
def test_secrets_in_text_are_redacted(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_known_secret_values_are_redacted_unless_too_short() -> None:
    assert redact("a pa55word and pa55word-long", ["pa55word", "pa55word-long"]) == "a [REDACTED] and [REDACTED]"
    assert redact("x is short", ["x"]) == "x is short"


@pytest.mark.parametrize(
    "text",
    [
        "commit 0123456789abcdef0123456789abcdef01234567",
        "sha256:" + "0a" * 32,
        "num_tokens: 512, tokens=3",
        "KeyError: 'price'",
        "https://example.org/a.git",
        "/mnt/models/a/very/long/path/that/goes/on/and/on/model.joblib",
    ],
)
def test_text_without_secrets_is_unchanged(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("text", ["KEY_" * 5000, "password" * 2500, "://" + "a" * 20000, "A1" * 10000 + "!"])
def test_redaction_of_long_text_terminates(text: str) -> None:
    assert redact(text[:2000])  # a regular expression with catastrophic backtracking would not end


def test_value_inside_another_value_leaves_no_remainder() -> None:
    assert ValueRedactor(["pass", "password", ""], "***").redact_text("a password, a pass") == "a ***, a ***"


def test_strings_are_redacted_at_any_depth_and_keys_are_kept() -> None:
    redactor = ValueRedactor(["s3cret"])
    nested = {"s3cret": ["a s3cret", ("s3cret", 1, None)], "b": {"c": True}}
    assert redactor.redact_strings(nested) == {"s3cret": ["a [REDACTED]", ["[REDACTED]", 1, None]], "b": {"c": True}}


def test_lines_of_a_value_are_redacted_however_they_end() -> None:
    assert list_lines("first line\r\nsecond line\rthird line\nno", 6) >= {"first line", "second line", "third line"}
    assert "no" not in list_lines("first line\nno", 6)


def test_value_is_redacted_as_json_writes_it() -> None:
    value = 'p"\u00e4ss'
    redactor = ValueRedactor(list_json_forms(value))
    for text in (value, json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert redactor.redact_text(text).strip('"') == "[REDACTED]"
