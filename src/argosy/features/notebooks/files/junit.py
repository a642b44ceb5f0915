"""JUnit report of a run: one test case per cell.

In: the summary of a run. Out: JUnit XML. Never: emits a character that XML forbids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from argosy.features.notebooks.files.per_cell_run_summary import CellSummary, NotebookRunSummary, describe_change

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(summaries: Sequence[NotebookRunSummary]) -> str:
    suites = "\n".join(_render_suite(summary) for summary in summaries)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{suites}\n</testsuites>\n'


def _render_suite(summary: NotebookRunSummary) -> str:
    cases = [_render_case(summary, cell) for cell in summary.cells]
    cases.append(_render_notebook_case(summary, any("<failure" in case for case in cases)))
    failed = sum("<failure" in case for case in cases)
    skipped = sum("<skipped" in case for case in cases)
    counts = f'tests="{len(cases)}" failures="{failed}" errors="0" skipped="{skipped}" time="{summary.seconds:.3f}"'
    return "\n".join([f"<testsuite name={_quote_attribute(summary.notebook)} {counts}>", *cases, "</testsuite>"])


def _render_case(summary: NotebookRunSummary, cell: CellSummary) -> str:
    name = f"cell[{cell.index}] {cell.title}"
    parts = []
    if cell.status == "skipped" and not cell.is_bad:
        parts.append("<skipped/>")
    for message, text in _list_failures(summary, cell):
        parts.append(f"<failure message={_quote_attribute(message)}>{_escape_text(text)}</failure>")
    non_blocking = [finding for finding in cell.findings if not summary.is_blocking(finding)]
    if non_blocking:
        findings_text = "\n".join(f"{finding['severity']}: {finding['message']}" for finding in non_blocking)
        parts.append(f"<system-out>{_escape_text(findings_text)}</system-out>")
    return _render_case_element(summary, name, cell.seconds, parts)


def _list_failures(summary: NotebookRunSummary, cell: CellSummary) -> Iterator[tuple[str, str]]:
    if cell.status == "failed":
        yield cell.error or "failed", cell.traceback
    for finding in cell.findings:
        if summary.is_blocking(finding):
            yield f"{finding['category']}: {finding['message']}", str(finding.get("suggestion") or "")
    if cell.difference is not None:
        yield f"differs from the golden notebook: {describe_change(cell.difference)}", cell.difference.to_wire()["diff"]


def _render_notebook_case(summary: NotebookRunSummary, has_failed: bool) -> str:
    """Test case for failures that belong to no single cell."""
    blocking_findings = [finding for finding in summary.notebook_findings if summary.is_blocking(finding)]
    parts = [f"<failure message={_quote_attribute(str(finding['message']))}/>" for finding in blocking_findings]
    if not summary.passed and not has_failed and not parts:
        parts = [f"<failure message={_quote_attribute(summary.error)}/>"]
    return _render_case_element(summary, "notebook", summary.seconds, parts)


def _render_case_element(summary: NotebookRunSummary, name: str, seconds: float, parts: list[str]) -> str:
    start_tag = (
        f'  <testcase classname={_quote_attribute(summary.notebook)} name={_quote_attribute(name)} time="{seconds:.3f}"'
    )
    return f"{start_tag}>{''.join(parts)}</testcase>" if parts else f"{start_tag}/>"


def _quote_attribute(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub(" ", text), {"\n": " "})


def _escape_text(text: str) -> str:
    return escape(_FORBIDDEN.sub(" ", text))
