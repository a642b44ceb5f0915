"""JUnit report of lint remarks. In: a lint result. Out: JUnit XML. Never: emits a character that XML forbids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from argosy.cli.tables import drop_control_characters

if TYPE_CHECKING:
    from argosy.features.health_checks.lint import HealthLintRemark, LintResult


def render_junit(name: str, lint_result: LintResult, *, strict: bool = False) -> str:
    """Render one test suite with a case for each script and each faulty setting."""
    cases = list(_list_cases(lint_result))
    failure_count = sum(any(_is_failure(remark, strict) for remark in remarks) for _, _, remarks in cases)
    counts = f'tests="{len(cases)}" failures="{failure_count}" errors="0" skipped="0"'
    suite_tag = f"<testsuite name={quoteattr(name)} {counts}>"
    case_lines = [_render_case(file, place, remarks, strict) for file, place, remarks in cases]
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', suite_tag, *case_lines, "</testsuite>"])


def _list_cases(lint_result: LintResult) -> Iterator[tuple[str, str, list[HealthLintRemark]]]:
    for script in lint_result.linted_scripts:
        yield script.file, script.place, lint_result.list_script_remarks(script)
    for remark in lint_result.list_settings_remarks():
        yield remark.file, remark.place, [remark]


def _is_failure(remark: HealthLintRemark, strict: bool) -> bool:
    return strict or remark.severity == "error"


def _render_case(file: str, place: str, remarks: Sequence[HealthLintRemark], strict: bool) -> str:
    case_tag = f"  <testcase classname={_quote_attribute(file)} name={_quote_attribute(place or file)}"
    failures = [_render_remark(remark) for remark in remarks if _is_failure(remark, strict)]
    notes = [_render_remark(remark) for remark in remarks if not _is_failure(remark, strict)]
    parts = [f"<failure message={_quote_attribute('; '.join(failures))}/>"] if failures else []
    parts += [f"<system-out>{escape(drop_control_characters('; '.join(notes)))}</system-out>"] if notes else []
    return f"{case_tag}>{''.join(parts)}</testcase>" if parts else f"{case_tag}/>"


def _render_remark(remark: HealthLintRemark) -> str:
    advice = f" ({remark.advice})" if remark.advice else ""
    return f"{remark.file}:{remark.line}: {remark.rule} {remark.message}{advice}"


def _quote_attribute(text: str) -> str:
    return quoteattr(drop_control_characters(text))
