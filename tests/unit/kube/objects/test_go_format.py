"""Values are formatted as Go's fmt package formats them; the expected texts are recorded from Go."""

from __future__ import annotations

import json
from typing import Any

import pytest

from argosy.kube.objects.go_format import format_go_syntax, format_value, get_go_type
from support.paths import TESTS

ROWS = json.loads((TESTS / "data" / "go-format.json").read_text())["rows"]


def list_differences(column: int, format_like_go: Any) -> list[tuple[str, str, str]]:
    results = ((row[0], format_like_go(json.loads(row[0])), row[column]) for row in ROWS)
    return [(text, actual, expected) for text, actual, expected in results if actual != expected]


@pytest.mark.parametrize(
    ("column", "format_like_go"),
    [(1, format_value), (2, format_go_syntax), (3, get_go_type)],
    ids=["%v", "%#v", "%T"],
)
def test_values_are_formatted_as_recorded_from_go(column: int, format_like_go: Any) -> None:
    assert len(ROWS) > 400
    assert list_differences(column, format_like_go) == []


def test_values_that_are_not_json_are_formatted_by_the_caller() -> None:
    assert format_value([1, {"a": object}], format_other=lambda value: "0x0") == "[1 map[a:0x0]]"
