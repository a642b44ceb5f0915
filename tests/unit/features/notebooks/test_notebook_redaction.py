"""What must not be shown is not shown, and what may be is left alone."""

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
def test_a_secret_is_not_shown_in(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_secrets_that_are_known_are_taken_out_wherever_they_stand() -> None:
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
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("text", ["KEY_" * 5000, "password" * 2500, "://" + "a" * 20000, "A1" * 10000 + "!"])
def test_long_texts_are_read_through_in_no_time(text: str) -> None:
    assert redact(text[:2000])  # an expression that tries all ways would not end


def test_a_mask_leaves_two_characters_of_each_end() -> None:
    assert (mask_secret("abcdef"), mask_secret("abcd")) == ("ab***ef", "***")


@pytest.mark.parametrize(("name", "tells"), [("API_TOKEN", True), ("DB_PASSWORD", True), ("HOME", False)])
def test_a_variable_is_known_by_its_name(name: str, tells: bool) -> None:
    assert is_secret_name(name) is tells
