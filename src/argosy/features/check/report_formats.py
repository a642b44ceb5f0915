"""Renders findings for CI systems, code hosts and scripts. In: a CheckResult. Out: one text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape, quoteattr

import orjson

from argosy import __version__
from argosy.cli.tables import plain

if TYPE_CHECKING:
    from argosy.features.check.service import Checked
    from argosy.gitops.analysis.finding import Finding

_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {"error": "error", "warning": "warning", "info": "note"}
_GITLAB: Final = {"error": "major", "warning": "minor", "info": "info"}


def _json(found: Checked) -> str:
    excused = [{**each.finding.as_data(), "reason": each.reason} for each in found.excused]
    return _dump(
        {
            "apiVersion": "cli.argosy.dev/v1",
            "kind": "Check",
            "applications": found.applications,
            "objects": found.objects,
            "fixed": [{**each.finding.as_data(), "line": each.place.line} for each in found.mended],
            "items": [each.as_data() for each in found.findings],
            "excused": excused,
            "notes": found.notes,
        }
    )


def _github(found: Checked) -> str:
    return "\n".join(_annotation(each) for each in found.findings)


def _annotation(finding: Finding) -> str:
    """Render a workflow command that GitHub Actions shows next to the code."""
    kind = {"info": "notice"}.get(finding.severity, str(finding.severity))
    text = plain(f"{finding.sight.message}; {finding.sight.fix}").replace("%", "%25")
    file = plain(finding.place.file).replace("%", "%25").replace(",", "%2C").replace(":", "%3A")
    return f"::{kind} file={file},line={finding.place.line or 1},title={finding.rule.id}::{text}"


def _sarif(found: Checked) -> str:
    rules = {each.rule.id: each.rule for each in found.findings}
    driver = {
        "name": "argosy",
        "version": __version__,
        "rules": [
            {
                "id": rule.id,
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": rule.about},
                "help": {"text": f"{rule.fix} Why it is certain: {rule.why_sure}"},
                "defaultConfiguration": {"level": _LEVELS[rule.severity]},
            }
            for rule in rules.values()
        ],
    }
    results = [
        {
            "ruleId": each.rule.id,
            "level": _LEVELS[each.severity],
            "message": {"text": f"{each.sight.message}; {each.sight.fix}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": each.place.file},
                        "region": {"startLine": each.place.line or 1},
                    }
                }
            ],
            "partialFingerprints": {"argosy/v1": _digest(each)},
        }
        for each in found.findings
    ]
    return _dump({"$schema": _SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]})


def _junit(found: Checked) -> str:
    failed = [each for each in found.findings if each.severity != "info"]
    head = f'<testsuite name="argosy check" tests="{len(found.findings) or 1}" failures="{len(failed)}" errors="0">'
    cases = [_case(each) for each in found.findings] or ['  <testcase classname="argosy" name="check"/>']
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>"])


def _case(finding: Finding) -> str:
    text = plain(f"{finding.sight.message}; {finding.sight.fix}")
    name = f"{finding.rule.id} {finding.place.line}"
    head = f"  <testcase classname={quoteattr(plain(finding.place.file))} name={quoteattr(name)}>"
    if finding.severity == "info":
        return f"{head}<system-out>{escape(text)}</system-out></testcase>"
    return f"{head}<failure message={quoteattr(text)}/></testcase>"


def _gitlab(found: Checked) -> str:
    return _dump(
        [
            {
                "description": f"{each.rule.id}: {each.sight.message}; {each.sight.fix}",
                "check_name": each.rule.id,
                "fingerprint": _digest(each),
                "severity": _GITLAB[each.severity],
                "location": {"path": each.place.file, "lines": {"begin": each.place.line or 1}},
            }
            for each in found.findings
        ]
    )


def _digest(finding: Finding) -> str:
    """Stable fingerprint that does not depend on the line."""
    return hashlib.sha256(f"{finding.mark}|{finding.sight.message}".encode()).hexdigest()


def _dump(data: Any) -> str:
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode()


FORMS: Final[Mapping[str, Callable[[Checked], str]]] = {
    "json": _json,
    "github": _github,
    "sarif": _sarif,
    "junit": _junit,
    "gitlab": _gitlab,
}
