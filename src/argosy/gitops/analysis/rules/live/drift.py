"""Live rules about drift: other writers, shared objects, immutable fields, missing and failed syncs.

In: a live view. Out: violations. Never: reports drift that only results from missing read permissions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from argosy.gitops.analysis.cause import Cause, CauseKind, is_by_hand
from argosy.gitops.analysis.evidence import is_immutable, refused_fields
from argosy.gitops.analysis.live_view import Differs, LiveApp, LiveView
from argosy.gitops.analysis.rule import live_rule
from argosy.gitops.analysis.violation import Severity, Sight
from argosy.gitops.application.operations import Outcome, Progress
from argosy.gitops.status.hold import read_hold
from argosy.kube.names import ResourceKey

BY_OTHERS: Final = (CauseKind.WEBHOOK, CauseKind.OTHER_CONTROLLER, CauseKind.DEFAULTING)
_MOST: Final = 3  # fields named in a message
_SHARED: Final = re.compile(r"^(?P<what>\S+/\S+) is part of applications (?P<one>\S+) and (?P<other>\S+)$")
_POLLING: Final = 180.0  # argo: seconds between polls of a Git server, including jitter
_FAILED: Final = (Progress.FAILED, Progress.ERROR)


def is_of_others(cause: Cause) -> bool:
    """True if a controller, webhook or default set the field; changes made by hand are excluded."""
    return cause.kind in BY_OTHERS and not is_by_hand(cause.manager)


def is_acceptable(app: LiveApp) -> bool:
    """True if OutOfSync only in fields that others own: the cluster works as it should."""
    return bool(app.sync == "OutOfSync" and app.fields and all(is_of_others(each.cause) for each in app.fields))


def _by_others(view: LiveView) -> Iterator[Sight]:
    for app in view.apps:
        if app.fields is None or not is_acceptable(app):
            continue
        told = in_short(app.fields)
        more = f" and {len(told) - _MOST} more" if len(told) > _MOST else ""
        state = "acceptable: " if app.health == "Healthy" else ""
        fix = f"ignore the fields with the narrowest rule: argosy align {app.name}"
        first = app.fields[0].key
        yield app.sight(f"{state}{'; '.join(told[:_MOST])}{more}", fix, subject=f"{first.kind}/{first.name}")


def in_short(fields: Sequence[Differs]) -> list[str]:
    """Summarize equal differences once: `Route/one, Route/two: spec.host, spec.tls set by openshift-router (4
    fields)`.
    """
    objects: dict[ResourceKey, list[Differs]] = defaultdict(list)
    for each in fields:
        objects[each.key].append(each)
    alike: dict[tuple[str, str], list[ResourceKey]] = defaultdict(list)
    for key, mine in objects.items():
        paths = [each.shown for each in mine if each.pointer]
        shown = ", ".join(paths[:_MOST]) + (", …" if len(paths) > _MOST else "")
        alike[f"{shown} {_by([each.cause for each in mine])}".strip(), key.kind].append(key)
    told = []
    for (words, _), keys in alike.items():
        count = sum(len(objects[key]) for key in keys)
        names = ", ".join(f"{key.kind}/{key.name}" for key in keys[:_MOST])
        more = f" and {len(keys) - _MOST} more" if len(keys) > _MOST else ""
        told.append(f"{names}{more}: {words} ({count} field{'' if count == 1 else 's'})")
    return told


def _by(causes: Sequence[Cause]) -> str:
    managers = Counter(each.manager for each in causes if each.manager)
    if managers:
        return f"set by {', '.join(name for name, _ in managers.most_common(2))}"
    kinds = {each.kind for each in causes}
    return "set by a default" if kinds == {CauseKind.DEFAULTING} else "set by an admission controller"


def _immutable(view: LiveView) -> Iterator[Sight]:
    """argo: uses a SyncError, or the last sync's message about an object."""
    for app in view.apps:
        if not has_failed(app) and not app.said("SyncError"):
            continue
        for name, message in _refusals(app):
            field = next(iter(refused_fields(message)), "a field")
            text = f"{name}: {field} changed, but cannot be changed on an existing object (immutable)"
            fix = (
                "first check whether Kustomize writes labels into selectors (includeSelectors: true, commonLabels) and"
                " revert that; else recreate it, which interrupts it: argosy app sync"
                f" {app.name} --force --replace --resource {_chosen(app, name)}"
            )
            yield app.sight(text, fix, subject=name, field=field)


