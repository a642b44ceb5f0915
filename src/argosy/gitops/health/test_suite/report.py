"""Renders test results. In: results. Out: JSON data, JUnit XML, or one line per case.

Never: lets the text of a script break the format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from typing import Any, Final

from argosy.gitops.health.test_suite.cases import Outcome

_LONGEST: Final = 400
# XML 1.0 cannot represent these, not even as a reference.
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_LINE: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def report(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Build the JSON report. `skipped` is always 0, because every case is run."""
    passed = sum(outcome.ok for outcome in outcomes)
    cases = [outcome.as_json() for outcome in outcomes]
    return {"total": len(cases), "passed": passed, "failed": len(cases) - passed, "skipped": 0, "cases": cases}


def line(outcome: Outcome) -> str:
    """Render one line per result, even if a message has line breaks."""
    case = outcome.case
    kind = f"{case.group}/{case.kind}" if case.group else case.kind
    head = f"{'ok' if outcome.ok else 'FAIL'} {case.suite} {kind} {case.name}"
    if outcome.ok:
        return _one_line(head if outcome.expected is not None else f"{head}: {told(outcome.got)}")
    expected = "" if outcome.expected is None else f" expected {told(outcome.expected)},"
    return _one_line(f"{head}:{expected} got {told(outcome.got)}")


def told(value: Any) -> str:
    """Render a health as `Healthy "text"`, an error as its message, all else as JSON."""
    if isinstance(value, dict) and value.keys() == {"status", "message"}:
        return _cut(f"{value['status'] or 'no health'} {_json(value['message'])}")
    if isinstance(value, dict) and value.keys() == {"error"}:
        return _cut(f"error: {value['error']}")
    return _cut(_json(value))


def junit(outcomes: Sequence[Outcome]) -> str:
    """Render JUnit XML with one suite per type of test."""
    suites: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        suites.setdefault(outcome.case.suite, []).append(outcome)
    total, failed = len(outcomes), sum(not outcome.ok for outcome in outcomes)
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="argosy health" tests="{total}" failures="{failed}" errors="0" skipped="0">',
    ]
    for name, members in suites.items():
        wrong = sum(not outcome.ok for outcome in members)
        parts.append(f'  <testsuite name="{name}" tests="{len(members)}" failures="{wrong}" errors="0" skipped="0">')
        parts += [_case(outcome) for outcome in members]
        parts.append("  </testsuite>")
    return "\n".join([*parts, "</testsuites>", ""])


def _case(outcome: Outcome) -> str:
    case = outcome.case
    kind = f"{case.group}/{case.kind}" if case.group else case.kind
    head = f'    <testcase classname="{_xml(f"{case.suite} {kind}")}" name="{_xml(case.name)}"'
    if outcome.ok:
        return f"{head}/>"
    expected = "" if outcome.expected is None else f"expected {told(outcome.expected)}, "
    message = f'      <failure message="{_xml(f"{expected}got {told(outcome.got)}")}"/>'
    return f"{head}>\n{message}\n    </testcase>"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _xml(text: str) -> str:
    clean = _NO_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return escape(clean).replace("\n", "&#10;").replace("\t", "&#9;").replace("\r", "&#13;")


def _one_line(text: str) -> str:
    return _NO_LINE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
