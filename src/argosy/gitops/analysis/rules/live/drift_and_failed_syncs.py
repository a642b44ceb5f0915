"""Live rules about drift: other writers, shared objects, immutable fields, missing and failed syncs.

In: a live view. Out: violations. Never: reports drift that only results from missing read permissions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind, is_interactive_client
from argosy.gitops.analysis.live_view import DifferingField, LiveApplication, LiveView
from argosy.gitops.analysis.object_versions_as_cause_evidence import is_immutable_error, read_rejected_fields
from argosy.gitops.analysis.rule import build_live_rule
from argosy.gitops.analysis.rule_violation import Severity, Violation
from argosy.gitops.application.operations import OperationPhase, ResultCode
from argosy.gitops.status.sync_hold_annotation import read_hold
from argosy.kube.resource_key import ResourceKey

OTHER_WRITER_CAUSES: Final = (CauseKind.WEBHOOK, CauseKind.OTHER_CONTROLLER, CauseKind.DEFAULTING)
_MAX_NAMED_FIELDS: Final = 3  # fields named in a message
_SHARED_RESOURCE_MESSAGE: Final = re.compile(
    r"^(?P<what>\S+/\S+) is part of applications (?P<one>\S+) and (?P<other>\S+)$"
)
_POLLING_INTERVAL_SECONDS: Final = 180.0  # argo: seconds between polls of a Git server, including jitter
_FAILED_PHASES: Final = (OperationPhase.FAILED, OperationPhase.ERROR)


def is_set_by_other_writer(cause: Cause) -> bool:
    """True if a controller, webhook or default set the field; changes made by hand are excluded."""
    return cause.kind in OTHER_WRITER_CAUSES and not is_interactive_client(cause.manager)


def has_acceptable_drift(app: LiveApplication) -> bool:
    """True if OutOfSync only in fields that others own: the cluster works as it should."""
    return bool(
        app.sync == "OutOfSync"
        and app.differing_fields
        and all(is_set_by_other_writer(field.cause) for field in app.differing_fields)
    )


def _find_acceptable_drift(view: LiveView) -> Iterator[Violation]:
    for app in view.apps:
        if app.differing_fields is None or not has_acceptable_drift(app):
            continue
        summaries = summarize_fields(app.differing_fields)
        more_text = f" and {len(summaries) - _MAX_NAMED_FIELDS} more" if len(summaries) > _MAX_NAMED_FIELDS else ""
        state = "acceptable: " if app.health == "Healthy" else ""
        fix = f"ignore the fields with the narrowest rule: argosy align {app.name}"
        first_key = app.differing_fields[0].key
        yield app.build_violation(
            f"{state}{'; '.join(summaries[:_MAX_NAMED_FIELDS])}{more_text}",
            fix,
            subject=f"{first_key.kind}/{first_key.name}",
        )


def summarize_fields(fields: Sequence[DifferingField]) -> list[str]:
    """Summarize equal differences once: `Route/one, Route/two: spec.host, spec.tls set by openshift-router (4
    fields)`.
    """
    fields_by_object: dict[ResourceKey, list[DifferingField]] = defaultdict(list)
    for field in fields:
        fields_by_object[field.key].append(field)
    keys_by_summary: dict[tuple[str, str], list[ResourceKey]] = defaultdict(list)
    for key, object_fields in fields_by_object.items():
        paths = [field.display_path for field in object_fields if field.pointer]
        paths_text = ", ".join(paths[:_MAX_NAMED_FIELDS]) + (", …" if len(paths) > _MAX_NAMED_FIELDS else "")
        keys_by_summary[
            f"{paths_text} {_render_writers([field.cause for field in object_fields])}".strip(), key.kind
        ].append(key)
    summaries = []
    for (summary, _), keys in keys_by_summary.items():
        count = sum(len(fields_by_object[key]) for key in keys)
        names = ", ".join(f"{key.kind}/{key.name}" for key in keys[:_MAX_NAMED_FIELDS])
        more = f" and {len(keys) - _MAX_NAMED_FIELDS} more" if len(keys) > _MAX_NAMED_FIELDS else ""
        summaries.append(f"{names}{more}: {summary} ({count} field{'' if count == 1 else 's'})")
    return summaries


def _render_writers(causes: Sequence[Cause]) -> str:
    managers = Counter(cause.manager for cause in causes if cause.manager)
    if managers:
        return f"set by {', '.join(name for name, _ in managers.most_common(2))}"
    kinds = {cause.kind for cause in causes}
    return "set by a default" if kinds == {CauseKind.DEFAULTING} else "set by an admission controller"


def _find_immutable_failures(view: LiveView) -> Iterator[Violation]:
    """argo: uses a SyncError, or the last sync's message about an object."""
    for app in view.apps:
        if not has_failed_sync(app) and not app.find_condition_message("SyncError"):
            continue
        for name, message in _list_immutable_errors(app):
            field = next(iter(read_rejected_fields(message)), "a field")
            text = f"{name}: {field} changed, but cannot be changed on an existing object (immutable)"
            fix = (
                "first check whether Kustomize writes labels into selectors (includeSelectors: true, commonLabels) and"
                " revert that; else recreate it, which interrupts it: argosy app sync"
                f" {app.name} --force --replace --resource {_render_resource_argument(app, name)}"
            )
            yield app.build_violation(text, fix, subject=name, field=field)


