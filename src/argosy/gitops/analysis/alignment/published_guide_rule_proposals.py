"""Proposes the ignore rules of a widely copied repair guide literally, with remarks.

In: an observed Application. Out: proposals. Never: a rule that the guide does not have; omits that a rule does nothing
or hides a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.gitops.analysis.alignment.field_writer_catalog import DOCUMENTED, FieldWriterPattern, find_redundancy_reason
from argosy.gitops.analysis.alignment.git_change_proposal_types import PROPOSAL_ORDER, Proposal, ProposalKind
from argosy.gitops.analysis.alignment.observed_application import (
    RESPECT_OPTION,
    ObservedApplication,
    ObservedObject,
    is_set_by_controller,
)
from argosy.gitops.analysis.alignment.proposal_builder import build_proposals
from argosy.gitops.analysis.difference_cause_kinds import CauseKind
from argosy.gitops.application import IgnoreDifference

_INFORMATION_KINDS: Final = (ProposalKind.INFORM, ProposalKind.ACCEPT)
_SELECTOR_WARNING: Final = (
    "/spec/selector hides a change that can never be applied: recreate the object, or revert it in Git"
)


def propose_documented(observed: ObservedApplication) -> list[Proposal]:
    """Propose the documented rule for each differing kind, unless the Application already has a rule for that kind."""
    proposals = [
        *_propose_rules(observed),
        *(proposal for proposal in build_proposals(observed) if proposal.kind in _INFORMATION_KINDS),
    ]
    if any(proposal.ignores for proposal in proposals) and RESPECT_OPTION not in observed.app.policy.options:
        text = f"add {RESPECT_OPTION}: ignoring a field does not keep a sync from writing it"
        proposals.append(
            Proposal(observed.app.name, ProposalKind.SYNC_OPTION, text, "sync option", options=(RESPECT_OPTION,))
        )
    return sorted(proposals, key=lambda proposal: PROPOSAL_ORDER.index(proposal.kind))


def _propose_rules(observed: ObservedApplication) -> Iterator[Proposal]:
    for pattern in DOCUMENTED:
        objects = [
            observed_object.name for observed_object in observed.objects if _matches_pattern(pattern, observed_object)
        ]
        if not objects:
            continue
        if any((rule.group, rule.kind) == (pattern.group, pattern.kind) for rule in observed.app.ignore_rules):
            object_names = ", ".join(objects)
            text = f"{object_names}: a rule for {pattern.kind} exists already, so nothing is added; {pattern.reason}"
            health_text = (
                "it is Healthy, so OutOfSync may stay"
                if observed.is_healthy
                else "find out first why it is not Healthy"
            )
            yield Proposal(observed.app.name, ProposalKind.ACCEPT, f"{text}; {health_text}", "accepted")
            continue
        yield _build_proposal(observed, pattern)


def _matches_pattern(pattern: FieldWriterPattern, observed_object: ObservedObject) -> bool:
    """True if the object is of the pattern's kind and differs by more than changes in Git."""
    has_other_writer = any(
        is_set_by_controller(cause) or cause.kind is CauseKind.IMMUTABLE for _, cause in observed_object.fields
    )
    return has_other_writer and observed_object.key.group_kind == (pattern.group, pattern.kind)


def _build_proposal(observed: ObservedApplication, pattern: FieldWriterPattern) -> Proposal:
    rule = IgnoreDifference(pattern.group, pattern.kind, pointers=pattern.pointers)
    remarks = [f"{pointer} is redundant: {find_redundancy_reason(pointer)}" for pointer in pattern.redundant_pointers]
    remarks += [_SELECTOR_WARNING] if "/spec/selector" in pattern.pointers else []
    text = f"ignore {pattern.kind}: {', '.join(pattern.pointers)} ({pattern.reason})"
    return Proposal(observed.app.name, ProposalKind.IGNORE, text, "ignore rule", True, tuple(remarks), ignores=(rule,))
