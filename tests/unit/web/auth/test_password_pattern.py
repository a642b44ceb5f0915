"""passwordPattern is read as Go reads it, and a hostile one does not block the server."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.web.auth.passwords import check_password_pattern
from support.counted_calls import calls_of


@pytest.mark.parametrize(
    ("pattern", "password"),
    [("", "a-long-password"), ("^[[:alnum:]]{4,}$", "abcd1"), (r"^\pL+$", "passwörd"), ("(?i)^A+$", "aA")],
)
def test_password_that_matches_is_accepted(pattern: str, password: str) -> None:
    check_password_pattern(password, pattern)


@pytest.mark.parametrize(
    ("pattern", "password", "message"),
    [
        ("", "short", "does not match passwordPattern"),
        ("^a+$", "aa\n", "does not match passwordPattern"),
        ("(?=.*[0-9]).*", "abc1", "invalid or unsupported Perl syntax"),
        (".*", "x" * 73, "longer than 72 bytes"),
    ],
)
def test_other_password_or_pattern_is_rejected(pattern: str, password: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_password_pattern(password, pattern)


def test_pattern_does_not_backtrack() -> None:
    def check(password: str) -> None:
        with pytest.raises(UserError):
            check_password_pattern(password, "^(a+)+$")

    assert calls_of(check, "a" * 60 + "!") < 500_000