def _list_immutable_errors(app: LiveApplication) -> list[tuple[str, str]]:
    errors = {}
    for result in app.app.state.results if app.app.state else ():
        if result.result_code is ResultCode.SYNC_FAILED and is_immutable_error(result.message):
            errors[f"{result.key.kind}/{result.key.name}"] = result.message
    message = app.find_condition_message("SyncError")
    if not errors and "field is immutable" in message:
        errors["an object"] = message
    return list(errors.items())


def _render_resource_argument(app: LiveApplication, name: str) -> str:
    key = next((resource.key for resource in app.resources if resource.name == name), None)
    return f"{key.group}:{key.kind}:{key.name}" if key else "GROUP:KIND:NAME"


def has_failed_sync(app: LiveApplication) -> bool:
    """True if the last operation failed; one that is followed by Synced is history."""
    state = app.app.state
    return state is not None and state.phase in _FAILED_PHASES and app.sync != "Synced"


def _find_failed_syncs(view: LiveView) -> Iterator[Violation]:
    """Report other failed syncs, with the first object that has an error."""
    for app in view.apps:
        state = app.app.state
        if state is None or not has_failed_sync(app) or _list_immutable_errors(app):
            continue
        failed_results = [
            result
            for result in state.results
            if (result.hook_phase if result.hook else result.result_code) in _FAILURE_CODES
        ]
        detail = (
            f"{failed_results[0].key.kind}/{failed_results[0].key.name}: {failed_results[0].message}"
            if failed_results
            else state.message
        )
        text = f"the sync of {state.revision[:7] or 'its revision'} failed: {detail}"
        yield app.build_violation(text, f"fix the reported object, then: argosy app sync {app.name}")


_FAILURE_CODES: Final = ("SyncFailed", "Failed", "Error")


def _find_shared_resources(view: LiveView) -> Iterator[Violation]:
    for app in view.apps:
        messages = [message for kind, message in app.conditions if kind == "SharedResourceWarning"]
        for message in messages[:1]:
            match = _SHARED_RESOURCE_MESSAGE.match(message)
            resource = match["what"] if match else ""
            # Argo CD before 2.5 names the Application without its namespace.
            own_names = (app.app.qualified_name, app.app.name)
            other = (match["other"] if match["one"] in own_names else match["one"]) if match else ""
            more = f" and {len(messages) - 1} more" if len(messages) > 1 else ""
            text = (
                f"SharedResourceWarning with {other}: {resource}{more}"
                if match
                else f"SharedResourceWarning: {message}"
            )
            fix = "informational: nothing fails; declare it in one Application only if the manifests differ"
            yield app.build_violation(text, fix, subject=resource)


def _find_unsynced_apps(view: LiveView) -> Iterator[Violation]:
    """Report OutOfSync Applications. Manual sync: expected, a person must act. Automated: why it does not sync."""
    for app in view.apps:
        if (
            app.sync != "OutOfSync"
            or app.has_running_operation
            or has_failed_sync(app)
            or has_acceptable_drift(app)
            or app.find_condition_message("SyncError")
        ):
            continue
        hold = read_hold(app.app.annotations)
        count = sum(resource.status == "OutOfSync" for resource in app.resources)
        count_text = (
            f"{count} object{'' if count == 1 else 's'} of {len(app.resources)} differ{'s' if count == 1 else ''}"
        )
        manual_changes, is_new = list_manual_changes(app), app.app.state is None and not app.app.status.get("history")
        if (
            manual_changes
            and not _has_self_heal(app)
            and not is_new
            and not (app.is_automated and _count_git_changes(app))
        ):
            yield _build_manual_change_violation(app, manual_changes)
        elif (active_rollback := app.rollback) is not None:
            release_text = f"; then end the hold: argosy app release {app.name}" if hold is not None else ""
            fix = f"fix it in Git, and check before you sync: argosy app diff {app.name}{release_text}"
            yield app.build_violation(f"{count_text}: it was {active_rollback}", fix, severity=Severity.INFO)
        elif not app.is_automated:
            text = f"{count_text}; expected: it is synced manually, and was not synced since"
            text = (
                f"{count_text}; it is synced manually, and was not compared" if app.differing_fields is None else text
            )
            text = f"never synced, {count} to create; expected: it is synced manually" if is_new else text
            fix = f"review the changes, then: argosy app diff {app.name}; argosy app sync {app.name}"
            yield app.build_violation(text, fix, severity=Severity.INFO)
        elif hold is not None:
            holder_text = f" by {hold.by}" if hold.by else ""
            text = (
                f"{count_text}, and its automated sync is held{holder_text}{f': {hold.reason}' if hold.reason else ''}"
            )
            yield app.build_violation(text, f"end the hold: argosy app release {app.name}", severity=Severity.INFO)
        elif (waited_seconds := _find_sync_delay_seconds(view, app)) is not None:
            text = f"{count_text}, and its automated sync has not started for {int(waited_seconds)} s"
            fix = (
                "check spec.syncPolicy.automated (selfHeal for changes in the cluster, prune for objects removed from"
                f" Git) and whether Argo CD polls Git, and try a manual sync: argosy app sync {app.name}"
            )
            yield app.build_violation(text, fix)


