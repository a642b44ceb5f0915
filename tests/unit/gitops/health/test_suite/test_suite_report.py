"""Tests reports of test results, with any content in script messages."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from argosy.gitops.health.test_suite import (
    ActionTestCase,
    CaseResult,
    HealthTestCase,
    build_report,
    render_junit,
    render_line,
)

NASTY = "a\x1b[31m<b>&\"'\x00\ud800\n]]>\u202e"
CASE = HealthTestCase(group="toys.example.com", kind="Doll", name="testdata/one.yaml", status="Healthy", message="well")


def wrong(message: str) -> CaseResult:
    return CaseResult(CASE, False, {"status": "Healthy", "message": "well"}, {"status": "Degraded", "message": message})


def test_case_is_rendered_as_one_flat_mapping():
    assert wrong("ill").to_wire() == {
        "suite": "health",
        "group": "toys.example.com",
        "kind": "Doll",
        "name": "testdata/one.yaml",
        "ok": False,
        "expected": {"status": "Healthy", "message": "well"},
        "got": {"status": "Degraded", "message": "ill"},
    }


def test_report_counts_passed_and_failed_cases():
    report = build_report([wrong("ill"), CaseResult(CASE, True, {}, {})])
    assert (report["total"], report["passed"], report["failed"], report["skipped"]) == (2, 1, 1, 0)
    assert [case["ok"] for case in report["cases"]] == [False, True]


def test_failure_is_one_line_with_expected_and_got():
    line = render_line(wrong("ill"))
    assert line == 'FAIL health toys.example.com/Doll testdata/one.yaml: expected Healthy "well", got Degraded "ill"'


def test_line_contains_no_line_breaks_or_control_characters():
    line = render_line(CaseResult(CASE, False, None, {"error": NASTY}))
    assert line.isprintable() and "\\u001b[31m" in line


def test_junit_report_is_valid_xml_for_any_script_message():
    case = ActionTestCase(group="", kind="Po<d", name=NASTY, action="x")
    text = render_junit(
        [wrong("ill"), CaseResult(CASE, True, {}, {}), CaseResult(case, False, {"error": NASTY}, [NASTY])]
    )
    root = ElementTree.fromstring(text.encode())
    assert root.attrib | {"name": ""} == {"name": "", "tests": "3", "failures": "2", "errors": "0", "skipped": "0"}
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in root] == [
        ("health", "2", "1"),
        ("action", "1", "1"),
    ]
    (failure,) = root.findall("testsuite[@name='action']/testcase/failure")
    assert "\\u001b[31m<b>&" in failure.get("message")


def test_long_message_is_truncated():
    assert len(render_line(wrong("x" * 100_000))) < 1_000
