"""Proposes changes that bring one Application in sync.

In: an observed Application: differing objects with causes, conditions, ignore rules. Out: proposals, the smallest
first. Never: a rule that hides a change made by hand or in Git, or a whole spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from argosy.errors import PatchError
from argosy.gitops.analysis.alignment import ignore_rule_builder
from argosy.gitops.analysis.alignment.field_writer_catalog import (
    find_broadness_reason,
    find_redundancy_reason,
    find_writer_reason,
    is_owned_by_operator,
    is_version_field,
)
from argosy.gitops.analysis.alignment.git_change_proposal_types import (
    PROPOSAL_ORDER,
    DroppedPointer,
    Proposal,
    ProposalKind,
)
from argosy.gitops.analysis.alignment.ignore_rule_builder import ForeignFields
from argosy.gitops.analysis.alignment.immutable_field_proposals import propose_for_immutable_fields
from argosy.gitops.analysis.alignment.observed_application import (
    RESPECT_OPTION,
    USER_TOOL_PREFIXES,
    ObservedApplication,
    ObservedObject,
    can_be_ignored_narrowly,
    is_set_by_controller,
)
from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind
from argosy.gitops.analysis.object_versions_as_cause_evidence import ABSENT, get_matching_value
from argosy.gitops.application import IgnoreDifference
from argosy.gitops.application.step_results import FieldDifference
from argosy.gitops.diff.diff_options import matches_key
from argosy.kube.patch.json_pointer import parse

SHARED_RESOURCE_CONDITION: Final = "SharedResourceWarning"


def build_proposals(observed: ObservedApplication) -> list[Proposal]:
    """Return certain proposals and those that need a decision; the smallest change first."""
    ignore_proposals = [*_propose_ignore_rules(observed)]
    changes = [
        *ignore_proposals,
        *_propose_respect_option(observed, ignore_proposals),
        *propose_for_immutable_fields(observed),
    ]
    has_certain_change = any(proposal.certain for proposal in changes)
    proposals = [
        *changes,
        *_propose_rule_removals(observed, has_certain_change=has_certain_change),
        *_propose_acceptance(observed),
        *_propose_information(observed),
    ]
    return sorted(proposals, key=lambda proposal: PROPOSAL_ORDER.index(proposal.kind))


# -- fields that other writers set ---------------------------------------------------------------------------------


def _select_foreign_fields(observed_object: ObservedObject) -> ForeignFields:
    pairs = [
        (difference, cause)
        for difference, cause in observed_object.fields
        if is_set_by_controller(cause) and can_be_ignored_narrowly(observed_object, difference)
    ]
    managers = tuple(cause.manager if cause.kind is CauseKind.OTHER_CONTROLLER else "" for _, cause in pairs)
    return ForeignFields(
        observed_object.key, observed_object.live_manifest, tuple(difference for difference, _ in pairs), managers
    )


def _propose_ignore_rules(observed: ObservedApplication) -> Iterator[Proposal]:
    foreign = {observed_object.key: _select_foreign_fields(observed_object) for observed_object in observed.objects}
    for rule in ignore_rule_builder.build_ignore_rules(foreign.values(), observed.desired):
        objects = [observed_object for observed_object in observed.objects if matches_key(rule, observed_object.key)]
        causes = [
            cause for observed_object in objects for _, cause in observed_object.fields if is_set_by_controller(cause)
        ]
        fix = "expected; mark" if is_owned_by_operator(rule.group, rule.kind) else "ignore rule"
        text = f"ignore {ignore_rule_builder.render_ignore_rule(rule)}"
        reason = _render_reason(rule, objects, causes)
        if any(
            is_version_field(difference.pointer)
            for observed_object in objects
            for difference, cause in observed_object.fields
            if is_set_by_controller(cause)
        ):
            reason += "; such a rule hides new versions from Git, so you must decide"
        # The writer that removed a field is a guess: nobody owns a missing field. Some kinds are known for it.
        is_certain = all(
            _is_certain(observed_object, difference, cause)
            for observed_object in objects
            for difference, cause in observed_object.fields
            if is_set_by_controller(cause)
        )
        texts = (
            f"{observed_object.name}: {cause.text}"
            for observed_object in objects
            for _, cause in observed_object.fields
            if is_set_by_controller(cause)
        )
        evidence = tuple(dict.fromkeys(texts))
        yield Proposal(
            observed.app.name,
            ProposalKind.IGNORE,
            f"{text} ({reason})",
            fix,
            is_certain,
            evidence[:10],
            ignores=(rule,),
        )


def _is_certain(observed_object: ObservedObject, difference: FieldDifference, cause: Cause) -> bool:
    """False if a person may have intended the value or set it in Git now, or if the rule would block later versions."""
    if is_version_field(difference.pointer) or cause.has_changed_in_git:
        return False
    is_set_by_program = difference.has_live and not cause.manager.startswith(USER_TOOL_PREFIXES)
    return is_set_by_program or bool(find_writer_reason(*observed_object.key.group_kind, difference.pointer))


def _render_reason(rule: IgnoreDifference, objects: Sequence[ObservedObject], causes: Sequence[Cause]) -> str:
    catalogue_reason = next(
        (
            found_reason
            for pointer in rule.pointers
            if (found_reason := find_writer_reason(rule.group, rule.kind, pointer))
        ),
        "",
    )
    writers = ", ".join(dict.fromkeys(cause.manager for cause in causes if cause.manager))
    if catalogue_reason:
        return catalogue_reason
    kinds = {cause.kind for cause in causes}
    if CauseKind.OTHER_CONTROLLER in kinds and writers:
        return f"{writers} writes it"
    return (
        "default set by the API server"
        if kinds == {CauseKind.DEFAULTING}
        else "set by an admission controller, regardless of Git"
    )


# -- sync options --------------------------------------------------------------------------------------------------


def _propose_respect_option(observed: ObservedApplication, ignore_proposals: Sequence[Proposal]) -> Iterator[Proposal]:
    """argo: ignoreDifferences affects comparisons only; a sync still writes the value from Git."""
    if RESPECT_OPTION in observed.app.policy.options:
        return
    certain_pointers, uncertain_pointers = (
        [
            *_list_newly_ignored_pointers(
                observed, [proposal for proposal in ignore_proposals if proposal.certain is is_certain]
            )
        ]
        for is_certain in (True, False)
    )
    certain_pointers = certain_pointers or [*_list_ignored_pointers_in_git(observed)]
    if certain_pointers or uncertain_pointers:
        pointers_text = ", ".join(dict.fromkeys((certain_pointers or uncertain_pointers)[:3]))
        text = f"add {RESPECT_OPTION}: Git has {pointers_text}, so every sync would write it even if it is ignored"
        yield Proposal(
            observed.app.name,
            ProposalKind.SYNC_OPTION,
            text,
            "sync option",
            bool(certain_pointers),
            options=(RESPECT_OPTION,),
        )


def _list_newly_ignored_pointers(observed: ObservedApplication, ignore_proposals: Sequence[Proposal]) -> Iterator[str]:
    """Yield pointers of fields to be ignored that Git has."""
    rules = [rule for entry in ignore_proposals for rule in entry.ignores]
    for entry in observed.objects:
        if any(matches_key(rule, entry.key) for rule in rules):
            yield from (
                difference.pointer for difference in _select_foreign_fields(entry).fields if difference.has_desired
            )


def _list_ignored_pointers_in_git(observed: ObservedApplication) -> Iterator[str]:
    """Yield pointers of existing rules for differing objects, if Git has the field."""
    for observed_object in observed.objects:
        for rule in observed.app.ignore_rules:
            if matches_key(rule, observed_object.key):
                yield from (
                    pointer
                    for pointer in rule.pointers
                    if not find_redundancy_reason(pointer) and _has_value(observed_object.pair.desired, pointer)
                )


def _has_value(manifest: Any, pointer: str) -> bool:
    try:
        return get_matching_value(manifest, parse(pointer), manifest) is not ABSENT
    except PatchError:
        return False


# -- rules without effect, and rules that are too broad ------------------------------------------------------------


def _propose_rule_removals(observed: ObservedApplication, *, has_certain_change: bool) -> Iterator[Proposal]:
    drops = [
        DroppedPointer(rule, pointer, reason)
        for rule in observed.app.ignore_rules
        for pointer in rule.pointers
        if (reason := find_redundancy_reason(pointer))
        and not (observed.compares_status and pointer.startswith("/status"))
    ]
    if drops:
        pointers_text = ", ".join(dict.fromkeys(drop.pointer for drop in drops))
        text = f"remove {pointers_text}: never compared"
        evidence = tuple(dict.fromkeys(f"{drop.pointer}: {drop.reason}" for drop in drops))
        if has_certain_change:
            yield Proposal(observed.app.name, ProposalKind.DROP, text, "drop rule", True, evidence, drops=tuple(drops))
        else:
            # It does no harm: if nothing else is to be changed, it may stay.
            text = f"{pointers_text} in its rules have no effect: never compared; argosy check --fix removes them"
            yield Proposal(observed.app.name, ProposalKind.INFORM, text, "informational")
    for rule in observed.app.ignore_rules:
        for pointer in rule.pointers:
            if reason := find_broadness_reason(rule.group, rule.kind, pointer):
                text = f"the rule for {rule.kind} is too broad: {reason}; name each field that others write"
                yield Proposal(observed.app.name, ProposalKind.INFORM, text, "narrow the rule")


# -- information only ---------------------------------------------------------------------------------------------


def _propose_acceptance(observed: ObservedApplication) -> Iterator[Proposal]:
    """The differing fields are owned by an operator as a whole, and no narrow rule covers them."""
    for observed_object in observed.objects:
        broad_differences = [
            difference
            for difference, cause in observed_object.fields
            if is_set_by_controller(cause) and not can_be_ignored_narrowly(observed_object, difference)
        ]
        if broad_differences:
            pointers_text = ", ".join(difference.pointer or "the whole object" for difference in broad_differences)
            health_text = (
                "it is Healthy, so this may stay" if observed.is_healthy else "find out first why it is not Healthy"
            )
            text = (
                f"{observed_object.name}: {pointers_text} is written as a whole by another writer, and no rule "
                f"is proposed for it; {health_text}"
            )
            yield Proposal(observed.app.name, ProposalKind.ACCEPT, text, "accepted" if observed.is_healthy else "look")


def _propose_information(observed: ObservedApplication) -> Iterator[Proposal]:
    for kind, message in observed.conditions:
        if kind == SHARED_RESOURCE_CONDITION:
            yield Proposal(observed.app.name, ProposalKind.INFORM, f"{kind}: {message}", "informational")
    other_differences = [
        (difference, cause)
        for observed_object in observed.objects
        if not any(
            cause.kind is CauseKind.IMMUTABLE for _, cause in observed_object.fields
        )  # recreation fixes the other fields, too
        for difference, cause in observed_object.fields
        if not is_set_by_controller(cause)
    ]
    for text, fix, next_ in dict.fromkeys(_render_cause(cause) for _, cause in other_differences):
        matching = [difference for difference, cause in other_differences if _render_cause(cause)[0] == text]
        noun_base = "field" if all(difference.pointer for difference in matching) else "object"
        noun = f"{noun_base} differs" if len(matching) == 1 else f"{noun_base}s differ"
        commands = (next_,) if next_ else ()
        yield Proposal(
            observed.app.name, ProposalKind.INFORM, f"{len(matching)} {noun}: {text}", fix, commands=commands
        )


def _render_cause(cause: Cause) -> tuple[str, str, str]:
    fix = "sync" if cause.kind in (CauseKind.GIT_CHANGE, CauseKind.DELETED, CauseKind.OTHER_CONTROLLER) else "look"
    return cause.labeled_text, "prune" if cause.kind is CauseKind.PRUNE else fix, cause.next
