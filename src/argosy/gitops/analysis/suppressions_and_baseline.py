"""Separates new findings from known ones: suppressed with a reason, or listed in a baseline.

In: findings, suppressions, a baseline. Out: new findings and suppressed ones. Never: suppresses without a reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from argosy import annotations as names
from argosy.errors import UserError
from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.repository_view import RepositoryView
from argosy.languages import globs

_ANNOTATION_FORMAT: Final = re.compile(r"\s*(AGY\d{3}(?:\s*,\s*AGY\d{3})*)\s+(\S.*)", re.DOTALL)


class FindingSuppression(NamedTuple):
    rule: str
    path: str = ""  # a glob relative to the folder of argosy.yaml; empty: everywhere
    reason: str = ""


class SuppressedFinding(NamedTuple):
    finding: Finding
    reason: str


class FilteredFindings(NamedTuple):
    remaining: list[Finding]
    suppressed: list[SuppressedFinding]
    notes: list[str]


def read_suppression_annotations(repository: RepositoryView) -> tuple[dict[tuple[str, str], str], list[str]]:
    """Return reasons by rule and object from annotations, and notes about annotations without a reason."""
    reasons: dict[tuple[str, str], str] = {}
    notes: list[str] = []
    items = [item for _, item in repository.list_objects()]
    for item in (
        *items,
        *repository.unrendered_manifests,
        *(declaration.item for declaration in repository.applications),
    ):
        text = item.get_map("metadata", "annotations").get(names.SUPPRESS)
        if text is None:
            continue
        match = _ANNOTATION_FORMAT.fullmatch(str(text))
        if match is None:
            location = item.find_location("metadata", "annotations", names.SUPPRESS)
            notes.append(
                f"{location}: {names.SUPPRESS} suppresses nothing; write a rule and a reason: AGY113 until 3.0"
            )
            continue
        for rule in match[1].split(","):
            reasons[rule.strip(), item.name] = match[2].strip()
    return reasons, list(dict.fromkeys(notes))


def filter_findings(
    findings: Iterable[Finding],
    repository: RepositoryView,
    suppressions: Sequence[FindingSuppression],
    baseline: Counter[str],
) -> FilteredFindings:
    """Split findings. `baseline` counts fingerprints: a third occurrence of a mistake that was there twice is new."""
    reasons, notes = read_suppression_annotations(repository)
    baseline = Counter(baseline)
    remaining: list[Finding] = []
    suppressed: list[SuppressedFinding] = []
    for finding in findings:
        reason = reasons.get((finding.rule.id, finding.violation.subject)) or _find_suppression_reason(
            finding, suppressions
        )
        if not reason and baseline[finding.fingerprint] > 0:
            baseline[finding.fingerprint] -= 1
            reason = "in the baseline"
        if reason:
            suppressed.append(SuppressedFinding(finding, reason))
        else:
            remaining.append(finding)
    return FilteredFindings(remaining, suppressed, notes)


def _find_suppression_reason(finding: Finding, suppressions: Sequence[FindingSuppression]) -> str:
    for suppression in suppressions:
        file = finding.location.file
        matches_path = (
            not suppression.path
            or globs.matches_glob(suppression.path, file)
            or file.startswith(suppression.path.rstrip("/") + "/")
        )
        if suppression.rule == finding.rule.id and matches_path:
            return suppression.reason
    return ""


def build_baseline(findings: Iterable[Finding]) -> dict[str, Any]:
    """Build the baseline file: lines may move and findings may disappear; only new findings are reported."""
    return {
        "apiVersion": "argosy.dev/v1",
        "kind": "Baseline",
        "known": sorted(finding.fingerprint for finding in findings),
    }


def read_baseline(document: Any, where: str) -> Counter[str]:
    fingerprints = document.get("known") if isinstance(document, dict) and document.get("kind") == "Baseline" else None
    if not isinstance(fingerprints, list):
        raise UserError("is not a baseline; create one with argosy check --write-baseline --baseline FILE", where=where)
    return Counter(str(fingerprint) for fingerprint in fingerprints)
