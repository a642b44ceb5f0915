"""The rules of a widely copied repair, to the letter, and what is to be said of them.

In: a sight of an Application. Out: proposals. Never: a rule that the documents do not have; silence where one does
nothing, or hides something.
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
_HIDES: Final = "/spec/selector hides a change that can never be applied: recreate the object, or undo it in Git"


def propose_documented(seen: AppSight) -> list[Proposal]:
    """For each kind that differs and has a documented rule; where the Application has one for it, nothing is added."""
    found = [*_rules(seen), *(each for each in propose(seen) if each.kind in _KEPT)]
    if any(each.ignores for each in found) and RESPECT not in seen.app.policy.options:
        text = f"add {RESPECT}: to ignore a field does not keep a sync from writing it"
        found.append(Proposal(seen.app.name, ProposalKind.SYNC_OPTION, text, "sync option", options=(RESPECT,)))
    return sorted(found, key=lambda each: ORDER.index(each.kind))


def _rules(seen: AppSight) -> Iterator[Proposal]:
    for pattern in DOCUMENTED:
        objects = [each.name for each in seen.objects if _is_about(pattern, each)]
        if not objects:
            continue
        if any((rule.group, rule.kind) == (pattern.group, pattern.kind) for rule in seen.app.ignored):
            named = ", ".join(objects)
            text = f"{named}: there is a rule for {pattern.kind} already, so nothing is added; {pattern.reason}"
            tail = "it is Healthy, so OutOfSync may stay" if seen.is_healthy else "see why it is not Healthy first"
            yield Proposal(seen.app.name, ProposalKind.ACCEPT, f"{text}; {tail}", "accepted")
            continue
        yield _proposal(seen, pattern)


def _is_about(pattern: Pattern, each: SeenObject) -> bool:
    """One of its kind, that differs by more than what Git has changed."""
    is_others = any(is_foreign(cause) or cause.kind is CauseKind.IMMUTABLE for _, cause in each.fields)
    return is_others and each.key.group_kind == (pattern.group, pattern.kind)


def _proposal(seen: AppSight, pattern: Pattern) -> Proposal:
    rule = IgnoreDifference(pattern.group, pattern.kind, pointers=pattern.pointers)
    said = [f"{each} is redundant: {why_redundant(each)}" for each in pattern.redundant]
    said += [_HIDES] if "/spec/selector" in pattern.pointers else []
    text = f"ignore {pattern.kind}: {', '.join(pattern.pointers)} ({pattern.reason})"
    return Proposal(seen.app.name, ProposalKind.IGNORE, text, "ignore rule", True, tuple(said), ignores=(rule,))
