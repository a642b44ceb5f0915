"""JUnit report of a run: one test case per cell.

In: the summary of a run. Out: JUnit XML. Never: emits a character that XML forbids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from argosy.features.notebooks.files.summary import CellSummary, Summary, change_of

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(summaries: Sequence[Summary]) -> str:
    suites = "\n".join(_suite(each) for each in summaries)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{suites}\n</testsuites>\n'


def _suite(summary: Summary) -> str:
    cases = [_case(summary, cell) for cell in summary.cells]
    cases.append(_whole(summary, any("<failure" in case for case in cases)))
    failed = sum("<failure" in case for case in cases)
    skipped = sum("<skipped" in case for case in cases)
    counts = f'tests="{len(cases)}" failures="{failed}" errors="0" skipped="{skipped}" time="{summary.seconds:.3f}"'
    return "\n".join([f"<testsuite name={_quoted(summary.notebook)} {counts}>", *cases, "</testsuite>"])


def _case(summary: Summary, cell: CellSummary) -> str:
    name = f"cell[{cell.index}] {cell.title}"
    parts = []
    if cell.status == "skipped" and not cell.is_bad:
        parts.append("<skipped/>")
    for message, text in _failures(summary, cell):
        parts.append(f"<failure message={_quoted(message)}>{_text(text)}</failure>")
    beside = [each for each in cell.findings if not summary.blocks(each)]
    if beside:
        told = "\n".join(f"{each['severity']}: {each['message']}" for each in beside)
        parts.append(f"<system-out>{_text(told)}</system-out>")
    return _element(summary, name, cell.seconds, parts)


def _failures(summary: Summary, cell: CellSummary) -> Iterator[tuple[str, str]]:
    if cell.status == "failed":
        yield cell.error or "failed", cell.traceback
    for each in cell.findings:
        if summary.blocks(each):
            yield f"{each['category']}: {each['message']}", str(each.get("suggestion") or "")
    if cell.difference is not None:
        yield f"differs from the golden notebook: {change_of(cell.difference)}", cell.difference.as_wire()["diff"]


def _whole(summary: Summary, has_failed: bool) -> str:
    """Test case for failures that belong to no single cell."""
    blocking = [each for each in summary.of_all if summary.blocks(each)]
    parts = [f"<failure message={_quoted(str(each['message']))}/>" for each in blocking]
    if not summary.passed and not has_failed and not parts:
        parts = [f"<failure message={_quoted(summary.error)}/>"]
    return _element(summary, "notebook", summary.seconds, parts)


def _element(summary: Summary, name: str, seconds: float, parts: list[str]) -> str:
    head = f'  <testcase classname={_quoted(summary.notebook)} name={_quoted(name)} time="{seconds:.3f}"'
    return f"{head}>{''.join(parts)}</testcase>" if parts else f"{head}/>"


def _quoted(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub(" ", text), {"\n": " "})


def _text(text: str) -> str:
    return escape(_FORBIDDEN.sub(" ", text))
