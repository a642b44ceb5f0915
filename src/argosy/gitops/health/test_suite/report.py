"""Renders test results. In: results. Out: JSON data, JUnit XML, or one line per case.

Never: lets the text of a script break the format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from typing import Any, Final

from argosy.gitops.health.test_suite.case_types import CaseResult

_MAX_VALUE_LENGTH: Final = 400
# XML 1.0 cannot represent these, not even as a reference.
_INVALID_XML_CHARACTER: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CONTROL_CHARACTER: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def build_report(outcomes: Sequence[CaseResult]) -> dict[str, Any]:
    """Build the JSON report. `skipped` is always 0, because every case is run."""
    passed = sum(outcome.ok for outcome in outcomes)
    cases = [outcome.to_wire() for outcome in outcomes]
    return {"total": len(cases), "passed": passed, "failed": len(cases) - passed, "skipped": 0, "cases": cases}


def render_line(outcome: CaseResult) -> str:
    """Render one line per result, even if a message has line breaks."""
    case = outcome.case
    kind = f"{case.group}/{case.kind}" if case.group else case.kind
    prefix = f"{'ok' if outcome.ok else 'FAIL'} {case.suite} {kind} {case.name}"
    if outcome.ok:
        return _escape_control_characters(
            prefix if outcome.expected is not None else f"{prefix}: {render_value(outcome.got)}"
        )
    expected = "" if outcome.expected is None else f" expected {render_value(outcome.expected)},"
    return _escape_control_characters(f"{prefix}:{expected} got {render_value(outcome.got)}")


def render_value(value: Any) -> str:
    """Render a health as `Healthy "text"`, an error as its message, all else as JSON."""
    if isinstance(value, dict) and value.keys() == {"status", "message"}:
        return _truncate(f"{value['status'] or 'no health'} {_render_json(value['message'])}")
    if isinstance(value, dict) and value.keys() == {"error"}:
        return _truncate(f"error: {value['error']}")
    return _truncate(_render_json(value))


def render_junit(outcomes: Sequence[CaseResult]) -> str:
    """Render JUnit XML with one suite per type of test."""
    suites: dict[str, list[CaseResult]] = {}
    for outcome in outcomes:
        suites.setdefault(outcome.case.suite, []).append(outcome)
    total, failed = len(outcomes), sum(not outcome.ok for outcome in outcomes)
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="argosy health" tests="{total}" failures="{failed}" errors="0" skipped="0">',
    ]
    for name, members in suites.items():
        failed_members = sum(not outcome.ok for outcome in members)
        parts.append(
            f'  <testsuite name="{name}" tests="{len(members)}" failures="{failed_members}" errors="0" skipped="0">'
        )
        parts += [_render_case(outcome) for outcome in members]
        parts.append("  </testsuite>")
    return "\n".join([*parts, "</testsuites>", ""])


def _render_case(outcome: CaseResult) -> str:
    case = outcome.case
    kind = f"{case.group}/{case.kind}" if case.group else case.kind
    element = f'    <testcase classname="{_escape_xml(f"{case.suite} {kind}")}" name="{_escape_xml(case.name)}"'
    if outcome.ok:
        return f"{element}/>"
    expected = "" if outcome.expected is None else f"expected {render_value(outcome.expected)}, "
    message = f'      <failure message="{_escape_xml(f"{expected}got {render_value(outcome.got)}")}"/>'
    return f"{element}>\n{message}\n    </testcase>"


def _render_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _escape_xml(text: str) -> str:
    clean = _INVALID_XML_CHARACTER.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return escape(clean).replace("\n", "&#10;").replace("\t", "&#9;").replace("\r", "&#13;")


def _escape_control_characters(text: str) -> str:
    return _CONTROL_CHARACTER.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _truncate(text: str) -> str:
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[:_MAX_VALUE_LENGTH]} …"