def _build_manual_change_violation(app: LiveApplication, manual_changes: Sequence[DifferingField]) -> Violation:
    """Report drift by hand for any sync policy; pending changes in Git are mentioned."""
    reason = "self-heal is off" if app.is_automated else "no automated sync reverts it"
    summary = "; ".join(summarize_fields(manual_changes)[:_MAX_NAMED_FIELDS])
    count = _count_git_changes(app)
    git_text = f"; Git has changed {count} more field{'' if count == 1 else 's'}" if count else ""
    fix = f"restore it: argosy app sync {app.name}; or commit the change to Git"
    return app.build_violation(f"changed by hand, but {reason}: {summary}{git_text}", fix, severity=Severity.WARNING)


def _count_git_changes(app: LiveApplication) -> int:
    return sum(field.cause.kind is CauseKind.GIT_CHANGE for field in app.differing_fields or ())


def list_manual_changes(app: LiveApplication) -> list[DifferingField]:
    """Return fields that people changed in the cluster; a field that Git changed since then is Git's change."""
    candidates = [field for field in app.differing_fields or () if field.cause.kind is CauseKind.OTHER_CONTROLLER]
    return [field for field in candidates if is_interactive_client(field.cause.manager)]


def _has_self_heal(app: LiveApplication) -> bool:
    automated = app.app.policy.automated
    return automated is not None and automated.is_on and automated.self_heal


def _find_sync_delay_seconds(view: LiveView, app: LiveApplication) -> float | None:
    """Return for how long a due automated sync has not started; None if none is due, or it may still start.

    argo: it syncs a revision once; changes in the cluster are reverted with selfHeal only.
    """
    automated, state = app.app.policy.automated, app.app.state
    if automated is None or app.differing_fields is None:
        return None
    kinds = {field.cause.kind for field in app.differing_fields}
    is_due = CauseKind.GIT_CHANGE in kinds or (automated.self_heal and CauseKind.OTHER_CONTROLLER in kinds)
    since = view.seconds_since(state.finished or state.started) if state else None
    return since if is_due and since is not None and since > 2 * _POLLING_INTERVAL_SECONDS else None


RULES: Final = (
    build_live_rule(
        "AGY501",
        Severity.WARNING,
        "OutOfSync only in fields that others own",
        "Nothing is wrong in the cluster, but the Application never becomes Synced, and real drift is hard to see.",
        "Each differing field has a cause, found from managedFields and by a dry run: a default, admission, or a"
        " controller. If a person or Git changed any field, this is not reported.",
        "Add the narrowest ignore rule for these fields; `argosy align` writes it and proves that it is sufficient.",
        _find_acceptable_drift,
    ),
    build_live_rule(
        "AGY510",
        Severity.ERROR,
        "A sync fails on an immutable field",
        "Each sync fails in the same way; later objects are not applied.",
        "The API server rejected the change of this field in the last sync: field is immutable.",
        "Revert the change in Git; Kustomize's includeSelectors is the usual cause. Else recreate the object"
        " (Force=true,Replace=true): Replace=true alone is not enough.",
        _find_immutable_failures,
    ),
    build_live_rule(
        "AGY511",
        Severity.INFO,
        "Two Applications manage one object",
        "The last sync wins. As long as both manifests are equal, nothing fails.",
        "Argo CD reports it in a condition of the Application: both manage the object.",
        "Declare it in one Application only.",
        _find_shared_resources,
    ),
    build_live_rule(
        "AGY515",
        Severity.WARNING,
        "OutOfSync, and no sync runs",
        "The cluster does not have the state in Git.",
        "The Application is OutOfSync and no operation runs. If managedFields name a tool of people, a person changed"
        " it. Else, without automated sync, that is expected, and only information; with it, a change in Git has waited"
        " longer than Argo CD's polling interval.",
        "Sync it manually; then check the sync policy, holds and the polling interval.",
        _find_unsynced_apps,
    ),
    build_live_rule(
        "AGY517",
        Severity.ERROR,
        "The last sync failed",
        "The cluster has the state in Git only in part.",
        "The Application's operationState reports it, and it has not become Synced since.",
        "Fix the object in the message, and sync again.",
        _find_failed_syncs,
    ),
)
