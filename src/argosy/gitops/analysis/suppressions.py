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
from argosy.gitops.analysis.repository import Repository
from argosy.languages import globs

_WORDS: Final = re.compile(r"\s*(AGY\d{3}(?:\s*,\s*AGY\d{3})*)\s+(\S.*)", re.DOTALL)


class Suppression(NamedTuple):
    rule: str
    path: str = ""  # a glob relative to the folder of argosy.yaml; empty: everywhere
    reason: str = ""


class Excused(NamedTuple):
    finding: Finding
    reason: str


class Judged(NamedTuple):
    left: list[Finding]
    excused: list[Excused]
    notes: list[str]


def annotated(repository: Repository) -> tuple[dict[tuple[str, str], str], list[str]]:
    """Return reasons by rule and object from annotations, and notes about annotations without a reason."""
    found: dict[tuple[str, str], str] = {}
    notes: list[str] = []
    items = [item for _, item in repository.objects()]
    for item in (*items, *repository.loose, *(each.item for each in repository.applications)):
        text = item.fields("metadata", "annotations").get(names.SUPPRESS)
        if text is None:
            continue
        match = _WORDS.fullmatch(str(text))
        if match is None:
            place = item.at("metadata", "annotations", names.SUPPRESS)
            notes.append(f"{place}: {names.SUPPRESS} suppresses nothing; write a rule and a reason: AGY113 until 3.0")
            continue
        for rule in match[1].split(","):
            found[rule.strip(), item.name] = match[2].strip()
    return found, list(dict.fromkeys(notes))


def judge(findings: Iterable[Finding], repository: Repository, given: Sequence[Suppression], known: Counter[str]
          ) -> Judged:  # fmt: skip
    """Split findings. `baseline` counts fingerprints: a third occurrence of a mistake that was there twice is new."""
    reasons, notes = annotated(repository)
    known = Counter(known)
    left: list[Finding] = []
    excused: list[Excused] = []
    for finding in findings:
        reason = reasons.get((finding.rule.id, finding.sight.subject)) or _reason(finding, given)
        if not reason and known[finding.mark] > 0:
            known[finding.mark] -= 1
            reason = "in the baseline"
        if reason:
            excused.append(Excused(finding, reason))
        else:
            left.append(finding)
    return Judged(left, excused, notes)


def _reason(finding: Finding, given: Sequence[Suppression]) -> str:
    for each in given:
        file = finding.place.file
        is_there = not each.path or globs.matches(each.path, file) or file.startswith(each.path.rstrip("/") + "/")
        if each.rule == finding.rule.id and is_there:
            return each.reason
    return ""


def baseline_of(findings: Iterable[Finding]) -> dict[str, Any]:
    """Build the baseline file: lines may move and findings may disappear; only new findings are reported."""
    return {"apiVersion": "argosy.dev/v1", "kind": "Baseline", "known": sorted(each.mark for each in findings)}


def read_baseline(document: Any, where: str) -> Counter[str]:
    known = document.get("known") if isinstance(document, dict) and document.get("kind") == "Baseline" else None
    if not isinstance(known, list):
        raise UserError("is not a baseline; create one with argosy check --write-baseline --baseline FILE", where=where)
    return Counter(str(each) for each in known)
