"""Findings that somebody knows of: suppressed with a reason, or there since before the baseline.

In: findings, suppressions, a baseline's text. Out: what is left, and what was excused. Never: excuses without a reason.
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
    path: str = ""  # a glob, as seen from the folder of argosy.yaml; empty: everywhere
    reason: str = ""


class Excused(NamedTuple):
    finding: Finding
    reason: str


class Judged(NamedTuple):
    left: list[Finding]
    excused: list[Excused]
    notes: list[str]


def annotated(repository: Repository) -> tuple[dict[tuple[str, str], str], list[str]]:
    """Reasons by rule and object, from annotations; and what is wrong with those that give none."""
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
            notes.append(f"{place}: {names.SUPPRESS} excuses nothing; write a rule and a reason: AGY113 until the move")
            continue
        for rule in match[1].split(","):
            found[rule.strip(), item.name] = match[2].strip()
    return found, list(dict.fromkeys(notes))


def judge(findings: Iterable[Finding], repository: Repository, given: Sequence[Suppression], known: Counter[str]
          ) -> Judged:  # fmt: skip
    """`known` counts the marks of a baseline: a third mistake of a kind that was there twice is new."""
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
    """What there is now, to be kept in Git: lines may move, findings may go, and new ones show."""
    return {"apiVersion": "argosy.dev/v1", "kind": "Baseline", "known": sorted(each.mark for each in findings)}


def read_baseline(document: Any, where: str) -> Counter[str]:
    known = document.get("known") if isinstance(document, dict) and document.get("kind") == "Baseline" else None
    if not isinstance(known, list):
        raise UserError("is no baseline; make one with argosy check --write-baseline --baseline FILE", where=where)
    return Counter(str(each) for each in known)
