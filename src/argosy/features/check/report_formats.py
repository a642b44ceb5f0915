"""Renders findings for CI systems, code hosts and scripts. In: a CheckResult. Out: one text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape, quoteattr

import orjson

from argosy import __version__
from argosy.cli.tables import drop_control_characters
from argosy.kube.well_known_kinds import CLI_API_VERSION

if TYPE_CHECKING:
    from argosy.features.check.service import CheckResult
    from argosy.gitops.analysis.finding import Finding

_SARIF_SCHEMA_URL: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF_LEVELS: Final = {"error": "error", "warning": "warning", "info": "note"}
_GITLAB_SEVERITIES: Final = {"error": "major", "warning": "minor", "info": "info"}


def _render_json(result: CheckResult) -> str:
    excused = [{**item.finding.to_wire(), "reason": item.reason} for item in result.excused]
    return _dump_json(
        {
            "apiVersion": CLI_API_VERSION,
            "kind": "Check",
            "applications": result.applications,
            "objects": result.objects,
            "fixed": [{**item.finding.to_wire(), "line": item.location.line} for item in result.fixed],
            "items": [item.to_wire() for item in result.findings],
            "excused": excused,
            "notes": result.notes,
        }
    )


def _render_github(result: CheckResult) -> str:
    return "\n".join(_render_github_annotation(finding) for finding in result.findings)


def _render_github_annotation(finding: Finding) -> str:
    """Render a workflow command that GitHub Actions shows next to the code."""
    kind = {"info": "notice"}.get(finding.severity, str(finding.severity))
    text = drop_control_characters(f"{finding.violation.message}; {finding.violation.fix}").replace("%", "%25")
    file = drop_control_characters(finding.location.file).replace("%", "%25").replace(",", "%2C").replace(":", "%3A")
    return f"::{kind} file={file},line={finding.location.line or 1},title={finding.rule.id}::{text}"


def _render_sarif(result: CheckResult) -> str:
    rules = {finding.rule.id: finding.rule for finding in result.findings}
    driver = {
        "name": "argosy",
        "version": __version__,
        "rules": [
            {
                "id": rule.id,
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": rule.consequence},
                "help": {"text": f"{rule.fix} Why it is certain: {rule.certainty}"},
                "defaultConfiguration": {"level": _SARIF_LEVELS[rule.severity]},
            }
            for rule in rules.values()
        ],
    }
    results = [
        {
            "ruleId": finding.rule.id,
            "level": _SARIF_LEVELS[finding.severity],
            "message": {"text": f"{finding.violation.message}; {finding.violation.fix}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": finding.location.file},
                        "region": {"startLine": finding.location.line or 1},
                    }
                }
            ],
            "partialFingerprints": {"argosy/v1": _hash_finding(finding)},
        }
        for finding in result.findings
    ]
    return _dump_json(
        {"$schema": _SARIF_SCHEMA_URL, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    )


def _render_junit(result: CheckResult) -> str:
    failed = [finding for finding in result.findings if finding.severity != "info"]
    head = f'<testsuite name="argosy check" tests="{len(result.findings) or 1}" failures="{len(failed)}" errors="0">'
    cases = [_render_junit_case(finding) for finding in result.findings] or [
        '  <testcase classname="argosy" name="check"/>'
    ]
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>"])


def _render_junit_case(finding: Finding) -> str:
    text = drop_control_characters(f"{finding.violation.message}; {finding.violation.fix}")
    name = f"{finding.rule.id} {finding.location.line}"
    head = f"  <testcase classname={quoteattr(drop_control_characters(finding.location.file))} name={quoteattr(name)}>"
    if finding.severity == "info":
        return f"{head}<system-out>{escape(text)}</system-out></testcase>"
    return f"{head}<failure message={quoteattr(text)}/></testcase>"


def _render_gitlab(result: CheckResult) -> str:
    return _dump_json(
        [
            {
                "description": f"{finding.rule.id}: {finding.violation.message}; {finding.violation.fix}",
                "check_name": finding.rule.id,
                "fingerprint": _hash_finding(finding),
                "severity": _GITLAB_SEVERITIES[finding.severity],
                "location": {"path": finding.location.file, "lines": {"begin": finding.location.line or 1}},
            }
            for finding in result.findings
        ]
    )


def _hash_finding(finding: Finding) -> str:
    """Stable fingerprint that does not depend on the line."""
    return hashlib.sha256(f"{finding.fingerprint}|{finding.violation.message}".encode()).hexdigest()


def _dump_json(data: Any) -> str:
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode()


RENDERERS: Final[Mapping[str, Callable[[CheckResult], str]]] = {
    "json": _render_json,
    "github": _render_github,
    "sarif": _render_sarif,
    "junit": _render_junit,
    "gitlab": _render_gitlab,
}
