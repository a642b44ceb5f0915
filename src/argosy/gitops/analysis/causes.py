"""Why each field of an object differs: one cause each.

In: Evidence, differences. Out: causes in the same order. Never: more than the evidence says: what is not certain is
called unknown; a value of a field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from argosy.errors import PatchError
from argosy.gitops.analysis.cause import Cause, CauseKind, is_by_hand
from argosy.gitops.analysis.evidence import ABSENT, Evidence, is_immutable, is_undeclared, refusal_of
from argosy.gitops.application.step_results import Difference, Origin
from argosy.gitops.diff.field_subset import same
from argosy.kube.patch.managed_fields import Manager, managers_of

LONGEST: Final = 200
GONE: Final = "Git does not have it any more"
NEW: Final = "Git asks for it, and it was not there"
OTHER: Final = "Git asks for another value"
UNDECLARED: Final = "the server does not take it: the kind has no such field here"


def causes(evidence: Evidence, fields: Sequence[Difference]) -> list[Cause]:
    """One for each; a side that is missing has one difference, for the whole."""
    found = [_cause(evidence, each) for each in fields]
    return [_instead(evidence, *each) for each in zip(fields, found, strict=True)] if evidence.instead else found


def _instead(evidence: Evidence, field: Difference, cause: Cause) -> Cause:
    """Git does not ask for what another revision has: nobody has changed anything, somebody only compares."""
    if cause.kind not in (CauseKind.YOUR_CHANGE, CauseKind.PRUNE):
        return cause
    has_live = evidence.pair.live is not None and field.has_live
    has_desired = evidence.pair.desired is not None and field.has_desired
    found = "has another value" if has_live else "has it, and it does not live"
    what = found if has_desired else "does not have it"
    next_ = f"argosy app sync {evidence.app} --revision {evidence.instead}"
    return replace(cause, kind=CauseKind.OTHER_REVISION, text=f"{evidence.instead} {what}", next=next_)


def _cause(evidence: Evidence, field: Difference) -> Cause:
    if evidence.pair.desired is None:
        return _extra(evidence)
    if evidence.pair.live is None:
        return _missing(evidence)
    return (
        _refused(evidence, field)
        or _stale(evidence, field)
        or _removed(evidence, field)
        or _unchangeable(evidence, field)
        or _written(evidence, field)
    )


# -- the whole object -----------------------------------------------------------------------------------------------


def _extra(evidence: Evidence) -> Cause:
    app, branch = evidence.app, evidence.default_branch
    if evidence.elsewhere is not None and branch:
        text = f"{evidence.ref} does not have it, and {branch} has"
        return Cause(CauseKind.STALE_BRANCH, text, f"argosy app set {app} --revision {branch}")
    return Cause(CauseKind.PRUNE, "lives, and Git does not have it any more", f"argosy app sync {app} --prune")


def _missing(evidence: Evidence) -> Cause:
    key, origin = evidence.pair.key, evidence.origins.get("", Origin(""))
    place = origin.file, origin.line, origin.repository
    if not evidence.is_served:
        name = f"{key.kind}.{key.group}" if key.group else key.kind
        text = f"the cluster does not know {name}: its CustomResourceDefinition is missing"
        next_ = "install what brings that kind, or put its definition into an earlier wave"
        return Cause(CauseKind.MISSING_CRD, text, next_, *place)
    again = f"argosy app sync {evidence.app}"
    if evidence.was_applied:
        return Cause(CauseKind.DELETED, "the last sync made it, and somebody deleted it since", again, *place)
    return Cause(CauseKind.YOUR_CHANGE, "Git has it, and it was not made yet", again, *place)


# -- one field ------------------------------------------------------------------------------------------------------


def _make(evidence: Evidence, field: Difference, kind: CauseKind, text: str, next_: str) -> Cause:
    origin = evidence.origins.get(field.pointer) if field.has_desired else None
    file, line, repository = (origin.file, origin.line, origin.repository) if origin else ("", 0, "")
    return Cause(kind, text, next_, file, line, repository, manager=field.manager, at=field.since)


def _refused(evidence: Evidence, field: Difference) -> Cause | None:
    said = refusal_of(field.pointer, evidence.refused)
    if not said:
        return None
    key, app = evidence.pair.key, evidence.app
    if is_immutable(said):
        chosen = f"{key.group}:{key.kind}:{key.name}"
        next_ = f"undo it in Git, or have it deleted and made anew: argosy app sync {app} --force --replace"
        text = "cannot be changed while the object lives"
        return _make(evidence, field, CauseKind.IMMUTABLE, text, f"{next_} --resource {chosen}")
    if is_undeclared(said):
        return _make(evidence, field, CauseKind.UNKNOWN_FIELD, UNDECLARED, "correct its name or its place in Git")
    # A message may quote what was written.
    told = "" if key.kind == "Secret" else f": {said[:LONGEST]}"
    return _make(evidence, field, CauseKind.REFUSED, f"the server refuses it{told}", "correct it in Git")


def _stale(evidence: Evidence, field: Difference) -> Cause | None:
    """The default branch asks for what lives, and the branch that is followed for something else."""
    branch = evidence.default_branch
    if not branch or evidence.elsewhere is None or not field.has_live:
        return None
    there = evidence.at(field.pointer, evidence.elsewhere)
    if there is ABSENT or not same(there, evidence.at(field.pointer, evidence.pair.live)):
        return None
    text = f"{branch} has the value that lives, and {evidence.ref} has not"
    return _make(evidence, field, CauseKind.STALE_BRANCH, text, f"argosy app set {evidence.app} --revision {branch}")


def _removed(evidence: Evidence, field: Difference) -> Cause | None:
    """What was applied last and Git asks for no more."""
    if field.has_desired or evidence.at(field.pointer, evidence.applied) is ABSENT:
        return None
    return _make(evidence, field, CauseKind.YOUR_CHANGE, GONE, f"argosy app sync {evidence.app}")


def _unchangeable(evidence: Evidence, field: Difference) -> Cause | None:
    """An apply would leave it as it lives: so whoever answers writes makes it so."""
    if evidence.after is None:
        return None
    after, live = (evidence.at(field.pointer, side) for side in (evidence.after, evidence.pair.live))
    if after is ABSENT and field.has_desired and not field.has_live:
        return _make(evidence, field, CauseKind.UNKNOWN_FIELD, UNDECLARED, "correct its name or its place in Git")
    if after is ABSENT or not same(after, live):
        return None
    ignoring = f"write the same into Git, or ignore it: ignoreDifferences with jsonPointers {field.pointer}"
    default = evidence.at(field.pointer, evidence.filled)
    if default is not ABSENT and same(default, live):
        return _make(evidence, field, CauseKind.DEFAULTING, "the server fills in a default", ignoring)
    who = f" ({field.manager})" if field.manager and field.manager != evidence.controller else ""
    made = _make(evidence, field, CauseKind.WEBHOOK, f"set by admission, whatever Git says{who}", ignoring)
    if field.has_desired and _git_has_changed(evidence, field):
        return replace(made, text=f"{made.text}; Git has changed it since the last sync", is_asked_anew=True)
    return made


def _written(evidence: Evidence, field: Difference) -> Cause:
    """Who moved: Git, or the cluster?"""
    app, is_ours = evidence.app, field.manager == evidence.controller
    has_changed = _git_has_changed(evidence, field)
    if has_changed or (has_changed is None and is_ours):
        text = GONE if not field.has_desired else OTHER if field.has_live else NEW
        if has_changed and field.has_live and field.manager and not is_ours:
            text += f"; the live one is by {field.manager}"
        return _make(evidence, field, CauseKind.YOUR_CHANGE, text, f"argosy app sync {app}")
    if not field.has_live:
        return _taken_away(evidence, field)
    if not field.manager or is_ours:
        text = "nobody says who wrote the live value"
        return _make(evidence, field, CauseKind.UNKNOWN, text, f"put back what Git asks for: argosy app sync {app}")
    how = "by hand, with " if is_by_hand(field.manager) else "by "
    since = f", {field.since}" if field.since else ""
    leave = f"or leave it to {field.manager}: ignoreDifferences with managedFieldsManagers"
    next_ = f"put it back: argosy app sync {app}; {leave}"
    return _make(evidence, field, CauseKind.OTHER_CONTROLLER, f"changed {how}{field.manager}{since}", next_)


def _git_has_changed(evidence: Evidence, field: Difference) -> bool | None:
    """Since the last apply, as the annotation tells of it; None where nobody wrote that down."""
    applied = evidence.applied
    if applied is None:
        return None if field.has_live else not evidence.was_applied
    was, wanted = (evidence.at(field.pointer, side) for side in (applied, evidence.pair.desired))
    return (was is ABSENT) != (wanted is ABSENT) or not same(was, wanted)


def _taken_away(evidence: Evidence, field: Difference) -> Cause:
    """It was applied and is not there: of those who wrote since then, the latest."""
    latest = max(_others(evidence), key=lambda each: each.time, default=None)
    next_ = f"put it back: argosy app sync {evidence.app}"
    if latest is None:
        return _make(evidence, field, CauseKind.UNKNOWN, "was applied, and is gone; nobody says who took it", next_)
    text = f"was applied, and is gone; the latest other writer is {latest.name}, {latest.time}"
    made = _make(evidence, field, CauseKind.OTHER_CONTROLLER, text, next_)
    return Cause(made.kind, text, next_, made.file, made.line, made.repository, manager=latest.name, at=latest.time)


def _others(evidence: Evidence) -> list[Manager]:
    try:
        found = managers_of(evidence.pair.live or {})
    except PatchError:
        return []
    return [each for each in found if each.name != evidence.controller and not each.subresource]
