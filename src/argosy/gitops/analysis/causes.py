"""Finds the cause of every differing field of an object.

In: Evidence and differences. Out: one cause per difference, in the same order. Never: guesses (an uncertain cause is
UNKNOWN); returns a field's value.
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
GONE: Final = "removed from Git"
NEW: Final = "added in Git"
OTHER: Final = "changed in Git"
UNDECLARED: Final = "the API server drops it: the kind has no such field"


def causes(evidence: Evidence, fields: Sequence[Difference]) -> list[Cause]:
    """Return one cause per difference; an object missing on one side has one difference, with an empty pointer."""
    found = [_cause(evidence, each) for each in fields]
    return [_instead(evidence, *each) for each in zip(fields, found, strict=True)] if evidence.instead else found


def _instead(evidence: Evidence, field: Difference, cause: Cause) -> Cause:
    """Replace causes that blame Git if the comparison is with a revision that the Application does not follow."""
    if cause.kind not in (CauseKind.YOUR_CHANGE, CauseKind.PRUNE):
        return cause
    has_live = evidence.pair.live is not None and field.has_live
    has_desired = evidence.pair.desired is not None and field.has_desired
    found = "has a different value" if has_live else "has it, but the cluster does not"
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
        text = f"missing in {evidence.ref}, present in {branch}"
        return Cause(CauseKind.STALE_BRANCH, text, f"argosy app set {app} --revision {branch}")
    return Cause(CauseKind.PRUNE, "still in the cluster, removed from Git", f"argosy app sync {app} --prune")


def _missing(evidence: Evidence) -> Cause:
    key, origin = evidence.pair.key, evidence.origins.get("", Origin(""))
    place = origin.file, origin.line, origin.repository
    if not evidence.is_served:
        name = f"{key.kind}.{key.group}" if key.group else key.kind
        text = f"the cluster does not serve {name}: its CustomResourceDefinition is missing"
        next_ = "install the CRD, or put it into an earlier sync wave"
        return Cause(CauseKind.MISSING_CRD, text, next_, *place)
    again = f"argosy app sync {evidence.app}"
    if evidence.was_applied:
        return Cause(CauseKind.DELETED, "the last sync created it, and it was deleted since", again, *place)
    return Cause(CauseKind.YOUR_CHANGE, "in Git, not created yet", again, *place)


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
        next_ = f"revert it in Git, or recreate the object: argosy app sync {app} --force --replace"
        text = "cannot be changed on an existing object"
        return _make(evidence, field, CauseKind.IMMUTABLE, text, f"{next_} --resource {chosen}")
    if is_undeclared(said):
        return _make(
            evidence, field, CauseKind.UNKNOWN_FIELD, UNDECLARED, "correct the field name or its position in Git"
        )
    # The message may quote the Secret's value.
    told = "" if key.kind == "Secret" else f": {said[:LONGEST]}"
    return _make(evidence, field, CauseKind.REFUSED, f"rejected by the API server{told}", "correct it in Git")


def _stale(evidence: Evidence, field: Difference) -> Cause | None:
    """The default branch has the live value, and the branch that the Application follows has another one."""
    branch = evidence.default_branch
    if not branch or evidence.elsewhere is None or not field.has_live:
        return None
    there = evidence.at(field.pointer, evidence.elsewhere)
    if there is ABSENT or not same(there, evidence.at(field.pointer, evidence.pair.live)):
        return None
    text = f"{branch} has the live value, {evidence.ref} does not"
    return _make(evidence, field, CauseKind.STALE_BRANCH, text, f"argosy app set {evidence.app} --revision {branch}")


def _removed(evidence: Evidence, field: Difference) -> Cause | None:
    """The field was in the last applied manifest and is no longer in Git."""
    if field.has_desired or evidence.at(field.pointer, evidence.applied) is ABSENT:
        return None
    return _make(evidence, field, CauseKind.YOUR_CHANGE, GONE, f"argosy app sync {evidence.app}")


def _unchangeable(evidence: Evidence, field: Difference) -> Cause | None:
    """A dry-run apply keeps the live value, so the server or an admission webhook sets it."""
    if evidence.after is None:
        return None
    after, live = (evidence.at(field.pointer, side) for side in (evidence.after, evidence.pair.live))
    if after is ABSENT and field.has_desired and not field.has_live:
        return _make(
            evidence, field, CauseKind.UNKNOWN_FIELD, UNDECLARED, "correct the field name or its position in Git"
        )
    if after is ABSENT or not same(after, live):
        return None
    ignoring = f"set the same value in Git, or ignore the field: ignoreDifferences with jsonPointers {field.pointer}"
    default = evidence.at(field.pointer, evidence.filled)
    if default is not ABSENT and same(default, live):
        return _make(evidence, field, CauseKind.DEFAULTING, "default set by the API server", ignoring)
    who = f" ({field.manager})" if field.manager and field.manager != evidence.controller else ""
    made = _make(
        evidence, field, CauseKind.WEBHOOK, f"set by an admission controller, regardless of Git{who}", ignoring
    )
    if field.has_desired and _git_has_changed(evidence, field):
        return replace(made, text=f"{made.text}; changed in Git since the last sync", is_asked_anew=True)
    return made


def _written(evidence: Evidence, field: Difference) -> Cause:
    """Decide whether Git or the cluster changed the field."""
    app, is_ours = evidence.app, field.manager == evidence.controller
    has_changed = _git_has_changed(evidence, field)
    if has_changed or (has_changed is None and is_ours):
        text = GONE if not field.has_desired else OTHER if field.has_live else NEW
        if has_changed and field.has_live and field.manager and not is_ours:
            text += f"; the live value was written by {field.manager}"
        return _make(evidence, field, CauseKind.YOUR_CHANGE, text, f"argosy app sync {app}")
    if not field.has_live:
        return _taken_away(evidence, field)
    if not field.manager or is_ours:
        text = "managedFields do not say who wrote the live value"
        return _make(evidence, field, CauseKind.UNKNOWN, text, f"restore the value from Git: argosy app sync {app}")
    how = "by hand with " if is_by_hand(field.manager) else "by "
    since = f", {field.since}" if field.since else ""
    leave = f"or leave it to {field.manager}: ignoreDifferences with managedFieldsManagers"
    next_ = f"restore it: argosy app sync {app}; {leave}"
    return _make(evidence, field, CauseKind.OTHER_CONTROLLER, f"changed {how}{field.manager}{since}", next_)


def _git_has_changed(evidence: Evidence, field: Difference) -> bool | None:
    """True if Git changed the field since the last apply; None if there is no last-applied annotation."""
    applied = evidence.applied
    if applied is None:
        return None if field.has_live else not evidence.was_applied
    was, wanted = (evidence.at(field.pointer, side) for side in (applied, evidence.pair.desired))
    return (was is ABSENT) != (wanted is ABSENT) or not same(was, wanted)


def _taken_away(evidence: Evidence, field: Difference) -> Cause:
    """The field was applied and is missing now: name the latest other writer of the object."""
    latest = max(_others(evidence), key=lambda each: each.time, default=None)
    next_ = f"restore it: argosy app sync {evidence.app}"
    if latest is None:
        return _make(evidence, field, CauseKind.UNKNOWN, "was applied, then removed by an unknown writer", next_)
    text = f"was applied, then removed; the latest other writer is {latest.name}, {latest.time}"
    made = _make(evidence, field, CauseKind.OTHER_CONTROLLER, text, next_)
    return Cause(made.kind, text, next_, made.file, made.line, made.repository, manager=latest.name, at=latest.time)


def _others(evidence: Evidence) -> list[Manager]:
    try:
        found = managers_of(evidence.pair.live or {})
    except PatchError:
        return []
    return [each for each in found if each.name != evidence.controller and not each.subresource]
