"""Redaction hides secrets and leaves other text unchanged."""

from __future__ import annotations

import pytest

from argosy.features.notebooks.redaction import is_secret_name, mask_secret, redact

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


def test_mask_secret_keeps_two_characters_at_each_end_of_longer_values() -> None:
    assert (mask_secret("abcdef"), mask_secret("abcd")) == ("ab***ef", "***")


@pytest.mark.parametrize(("name", "tells"), [("API_TOKEN", True), ("DB_PASSWORD", True), ("HOME", False)])
def test_secret_variables_are_detected_by_name(name: str, tells: bool) -> None:
    assert is_secret_name(name) is tells
