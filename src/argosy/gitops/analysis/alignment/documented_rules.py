"""Proposes the ignore rules of a widely copied repair guide literally, with remarks.

In: an observed Application. Out: proposals. Never: a rule that the guide does not have; omits that a rule does nothing
or hides a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.alignment.field_writers import DOCUMENTED, Pattern, why_redundant
from argosy.gitops.analysis.alignment.observation import RESPECT, AppSight, SeenObject, is_foreign
from argosy.gitops.analysis.alignment.proposal import ORDER, Proposal, ProposalKind
from argosy.gitops.analysis.alignment.proposals import propose
from argosy.gitops.analysis.cause import CauseKind
from argosy.gitops.application import IgnoreDifference

_KEPT: Final = (ProposalKind.INFORM, ProposalKind.ACCEPT)
_HIDES: Final = "/spec/selector hides a change that can never be applied: recreate the object, or revert it in Git"


def propose_documented(seen: AppSight) -> list[Proposal]:
    """Propose the documented rule for each differing kind, unless the Application already has a rule for that kind."""
    found = [*_rules(seen), *(each for each in propose(seen) if each.kind in _KEPT)]
    if any(each.ignores for each in found) and RESPECT not in seen.app.policy.options:
        text = f"add {RESPECT}: ignoring a field does not keep a sync from writing it"
        found.append(Proposal(seen.app.name, ProposalKind.SYNC_OPTION, text, "sync option", options=(RESPECT,)))
    return sorted(found, key=lambda each: ORDER.index(each.kind))


def _rules(seen: AppSight) -> Iterator[Proposal]:
    for pattern in DOCUMENTED:
        objects = [each.name for each in seen.objects if _is_about(pattern, each)]
        if not objects:
            continue
        if any((rule.group, rule.kind) == (pattern.group, pattern.kind) for rule in seen.app.ignored):
            named = ", ".join(objects)
            text = f"{named}: a rule for {pattern.kind} exists already, so nothing is added; {pattern.reason}"
            tail = "it is Healthy, so OutOfSync may stay" if seen.is_healthy else "find out first why it is not Healthy"
            yield Proposal(seen.app.name, ProposalKind.ACCEPT, f"{text}; {tail}", "accepted")
            continue
        yield _proposal(seen, pattern)


def _is_about(pattern: Pattern, each: SeenObject) -> bool:
    """True if the object is of the pattern's kind and differs by more than changes in Git."""
    is_others = any(is_foreign(cause) or cause.kind is CauseKind.IMMUTABLE for _, cause in each.fields)
    return is_others and each.key.group_kind == (pattern.group, pattern.kind)


def _proposal(seen: AppSight, pattern: Pattern) -> Proposal:
    rule = IgnoreDifference(pattern.group, pattern.kind, pointers=pattern.pointers)
    said = [f"{each} is redundant: {why_redundant(each)}" for each in pattern.redundant]
    said += [_HIDES] if "/spec/selector" in pattern.pointers else []
    text = f"ignore {pattern.kind}: {', '.join(pattern.pointers)} ({pattern.reason})"
    return Proposal(seen.app.name, ProposalKind.IGNORE, text, "ignore rule", True, tuple(said), ignores=(rule,))
