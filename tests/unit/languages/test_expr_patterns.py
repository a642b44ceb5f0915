"""`matches` of expressions reads patterns as Go does, and never backtracks."""

from __future__ import annotations

import pytest

from argosy.languages.expr import ExprError, compile_expression
from support.counted_calls import calls_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'team-a' matches '^team-'", True),
        ("name matches '^(?i)MODELS$'", True),
        ("'a\\n' matches '^a$'", False),
        ("'é' matches '\\\\w'", False),
        ("'é' matches '^\\\\pL$'", True),
        ("nil matches 'a'", False),
    ],
)
def test_pattern_matches_as_in_go(text: str, expected: bool) -> None:
    assert compile_expression(text).evaluate({"name": "models"}) is expected


@pytest.mark.parametrize("pattern", ["(?=a)", "(a)\\\\1", "a++"])
def test_pattern_invalid_in_go_is_an_error(pattern: str) -> None:
    with pytest.raises(ExprError, match="invalid pattern"):
        compile_expression(f"'a' matches '{pattern}'").evaluate({})


def test_hostile_pattern_takes_bounded_work() -> None:
    expression = compile_expression("text matches '^(a+)+$'")
    assert calls_of(lambda text: expression.evaluate({"text": text}), "a" * 50_000 + "!") < 500_000


def test_text_too_long_for_its_pattern_is_an_error() -> None:
    with pytest.raises(ExprError, match="too long for the pattern"):
        compile_expression("text matches '(a|b)*c{900}'").evaluate({"text": "a" * 90_000})
