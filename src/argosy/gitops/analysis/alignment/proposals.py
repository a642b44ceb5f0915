"""Proposes changes that bring one Application in sync.

In: an observed Application: differing objects with causes, conditions, ignore rules. Out: proposals, the smallest
first. Never: a rule that hides a change made by hand or in Git, or a whole spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from argosy.errors import PatchError
from argosy.gitops.analysis.alignment import ignore_rules
from argosy.gitops.analysis.alignment.field_writers import (
    is_delivered,
    is_operators,
    reason_for,
    why_redundant,
    why_too_broad,
)
from argosy.gitops.analysis.alignment.ignore_rules import Foreign
from argosy.gitops.analysis.alignment.immutable_fields import immutable
from argosy.gitops.analysis.alignment.observation import RESPECT, TOOLS, AppSight, SeenObject, is_foreign, is_narrow
from argosy.gitops.analysis.alignment.proposal import ORDER, Dropped, Proposal, ProposalKind
from argosy.gitops.analysis.cause import Cause, CauseKind
from argosy.gitops.analysis.evidence import ABSENT, value_at
from argosy.gitops.application import IgnoreDifference
from argosy.gitops.application.step_results import Difference
from argosy.gitops.diff.diff_options import concerns
from argosy.kube.patch.json_pointer import parse

SHARED: Final = "SharedResourceWarning"


def propose(seen: AppSight) -> list[Proposal]:
    """Return certain proposals and those that need a decision; the smallest change first."""
    ignored = [*_ignored(seen)]
    changes = [*ignored, *_respected(seen, ignored), *immutable(seen)]
    is_changed = any(each.certain for each in changes)
    found = [*changes, *_dropped(seen, is_changed=is_changed), *_accepted(seen), *_informed(seen)]
    return sorted(found, key=lambda each: ORDER.index(each.kind))


# -- fields that other writers set ---------------------------------------------------------------------------------


def _foreign(each: SeenObject) -> Foreign:
    chosen = [(found, cause) for found, cause in each.fields if is_foreign(cause) and is_narrow(each, found)]
    managers = tuple(cause.manager if cause.kind is CauseKind.OTHER_CONTROLLER else "" for _, cause in chosen)
    return Foreign(each.key, each.form, tuple(found for found, _ in chosen), managers)


def _ignored(seen: AppSight) -> Iterator[Proposal]:
    foreign = {each.key: _foreign(each) for each in seen.objects}
    for rule in ignore_rules.rules_for(foreign.values(), seen.desired):
        objects = [each for each in seen.objects if concerns(rule, each.key)]
        causes = [cause for each in objects for _, cause in each.fields if is_foreign(cause)]
        fix = "expected; mark" if is_operators(rule.group, rule.kind) else "ignore rule"
        text = f"ignore {ignore_rules.told(rule)}"
        why = _why(rule, objects, causes)
        if any(is_delivered(found.pointer) for each in objects for found, cause in each.fields if is_foreign(cause)):
            why += "; such a rule hides new versions from Git, so you must decide"
        # The writer that removed a field is a guess: nobody owns a missing field. Some kinds are known for it.
        is_certain = all(
            _is_certain(each, found, cause) for each in objects for found, cause in each.fields if is_foreign(cause)
        )
        said = (f"{each.name}: {cause.text}" for each in objects for _, cause in each.fields if is_foreign(cause))
        evidence = tuple(dict.fromkeys(said))
        yield Proposal(
            seen.app.name, ProposalKind.IGNORE, f"{text} ({why})", fix, is_certain, evidence[:10], ignores=(rule,)
        )  # fmt: skip


def _is_certain(each: SeenObject, found: Difference, cause: Cause) -> bool:
    """False if a person may have intended the value or set it in Git now, or if the rule would block later versions."""
    if is_delivered(found.pointer) or cause.is_asked_anew:
        return False
    is_controllers = found.has_live and not cause.manager.startswith(TOOLS)
    return is_controllers or bool(reason_for(*each.key.group_kind, found.pointer))


def _why(rule: IgnoreDifference, objects: Sequence[SeenObject], causes: Sequence[Cause]) -> str:
    known = next((why for each in rule.pointers if (why := reason_for(rule.group, rule.kind, each))), "")
    writers = ", ".join(dict.fromkeys(cause.manager for cause in causes if cause.manager))
    if known:
        return known
    kinds = {cause.kind for cause in causes}
    if CauseKind.OTHER_CONTROLLER in kinds and writers:
        return f"{writers} writes it"
    return (
        "default set by the API server"
        if kinds == {CauseKind.DEFAULTING}
        else "set by an admission controller, regardless of Git"
    )


# -- sync options --------------------------------------------------------------------------------------------------


def _respected(seen: AppSight, ignored: Sequence[Proposal]) -> Iterator[Proposal]:
    """argo: ignoreDifferences affects comparisons only; a sync still writes the value from Git."""
    if RESPECT in seen.app.policy.options:
        return
    sure, unsure = ([*_newly(seen, [each for each in ignored if each.certain is is_sure])] for is_sure in (True, False))
    sure = sure or [*_written(seen)]
    if sure or unsure:
        named = ", ".join(dict.fromkeys((sure or unsure)[:3]))
        text = f"add {RESPECT}: Git has {named}, so every sync would write it even if it is ignored"
        yield Proposal(seen.app.name, ProposalKind.SYNC_OPTION, text, "sync option", bool(sure), options=(RESPECT,))


def _newly(seen: AppSight, ignored: Sequence[Proposal]) -> Iterator[str]:
    """Yield pointers of fields to be ignored that Git has."""
    rules = [rule for each in ignored for rule in each.ignores]
    for each in seen.objects:
        if any(concerns(rule, each.key) for rule in rules):
            yield from (found.pointer for found in _foreign(each).fields if found.has_desired)


def _written(seen: AppSight) -> Iterator[str]:
    """Yield pointers of existing rules for differing objects, if Git has the field."""
    for each in seen.objects:
        for rule in seen.app.ignored:
            if concerns(rule, each.key):
                yield from (at for at in rule.pointers if not why_redundant(at) and _has(each.pair.desired, at))


def _has(manifest: Any, pointer: str) -> bool:
    try:
        return value_at(manifest, parse(pointer), manifest) is not ABSENT
    except PatchError:
        return False


# -- rules without effect, and rules that are too broad ------------------------------------------------------------


def _dropped(seen: AppSight, *, is_changed: bool) -> Iterator[Proposal]:
    drops = [
        Dropped(rule, pointer, why)
        for rule in seen.app.ignored
        for pointer in rule.pointers
        if (why := why_redundant(pointer)) and not (seen.compares_status and pointer.startswith("/status"))
    ]
    if drops:
        named = ", ".join(dict.fromkeys(each.pointer for each in drops))
        text = f"remove {named}: never compared"
        evidence = tuple(dict.fromkeys(f"{each.pointer}: {each.why}" for each in drops))
        if is_changed:
            yield Proposal(seen.app.name, ProposalKind.DROP, text, "drop rule", True, evidence, drops=tuple(drops))
        else:
            # It does no harm: if nothing else is to be changed, it may stay.
            text = f"{named} in its rules have no effect: never compared; argosy check --fix removes them"
            yield Proposal(seen.app.name, ProposalKind.INFORM, text, "informational")
    for rule in seen.app.ignored:
        for pointer in rule.pointers:
            if why := why_too_broad(rule.group, rule.kind, pointer):
                text = f"the rule for {rule.kind} is too broad: {why}; name each field that others write"
                yield Proposal(seen.app.name, ProposalKind.INFORM, text, "narrow the rule")


# -- information only ---------------------------------------------------------------------------------------------


def _accepted(seen: AppSight) -> Iterator[Proposal]:
    """The differing fields are owned by an operator as a whole, and no narrow rule covers them."""
    for each in seen.objects:
        broad = [found for found, cause in each.fields if is_foreign(cause) and not is_narrow(each, found)]
        if broad:
            named = ", ".join(found.pointer or "the whole object" for found in broad)
            tail = "it is Healthy, so this may stay" if seen.is_healthy else "find out first why it is not Healthy"
            text = (
                f"{each.name}: {named} is written as a whole by another writer, and no rule is proposed for it; {tail}"
            )
            yield Proposal(seen.app.name, ProposalKind.ACCEPT, text, "accepted" if seen.is_healthy else "look")


def _informed(seen: AppSight) -> Iterator[Proposal]:
    for kind, message in seen.conditions:
        if kind == SHARED:
            yield Proposal(seen.app.name, ProposalKind.INFORM, f"{kind}: {message}", "informational")
    others = [
        (found, cause)
        for each in seen.objects
        if not any(
            cause.kind is CauseKind.IMMUTABLE for _, cause in each.fields
        )  # recreation fixes the other fields, too
        for found, cause in each.fields
        if not is_foreign(cause)
    ]
    for text, fix, next_ in dict.fromkeys(_told(cause) for _, cause in others):
        mine = [found for found, cause in others if _told(cause)[0] == text]
        what = "field" if all(found.pointer for found in mine) else "object"
        noun = f"{what} differs" if len(mine) == 1 else f"{what}s differ"
        commands = (next_,) if next_ else ()
        yield Proposal(seen.app.name, ProposalKind.INFORM, f"{len(mine)} {noun}: {text}", fix, commands=commands)


def _told(cause: Cause) -> tuple[str, str, str]:
    fix = "sync" if cause.kind in (CauseKind.YOUR_CHANGE, CauseKind.DELETED, CauseKind.OTHER_CONTROLLER) else "look"
    return f"{cause.kind.words}: {cause.text}", "prune" if cause.kind is CauseKind.PRUNE else fix, cause.next
