"""Tables and wrapped lines fit a narrow terminal; output to a pipe is not wrapped."""

from __future__ import annotations

import io

import pytest

from argosy.cli.tables import StyledText, TerminalOutput, format_table, measure_width, wrap_text

HEADINGS = ("APP", "STATE", "CAUSE", "FIX", "")
CAUSE = (
    "targetRevision stage1-complete: path serving/vllm/pvc-mistral-24b.yaml not in branch; main renders, and"
    " everything that it asks for is there"
)
STATE = StyledText("\x1b[33m? ComparisonError\x1b[0m")
ROWS = [["stage01-model-serving", STATE, CAUSE, "main, includeSelectors: false", "[auto]"]]


def words(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_wrapped_column_is_complete_and_lines_fit_the_width(width: int) -> None:
    lines = format_table(HEADINGS, ROWS, width, "CAUSE")
    assert max(map(measure_width, lines)) <= width
    if width <= 80:
        assert CAUSE in words(lines)
    else:
        assert all(word in words(lines) for word in CAUSE.split())
    assert not any("…" in line for line in lines)


def test_pipe_and_wide_terminal_print_each_row_on_one_line() -> None:
    assert format_table(HEADINGS, ROWS, None, "CAUSE") == format_table(HEADINGS, ROWS, 400, "CAUSE")
    assert len(format_table(HEADINGS, ROWS, None, "CAUSE")) == 2


def test_column_that_is_not_wrapped_is_truncated_with_an_ellipsis() -> None:
    lines = format_table(("NAME", "WHY"), [["models", CAUSE]], 40)
    assert max(map(len, lines)) <= 40 and lines[1].endswith("…")


def test_long_line_wraps_with_indent_and_keeps_long_words_whole() -> None:
    address = "oci://registry.example.com/" + "x" * 90
    lines = wrap_text(f"  model  InferenceService/one  {address} → again and again and again and again", 80, 6)
    assert f"      {address}" in lines[1] and lines[0].startswith("  model  Inf")
    assert all(line.startswith("      ") for line in lines[1:])


def test_wrapping_keeps_aligning_spaces_and_short_lines() -> None:
    assert wrap_text("a   b", 80) == ["a   b"]
    assert wrap_text("kind      name " + "word " * 20, 40)[0].startswith("kind      name word")


def test_output_that_is_not_a_terminal_is_not_wrapped() -> None:
    assert TerminalOutput(io.StringIO()).wrap_text("word " * 40) == ["word " * 40]
