"""Finds the cause of every differing field of an object.

In: Evidence and differences. Out: one cause per difference, in the same order. Never: guesses (an uncertain cause is
UNKNOWN); returns a field's value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from argosy.errors import PatchError
from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind, is_interactive_client
from argosy.gitops.analysis.object_versions_as_cause_evidence import (
    ABSENT,
    Evidence,
    find_rejection_message,
    is_immutable_error,
    is_undeclared_field_error,
)
from argosy.gitops.application.step_results import FieldDifference, FieldOrigin
from argosy.gitops.diff.field_projection import is_same_json
from argosy.kube.patch.managed_fields import Manager, read_managers

MAX_MESSAGE_CHARACTERS: Final = 200
REMOVED_FROM_GIT: Final = "removed from Git"
ADDED_IN_GIT: Final = "added in Git"
CHANGED_IN_GIT: Final = "changed in Git"
UNDECLARED_FIELD: Final = "the API server drops it: the kind has no such field"


def find_causes(evidence: Evidence, fields: Sequence[FieldDifference]) -> list[Cause]:
    """Return one cause per difference; an object missing on one side has one difference, with an empty pointer."""
    field_causes = [_find_cause(evidence, field) for field in fields]
    return (
        [_blame_other_revision(evidence, *field) for field in zip(fields, field_causes, strict=True)]
        if evidence.other_revision
        else field_causes
    )


def _blame_other_revision(evidence: Evidence, field: FieldDifference, cause: Cause) -> Cause:
    """Replace causes that blame Git if the comparison is with a revision that the Application does not follow."""
    if cause.kind not in (CauseKind.GIT_CHANGE, CauseKind.PRUNE):
        return cause
    has_live = evidence.pair.live is not None and field.has_live
    has_desired = evidence.pair.desired is not None and field.has_desired
    difference_text = "has a different value" if has_live else "has it, but the cluster does not"
    text = difference_text if has_desired else "does not have it"
    next_ = f"argosy app sync {evidence.app} --revision {evidence.other_revision}"
    return replace(cause, kind=CauseKind.OTHER_REVISION, text=f"{evidence.other_revision} {text}", next=next_)


def _find_cause(evidence: Evidence, field: FieldDifference) -> Cause:
    if evidence.pair.desired is None:
        return _explain_extra_object(evidence)
    if evidence.pair.live is None:
        return _explain_missing_object(evidence)
    return (
        _find_rejection(evidence, field)
        or _find_stale_branch(evidence, field)
        or _find_removal_from_git(evidence, field)
        or _find_forced_value(evidence, field)
        or _blame_git_or_cluster(evidence, field)
    )


# -- the whole object -----------------------------------------------------------------------------------------------


def _explain_extra_object(evidence: Evidence) -> Cause:
    app, branch = evidence.app, evidence.default_branch
    if evidence.on_default_branch is not None and branch:
        text = f"missing in {evidence.ref}, present in {branch}"
        return Cause(CauseKind.STALE_BRANCH, text, f"argosy app set {app} --revision {branch}")
    return Cause(CauseKind.PRUNE, "still in the cluster, removed from Git", f"argosy app sync {app} --prune")


def _explain_missing_object(evidence: Evidence) -> Cause:
    key, origin = evidence.pair.key, evidence.origins.get("", FieldOrigin(""))
    location = origin.file, origin.line, origin.repository
    if not evidence.is_served:
        name = f"{key.kind}.{key.group}" if key.group else key.kind
        text = f"the cluster does not serve {name}: its CustomResourceDefinition is missing"
        next_ = "install the CRD, or put it into an earlier sync wave"
        return Cause(CauseKind.MISSING_CRD, text, next_, *location)
    sync_command = f"argosy app sync {evidence.app}"
    if evidence.was_applied:
        return Cause(CauseKind.DELETED, "the last sync created it, and it was deleted since", sync_command, *location)
    return Cause(CauseKind.GIT_CHANGE, "in Git, not created yet", sync_command, *location)


# -- one field ------------------------------------------------------------------------------------------------------


def _build_cause(evidence: Evidence, field: FieldDifference, kind: CauseKind, text: str, next_: str) -> Cause:
    origin = evidence.origins.get(field.pointer) if field.has_desired else None
    file, line, repository = (origin.file, origin.line, origin.repository) if origin else ("", 0, "")
    return Cause(kind, text, next_, file, line, repository, manager=field.manager, at=field.since)


def _find_rejection(evidence: Evidence, field: FieldDifference) -> Cause | None:
    message = find_rejection_message(field.pointer, evidence.rejected_fields)
    if not message:
        return None
    key, app = evidence.pair.key, evidence.app
    if is_immutable_error(message):
        resource = f"{key.group}:{key.kind}:{key.name}"
        next_ = f"revert it in Git, or recreate the object: argosy app sync {app} --force --replace"
        text = "cannot be changed on an existing object"
        return _build_cause(evidence, field, CauseKind.IMMUTABLE, text, f"{next_} --resource {resource}")
    if is_undeclared_field_error(message):
        return _build_cause(
            evidence, field, CauseKind.UNKNOWN_FIELD, UNDECLARED_FIELD, "correct the field name or its position in Git"
        )
    # The message may quote the Secret's value.
    detail = "" if key.kind == "Secret" else f": {message[:MAX_MESSAGE_CHARACTERS]}"
    return _build_cause(evidence, field, CauseKind.REFUSED, f"rejected by the API server{detail}", "correct it in Git")


def _find_stale_branch(evidence: Evidence, field: FieldDifference) -> Cause | None:
    """The default branch has the live value, and the branch that the Application follows has another one."""
    branch = evidence.default_branch
    if not branch or evidence.on_default_branch is None or not field.has_live:
        return None
    default_branch_value = evidence.get_value(field.pointer, evidence.on_default_branch)
    if default_branch_value is ABSENT or not is_same_json(
        default_branch_value, evidence.get_value(field.pointer, evidence.pair.live)
    ):
        return None
    text = f"{branch} has the live value, {evidence.ref} does not"
    return _build_cause(
        evidence, field, CauseKind.STALE_BRANCH, text, f"argosy app set {evidence.app} --revision {branch}"
    )


def _find_removal_from_git(evidence: Evidence, field: FieldDifference) -> Cause | None:
    """The field was in the last applied manifest and is no longer in Git."""
    if field.has_desired or evidence.get_value(field.pointer, evidence.last_applied) is ABSENT:
        return None
    return _build_cause(evidence, field, CauseKind.GIT_CHANGE, REMOVED_FROM_GIT, f"argosy app sync {evidence.app}")


def _find_forced_value(evidence: Evidence, field: FieldDifference) -> Cause | None:
    """A dry-run apply keeps the live value, so the server or an admission webhook sets it."""
    if evidence.predicted is None:
        return None
    predicted_value, live_value = (
        evidence.get_value(field.pointer, side) for side in (evidence.predicted, evidence.pair.live)
    )
    if predicted_value is ABSENT and field.has_desired and not field.has_live:
        return _build_cause(
            evidence, field, CauseKind.UNKNOWN_FIELD, UNDECLARED_FIELD, "correct the field name or its position in Git"
        )
    if predicted_value is ABSENT or not is_same_json(predicted_value, live_value):
        return None
    advice = f"set the same value in Git, or ignore the field: ignoreDifferences with jsonPointers {field.pointer}"
    default_value = evidence.get_value(field.pointer, evidence.with_defaults)
    if default_value is not ABSENT and is_same_json(default_value, live_value):
        return _build_cause(evidence, field, CauseKind.DEFAULTING, "default set by the API server", advice)
    manager_text = f" ({field.manager})" if field.manager and field.manager != evidence.controller else ""
    cause = _build_cause(
        evidence, field, CauseKind.WEBHOOK, f"set by an admission controller, regardless of Git{manager_text}", advice
    )
    if field.has_desired and _has_changed_in_git(evidence, field):
        return replace(cause, text=f"{cause.text}; changed in Git since the last sync", has_changed_in_git=True)
    return cause


def _blame_git_or_cluster(evidence: Evidence, field: FieldDifference) -> Cause:
    """Decide whether Git or the cluster changed the field."""
    app, is_ours = evidence.app, field.manager == evidence.controller
    has_changed = _has_changed_in_git(evidence, field)
    if has_changed or (has_changed is None and is_ours):
        text = REMOVED_FROM_GIT if not field.has_desired else CHANGED_IN_GIT if field.has_live else ADDED_IN_GIT
        if has_changed and field.has_live and field.manager and not is_ours:
            text += f"; the live value was written by {field.manager}"
        return _build_cause(evidence, field, CauseKind.GIT_CHANGE, text, f"argosy app sync {app}")
    if not field.has_live:
        return _explain_missing_field(evidence, field)
    if not field.manager or is_ours:
        text = "managedFields do not say who wrote the live value"
        return _build_cause(
            evidence, field, CauseKind.UNKNOWN, text, f"restore the value from Git: argosy app sync {app}"
        )
    verb = "by hand with " if is_interactive_client(field.manager) else "by "
    since = f", {field.since}" if field.since else ""
    leave_advice = f"or leave it to {field.manager}: ignoreDifferences with managedFieldsManagers"
    next_ = f"restore it: argosy app sync {app}; {leave_advice}"
    return _build_cause(evidence, field, CauseKind.OTHER_CONTROLLER, f"changed {verb}{field.manager}{since}", next_)


def _has_changed_in_git(evidence: Evidence, field: FieldDifference) -> bool | None:
    """True if Git changed the field since the last apply; None if there is no last-applied annotation."""
    applied = evidence.last_applied
    if applied is None:
        return None if field.has_live else not evidence.was_applied
    applied_value, desired_value = (
        evidence.get_value(field.pointer, side) for side in (applied, evidence.pair.desired)
    )
    return (applied_value is ABSENT) != (desired_value is ABSENT) or not is_same_json(applied_value, desired_value)


def _explain_missing_field(evidence: Evidence, field: FieldDifference) -> Cause:
    """The field was applied and is missing now: name the latest other writer of the object."""
    latest = max(_list_other_managers(evidence), key=lambda manager: manager.time, default=None)
    next_ = f"restore it: argosy app sync {evidence.app}"
    if latest is None:
        return _build_cause(evidence, field, CauseKind.UNKNOWN, "was applied, then removed by an unknown writer", next_)
    text = f"was applied, then removed; the latest other writer is {latest.name}, {latest.time}"
    cause = _build_cause(evidence, field, CauseKind.OTHER_CONTROLLER, text, next_)
    return Cause(cause.kind, text, next_, cause.file, cause.line, cause.repository, manager=latest.name, at=latest.time)


def _list_other_managers(evidence: Evidence) -> list[Manager]:
    try:
        managers = read_managers(evidence.pair.live or {})
    except PatchError:
        return []
    return [manager for manager in managers if manager.name != evidence.controller and not manager.subresource]