def _refusals(app: LiveApp) -> list[tuple[str, str]]:
    found = {}
    for each in app.app.state.results if app.app.state else ():
        if each.outcome is Outcome.SYNC_FAILED and is_immutable(each.message):
            found[f"{each.key.kind}/{each.key.name}"] = each.message
    said = app.said("SyncError")
    if not found and "field is immutable" in said:
        found["an object"] = said
    return list(found.items())


def _chosen(app: LiveApp, name: str) -> str:
    key = next((row.key for row in app.rows if row.name == name), None)
    return f"{key.group}:{key.kind}:{key.name}" if key else "GROUP:KIND:NAME"


def has_failed(app: LiveApp) -> bool:
    """True if the last operation failed; one that is followed by Synced is history."""
    state = app.app.state
    return state is not None and state.progress in _FAILED and app.sync != "Synced"


def _failed(view: LiveView) -> Iterator[Sight]:
    """Report other failed syncs, with the first object that has an error."""
    for app in view.apps:
        state = app.app.state
        if state is None or not has_failed(app) or _refusals(app):
            continue
        bad = [each for each in state.results if (each.progress if each.hook else each.outcome) in _WORDS]
        told = f"{bad[0].key.kind}/{bad[0].key.name}: {bad[0].message}" if bad else state.message
        what = f"the sync of {state.revision[:7] or 'its revision'} failed: {told}"
        yield app.sight(what, f"fix the reported object, then: argosy app sync {app.name}")


_WORDS: Final = ("SyncFailed", "Failed", "Error")


def _shared(view: LiveView) -> Iterator[Sight]:
    for app in view.apps:
        said = [message for kind, message in app.conditions if kind == "SharedResourceWarning"]
        for message in said[:1]:
            match = _SHARED.match(message)
            what = match["what"] if match else ""
            other = next((each for each in (match["other"], match["one"]) if each != app.name), "") if match else ""
            more = f" and {len(said) - 1} more" if len(said) > 1 else ""
            text = f"SharedResourceWarning with {other}: {what}{more}" if match else f"SharedResourceWarning: {message}"
            fix = "informational: nothing fails; declare it in one Application only if the manifests differ"
            yield app.sight(text, fix, subject=what)


def _unsynced(view: LiveView) -> Iterator[Sight]:
    """Report OutOfSync Applications. Manual sync: expected, a person must act. Automated: why it does not sync."""
    for app in view.apps:
        if app.sync != "OutOfSync" or app.is_busy or has_failed(app) or is_acceptable(app) or app.said("SyncError"):
            continue
        hold = read_hold(app.app.annotations)
        count = sum(row.status == "OutOfSync" for row in app.rows)
        what = f"{count} object{'' if count == 1 else 's'} of {len(app.rows)} differ{'s' if count == 1 else ''}"
        hands, is_new = by_hand(app), app.app.state is None and not app.app.status.get("history")
        if hands and not _heals(app) and not is_new and not (app.is_automated and _by_git(app)):
            yield _edited(app, hands)
        elif (back := app.rollback) is not None:
            held = f"; then end the hold: argosy app release {app.name}" if hold is not None else ""
            fix = f"fix it in Git, and check before you sync: argosy app diff {app.name}{held}"
            yield app.sight(f"{what}: it was {back}", fix, severity=Severity.INFO)
        elif not app.is_automated:
            text = f"{what}; expected: it is synced manually, and was not synced since"
            text = f"{what}; it is synced manually, and was not compared" if app.fields is None else text
            text = f"never synced, {count} to create; expected: it is synced manually" if is_new else text
            fix = f"review the changes, then: argosy app diff {app.name}; argosy app sync {app.name}"
            yield app.sight(text, fix, severity=Severity.INFO)
        elif hold is not None:
            who = f" by {hold.by}" if hold.by else ""
            text = f"{what}, and its automated sync is held{who}{f': {hold.reason}' if hold.reason else ''}"
            yield app.sight(text, f"end the hold: argosy app release {app.name}", severity=Severity.INFO)
        elif (since := _waited(view, app)) is not None:
            text = f"{what}, and its automated sync has not started for {int(since)} s"
            fix = (
                "check spec.syncPolicy.automated (selfHeal for changes in the cluster, prune for objects removed from"
                f" Git) and whether Argo CD polls Git, and try a manual sync: argosy app sync {app.name}"
            )
            yield app.sight(text, fix)


