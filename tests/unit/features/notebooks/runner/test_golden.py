"""Comparison of an executed notebook with its golden notebook, by visible outputs."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import pytest

from argosy.features.notebooks.runner.golden_notebook_comparison import (
    TRUNCATION_MARK,
    compare_notebooks,
    compare_to_wire,
    describe_mismatch,
)
from argosy.features.notebooks.runner.run_request import ComparisonConfig

Cell = dict[str, Any]


def code(source: str = "run()", *outputs: dict[str, Any], count: int | None = None, tags: tuple[str, ...] = ()) -> Cell:
    metadata = {"tags": list(tags)} if tags else {}
    cell = {"cell_type": "code", "source": source, "outputs": list(outputs), "metadata": metadata}
    return {**cell, "execution_count": count}


def markdown(source: str) -> Cell:
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def stream(text: str | list[str], name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def result(count: int | None = None, **data: Any) -> dict[str, Any]:
    bundle = {name.replace("__", "/").replace("_plus_", "+"): content for name, content in data.items()}
    return {"output_type": "execute_result", "data": bundle, "metadata": {}, "execution_count": count}


def display(mime: str, content: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {mime: content}, "metadata": {}}


def error(name: str, value: str = "") -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": value, "traceback": ["a", "b"]}


def notebook(*cells: Cell) -> dict[str, Any]:
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}


def verdict(golden: list[Cell], executed: list[Cell], **settings: Any) -> dict[str, Any]:
    return compare_to_wire(notebook(*executed), notebook(*golden), ComparisonConfig.from_wire(settings))


def says(golden: dict[str, Any] | str, executed: dict[str, Any] | str, **settings: Any) -> str:
    """Severity of the difference between two cells with these outputs; a string is printed text."""
    was, now = (stream(output) if isinstance(output, str) else output for output in (golden, executed))
    diffs = verdict([code("x", was)], [code("x", now)], **settings)["diffs"]
    return diffs[0]["severity"] if diffs else "matched"


# -- what the original operator gets wrong --------------------------------------------------------------------------


def test_identical_notebooks_match() -> None:
    cells = [markdown("# Title"), code("1 + 1", result(text__plain="2")), code("print(1)", stream("1\n"))]
    assert verdict(cells, cells) == {
        "strategy": "normalized",
        "result": "matched",
        "totalCells": 3,
        "matchedCells": 3,
        "mismatchedCells": 0,
        "diffs": [],
    }


@pytest.mark.parametrize(
    ("golden", "executed", "tolerance"),
    [
        ("0.00049", "0.00051", "0.0001"),  # they would differ when rounded to four places
        ("loss: 0.12345", "loss: 0.12354", "0.0001"),
        ("1234.5678", "1234.6", "0.0001"),  # relative
        ("[1.  2.5 3.  ]", "[1.     2.5001 3.    ]", "0.0001"),  # column widths change
        ("-0.0", "0.0", "0.0001"),
        ("1e-9 2e10", "1.1e-9 2.000001e10", "1e-6"),
        ("acc 0.91 (n=10)", "acc 0.905 (n=10)", "0.01"),
        ("inf nan -inf", "inf nan -inf", "0"),
    ],
)
def test_numbers_within_the_tolerance_match(golden: str, executed: str, tolerance: str) -> None:
    assert says(golden, executed, floatingPointTolerance=tolerance) == "matched"


@pytest.mark.parametrize(
    ("golden", "executed"),
    [
        ("accuracy 0.941", "accuracy 0.902"),
        ("loaded 100000 rows", "loaded 100001 rows"),  # counts are compared exactly
        ("0.5", "nan"),
        ("inf", "-inf"),
        ("version 1.26.3", "version 1.26.4"),
        ("v1.2", "v1.3"),
        ("10.0.0.1", "10.0.0.2"),
        ("model_3", "model_4"),
        ("a1", "a2"),
        ("new york", "newyork"),
        ("[1, 2]", "[1, 2, 3]"),
        ("True", "False"),
        ("x = 1.0", "x = -1.0"),
        ("2026-01-02", "2026-01-03"),  # a date without time is data, unless a custom pattern matches it
    ],
)
def test_different_values_are_a_major_difference(golden: str, executed: str) -> None:
    assert says(golden, executed) == "major"


@pytest.mark.parametrize(
    ("golden", "executed"),
    [
        ("at 2026-01-02T03:04:05Z", "at 2026-11-15T15:00:00.123456+00:00"),
        ("2026-01-02 03:04:05,123 INFO ready", "2026-01-03 13:04:05,001 INFO ready"),
        ("on 1/2/2026 3:04:05 PM", "on 11/15/2026 9:30:00 AM"),
        ("Execution time: 1.2s", "Execution time: 17.9s"),
        ("Duration: 20ms", "Duration: 3 ms"),
        ("CPU times: user 2.1 ms, sys: 3 µs, total: 2.2 ms", "CPU times: user 9.1 ms, sys: 1 µs, total: 9.2 ms"),
        ("Wall time: 1min 3s", "Wall time: 58 s"),
        ("training took 12.5 seconds", "training took 13.1 seconds"),
        ("timestamp: 1700000000", "timestamp: 1800000000"),
        ("1700000000.1234", "1800000000.4321"),
        ("100%|██| 10/10 [00:01<00:00, 9.1it/s]", "100%|██| 10/10 [00:02<00:00, 4.9it/s]"),
        ("<Model object at 0x7f2a10b3c4d0>", "<Model object at 0x7f9910b3c4d0>"),
        ("/tmp/ipykernel_12/345.py:1: UserWarning: x", "/tmp/ipykernel_99/1.py:1: UserWarning: x"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("epoch 1/2\repoch 2/2\n", "epoch 2/2\n"),
        ("a    b\n\n", "a b"),
    ],
)
def test_timestamps_durations_and_run_specific_text_are_ignored(golden: str, executed: str) -> None:
    assert says(golden, executed) == "matched"


def test_number_with_unit_s_is_compared() -> None:
    assert says("latency p99 0.5s", "latency p99 9.5s") == "major"


def test_ten_digit_amount_is_not_a_timestamp() -> None:
    assert says("revenue 1500000000", "revenue 1600000000") == "major"


def test_timestamps_are_compared_if_not_ignored() -> None:
    assert says("2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z", ignoreTimestamps=False) == "major"


def test_custom_timestamp_patterns_are_ignored() -> None:
    assert says("run 7f3a", "run 99bc", customTimestampPatterns=[r"run [0-9a-f]{4}"]) == "matched"


@pytest.mark.parametrize("pattern", ["([a-z", "[[:digit:]]+", "*"])
def test_invalid_custom_pattern_is_rejected(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"customTimestampPatterns\[0\].*; (correct it|write)"):
        says("a", "a", customTimestampPatterns=[pattern])


def test_html_is_compared_by_its_visible_text() -> None:
    table = '<style>#T_{0} {{}}</style><table id="T_{0}"><tr><td>{1}</td></tr></table>'
    one, near, far = (result(text__html=table.format(*fields)) for fields in ((1, "0.5"), (2, "0.50001"), (3, "0.7")))
    assert says(one, near) == "matched"
    assert says(one, far) == "major"


def test_display_data_is_compared() -> None:
    assert says(display("text/plain", "a"), display("text/plain", "b")) == "major"
    assert says(display("application/json", {"a": [1.0]}), display("application/json", {"a": [1.00001]})) == "matched"
    assert says(display("application/json", {"a": 1}), display("application/json", {"a": 2})) == "major"
    plot = "application/vnd.plotly.v1+json"
    assert says(display(plot, {"uid": "a", "y": [1]}), display(plot, {"uid": "b", "y": [1]})) == "matched"


def png(pixel: int, comment: bytes = b"") -> str:
    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(bytes([0, pixel]), 9 if comment else 1))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + head + chunk(b"tEXt", comment) + body + chunk(b"IEND", b"")).decode()


def test_images_are_compared_by_pixels() -> None:
    first, again, other = png(7), png(7, b"Software\0version 3.9"), png(8)
    assert says(display("image/png", first), display("image/png", again)) == "matched"
    assert says(display("image/png", first), display("image/png", other)) == "major"
    assert says(display("image/png", first), display("image/png", again), strategy="exact") == "major"
    assert says(display("image/png", "no picture"), display("image/png", first)) == "major"


@pytest.mark.parametrize(
    ("ignored", "golden", "executed"),
    [
        ("image/*", display("image/png", png(1)), display("image/png", png(2))),
        ("stderr", stream("a", "stderr"), stream("b", "stderr")),
        ("stream", stream("a"), stream("b")),
        ("display_data", display("text/plain", "a"), display("text/plain", "b")),
        ("text/html", result(text__html="a", text__plain="x"), result(text__html="b", text__plain="x")),
    ],
)
def test_ignored_output_types_are_not_compared(ignored: str, golden: Any, executed: Any) -> None:
    assert says(golden, executed) == "major"
    assert says(golden, executed, ignoreOutputTypes=[ignored]) == "matched"


def test_execution_counts_are_compared_only_if_requested() -> None:
    golden, executed = (
        [code("x", result(1, text__plain="2"), count=1)],
        [code("x", result(7, text__plain="2"), count=7)],
    )
    assert verdict(golden, executed)["result"] == "matched"
    report = verdict(golden, executed, ignoreExecutionCount=False)
    assert report["diffs"][0]["diff"] == "execution count is 7, was 1"


# -- which cells are compared ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "left_out",
    [
        {"tags": ("nbval-ignore-output",)},
        {"tags": ("nbval-skip",)},
        {"tags": ("skip-execution",)},
        {"source": "# NBVAL_IGNORE_OUTPUT\nrandom()"},
        {"source": "#NBVAL_SKIP\nrandom()"},
        {"source": "x = 1\n  # PYTEST_VALIDATE_IGNORE_OUTPUT"},
    ],
)
def test_cells_with_skip_or_ignore_marks_count_as_matched(left_out: dict[str, Any]) -> None:
    source, tags = left_out.get("source", "random()"), left_out.get("tags", ())
    report = verdict([code(source, stream("1"), tags=tags)], [code(source, stream("2"), tags=tags)])
    assert (report["result"], report["matchedCells"]) == ("matched", 1)


def test_skip_mark_outside_a_comment_is_ignored() -> None:
    source = "print('# NBVAL_SKIP')"
    assert verdict([code(source, stream("1"))], [code(source, stream("2"))])["result"] == "failed"


def test_extra_and_missing_cells_do_not_shift_other_cells() -> None:
    cells = [code(f"c{number}", stream(f"{number}")) for number in range(4)]
    added = verdict(cells, [*cells[:1], markdown("new"), *cells[1:]])
    assert [(diff["cellIndex"], diff["diffType"], diff["severity"]) for diff in added["diffs"]] == [
        (1, "extra_cell", "major")
    ]
    assert (added["totalCells"], added["matchedCells"]) == (5, 4)
    gone = verdict(cells, cells[:-1])
    assert [(diff["cellIndex"], diff["diffType"], diff["severity"]) for diff in gone["diffs"]] == [
        (3, "missing_cell", "major")
    ]


def test_injected_parameters_cell_is_not_compared() -> None:
    injected = code("alpha = 0.6", tags=("injected-parameters",))
    report = verdict([code("a", stream("1")), code("b", stream("2"))],
                    [code("a", stream("1")), injected, code("b", stream("3"))])  # fmt: skip
    assert [diff["cellIndex"] for diff in report["diffs"]] == [2]
    assert report["totalCells"] == 2


def test_different_cell_type_is_critical() -> None:
    report = verdict([code("text")], [markdown("text")])
    assert [(diff["cellType"], diff["severity"]) for diff in report["diffs"]] == [("markdown", "critical")]


def test_markdown_is_compared_by_source_and_raw_cells_are_ignored() -> None:
    assert verdict([markdown("# A")], [markdown("# B")])["diffs"][0]["severity"] == "major"
    raw = {"cell_type": "raw", "source": "a"}
    assert verdict([raw], [{**raw, "source": "b"}])["totalCells"] == 0


def test_changed_code_with_the_same_output_matches() -> None:
    assert (
        verdict([code("1 + 1", result(text__plain="2"))], [code("2", result(text__plain="2"))])["result"] == "matched"
    )


# -- severities and texts -------------------------------------------------------------------------------------------


def test_new_error_output_is_critical() -> None:
    diff = verdict([code("x", stream("1"))], [code("x", stream("1"), error("ValueError", "bad"))])["diffs"][0]
    assert (diff["diffType"], diff["severity"], diff["actual"]) == (
        "execution_error",
        "critical",
        "1\nValueError: bad",
    )


def test_errors_are_compared_by_name_and_value_without_traceback() -> None:
    again = {**error("ValueError", "bad 1"), "traceback": ["other"]}
    assert says(error("ValueError", "bad 1"), again) == "matched"
    assert says(error("ValueError", "bad 1"), error("KeyError", "bad 1")) == "major"


def test_different_output_type_is_critical_and_whitespace_is_minor() -> None:
    assert says(stream("1"), result(text__plain="1")) == "critical"
    assert says("a b", "a  b", strategy="exact") == "minor"


def test_exact_strategy_has_no_tolerance() -> None:
    assert says("0.5000001", "0.5", strategy="exact") == "major"
    assert says("2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z", strategy="exact") == "major"


def test_stream_chunking_and_interleaving_are_ignored() -> None:
    golden = [code("x", stream("a\n"), stream("w", "stderr"), stream("b\n"))]
    assert verdict(golden, [code("x", stream("w", "stderr"), stream(["a\n", "b\n"]))])["result"] == "matched"


def test_long_texts_in_differences_are_truncated() -> None:
    diff = verdict([code("x", stream("a" * 600))], [code("x", stream("\n".join("b" * 900)))])["diffs"][0]
    assert diff["expected"] == "a" * 500 + TRUNCATION_MARK
    assert diff["actual"].endswith(TRUNCATION_MARK)
    assert len(diff["diff"]) == 1000 + len(TRUNCATION_MARK)


def test_mismatch_message_has_the_cell_counts() -> None:
    report = verdict([code("x", stream("a")), code("y")], [code("x", stream("b")), code("y")])
    assert describe_mismatch(report) == "golden notebook comparison failed (1/2 cells matched)"


def test_golden_notebook_without_outputs_does_not_match() -> None:
    comparison = compare_notebooks(notebook(code("x", stream("1"))), notebook(code("x")), ComparisonConfig())
    assert comparison.differences
    assert comparison.note.startswith("the golden notebook has no outputs;")


def test_cells_matched_within_the_tolerance_are_counted() -> None:
    golden = notebook(code("x", stream("0.5")), code("y", stream("1")))
    assert (
        compare_notebooks(
            notebook(code("x", stream("0.50001")), code("y", stream("1"))), golden, ComparisonConfig()
        ).matched_within_tolerance
        == 1
    )


@pytest.mark.parametrize("noise", ["1" * 20_000, "took" + " " * 20_000, "url(#" * 4_000, "[1" * 10_000, "a" * 20_000])
def test_comparison_of_adversarial_outputs_terminates(noise: str) -> None:
    """A backtracking regular expression would not finish."""
    assert says(noise, noise + "x")
    assert says(result(text__html=noise), result(text__html=noise + "x"))


def test_reported_differences_are_limited_to_100() -> None:
    golden, executed = ([code(f"c{number}", stream(text)) for number in range(150)] for text in ("a", "b"))
    report = verdict(golden, executed)
    assert (report["mismatchedCells"], len(report["diffs"])) == (150, 100)


def test_deeply_nested_json_is_a_difference_and_does_not_crash() -> None:
    nested: Any = 1
    for _ in range(5000):
        nested = [nested]
    plain = "[" * 5000
    assert says(display("application/json", nested), display("application/json", [nested])) == "major"
    assert says(display("application/json", plain), display("application/json", plain + "[")) == "major"
