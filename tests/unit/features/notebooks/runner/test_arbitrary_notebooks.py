"""Property tests: comparing and validating an arbitrary notebook terminates, and equal notebooks match."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from argosy.features.notebooks.files.html_report import render_report
from argosy.features.notebooks.files.per_cell_run_summary import summarize
from argosy.features.notebooks.runner.finding_collector import RunObserver
from argosy.features.notebooks.runner.golden_notebook_comparison import compare_to_wire
from argosy.features.notebooks.runner.run_request import ComparisonConfig, ValidationConfig
from argosy.features.notebooks.runner.tolerant_text_comparison import Match, Normalizer
from support.examples import examples

JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=9),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
TEXT = some.text(max_size=60) | some.lists(some.text(max_size=20), max_size=3)
MIME = some.sampled_from(["text/plain", "text/html", "image/png", "image/svg+xml", "application/json", "x/y+json", "a"])
NAME = some.sampled_from(["stdout", "stderr"])
OUTPUT = some.one_of(
    some.fixed_dictionaries({"output_type": some.just("stream"), "name": NAME, "text": TEXT}),
    some.fixed_dictionaries({
        "output_type": some.sampled_from(["display_data", "execute_result"]),
        "data": some.dictionaries(MIME, TEXT | JSON, max_size=3),
    }),
    some.fixed_dictionaries({"output_type": some.just("error"), "ename": some.text(max_size=5), "evalue": TEXT}),
    some.dictionaries(some.text(max_size=5), JSON, max_size=2),
)  # fmt: skip
LINES = some.text(max_size=20) | some.sampled_from([
    "x = f()", "def f():", "    return", "  y", "!ls", "%time", "%%bash", "try:", "except:", "    pass", "import os",
    "os.system(x)", "assert (x, 1)", "a = b.c(d)[e]", "x?", "#NBVAL_SKIP", "lambda: 0", "f'{x!r}'", "\\", "'''",
    "await g()", "x[0] = nan",
])  # fmt: skip
CELL = some.fixed_dictionaries(
    {"cell_type": some.sampled_from(["code", "markdown", "raw", ""])},
    optional={
        "source": some.lists(LINES, max_size=6).map("\n".join),
        "outputs": some.lists(OUTPUT, max_size=3),
        "metadata": some.just({}) | some.fixed_dictionaries({"tags": JSON}),
        "execution_count": some.none() | some.integers(0, 9),
    },
)
NOTEBOOK = some.fixed_dictionaries({"cells": some.lists(CELL, max_size=5), "metadata": some.just({})})
HOW = Normalizer.create(exact=False, tolerance=1e-4, hide_times=True, patterns=())


@settings(max_examples=examples(40), deadline=None)
@given(NOTEBOOK, NOTEBOOK)
def test_notebook_matches_itself_and_comparison_is_symmetric(one: dict[str, Any], other: dict[str, Any]) -> None:
    for strategy in ("normalized", "exact"):
        settings = ComparisonConfig(strategy=strategy)
        assert compare_to_wire(one, one, settings)["result"] == "matched"
        there, back = compare_to_wire(one, other, settings), compare_to_wire(other, one, settings)
        assert there["mismatchedCells"] + there["matchedCells"] == there["totalCells"]
        if there["totalCells"] == back["totalCells"] == len(one["cells"]):
            assert (there["result"] == "matched") == (back["result"] == "matched")


@settings(max_examples=examples(40), deadline=None)
@given(NOTEBOOK, some.sampled_from(["learning", "production"]))
def test_arbitrary_notebook_can_be_validated_and_rendered(notebook: dict[str, Any], level: str) -> None:
    watch = RunObserver(notebook, ValidationConfig(level=level, require_exit_codes=True, check_output_types=True))
    watch.check_source()
    for index, cell in enumerate(notebook["cells"]):
        watch.build_question(index)
        watch.check_cell(index, cell, "")
    watch.finish()
    cells = [
        {"cell_index": i, "cell_type": c["cell_type"], "status": "failed"} for i, c in enumerate(notebook["cells"])
    ]
    results = {"cells": cells, "findings": watch.to_wire(), "notebook_path": "n", "status": "failed", "error": "",
               "execution_duration_seconds": 1, "statistics": {}}  # fmt: skip
    page = render_report(summarize(results, notebook, notebook, ComparisonConfig(), {"level": level}), notebook)
    assert "<script" not in page


@given(
    some.floats(allow_nan=False, allow_infinity=False),
    some.floats(-1, 1),
    some.sampled_from(["{!r}", "loss: {!r} (n=3)"]),
)
def test_numbers_in_text_match_exactly_if_within_the_tolerance(number: float, apart: float, shape: str) -> None:
    other = number + apart
    near = math.isclose(number, other, rel_tol=1e-4, abs_tol=1e-4)
    assert (HOW.compare_texts(shape.format(number), shape.format(other)) < Match.WHITESPACE_ONLY) is near


@given(some.text(), some.text())
def test_text_comparison_is_symmetric(one: str, other: str) -> None:
    assert HOW.compare_texts(one, one) is Match.SAME
    assert (HOW.compare_texts(one, other) is Match.DIFFERENT) == (HOW.compare_texts(other, one) is Match.DIFFERENT)


KEYS = some.sampled_from(
    ["values", "result", "exit", "x", "type", "shape", "nan", "inf", "columns", "length", "min", "max"]
)
WORDS = some.sampled_from(["DataFrame", "NoneType", "dict", "float"])
ANSWER = some.recursive(
    JSON | WORDS,
    lambda inner: some.dictionaries(KEYS, inner, max_size=5) | some.lists(inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=examples())
@given(ANSWER, some.sampled_from(["", "2,2", "x"]))
def test_arbitrary_kernel_answer_does_not_crash_the_validation(answer: Any, shape: str) -> None:
    expected = [{"cell": 0, "type": "DataFrame", "shape": shape, "minValue": "0", "maxValue": "1", "notEmpty": True}]
    cell = {"cell_type": "code", "source": "x = f()\n!ls", "outputs": []}
    watch = RunObserver({"cells": [cell]}, ValidationConfig.from_wire({"expectedOutputs": expected}))
    watch.build_question(0)
    watch.check_cell(0, cell, repr(json.dumps(answer)))
    watch.check_cell(0, cell, repr(json.dumps({"values": {"x": answer}, "result": answer, "exit": answer})))
    watch.to_wire()