def _edited(app: LiveApp, hands: Sequence[Differs]) -> Sight:
    """Report drift by hand for any sync policy; pending changes in Git are mentioned."""
    why = "self-heal is off" if app.is_automated else "no automated sync reverts it"
    told = "; ".join(in_short(hands)[:_MOST])
    count = _by_git(app)
    more = f"; Git has changed {count} more field{'' if count == 1 else 's'}" if count else ""
    fix = f"restore it: argosy app sync {app.name}; or commit the change to Git"
    return app.sight(f"changed by hand, but {why}: {told}{more}", fix, severity=Severity.WARNING)


def _by_git(app: LiveApp) -> int:
    return sum(each.cause.kind is CauseKind.YOUR_CHANGE for each in app.fields or ())


def by_hand(app: LiveApp) -> list[Differs]:
    """Return fields that people changed in the cluster; a field that Git changed since then is Git's change."""
    found = [each for each in app.fields or () if each.cause.kind is CauseKind.OTHER_CONTROLLER]
    return [each for each in found if is_by_hand(each.cause.manager)]


def _heals(app: LiveApp) -> bool:
    automated = app.app.policy.automated
    return automated is not None and automated.is_on and automated.self_heal


def _waited(view: LiveView, app: LiveApp) -> float | None:
    """Return for how long a due automated sync has not started; None if none is due, or it may still start.

    argo: it syncs a revision once; changes in the cluster are reverted with selfHeal only.
    """
    automated, state = app.app.policy.automated, app.app.state
    if automated is None or app.fields is None:
        return None
    kinds = {each.cause.kind for each in app.fields}
    is_due = CauseKind.YOUR_CHANGE in kinds or (automated.self_heal and CauseKind.OTHER_CONTROLLER in kinds)
    since = view.seconds_since(state.finished or state.started) if state else None
    return since if is_due and since is not None and since > 2 * _POLLING else None


RULES: Final = (
    live_rule(
        "AGY501",
        Severity.WARNING,
        "OutOfSync only in fields that others own",
        "Nothing is wrong in the cluster, but the Application never becomes Synced, and real drift is hard to see.",
        "Each differing field has a cause, found from managedFields and by a dry run: a default, admission, or a"
        " controller. If a person or Git changed any field, this is not reported.",
        "Add the narrowest ignore rule for these fields; `argosy align` writes it and proves that it is sufficient.",
        _by_others,
    ),
    live_rule(
        "AGY510",
        Severity.ERROR,
        "A sync fails on an immutable field",
        "Each sync fails in the same way; later objects are not applied.",
        "The API server rejected the change of this field in the last sync: field is immutable.",
        "Revert the change in Git; Kustomize's includeSelectors is the usual cause. Else recreate the object"
        " (Force=true,Replace=true): Replace=true alone is not enough.",
        _immutable,
    ),
    live_rule(
        "AGY511",
        Severity.INFO,
        "Two Applications manage one object",
        "The last sync wins. As long as both manifests are equal, nothing fails.",
        "Argo CD reports it in a condition of the Application: both manage the object.",
        "Declare it in one Application only.",
        _shared,
    ),
    live_rule(
        "AGY515",
        Severity.WARNING,
        "OutOfSync, and no sync runs",
        "The cluster does not have the state in Git.",
        "The Application is OutOfSync and no operation runs. If managedFields name a tool of people, a person changed"
        " it. Else, without automated sync, that is expected, and only information; with it, a change in Git has waited"
        " longer than Argo CD's polling interval.",
        "Sync it manually; then check the sync policy, holds and the polling interval.",
        _unsynced,
    ),
    live_rule(
        "AGY517",
        Severity.ERROR,
        "The last sync failed",
        "The cluster has the state in Git only in part.",
        "The Application's operationState reports it, and it has not become Synced since.",
        "Fix the object in the message, and sync again.",
        _failed,
    ),
)
